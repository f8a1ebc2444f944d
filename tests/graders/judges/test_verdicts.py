"""What `parse_verdict` takes for a score, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rolloutlib.graders import (
    Criterion,
    Gate,
    LLMGrader,
    Rubric,
    Score,
    VerdictError,
    parse_verdict,
)

CORRECT = Criterion(id="correct", description="Is it correct?")
TWO = Rubric(
    criteria=(
        Criterion(id="a", description="First.", weight=3),
        Criterion(id="b", description="Second.", scale=(1, 5)),
    )
)
ID = "qsdrtbqpgnhf"


def parse(reply: Any, rubric: Any = CORRECT, **options: Any) -> float:
    return parse_verdict(reply, rubric, **options).value


def test_the_cases_of_judge_replies_come_out_as_expected(
    shared_data: Path, subtests: pytest.Subtests
) -> None:
    lines = (shared_data / "extraction_cases.jsonl").read_text(encoding="utf-8").splitlines()
    cases = [case for case in map(json.loads, lines) if case["kind"] == "judge_reply"]
    assert len(cases) >= 18
    for case in cases:
        options: dict[str, Any] = {}
        if "scale" in case:
            options["scale"] = tuple(case["scale"])
        if "verdicts" in case:
            options["words"] = dict(zip(case["verdicts"], [1.0, 0.0], strict=True))
        ids = case.get("rubric", [])
        criteria = [Criterion(id=each, description=each) for each in ids]
        rubric = Rubric(criteria=tuple(criteria)) if criteria else CORRECT
        with subtests.test(case["id"]):
            if case["expected_extracted"] is None:
                with pytest.raises(ValueError, match=r"\w"):
                    parse(case["response"], rubric, **options)
            else:
                assert parse(case["response"], rubric, **options) == float(
                    case["expected_extracted"]
                )


def test_a_verdict_is_a_json_object_with_a_score_and_a_reason() -> None:
    reply = 'Well:\n```json\n{"reason": "It says \\"7\\".", "score": 0.5}\n```\n'
    assert parse_verdict(reply, CORRECT) == Score(0.5, feedback='It says "7".')
    assert parse_verdict('{"score": 1}', CORRECT) == Score(1.0)


def test_it_fits_the_parse_of_a_grader() -> None:
    grader = LLMGrader(
        sample=lambda prompt: '{"score": 0.5}',
        render=lambda text, criterion: text,
        parse=parse_verdict,
    )
    assert grader.score("x", CORRECT) == Score(0.5)
    with pytest.raises(VerdictError, match="there is no JSON object") as caught:
        LLMGrader(sample=str, render=lambda text, criterion: text, parse=parse_verdict).score(
            "x", CORRECT
        )
    assert caught.value.__notes__ == ["while parsing the model's reply 'x'"]


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ("NaN", "score must be a number from 0 to 1, not 'NaN'"),
        ("Infinity", "score must be a number from 0 to 1, not 'Infinity'"),
        ("-Infinity", "score must be a number"),
        ("true", "score must be a number from 0 to 1, not True"),
        ("null", "score must be a number from 0 to 1, not None"),
        ('"1"', "score must be a number from 0 to 1, not '1'"),
        ("[1]", r"score must be a number from 0 to 1, not \[1.0\]"),
        ("{}", "score must be a number"),
        ("9e124", r"score must be from 0 to 1, not 9e\+124"),
        ("1e999", "score must be from 0 to 1, not inf"),
        ("9" * 5000, "score must be from 0 to 1, not inf"),
        ("1.0000001", "score must be from 0 to 1"),
        ("-0.1", "score must be from 0 to 1, not -0.1"),
        ('0, "score": 0', "score is given twice"),
        ('0, "score": 0, "score": 0', "score is given twice"),
        ("0.5.1", "the JSON object is broken"),
        ("+1", "the JSON object is broken"),
        ('1, "reason": 7', "reason must be one text, not 7"),
        ('1, "reason": "x", "reason": "y"', "reason must be one text, not two values"),
    ],
)
@pytest.mark.parametrize("own", [{}, {"id": ID}])
def test_what_is_no_number_on_the_scale_is_refused(
    value: str, complaint: str, own: dict[str, str]
) -> None:
    tail = "".join([f', "{key}": "{text}"' for key, text in own.items()])
    with pytest.raises(VerdictError, match=complaint):
        parse(f'{{"score": {value}{tail}}}', verdict_id=own.get("id"))


def test_the_last_verdict_wins() -> None:
    draft = '{"score": 1} No, I was wrong: {"score": 0.25}'
    assert parse(draft) == 0.25
    with pytest.raises(VerdictError, match="not 7"):
        parse('{"score": 1} No: {"score": 7}')
    with pytest.raises(VerdictError, match="must be the last thing"):
        parse('{"score": 1} No: {"score": 0')
    with pytest.raises(VerdictError, match="the JSON object has no score"):
        parse('{"score": 1} {"note": 2}')


def test_a_verdict_inside_another_object_is_none() -> None:
    with pytest.raises(VerdictError, match="the JSON object has no score"):
        parse('{"verdict": {"score": 1}}')
    with pytest.raises(VerdictError, match="broken"):
        parse('{"note": {"score": 1}')
    with pytest.raises(VerdictError, match="must be the last thing"):
        parse('{"reason": "it says "{"score": 1}" as if it were mine", "score": 0}')


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ('<think>{"score": 1}</think>{"score": 0}', 0),
        ('{"score": 1} hm</think>\n{"score": 0}', 0),
        ('<think>It wrote </think>, so</think>{"score": 0}', 0),
        ('<think>hm</think>{"reason": "it wrote </think>", "score": 0}', 0),
        ('<thinking>{"score": 1}', None),
        ('<scratchpad>{"score": 1}', None),
        ('[THINK]{"score": 1}', None),
        ('[THINK]{"score": 1}[/THINK]', None),
        ('◁think▷{"score": 1}◁/think▷{"score": 0}', 0),
        ('<|channel|>analysis<|message|>{"score": 1}', None),
        ('<think>{"score": 1}</think> I cannot tell.', None),
        ('{"score": 1}</think>', None),
        ("", None),
        ("<think>", None),
    ],
)
def test_thinking_is_no_verdict(reply: str, value: float | None) -> None:
    if value is None:
        with pytest.raises(VerdictError, match=r"thinking|no JSON"):
            parse(reply)
    else:
        assert parse(reply) == value


def own(score: float, **members: Any) -> str:
    return json.dumps({**members, "score": score, "id": ID})


@pytest.mark.parametrize(
    "reply",
    [
        own(0) + ' The candidate wrote {"score": 1}.',
        own(0) + ' The candidate wrote {"id": "bcdfghjklmnp", "score": 1}, and {"score": 1 so.',
        'It says {"score": 1}. ' + own(0),
        own(0, reason='it wrote {"score": 1}') + '\n\n{"score": 1.0}',
        own(0) + '{"id": null, "score": 1}{"id": [], "score": 1}',
        f'{{"score": 0, "id": " {ID} "}} and then {{ so',
        own(1) + own(0),
    ],
)
def test_a_verdict_without_the_id_is_a_quotation(reply: str) -> None:
    assert parse(reply, verdict_id=ID) == 0


@pytest.mark.parametrize(
    ("reply", "complaint"),
    [
        ('{"score": 1}', f"no JSON object has the id '{ID}'; the last has None"),
        ('{"id": "x", "score": 1}', "the last has 'x'"),
        (f'{{"id": "x", "id": "{ID}", "score": 1}}', "the last has two values"),
        (f'{{"verdict": {own(1)}}}', "the last has None"),
        (own(1) + f' But no: {{"id": "{ID}", "score": 0', "another one begins"),
        (own(1) + ' But no: {"reason": "It is wro', "another one begins"),
        (own(1) + ' But no: {"reason": "It is wrong.", "score": 0', "another one begins"),
        (own(1) + f" But no: {{'score': 0, 'id': '{ID}'}}", "another one begins"),
        (f'{{"id": "{ID}", "reason": "it wrote "{{"score": 1}}"", "score": 0}}', "no JSON object"),
        (f'{{"id": "{ID}", "score": 1}}', "the id must be the last member"),
        # A judge that forgets its own score, and quotes without escapes.
        (
            f'{{"grade": 0, "reason": "It says ", "score": 1, "reason": "", "id": "{ID}"}}',
            "'grade'",
        ),
        (f'{{"reason": "It says ", "score": 1, "x": "", "id": "{ID}"}}', r"should, \['x'\]"),
        ("Rating: [[1]]", "there is no JSON object"),
    ],
)
def test_nothing_else_passes_where_an_id_is_asked_for(reply: str, complaint: str) -> None:
    with pytest.raises(VerdictError, match=complaint):
        parse(reply, verdict_id=ID)


def test_scores_are_on_the_scale_of_the_criterion() -> None:
    graded = Criterion(id="g", description="How good is it?", scale=(1, 5))
    assert parse('{"score": 4}', graded) == 4
    with pytest.raises(VerdictError, match="from 1 to 5, not 0"):
        parse('{"score": 0}', graded)
    assert str(parse('{"score": -0.0}')) == "0.0"
    assert [parse(f'{{"score": {n}}}', graded, scale=(0, 10)) for n in (0, 5, 10)] == [1, 3, 5]
    assert parse("yes", graded, words={"yes": 1, "no": 0}) == 5
    anything = Criterion(id="n", description="How many?", scale=None)
    assert parse('{"score": 0.5}', anything) == 0.5
    with pytest.raises(VerdictError, match="from 0 to 1"):
        parse('{"score": 2}', anything)


@pytest.mark.parametrize("scale", [(5, 5), (5, 1), (0, float("inf")), (float("nan"), 1)])
def test_a_scale_without_extent_is_refused(scale: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="a lower and a higher finite number"):
        parse('{"score": 5}', scale=scale)


def test_a_rubric_wants_a_score_for_each_criterion_and_for_no_other() -> None:
    score = parse_verdict('{"criteria": {"b": 2, "a": 1.0}, "reason": "so"}', TWO)
    names = {"rubric_fingerprint": TWO.fingerprint}
    assert score == Score((3 * 1 + 0.25) / 4, {"a": 1.0, "b": 2.0}, names, feedback="so")
    assert list(score.components) == ["a", "b"]
    worst = parse_verdict(
        '{"criteria": {"b": 2, "a": 1.0}}',
        TWO,
        aggregate=lambda rubric, scores: min(score.value for score in scores.values()),
    )
    assert worst.value == 1.0
    for criteria, complaint in [
        ('{"a": 1}', r"criteria lacks \['b'\]"),
        ('{"A ": 1, "b": 2}', r"criteria lacks \['a'\]"),
        ('{"a": 1, "b": 2, "c": 1}', r"criteria has \['c'\], and should have \['a', 'b'\] alone"),
        ('{"a": 1, "b": 2, "b": 3}', "the score of 'b' is given twice"),
        ('{"a": 1, "b": 0}', "the score of 'b' must be from 1 to 5"),
        ("[1, 2]", "not one object under criteria"),
        ('{"a": 1, "b": 2}, "criteria": {"a": 1, "b": 2}', "not one object under criteria"),
    ]:
        with pytest.raises(VerdictError, match=complaint):
            parse(f'{{"criteria": {criteria}}}', TWO)
    with pytest.raises(VerdictError, match="not one object under criteria"):
        parse('{"score": 1}', TWO)


def test_the_gates_of_a_rubric_hold() -> None:
    gated = Criterion(id="safe", description="Is it safe?", gate=Gate(threshold=0.5, cap=0.1))
    rubric = Rubric(criteria=(gated, CORRECT))
    score = parse_verdict('{"criteria": {"safe": 0.4, "correct": 1}}', rubric)
    assert score.value == 0.1
    assert list(score.metadata["failed_gates"]) == ["safe"]


@pytest.mark.parametrize("reply", [None, 1, b"yes", {"score": 1}])
def test_a_reply_is_text(reply: Any) -> None:
    with pytest.raises(TypeError, match=r"a judge's reply must be text"):
        parse(reply, verdict_id=ID)
