"""What is checked: the user's functions, and how a run of them is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rolloutlib.rollouts import Retry, Timeouts, derive_seed
from rolloutlib.testing._clock import LIMIT
from rolloutlib.testing._faults import Episode
from rolloutlib.testing._probe import Probe
from rolloutlib.testing._wrapping import (
    Factory,
    probed_factory,
    probed_function,
    probed_listener,
    probed_policy,
)

ITEM_ID = "item"
SEED = 0
GROUPS = 2
"""How many groups of the item a run over several groups has."""

_TIMEOUTS = Timeouts(reset=LIMIT, policy=LIMIT, step=LIMIT, grade=LIMIT, close=LIMIT)


@dataclass(frozen=True)
class Subject:
    """The arguments of `check_faults` that a run is made of."""

    item: Any
    make_env: Callable[..., Any]
    policy: Any
    num_rollouts: int
    max_steps: int | None
    grade_group: Callable[..., Any] | None
    on_event: Callable[..., Any] | None
    transient: Callable[[Exception], object] | None
    inline: bool


@dataclass(frozen=True)
class Request:
    """What a run is asked for: the arguments that all functions which make runs have in common."""

    subject: Subject
    grouped: bool  # whether into several groups
    probe: Probe
    factory: Factory
    arguments: dict[str, Any]

    @property
    def hangs(self) -> bool:
        """Whether the run's fault is a hang."""
        return self.probe.fault is not None and self.probe.fault.kind == "hang"


def make_request(
    subject: Subject, probe: Probe, *, grouped: bool, retried: bool, lock_step: bool
) -> Request:
    """Put probes before all functions."""
    fault = probe.fault
    factory = probed_factory(probe, subject.make_env)
    arguments: dict[str, Any] = {
        "make_env": factory,
        "policy": probed_policy(probe, subject.policy, lock_step=lock_step),
        "num_rollouts": subject.num_rollouts,
        "max_steps": subject.max_steps,
        "seed": SEED,
        "on_error": "raise" if fault is not None and fault.raises else "record",
    }
    if retried:
        ask = probed_function(probe, "transient", subject.transient or _is_transient)

        def transient(error: Exception) -> bool:
            ask(error)
            return error is probe.first_failure  # whatever the user's function says

        arguments["retry"] = Retry(attempts=2, initial_delay=0, transient=transient)
    if subject.grade_group is not None:
        arguments["grade_group"] = probed_function(probe, "grade_group", subject.grade_group)
    request = Request(subject, grouped, probe, factory, arguments)
    if subject.on_event is not None or request.hangs:
        arguments["on_event"] = probed_listener(probe, subject.on_event)
    if request.hangs:
        arguments["timeouts"] = _TIMEOUTS
    return request


def episodes(subject: Subject, *, grouped: bool) -> dict[int, Episode]:
    """Return the episodes of a run by their seeds.

    Args:
        subject: What is checked.
        grouped: Whether the run has several groups.
    """
    groups = range(GROUPS) if grouped else [None]
    found: dict[int, Episode] = {}
    for group in groups:
        seed = SEED if group is None else derive_seed(SEED, group)
        for member in range(subject.num_rollouts):
            found[derive_seed(seed, ITEM_ID, member)] = Episode(group, member)
            found[derive_seed(seed, ITEM_ID, member, 1)] = Episode(group, member, 1)
    return found


def _is_transient(error: Exception) -> bool:
    return True
