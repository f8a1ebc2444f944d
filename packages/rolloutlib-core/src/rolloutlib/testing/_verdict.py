"""What must hold after a run."""

from __future__ import annotations

from collections.abc import Iterator

from rolloutlib.rollouts import RolloutError, derive_seed
from rolloutlib.testing._faults import Episode, Fault, Place
from rolloutlib.testing._runs import Run
from rolloutlib.testing._subject import GROUPS, SEED
from rolloutlib.testing._ways import Group

_PHASES = {
    "make_env": "make_env",
    "reset": "reset",
    "policy": "policy",
    "step": "step",
    "grade_group": "grade",
}
"""Where the failure of a call is the failure of an episode, and the phase that it is recorded in."""


def judge(run: Run) -> list[str]:
    """Return what is wrong with a run, at best nothing."""
    if run.endless:
        return ["it does not end"]
    if run.failure is not None:
        return [f"{run.failure!r} came out"]
    return [*_leaks(run), *run.request.probe.problems, *_outcomes(run)]


def _leaks(run: Run) -> Iterator[str]:
    opened = run.request.factory.opened
    closed = [watch.closed for watch in opened]
    if any(count != 1 for count in closed):
        twice = sum([count > 1 for count in closed])
        more = f", {twice} more than once" if twice else ""
        yield f"{len(closed)} environments opened, {sum([count > 0 for count in closed])} closed{more}"
    for kind, names in (("task", run.tasks), ("thread", run.threads)):
        if names:
            yield f"{kind}s are alive afterwards: {', '.join(names)}"
    if run.request.probe.num_running:
        yield "calls have not returned"


def _outcomes(run: Run) -> Iterator[str]:
    """Check what is said to have become of each episode."""
    probe, outcome = run.request.probe, run.outcome
    fault = probe.fault
    yield from _counts(run)
    if fault is None or not probe.struck:
        yield from _ended_well(run)
        if fault is not None and isinstance(fault.moment, str):
            yield "the call was never made: the run must be the same each time"
        return
    yield from _kept(run)
    stopped = fault.kind == "early close" or outcome.cancelled
    if not stopped and outcome.error is None and not _is_complete(run):
        yield "it returned before all episodes had an outcome"
    if fault.kind in ("cancellation", "early close"):
        if outcome.error is not None:
            yield f"{outcome.error!r} came out"
    elif fault.place is not None:
        expected = _expected_error(run, fault, fault.place)
        if outcome.error is not expected:
            came = "nothing" if outcome.error is None else repr(outcome.error)
            yield f"{came} came out, and not {expected!r}"
        elif expected is None:
            yield from _records(run, fault, fault.place)


def _ended_well(run: Run) -> Iterator[str]:
    errors = [error for group in run.outcome.groups for error in group.errors]
    if run.outcome.error is not None:
        yield f"{run.outcome.error!r} came out"
    elif errors:
        yield f"{len(errors)} episodes failed, the first with:\n{errors[0].traceback}"
    elif not _is_complete(run):
        yield "it returned before all episodes had an outcome"


def _counts(run: Run) -> Iterator[str]:
    count = run.request.subject.num_rollouts
    for group in run.outcome.groups:
        if group.num_requested > count:
            yield f"{group.num_requested} outcomes of {count} episodes"
    seeds = [group.seed for group in run.outcome.groups]
    if len(set(seeds)) != len(seeds):
        yield "a group came out twice"


def _kept(run: Run) -> Iterator[str]:
    """Check that what had ended when the fault struck is kept."""
    fault = run.request.probe.fault
    if fault is not None and fault.place is not None and fault.place.function == "grade_group":
        return
    kept = {
        _episode(run, group, trajectory.member, trajectory.attempt)
        for group in run.outcome.groups
        for trajectory in group.trajectories
    }
    for episode in run.request.probe.ended - kept:
        yield f"{episode} had ended, and its trajectory is lost"


def _is_complete(run: Run) -> bool:
    request, groups = run.request, run.outcome.groups
    return len(groups) == (GROUPS if request.grouped else 1) and all(
        group.num_requested == request.subject.num_rollouts for group in groups
    )


def _expected_error(run: Run, fault: Fault, place: Place) -> BaseException | None:
    """Return what should come out of the run in place of a result, if anything should."""
    probe = run.request.probe
    if fault.kind == "interrupt":
        return probe.injected
    if fault.raises and place.function == "transient":
        return probe.first_failure
    return probe.injected if fault.raises and place.function in _PHASES else None


def _records(run: Run, fault: Fault, place: Place) -> Iterator[str]:
    """Check the records of a run that went on after its fault."""
    errors = [error for group in run.outcome.groups for error in group.errors]
    if place.function == "transient":
        if len(errors) != 1 or str(run.request.probe.injected) not in errors[0].traceback:
            yield f"the failure that it was asked about should be final, got {errors!r}"
        return
    if place.function in _PHASES:
        yield from _failures(run, fault, place, errors)
        return
    if errors:
        yield f"no episode should have failed, got {errors!r}"
    if place.function == "close":
        notes = [
            str(trajectory.metadata.get("close_error", ""))
            for group in run.outcome.groups
            for trajectory in group.trajectories
            if _episode(run, group, trajectory.member, trajectory.attempt) == place.episode
        ]
        if not any(_text(run, fault) in note for note in notes):
            yield "the trajectory tells of no close_error"


def _failures(run: Run, fault: Fault, place: Place, errors: list[RolloutError]) -> Iterator[str]:
    """Check that the episodes that the fault hit have failed by it, and no others."""
    count = run.request.subject.num_rollouts if place.function == "grade_group" else 1
    batched = place.function == "policy" and place.episode is None
    if not errors or (len(errors) != count and not batched):
        yield f"{len(errors)} episodes failed instead of {count}"
    for error in errors:
        if error.phase != _PHASES[place.function]:
            yield f"the failure is recorded in the phase {error.phase!r}"
        if _text(run, fault) not in f"{error.error_type}: {error.error_message}":
            yield f"the recorded error is {error.error_type}: {error.error_message}"
    for group in run.outcome.groups:
        for error in group.errors:
            failed = _episode(run, group, error.index, error.attempt)
            if place.episode and failed != place.episode:
                yield f"{failed} failed instead"
            steps = None if error.trajectory is None else len(error.trajectory.steps)
            if place.episode and place.function in ("policy", "step") and steps != place.number:
                yield f"{steps} steps are recorded instead of {place.number}"


def _text(run: Run, fault: Fault) -> str:
    return "TimeoutError" if fault.kind == "hang" else str(run.request.probe.injected)


def _episode(run: Run, group: Group, member: int | None, attempt: int) -> Episode:
    """Return which episode a record is about."""
    position = None
    if run.request.grouped:
        seeds = [derive_seed(SEED, position) for position in range(GROUPS)]
        position = seeds.index(group.seed or 0)
    return Episode(position, member or 0, attempt)
