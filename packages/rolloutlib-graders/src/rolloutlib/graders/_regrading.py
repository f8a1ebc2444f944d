"""What it takes to grade episodes anew: which of a group, by what, and what becomes of failures."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar, cast, get_args

from rolloutlib._calls import RefuseStrayCancellation, async_form, call, check_count
from rolloutlib._exceptions import add_note
from rolloutlib.graders._criteria import Criterion
from rolloutlib.graders._reading import read_score
from rolloutlib.graders._rubric import rubric_names
from rolloutlib.rollouts import RolloutError, Trajectory, TrajectoryGroup
from rolloutlib.rollouts._run import Failures, OnError
from rolloutlib.scores import Grader, Score, ScoreValue

ItemT = TypeVar("ItemT")
ObservationT = TypeVar("ObservationT")
ActionT = TypeVar("ActionT")


class Regrading(Generic[ItemT, ObservationT, ActionT]):
    """What is asked for, and how often it failed. The arguments are those of `regrade`.

    Raises:
        TypeError: An argument has the wrong type, or there is not one of the two for the rubric.
        ValueError: An argument has no usable value.
    """

    def __init__(
        self,
        grader: Grader[Any, Any],
        *,
        make_input: Callable[[ItemT, Trajectory[ObservationT, ActionT]], Any],
        rubric: Any,
        make_rubric: Callable[[ItemT], Any] | None,
        on_error: OnError,
        max_failures: int | None,
        inline: bool = False,
    ) -> None:
        for name, function in (("grader", grader), ("make_input", make_input)):
            if not callable(function):
                msg = f"{name} must be callable, got {function!r}"
                raise TypeError(msg)
        if (rubric is None) == (make_rubric is None):
            msg = "either `rubric` is needed, or `make_rubric`, a function of the item; not both"
            raise TypeError(msg)
        if on_error not in get_args(OnError):
            msg = f"on_error must be one of {get_args(OnError)}, got {on_error!r}"
            raise ValueError(msg)
        if max_failures is not None:
            check_count("max_failures", max_failures)
        self.grader = grader
        self.agrader = async_form(grader)
        self.make_input = make_input
        self.raises = on_error == "raise"
        self.failures = Failures(max_failures)
        self.inline = inline
        self._rubric = rubric
        self._make_rubric = make_rubric

    def rubric_of(self, item: ItemT) -> Any:
        """Return what the episodes of an item are judged by."""
        return self._rubric if self._make_rubric is None else self._make_rubric(item)


def check_groups(groups: object, *kinds: type) -> None:
    """Refuse what cannot hold groups.

    Args:
        groups: What was given.
        kinds: What it may be; it is no text in any case.

    Raises:
        TypeError: It is something else.
    """
    if isinstance(groups, (str, bytes)) or not isinstance(groups, kinds):
        raise _no_groups(groups)


def _no_groups(value: object) -> TypeError:
    return TypeError(
        f"groups must be an iterable of TrajectoryGroup, as read_groups(path) gives, got {value!r}"
    )


class Members(Generic[ItemT, ObservationT, ActionT]):
    """The episodes of a group that are graded, and what has come of it.

    Those that ended are, and those whose grading failed the last time.

    Args:
        regrading: What is asked for.
        group: The group.

    Raises:
        TypeError: It is none.
    """

    def __init__(
        self,
        regrading: Regrading[ItemT, ObservationT, ActionT],
        group: TrajectoryGroup[ItemT, ObservationT, ActionT],
    ) -> None:
        if not isinstance(cast("object", group), TrajectoryGroup):
            raise _no_groups(group)
        self._regrading = regrading
        self._group = group
        ungraded = [
            error.trajectory
            for error in group.errors
            if error.phase == "grade" and error.trajectory is not None
        ]
        self._trajectories: list[Trajectory[ObservationT, ActionT]] = [
            *group.trajectories,
            *ungraded,
        ]
        if ungraded:  # back to where they belong
            self._trajectories.sort(key=lambda each: each.member or 0)
        self._results: list[Score | RolloutError | None] = [None] * len(self._trajectories)

    def __len__(self) -> int:
        return len(self._trajectories)

    @property
    def are_done(self) -> bool:
        """Whether nothing is left to be graded."""
        return None not in self._results

    def grade(self, index: int) -> None:
        """Grade an episode.

        Raises:
            BaseException: What is not to be recorded.
        """
        regrading = self._regrading
        try:
            rubric = regrading.rubric_of(self._group.item)
            result = regrading.grader(self._input(index), rubric)
            self._take(index, result, rubric)
        except Exception as error:
            self._fail(index, error)

    async def agrade(self, index: int) -> None:
        """The asynchronous twin of `grade`."""
        regrading = self._regrading
        try:
            rubric = regrading.rubric_of(self._group.item)
            input = self._input(index)
            with RefuseStrayCancellation(f"the grading of {self._place(index)}"):
                result = await call(regrading.agrader, input, rubric, inline=regrading.inline)
                self._take(index, result, rubric)
        except Exception as error:
            self._fail(index, error)

    def group(self) -> TrajectoryGroup[ItemT, ObservationT, ActionT]:
        """Return the group with the new scores, when all is done."""
        pairs = list(zip(self._trajectories, self._results, strict=True))
        graded = [(each, score) for each, score in pairs if isinstance(score, Score)]
        errors = [
            error
            for error in self._group.errors
            if error.phase != "grade" or error.trajectory is None
        ]
        errors += [result for result in self._results if isinstance(result, RolloutError)]
        return dataclasses.replace(
            self._group,
            trajectories=[trajectory for trajectory, _ in graded],
            scores=[score for _, score in graded],
            errors=sorted(errors, key=lambda error: error.index or 0),
        )

    def _input(self, index: int) -> Any:
        return self._regrading.make_input(self._group.item, self._trajectories[index])

    def _take(self, index: int, result: ScoreValue | Awaitable[ScoreValue], rubric: object) -> None:
        """Keep what the grader returned, as a score that names its rubric."""
        scale = rubric.scale if isinstance(rubric, Criterion) else None
        score = read_score(result, f"the score of {self._place(index)}", scale)
        metadata = {**rubric_names(rubric), **score.metadata}
        if len(metadata) > len(score.metadata):
            score = Score(score.value, score.components, metadata, feedback=score.feedback)
        self._results[index] = score
        self._regrading.failures.reset()

    def _fail(self, index: int, error: Exception) -> None:
        """Record a failure, or raise it."""
        if self._regrading.raises:
            add_note(error, f"while grading {self._place(index)}")
            raise error
        trajectory = self._trajectories[index]
        self._results[index] = RolloutError.from_exception(
            error,
            index=trajectory.member,
            attempt=trajectory.attempt,
            phase="grade",
            seed=trajectory.seed,
            trajectory=trajectory,
        )
        self._regrading.failures.add(error)

    def _place(self, index: int) -> str:
        member = self._trajectories[index].member
        return f"trajectory {index if member is None else member} of item {self._group.item_id!r}"
