from __future__ import annotations

import pytest

from rolloutlib.graders import ChoiceMatch, Criterion

CITIES = ["Paris", "Rome", "Bern", "Oslo"]


@pytest.mark.parametrize(
    "text",
    [
        *(
            "B",
            "b",
            "(b)",
            "[B]",
            "B.",
            "B)",
            "**B**",
            "**(B)**",
            r"\boxed{B}",
            r"\boxed{\text{(B)}}",
        ),
        *(
            "B. Rome",
            "(B) Rome",
            "B: Rome",
            "Option B",
            "The answer is (B) Rome.",
            "<answer>B</answer>",
        ),
        *(
            "The answer is B because it is old.",
            "So the correct option is B",
            "I choose (B)",
            "\uff22",
        ),
        *(
            r"\boxed{(\text{B})}",
            "The best option is **B. Rome**",
            "The right choice is __B__.",
            "So the answer is option **B**, Rome",
            "The answer is B (Rome).",
            r"The answer is $\text{B}$ because it is old.",
            "Hence (B), since A and C are younger.",
        ),
        "The answer is (B) because A is wrong.",
        "The answer is B, since C and D are incorrect.",
        "Answer: B\n\nA is incorrect because it is too small. C and D are false.",
    ],
)
def test_a_letter_chooses_an_option(text: str) -> None:
    for grader in (ChoiceMatch(4), ChoiceMatch(CITIES)):
        score = grader(text, "B")
        assert (score.value, score.metadata["extracted"]) == (1.0, "B")
        assert grader(text, "C").value == 0.0


def test_the_text_of_an_option_chooses_it() -> None:
    grader = ChoiceMatch(CITIES)
    for reference in ("Rome", "rome", "B"):
        assert grader("The answer is **Rome**.", reference).value == 1.0
    assert grader("The answer is Oslo", "Rome").value == 0.0
    assert ChoiceMatch(4)("The answer is Rome", "B").metadata["status"] == "none"


@pytest.mark.parametrize(
    "text",
    [
        *(
            "A, B, C and D",
            "A B C D",
            "B or C",
            "A/B",
            "(a) (b)",
            "My choice is A or B",
            "Both A and B",
        ),
        *(
            "not B",
            "B is wrong",
            "It isn't B",
            "Neither A nor B",
            "It cannot be B",
            "(B) is false",
            "I doubt it is B",
            "Anything but B",
            "B+C",
            "A. Paris B. Rome C. Bern D. Oslo",
        ),
        "The answer is A, the answer is B",
        "Answer: C or the answer is B",
        "The answer is (B). Wait, (B) is incorrect.",
        "Answer: B\nOptions B and C are wrong.",
        "The answer is B. That is wrong.",
    ],
)
def test_several_options_and_negations_are_ambiguous(text: str) -> None:
    for grader in (ChoiceMatch(4), ChoiceMatch(CITIES)):
        for letter in "ABCD":
            score = grader(text, letter)
            assert (score.value, score.metadata["status"]) == (0.0, "ambiguous")
            assert score.metadata["extracted"] is None


def test_the_question_again_chooses_none_of_its_options() -> None:
    question = "Which is a capital?\nA. Lyon\nB. Nice\n\nC. Paris"
    for grader in (ChoiceMatch(3), ChoiceMatch(["Lyon", "Nice", "Paris"])):
        assert grader(question, "C").metadata["status"] == "ambiguous"
        assert grader(f"{question}\n\nC. Paris", "C").value == 1.0
        assert grader(f"{question}\nIt is (C).", "C").value == 1.0


def test_a_list_of_all_letters_chooses_none() -> None:
    for text in ("A\nB\nC\nD", "- A\n- B\n- C\n- D", "(A)\n(B)\n(C)\n(D)"):
        assert ChoiceMatch(4)(text, "D").metadata["status"] == "ambiguous"


@pytest.mark.parametrize(
    ("choices", "text", "letter"),
    [
        (["Vitamin B", "Vitamin A"], "B. Vitamin A", "B"),
        (["Vitamin B", "Vitamin A"], "The answer is Vitamin A.", "B"),
        (["5", "15"], "The answer is B (15)", "B"),
        (["Paris", "Paris, France"], "The answer is B, Paris, France", "B"),
        (["$5$", "$6$"], "The answer is 5", "A"),
        (["$5$", "$6$"], r"\boxed{6}", "B"),
        (["'5'", "5"], "The answer is '5'.", "A"),
        (["'5'", "5"], "The answer is 5.", "B"),
        (["x" * 3000, "y"], "A. " + "x" * 3000, "A"),
    ],
)
def test_texts_may_hold_letters_signs_and_each_other(
    choices: list[str], text: str, letter: str
) -> None:
    grader = ChoiceMatch(choices)
    assert grader(text, letter).metadata["extracted"] == letter
    for place, choice in enumerate(choices):  # as references they are themselves
        assert grader("AB"[place], choice).value == 1.0


def test_a_letter_beside_the_text_of_another_option_is_ambiguous() -> None:
    assert ChoiceMatch(CITIES)("B. Paris", "B").metadata["status"] == "ambiguous"
    assert ChoiceMatch(CITIES)("B. Paris", "A").value == 0.0


@pytest.mark.parametrize(
    "text", ["A cat sat", "I think so", "ABCD", "E", "Vitamin A is good", "a cat"]
)
def test_words_are_no_letters(text: str) -> None:
    assert ChoiceMatch(4)(text, "A").metadata["status"] == "none"


def test_a_criterion_may_have_choices_of_its_own() -> None:
    criterion = Criterion(
        id="q", description="q", references=("blue",), metadata={"choices": ["red", "blue"]}
    )
    assert ChoiceMatch()("Answer: B", criterion).value == 1.0
    assert ChoiceMatch(CITIES)("Answer: blue", criterion).value == 1.0


@pytest.mark.parametrize(
    ("choices", "error"),
    [(1, ValueError), (27, ValueError), (["x"], ValueError), (["x", "X"], ValueError), (["x", " "], ValueError),
     (["x", 2], TypeError), ("ABCD", TypeError), (2.0, TypeError)],
)  # fmt: skip
def test_unusable_choices_are_refused(choices: object, error: type[Exception]) -> None:
    with pytest.raises(error, match="choices"):
        ChoiceMatch(choices)  # pyright: ignore[reportArgumentType]
