"""`VotingGrader`: several verdicts of one grader, with their spread."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolloutlib.graders import (
    CompositeGrader,
    Criterion,
    Judge,
    JudgeTemplate,
    JudgeUsage,
    Rubric,
    Score,
    VerdictError,
    VotingGrader,
)
from rolloutlib.types import Chat

pytestmark = pytest.mark.anyio

CORRECT = Criterion(id="correct", description="Is it correct?")
BARE = JudgeTemplate(verdict_id=False)


def scripted(*verdicts: Any) -> Callable[[object, object], Any]:
    """Make a grader that gives one verdict after another, and raises those that are errors."""
    remaining = iter(verdicts)

    def grade(text: object, criterion: object) -> Any:
        verdict = next(remaining)
        if isinstance(verdict, Exception):
            raise verdict
        return verdict

    return grade


async def ask(grader: VotingGrader[Any, Any], asynchronous: bool) -> Score:
    return await grader.ascore("x", CORRECT) if asynchronous else grader.score("x", CORRECT)


either_way = pytest.mark.parametrize("asynchronous", [False, True])


@either_way
@pytest.mark.parametrize(
    ("combine", "values", "value"),
    [
        ("mean", (0, 0.5, 1), 0.5),
        ("mean", (1, 0, 0, 0), 0.25),
        ("median", (0, 0, 1), 0),
        ("median", (0, 0.2, 0.6, 1), 0.4),
        ("majority", (0, 1, 1), 1),
        ("majority", (0.2, 0.9, 0.2, 1), 0.2),
        ("majority", (0, 1), 0.5),
        ("majority", (0, 0, 1, 1, 0.7), 0.5),
    ],
)
async def test_verdicts_are_combined(
    combine: Any, values: tuple[float, ...], value: float, asynchronous: bool
) -> None:
    grader = VotingGrader(scripted(*values), num_votes=len(values), combine=combine, concurrency=1)
    score = await ask(grader, asynchronous)
    assert score.value == pytest.approx(value)
    assert score.metadata["votes"]["values"] == list(values)


@either_way
async def test_the_spread_stands_in_the_metadata(asynchronous: bool) -> None:
    grader = VotingGrader(
        scripted(0.2, Score(0.4, feedback="low"), 0.9), num_votes=3, metadata={"k": 1}, inline=True
    )
    score = await ask(grader, asynchronous)
    assert score.metadata == {
        "k": 1,
        "votes": {
            "values": [0.2, 0.4, 0.9],
            "mean": pytest.approx(0.5),
            "std": pytest.approx(0.3605551275),  # the root of (0.09 + 0.01 + 0.16) / 2
            "min": 0.2,
            "max": 0.9,
            "requested": 3,
            "failed": 0,
            "errors": {},
        },
    }
    assert score.feedback == "low"


@either_way
async def test_failures_are_no_votes_and_are_counted(asynchronous: bool) -> None:
    verdicts = [1, VerdictError("x"), 1, ConnectionError("gone"), 0, VerdictError("y"), 1]
    grader = VotingGrader(scripted(*verdicts), num_votes=7, min_votes=4, concurrency=1)
    score = await ask(grader, asynchronous)
    assert score.value == 0.75
    votes = score.metadata["votes"]
    assert (votes["requested"], votes["failed"]) == (7, 3)
    assert votes["errors"] == {"VerdictError": 2, "ConnectionError": 1}


@either_way
async def test_too_few_verdicts_are_a_failure(asynchronous: bool) -> None:
    verdicts = [1, VerdictError("x"), 1, ConnectionError("gone")]
    grader = VotingGrader(scripted(*verdicts), num_votes=4, concurrency=1)  # needs 3
    with pytest.raises(
        VerdictError,
        match=r"only 2 of 4 verdicts could be had, and there must be 3; .* ConnectionError: gone",
    ) as caught:
        await ask(grader, asynchronous)
    assert isinstance(caught.value.__cause__, ConnectionError)
    assert caught.value.__notes__ == ["another failure was VerdictError: x"]


async def test_an_interrupt_is_no_failed_vote() -> None:
    def interrupted(text: str, criterion: Criterion) -> float:
        raise KeyboardInterrupt

    for asynchronous in (False, True):
        with pytest.raises(KeyboardInterrupt):
            await ask(VotingGrader(interrupted, min_votes=1), asynchronous)


async def test_votes_are_asked_for_at_the_same_time_within_the_bound() -> None:
    running, most = 0, 0
    both = anyio.Event()

    async def grade(text: str, criterion: Criterion) -> float:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == 2:
            both.set()
        await both.wait()
        running -= 1
        return 1.0

    for bound in (2, anyio.CapacityLimiter(2)):
        assert (
            await VotingGrader(grade, num_votes=6, concurrency=bound).ascore("x", CORRECT)
        ).value
        assert most == 2
    called = VotingGrader(grade, num_votes=2)("x", CORRECT)
    assert not isinstance(called, Score)
    assert (await called).value == 1
    with pytest.raises(TypeError, match="use ascore"):
        VotingGrader(grade).score("x", CORRECT)


async def test_what_judges_used_is_summed_failures_included() -> None:
    replies = iter(['{"score": 1}', "?", "?", '{"score": 0}'])
    judge = Judge(lambda chat: next(replies), template=BARE, max_retries=1)
    score = VotingGrader(judge, num_votes=3, min_votes=1).score("x", CORRECT)
    used = JudgeUsage(verdicts=2, failures=1, calls=4, retries=1, untold_calls=4)
    assert JudgeUsage.of(score) == judge.usage == used


async def test_components_and_rubrics_are_kept() -> None:
    rubric = Rubric(id="R", criteria=(CORRECT, Criterion(id="b", description="d")))
    replies = iter([1, 0, 0.5] * 2)

    def model(chat: object) -> str:
        return f'{{"criteria": {{"correct": {next(replies)}, "b": 1}}}}'

    grader = VotingGrader(Judge(model, template=BARE), num_votes=3, combine="median")
    for score in (grader.score("x", rubric), await grader.ascore("x", rubric)):
        assert score.value == 0.75
        assert score.component_values == {"correct": 0.5, "b": 1}
        assert score.metadata["rubric_id"] == "R"


def test_it_grades_a_criterion_of_a_composite() -> None:
    voting = VotingGrader(scripted(1, 0, 1), num_votes=3, combine="majority")
    score = CompositeGrader(voting).score("x", Rubric(criteria=(CORRECT,)))
    assert score.value == 1
    assert score.components["correct"].metadata["votes"]["failed"] == 0


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"num_votes": 0}, ValueError),
        ({"num_votes": 2.5}, TypeError),
        ({"min_votes": 0}, ValueError),
        ({"min_votes": 6}, ValueError),
        ({"combine": "max"}, ValueError),
        ({"concurrency": 0}, ValueError),
        ({"grader": 7}, TypeError),
        ({"metadata": {"x": object()}}, ValueError),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], kind: Any) -> None:
    make: Any = VotingGrader
    with pytest.raises(kind):
        make(**{"grader": scripted(1), **options})


@given(
    votes=st.lists(st.none() | st.floats(0, 1), min_size=1, max_size=8),
    combine=st.sampled_from(["mean", "median", "majority"]),
)
def test_a_score_is_made_of_the_verdicts_alone(votes: list[float | None], combine: Any) -> None:
    values = [vote for vote in votes if vote is not None]
    given_votes = [VerdictError("x") if vote is None else vote for vote in votes]
    grader = VotingGrader(
        scripted(*given_votes), num_votes=len(votes), min_votes=1, combine=combine
    )
    if not values:
        with pytest.raises(VerdictError):
            grader.score("x", CORRECT)
        return
    score = grader.score("x", CORRECT)
    assert min(values) <= score.value <= max(values) or score.value == pytest.approx(values[0])
    assert score.metadata["votes"]["failed"] == len(votes) - len(values)
    if combine == "mean":
        assert score.value == statistics.fmean(values)


@either_way
async def test_a_vote_off_the_scale_or_a_bool_is_a_failure(asynchronous: bool) -> None:
    voter = scripted(1.0, True, 9e124, 0.5)
    voting = VotingGrader(voter, num_votes=4, min_votes=2, concurrency=1)
    votes = (await ask(voting, asynchronous)).metadata["votes"]
    assert votes["values"] == [1.0, 0.5]
    assert votes["errors"] == {"TypeError": 1, "ValueError": 1}


async def test_a_vote_that_has_to_be_awaited_is_no_failed_vote() -> None:
    async def model(chat: Chat) -> str:
        raise NotImplementedError

    with pytest.raises(TypeError, match="a verdict has to be awaited: use ascore"):
        VotingGrader(Judge(model)).score("18", CORRECT)


@pytest.mark.parametrize("told", ["small", {"name": "small"}, 3])
async def test_a_name_under_judge_in_the_metadata_of_votes_is_no_usage(told: Any) -> None:
    def vote(input: str, rubric: Criterion) -> Score:
        return Score(1.0, metadata={"judge": told})

    score = VotingGrader(vote).score("18", CORRECT)
    assert (score.value, "judge" in score.metadata) == (1.0, False)
    assert JudgeUsage.of(vote("18", CORRECT)) == JudgeUsage()
