"""What an extraction tells: the answer, the rule that found it, where it stands, why there is none."""

from __future__ import annotations

import threading
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolloutlib.answers import Extraction, extract, extract_text, visible_text


@pytest.mark.parametrize(
    ("text", "rule", "written"),
    [
        (r"So \boxed{42}.", "box", "42"),
        (r"So $\fbox{ 42 }$.", "box", "42"),
        ("<answer>42</answer>", "box", "42"),
        ("work\n#### 42\n", "marker", "42"),
        ("The answer is $42.", "marker", "$42"),
        ("**Answer:** 42 eggs", "marker", "42"),
        ("The answer is 9 * 2 + 24 = 42.", "marker", "42"),
        (r"\boxed{x = 42\text{ cm}}", "box", "42"),
        (r"\boxed{\frac{84}{2}}", "box", r"\frac{84}{2}"),
        ("She has **42** eggs.", "bold", "42"),
        ("Let me see.\n\n42", "line", "42"),
        ("She had 3. Now she has 42.", "sentence", "42"),
        ("```output\n42\n```\nThat many.", "output", "42"),
    ],
)
def test_the_rule_and_the_place_are_told(text: str, rule: str, written: str) -> None:
    found = extract(text, last_number=True)
    assert (found.status, found.value, found.rule, found.text) == ("found", 42, rule, written)
    assert found.span is not None
    assert text[slice(*found.span)] == written
    assert found.reason is None


@pytest.mark.parametrize(
    ("text", "status", "reason"),
    [
        ("", "none", "the text is empty"),
        ("I cannot say.", "none", "no number stands where the answer should"),
        (r"\boxed{42} \boxed{}", "none", "the last box is empty"),
        (r"\boxed{42} \boxed{4", "truncated", "the last box does not end"),
        ("<think>42", "truncated", "the thinking does not end"),
        ("The answer is", "truncated", "nothing follows the marker"),
        ("The answer is 41 or 42.", "ambiguous", "several values are given"),
        ("The answer is 6 * 7.", "ambiguous", "an expression is given and not a number"),
        ("The answer isn't 42.", "ambiguous", "the answer is denied"),
        ("The answer is at least 42.", "ambiguous", "a bound is given and not a number"),
        ("How many are 42?", "ambiguous", "a question is asked"),
        (f"\\boxed{{{'9' * 500}}}", "ambiguous", "the answer is too long"),
        ("The answer is 1/0.", "ambiguous", "the number cannot be read"),
        (r"\boxed{42} The answer is 43.", "ambiguous", "the box and what follows it differ"),
        ("#### 42\nI made a mistake there.", "ambiguous", "the answer is taken back"),
    ],
)
def test_a_missing_answer_has_a_reason(text: str, status: str, reason: str) -> None:
    found = extract(text, last_number=True)
    assert (found.status, found.reason, found.value) == (status, reason, None)
    assert found.as_metadata() == {
        "extracted": None,
        "status": status,
        "rule": found.rule,
        "span": found.span,
        "reason": reason,
    }


@pytest.mark.parametrize("text", ["It's 42.", "Now she has 42 eggs", r"\boxed{It is 42}"])
def test_a_number_in_a_sentence_counts_only_if_the_last_number_does(text: str) -> None:
    found = extract(text)
    reason = "a sentence is given and not a number alone"
    assert (found.status, found.reason) == ("ambiguous", reason)
    assert (extract(text, last_number=True).value == 42) == ("box" not in text)


def test_each_rule_outranks_those_after_it() -> None:
    parts = ["**4**\n5", "The answer is 3.", "#### 2", r"\boxed{1}"]
    assert [extract("\n".join(parts[: n + 1])).value for n in range(4)] == [5, 3, 2, 1]
    assert extract("The total is 6.").value is None
    assert extract("The total is 6.", last_number=True).value == 6


def test_positions_hold_across_thinking_and_invisible_characters() -> None:
    text = "\ufeff<think>\u200b1</think>\u200bThe answer is\u200b \u20604\u200b2."
    found = extract(text)
    assert (found.value, found.text) == (42, "4\u200b2")


def test_percent_and_scale_words_are_not_plain() -> None:
    assert extract("#### 42").plain
    assert not extract("#### 42%").plain
    assert not extract("#### 42 million").plain


def test_visible_text_keeps_positions() -> None:
    text = "<think>a\nb</think>It is \uff14\u0662.<|im_end|>more"
    visible = visible_text(text)
    assert visible is not None
    assert visible.strip() == "It is 42."
    assert visible.index("42") == text.index("\uff14")
    assert visible_text("so <think>") is None
    assert visible_text("It is 42. ~~Or 43.~~ <!-- 44 -->") == "It is 42." + " " * 23


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("It is 42 <!-- or 43", ""),
        ("It is 42\n <!-- or 43", " <!-- or 43"),
        ("<!-- or 43\n\nIt is 42", "<!-- or 43\n\nIt is 42"),
        ("It is 42 <!-- or 43\n--> or", "<!-- or 43\n-->"),
        ("It is 42 <!-- or ~~43~~", "~~43~~"),
        ("It is 42 <!-- or\n<!-- 43", "<!-- 43"),
    ],
)
def test_a_comment_without_an_end_hides_what_follows_if_it_begins_a_line(
    text: str, hidden: str
) -> None:
    assert visible_text(text) == text.replace(hidden, " " * len(hidden))


@pytest.mark.parametrize(
    "block",
    [
        "```html\n<!--\n```",
        "```html\n<!-- one -->\n<s>two</s> ~~three~~\n```",
        "~~~~py\ny = 1\n# Example: 2\n~~~\n~~~~",
        "```text\n<|im_end|>\n```",
        "   ```\nA 1\n\nQuestion: 2\n   `````",
        "```\n```~~~\n<!--\n```",
        "~~~ a`b\n<!--\n~~~",
        "Write <!-- first:\n```html\n<!--\n-->\n```\nand --> last.",
        "`<!--`, `<s>`, `</s>`:\n```html\n</s>\n-->\n```",
    ],
)
def test_code_is_left_as_it_is_where_it_is_looked_for(block: str) -> None:
    kept = f"It is 1. ~~No.~~\n{block}\nThe answer is 2.\n"
    text = f"{kept}\nQuestion: 3?\n{block}"
    visible = kept.replace("~~No.~~", " " * 7)
    assert visible_text(text, code=True) == visible
    assert visible_text(text) != visible


@pytest.mark.parametrize("fences", ["```json\n{}\n```\n", "```\n"])
def test_code_in_a_comment_is_hidden_with_it(fences: str) -> None:
    comment = f"<!--\n{fences}-->"
    text = "1\n{}\n```\n2\n```"
    assert visible_text(text.format(comment), code=True) == text.format(" " * len(comment))


def test_what_code_says_is_an_answer_before_an_invented_turn() -> None:
    kept = '```json\n{"answer": 1}\n```\n'
    assert visible_text(f"{kept}\nQuestion: What next?", code=True) == kept


@given(st.text())
def test_visible_text_never_grows_and_plain_text_stays(text: str) -> None:
    visible = visible_text(text)
    assert visible is None or len(visible) <= len(text)
    if text.isalpha() and text.isascii():
        assert visible == text


PLAIN = str.maketrans("\uff42\uff53\u0664\u2028", "bs4\n")
PIECES = st.sampled_from(
    [
        *"`x \n\u0130",
        *map(chr, PLAIN),
        "```json\n",
        "```\n",
        "~~~",
        "~~no~~",
        "<!--",
        "-->",
        "<s>",
        "</s>",
        "</think>",
        "\nQuestion: 2",
    ]
)


@given(st.lists(PIECES, max_size=15).map("".join), st.booleans())
def test_what_is_visible_stands_where_it_stood(text: str, code: bool) -> None:
    visible = visible_text(text, code=code)
    assert visible is not None
    assert len(visible) <= len(text)
    pairs = zip(visible, text.translate(PLAIN), strict=False)
    assert all(seen in (written, " ", "\n") for seen, written in pairs)


@pytest.mark.parametrize(
    ("text", "rule", "answer"),
    [
        ("So it is B.\n\n**Answer:** (B)", "marker", "(B)"),
        ("The answer is **Paris**.", "marker", "Paris"),
        ('The answer is "Paris".', "marker", '"Paris".'),
        ("The answer is $$x+1$$", "marker", "$$x+1$$"),
        ("Answer: $$\nx+1\n$$", "marker", "x+1"),
        ("**The answer is B**", "marker", "B"),
        (r"\boxed{\text{B}}", "box", r"\text{B}"),
        (r"\boxed{x^{2}+\frac{1}{x}}", "box", r"x^{2}+\frac{1}{x}"),
        ("<answer>\n yes \n</answer>", "box", "yes"),
        ("<think>A</think>Final answer: B", "marker", "B"),
        ("I think so.\n\nParis", "line", "Paris"),
        ("```\nParis\n```", "line", "Paris"),
        ("#### Step 1: look\nIt is Paris.", "line", "It is Paris."),
        ("Answer: A\n\nQuestion: And then?\nAnswer: B", "marker", "A"),
    ],
)
def test_answers_that_are_no_numbers_are_found_as_text(text: str, rule: str, answer: str) -> None:
    found = extract_text(text)
    assert (found.status, found.rule, found.text, found.value) == ("found", rule, answer, None)
    assert found.span is not None
    assert text[slice(*found.span)] == answer
    assert found.as_metadata()["extracted"] == answer


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("", "none"),
        (r"\boxed{A} \boxed{}", "none"),
        (r"\boxed{A", "truncated"),
        ("<think>A", "truncated"),
        ("The answer is", "truncated"),
        (r"\boxed{A} or \boxed{B}", "ambiguous"),
        ("I doubt the answer is B.", "ambiguous"),
        (r"\boxed{A} is wrong.", "ambiguous"),
        (r"The wrong answer is \boxed{A}.", "ambiguous"),
        (r"It is not \boxed{A}.", "ambiguous"),
    ],
)
def test_missing_text_has_a_status_and_a_reason(text: str, status: str) -> None:
    found = extract_text(text)
    assert found.status == status
    assert found.reason
    assert found.as_metadata()["extracted"] is None


@pytest.mark.parametrize("find", [extract, extract_text, visible_text])
def test_what_is_not_text_is_named(find: Any) -> None:
    with pytest.raises(TypeError, match="must be text, got 42"):
        find(42)


@given(st.text())
def test_any_text_has_an_outcome(text: str) -> None:
    for found in (extract(text), extract(text, last_number=True), extract_text(text)):
        assert (found.status == "found") == (found.reason is None)
        assert found.span is None or found.text == text[slice(*found.span)]


def test_answers_are_found_in_any_thread() -> None:
    found: list[Extraction] = []
    threads = [
        threading.Thread(target=lambda n=n: found.append(extract(f"#### {n}"))) for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {extraction.value for extraction in found} == set(map(Fraction, range(8)))
