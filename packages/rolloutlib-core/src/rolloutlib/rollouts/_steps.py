"""The record of one step, and the columns that many of them are kept in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, cast, overload

from rolloutlib._values import same, to_bool, to_float
from rolloutlib.rollouts._arrays import Logprobs, TokenIds, compact, lengths_of
from rolloutlib.rollouts._forms import FACTS, LOGPROBS, TOKENS, Record, Schema, same_fields
from rolloutlib.rollouts._policies import (
    ActionT,
    ObservationT,
    convert_tokens,
)
from rolloutlib.rollouts._stop_reasons import StopReason, read_stop_reason
from rolloutlib.rollouts._versions import Versions, to_versions
from rolloutlib.scores import Score


@dataclass(frozen=True, slots=True)
class Step(Record, Generic[ObservationT, ActionT]):
    """One action and what came of it.

    Attributes:
        observation: What the policy saw.
        action: What it did.
        reward: What the environment paid, a finite float.
        next_observation: What the environment showed then.
        terminated: Whether the task reached its end.
        truncated: Whether the environment cut the episode short.
        info: The environment's further facts.
        policy_info: The policy's further facts.
        policy_tokens: The ids that the model sampled, or None if unknown.
        policy_logprobs: The natural log probability of each of them, or None if unknown.
        policy_stop_reason: Why sampling ended, in the sampler's own words, or None if unknown.
        policy_prompt_tokens: The ids that the model was given, or None if unknown.
        policy_version: Which version of the policy chose the action, or None if unknown; if several
            did, a tuple of pairs in the order of the tokens, of each version and how many it sampled.

    Raises:
        TypeError: The reward is not a number, a flag not a bool, a token field of another kind.
        ValueError: The reward is NaN or infinite, or the token fields do not fit together.
    """

    observation: ObservationT
    action: ActionT
    reward: float
    next_observation: ObservationT
    terminated: bool
    truncated: bool
    info: Mapping[str, Any] = field(default_factory=dict[str, Any])
    policy_info: Mapping[str, Any] = field(default_factory=dict[str, Any])
    policy_tokens: Sequence[int] | None = None
    policy_logprobs: Sequence[float] | None = None
    policy_stop_reason: str | None = None
    policy_prompt_tokens: Sequence[int] | None = None
    policy_version: Versions | None = None

    _schema = Schema(
        "step/1",
        info=FACTS,
        policy_info=FACTS,
        policy_tokens=TOKENS,
        policy_logprobs=LOGPROBS,
        policy_prompt_tokens=TOKENS,
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "reward", to_float(self.reward, "reward"))
        object.__setattr__(self, "terminated", to_bool(self.terminated, "terminated"))
        object.__setattr__(self, "truncated", to_bool(self.truncated, "truncated"))
        convert_tokens(self, prefix="policy_")

    def __eq__(self, other: object) -> bool:
        return same_fields(self, other)

    @property
    def score(self) -> Score | None:
        """The score under `info["score"]`; None if nothing of a score's form stands there."""
        return read_score(self.info)

    @property
    def policy_finish(self) -> StopReason | None:
        """Why sampling ended, as one of a few reasons; None if the words for it are unknown."""
        return read_stop_reason(self.policy_stop_reason)


class StepColumns(Sequence[Step[ObservationT, ActionT]], Generic[ObservationT, ActionT]):
    """Steps by columns: one tuple a field, and one array for all tokens.

    Reads as the tuple of steps would; each `Step` is made when it is asked for.
    """

    __slots__ = (
        "actions",
        "infos",
        "logprobs",
        "next_observations",
        "observations",
        "policy_infos",
        "prompt_tokens",
        "rewards",
        "stop_reasons",
        "terminated",
        "tokens",
        "truncated",
        "versions",
    )

    def __init__(self) -> None:
        self.observations: Sequence[ObservationT] = ()
        self.actions: Sequence[ActionT] = ()
        self.rewards: Sequence[float] = ()
        self.next_observations: Sequence[ObservationT] = ()
        self.terminated: Sequence[bool] = ()
        self.truncated: Sequence[bool] = ()
        self.infos: Sequence[Mapping[str, Any]] = ()
        self.policy_infos: Sequence[Mapping[str, Any] | None] = ()
        self.stop_reasons: Sequence[str | None] = ()
        self.tokens: Sequence[TokenIds | None] = ()
        self.logprobs: Sequence[Logprobs | None] = ()
        self.prompt_tokens: Sequence[TokenIds | None] = ()
        self.versions: Sequence[Versions | None] = ()

    def validate(self) -> None:
        """Check that columns which were read fit together, and make the versions plain.

        Raises:
            TypeError: A version is none.
            ValueError: The columns differ in length, or the numbers of a step's tokens, log
                probabilities and versions do.
        """
        lengths = {name: len(getattr(self, name)) for name in self.__slots__}
        if len(set(lengths.values())) != 1:
            msg = f"the columns of steps must have one length, got {lengths}"
            raise ValueError(msg)
        sizes = lengths_of(self.tokens)
        for step, (tokens, logprobs) in enumerate(
            zip(sizes, lengths_of(self.logprobs), strict=True)
        ):
            if tokens != logprobs and tokens is not None and logprobs is not None:
                msg = f"step {step} has {tokens} tokens and {logprobs} log probabilities"
                raise ValueError(msg)
        self.versions = tuple(
            [
                None if version is None else to_versions(version, size, f"step {step}: version")
                for step, (version, size) in enumerate(zip(self.versions, sizes, strict=True))
            ]
        )

    @overload
    def __getitem__(self, index: int) -> Step[ObservationT, ActionT]: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Step[ObservationT, ActionT], ...]: ...
    def __getitem__(
        self, index: int | slice
    ) -> Step[ObservationT, ActionT] | tuple[Step[ObservationT, ActionT], ...]:
        if isinstance(index, slice):
            return tuple([self[i] for i in range(*index.indices(len(self)))])
        policy_info = self.policy_infos[index]
        return Step(
            self.observations[index],
            self.actions[index],
            self.rewards[index],
            self.next_observations[index],
            self.terminated[index],
            self.truncated[index],
            self.infos[index],
            {} if policy_info is None else policy_info,
            self.tokens[index],
            self.logprobs[index],
            self.stop_reasons[index],
            self.prompt_tokens[index],
            self.versions[index],
        )

    def __len__(self) -> int:
        return len(self.actions)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, StepColumns):
            columns = cast("Any", other)
            return all(same(getattr(self, name), getattr(columns, name)) for name in self.__slots__)
        if isinstance(other, (tuple, list)):
            return tuple(self) == tuple(cast("Sequence[Any]", other))
        return NotImplemented

    def __add__(
        self, other: Iterable[Step[ObservationT, ActionT]]
    ) -> tuple[Step[ObservationT, ActionT], ...]:
        return (*self, *other)

    def __radd__(
        self, other: Iterable[Step[ObservationT, ActionT]]
    ) -> tuple[Step[ObservationT, ActionT], ...]:
        return (*other, *self)

    def __repr__(self) -> str:
        return repr(tuple(self))


def kept_steps(
    steps: Iterable[Step[ObservationT, ActionT]],
) -> Sequence[Step[ObservationT, ActionT]]:
    """Return steps as a trajectory keeps them: by columns, or as they are if a subclass has more."""
    if isinstance(steps, StepColumns):
        return cast("StepColumns[ObservationT, ActionT]", steps)
    steps = tuple(steps)
    return to_columns(steps) if all(type(step) is Step for step in steps) else steps


def to_columns(
    steps: Sequence[Step[ObservationT, ActionT]],
) -> StepColumns[ObservationT, ActionT]:
    """Return steps by columns, as they are if they are that already."""
    if isinstance(steps, StepColumns):
        return cast("StepColumns[ObservationT, ActionT]", steps)
    columns = StepColumns[ObservationT, ActionT]()
    columns.observations = tuple([step.observation for step in steps])
    columns.actions = tuple([step.action for step in steps])
    columns.rewards = tuple([step.reward for step in steps])
    columns.next_observations = tuple([step.next_observation for step in steps])
    columns.terminated = tuple([step.terminated for step in steps])
    columns.truncated = tuple([step.truncated for step in steps])
    columns.infos = tuple([step.info for step in steps])
    columns.policy_infos = tuple([step.policy_info or None for step in steps])
    columns.stop_reasons = tuple([step.policy_stop_reason for step in steps])
    columns.tokens = compact(TokenIds, [step.policy_tokens for step in steps])
    columns.logprobs = compact(Logprobs, [step.policy_logprobs for step in steps])
    columns.prompt_tokens = compact(TokenIds, [step.policy_prompt_tokens for step in steps])
    columns.versions = tuple([step.policy_version for step in steps])
    return columns


def read_score(info: Mapping[str, Any]) -> Score | None:
    """Return the score in an info; environments may keep something else under its name.

    Raises:
        TypeError: What has the form of a score has a field of the wrong type.
        ValueError: It has a field that no score has, or a number that is NaN or infinite.
    """
    value = info.get("score")
    if isinstance(value, Score) or (isinstance(value, Mapping) and "value" in value):
        return Score.from_info(info)
    return None
