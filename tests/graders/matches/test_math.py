from __future__ import annotations

import time

import pytest

from rolloutlib.graders import MathMatch


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        (r"\boxed{\frac{1}{2}}", r"$\frac12$"),
        (r"\boxed{0.5}", "1/2"),
        (r"\boxed{50\%}", "0.5"),
        ("The answer is $x = 1/2$.", r"\frac{1}{2}"),
        ("The answer is $$\\sqrt{2}$$.", r"\sqrt{2}"),
        ("The answer is: $ \\sqrt{2} $", r"\sqrt{2}"),
        (r"The answer is \[ \sqrt{2} \]", r"\sqrt{2}"),
        (r"The answer is \(\sqrt{2}\).", r"\sqrt{2}"),
        (r"Therefore \(n = \sqrt{12}\).", r"2\sqrt{3}"),
        (r"\boxed{(x+1)^2}", "x^2 + 2x + 1"),
        (r"\boxed{\{2, 1\}}", r"\{1, 2\}"),
        (r"\boxed{[0, \infty)}", r"[0,\infty)"),
        (r"\boxed{\begin{pmatrix}1\\2\end{pmatrix}}", r"\begin{bmatrix}1\\2\end{bmatrix}"),
        (r"\boxed{3.2 \times 10^5}", "320000"),
        (r"\boxed{10^6}", "1000000"),
        (r"\boxed{6 \cdot 7 = 42}", "42"),
        (r"\boxed{84/2}", "42"),
        (r"\boxed{42 \text{ cm}}", "42"),
        ("Final Answer: The final answer is $42$. I hope it is correct.", "42"),
        ("Answer: 2 1/2 hours", "5/2"),
        (r"\boxed{2^{10}}", "2^{10}"),
        (r"\boxed{\int_0^x f(t) dt}", r"\int_0^x f(t) dt"),
        (r"\boxed{\binom{5}{2} = 10}", "10"),
        (r"\boxed{x \in [0, 1]}", "[0, 1]"),
        (r"\boxed{2516}", "2516_8"),
        (r"\boxed{2516_{8}}", "2516_8"),
        (r"\boxed{12 m}", "12"),
        (r"\boxed{1.2e1}", "12"),
        (r"\boxed{n = 12}", "12"),
        (r"\boxed{\frac{1}{2}}", r"We halve it, so \boxed{\frac{1}{2}}."),
    ],
)
def test_equal_expressions_match(text: str, reference: str) -> None:
    score = MathMatch()(text, reference)
    assert (score.value, score.metadata["status"]) == (1.0, "found")


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        (r"\boxed{\frac{7}{3}}", "73"),
        (r"\boxed{0.3333}", "1/3"),
        (r"\boxed{42, 43}", "42"),
        (r"\boxed{42 \text{ or } 43}", "42"),
        (r"\boxed{x}", "42"),
        (r"\boxed{y}", "x"),
        (r"\boxed{(1, 2)}", "[1, 2]"),
        (r"\boxed{-\frac{1}{2}}", r"\frac{1}{2}"),
        (r"\boxed{x^2 + 1}", "(x+1)^2"),
        (r"\boxed{1 \lor 2 \lor 42}", "42"),
        (r"\boxed{42 & 43}", "42"),
        (r"\boxed{42a}", "42"),
        (r"\boxed{42}", "42a"),
        (r"\boxed{7 \to 42}", "42"),
        (r"\boxed{2\sqrt{3}}", "2"),
        (r"\boxed{2516_7}", "2516_8"),
    ],
)
def test_other_expressions_do_not(text: str, reference: str) -> None:
    score = MathMatch()(text, reference)
    assert (score.value, score.metadata["status"]) == (0.0, "found")


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        (r"\boxed{2+3}", "5"),
        (r"\boxed{17 \times 23}", "391"),
        (r"\boxed{2^{10}}", "1024"),
        (r"\boxed{3!}", "6"),
        (r"\boxed{\sqrt{49}}", "7"),
        (r"\boxed{\int_0^1 x dx}", r"\frac{1}{2}"),
        (r"\boxed{\sum_{i=1}^{4} i}", "10"),
        (r"\boxed{\binom{5}{2}}", "10"),
        (r"\boxed{e^{\ln 10}}", "10"),
        (r"\boxed{\frac{17}{1/23}}", "391"),
        (r"\boxed{(2+3, 6)}", "(5, 6)"),
        (r"\boxed{\{2+3, 3 \cdot 2\}}", r"\{5, 6\}"),
    ],
)
def test_a_calculation_is_not_its_result(text: str, reference: str) -> None:
    score = MathMatch()(text, reference)
    assert (score.value, score.metadata["status"]) == (0.0, "unevaluated")
    assert MathMatch(unevaluated=True)(text, reference).value == 1.0


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (r"\boxed{1/2 $ and $ 3}", "ambiguous"),
        (r"\boxed{4 or $3$}", "ambiguous"),
        (r"\boxed{$4$ or 3}", "ambiguous"),
        (r"\boxed{4 \) \(3}", "ambiguous"),
        ("So $x = 3$ or $x = 4$.", "ambiguous"),
        ("I do not know the answer.", "invalid"),
        (r"\boxed{" + "3+" * 2000 + "3}", "invalid"),
        (r"\boxed{3", "truncated"),
        (r"\boxed{}", "none"),
    ],
)
def test_what_is_no_one_formula_is_told(text: str, status: str) -> None:
    score = MathMatch()(text, "3")
    assert (score.value, score.metadata["status"]) == (0.0, status)
    assert score.metadata["reason"]


ENDLESS = r"\boxed{9^{9^{9^{9}}} + (x+y+z)^{9999}}"


def test_the_time_limit_holds_and_the_next_answer_is_graded() -> None:
    assert MathMatch(num_workers=1)(r"\boxed{2x}", "x + x").value == 1.0
    grader = MathMatch(time_limit=0.2, num_workers=1)
    started = time.monotonic()
    score = grader(ENDLESS, "42")
    assert time.monotonic() - started < 60  # without the limit it takes all memory or for ever
    assert (score.value, score.metadata["status"]) == (0.0, "timeout")
    assert score.metadata["reason"] == "a job took longer than 0.2 s"
    assert MathMatch(num_workers=1)(r"\boxed{2x}", "x + x").value == 1.0


def test_references_are_read_before_any_text() -> None:
    grader = MathMatch()
    grader.check_reference(["42", r"\frac{1}{2}", "x^2"])
    with pytest.raises(ValueError, match=r"cannot read the reference '\\\\frac\{' as mathematics"):
        grader.check_reference(["42", r"\frac{"])
    for unread in (r"0.\overline{3}", "2√3", r"1 \lor x"):  # of which math-verify reads a part
        with pytest.raises(ValueError, match="cannot read the reference"):
            grader.check_reference(unread)


def test_a_reference_that_cannot_be_calculated_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rolloutlib.graders._matches._math._CHECK_SECONDS", 0.5)
    with pytest.raises(ValueError, match=r"cannot be calculated: a job took longer than 0\.5 s"):
        MathMatch(num_workers=1).check_reference(r"9^{9^{9^{9}}} + x")


@pytest.mark.parametrize("num_workers", [0, -1])
def test_there_is_at_least_one_process(num_workers: int) -> None:
    with pytest.raises(ValueError, match="num_workers must be at least 1"):
        MathMatch(num_workers=num_workers)


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r'needs math_verify: pip install .*\[math\]"'):
        MathMatch()
