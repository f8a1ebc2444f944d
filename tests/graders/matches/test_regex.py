from __future__ import annotations

import re
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolloutlib.graders import RegexMatch

FORMAT = r"(?s)<think>.*?</think>\s*<answer>.*?</answer>"


def test_the_whole_answer_has_to_match() -> None:
    grader = RegexMatch()
    assert grader("The answer is AB-12.", r"[A-Z]{2}-\d{2}").value == 1.0
    assert grader("The answer is AB-12 or CD-34.", r"[A-Z]{2}-\d{2}").value == 0.0
    assert RegexMatch(search=True)("The answer is AB-12 or so.", r"[A-Z]{2}-\d{2}").value == 1.0


def test_a_format_may_include_the_thinking() -> None:
    text = "<think>3 + 4</think>\n<answer>7</answer>"
    assert RegexMatch(on="all")(text, FORMAT).value == 1.0
    assert RegexMatch(on="visible")(text, FORMAT).value == 0.0
    assert RegexMatch(on="visible")(text, r"<answer>\d+</answer>").value == 1.0
    assert RegexMatch(on="all")(f"{text} and more", FORMAT).value == 0.0


def test_several_patterns_are_alternatives() -> None:
    assert RegexMatch()("Answer: 7", [r"[a-z]+", r"\d+"]).metadata["reference"] == 1


CATASTROPHES = [
    (r"(a|aa)+$", "a" * 60 + "b"),
    (r"(?:a|a)*$", "a" * 60 + "b"),
    (r"(x+x+)+y", "x" * 5000),
    (r"(?:(?:a{1,100}){1,100}){1,100}b", "a" * 5000),
]


@pytest.mark.parametrize(("pattern", "text"), CATASTROPHES)
def test_the_time_limit_holds_in_any_thread(pattern: str, text: str) -> None:
    grader = RegexMatch(on="all", search=True, time_limit=0.05)
    scores: list[Any] = [None] * 3

    def grade(place: int) -> None:
        scores[place] = grader(text, pattern)

    threads = [threading.Thread(target=grade, args=[place], daemon=True) for place in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for score in scores:
        assert score is not None, "matching does not end"
        assert (score.value, score.metadata["status"]) == (0.0, "timeout")
        assert "took more than 0.05 s" in score.metadata["reason"]


@pytest.mark.parametrize("limit", [0, -1.0, float("nan"), float("inf")])
def test_unusable_limits_are_refused(limit: float) -> None:
    with pytest.raises(ValueError, match="time_limit must be finite and above 0"):
        RegexMatch(time_limit=limit)


def test_a_pattern_nested_too_deeply_is_refused() -> None:
    with pytest.raises(ValueError, match="is no regular expression: maximum recursion depth"):
        RegexMatch().check_reference("(" * 5000 + ")" * 5000)


@given(
    pattern=st.sampled_from(
        [r"a+b", r"(?i)[a-c]*", r"(a)(?:b|\1)", r"\w{2,3}", r"^a.?$", r"(?=a)ab?"]
    ),
    text=st.text("abAB1 ", min_size=1),
)
def test_patterns_mean_what_they_mean_to_python(pattern: str, text: str) -> None:
    assert RegexMatch(on="all")(text, pattern).value == float(bool(re.fullmatch(pattern, text)))
    found = re.search(pattern, text)
    assert RegexMatch(on="all", search=True)(text, pattern).value == float(bool(found))


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(
        ImportError, match=r'needs regex: pip install "rolloutlib-graders\[regex\]"'
    ):
        RegexMatch()
