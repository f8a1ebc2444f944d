"""What chooses actions, and what it may tell about how it did."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast

from rolloutlib._exceptions import find
from rolloutlib.rollouts._array_reading import Numbers
from rolloutlib.rollouts._arrays import Logprobs, TokenIds
from rolloutlib.rollouts._forms import FACTS, LOGPROBS, TOKENS, Record, Schema, same_fields
from rolloutlib.rollouts._stop_reasons import StopReason, read_stop_reason
from rolloutlib.rollouts._versions import Version, Versions, to_versions

ActionT = TypeVar("ActionT")
ObservationT = TypeVar("ObservationT")

PolicyObservationT = TypeVar("PolicyObservationT", contravariant=True)
PolicyActionT = TypeVar("PolicyActionT", covariant=True)


@dataclass(frozen=True, slots=True)
class PolicyOutput(Record, Generic[PolicyActionT]):
    """An action, with what the model behind the policy tells about it.

    Token ids and log probabilities may be lists, tuples, NumPy arrays, `array.array`, or tensors.
    They are copied into compact arrays, which read as the tuples would. `None` means
    unknown; an empty sequence means that there were no tokens.

    Attributes:
        action: What the environment is given.
        info: Further facts; they become `Step.policy_info`.
        tokens: The ids that the model sampled, the stop token included if there was one.
        logprobs: The behaviour policy's natural log probability of each token.
        stop_reason: Why sampling ended, in the sampler's own words, for example "stop" or "eos".
        prompt_tokens: The ids that the model was given.
        version: Which version of the policy's weights chose the action, if the sampler says so; else
            the record has what the policy's attribute `version` was when it was called. If weights
            changed in between, pairs in the order of the tokens, of each version and how many tokens
            it sampled: `[(7, 120), (8, 35)]`.

    Raises:
        TypeError: Ids are not integers, log probabilities are not numbers, or the version is neither
            an integer nor text, nor pairs of one and a number.
        ValueError: There is not one log probability a token, or one of them is NaN; or the versions
            are not of as many tokens as there are.
    """

    action: PolicyActionT
    info: Mapping[str, Any] = field(default_factory=dict[str, Any])
    tokens: Sequence[int] | None = field(default=None, kw_only=True)
    logprobs: Sequence[float] | None = field(default=None, kw_only=True)
    stop_reason: str | None = field(default=None, kw_only=True)
    prompt_tokens: Sequence[int] | None = field(default=None, kw_only=True)
    version: Versions | None = field(default=None, kw_only=True)

    _schema = Schema(
        "policy_output/1", info=FACTS, tokens=TOKENS, logprobs=LOGPROBS, prompt_tokens=TOKENS
    )

    if TYPE_CHECKING:
        # What is taken is wider than what is kept, which the fields' types cannot tell.
        def __init__(
            self,
            action: PolicyActionT,
            info: Mapping[str, Any] = ...,
            *,
            tokens: Numbers[int] | None = None,
            logprobs: Numbers[float] | None = None,
            stop_reason: str | None = None,
            prompt_tokens: Numbers[int] | None = None,
            version: Version | Iterable[tuple[Version, int]] | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        convert_tokens(self, prefix="")

    def __eq__(self, other: object) -> bool:
        return same_fields(self, other)

    @classmethod
    def from_exception(cls, error: BaseException) -> PolicyOutput[Any] | None:
        """Return what the policy had returned for the step that an exception ended, or None.

        It is not in `Trajectory.from_exception`, which has finished steps; None if the exception came
        elsewhere. A plain action comes in a `PolicyOutput` too.
        """
        return find(error, "output")

    @property
    def finish(self) -> StopReason | None:
        """Why sampling ended, as one of a few reasons; None if `stop_reason` is none of them."""
        return read_stop_reason(self.stop_reason)


class EpisodeTruncated(Exception):  # noqa: N818 - not an error, but an outcome
    """Raised by a policy, or by `step`, to end the episode as truncated, with the steps so far.

    For what cannot go on though nothing failed: the conversation has outgrown the model's context,
    say, perhaps with its first prompt. The trajectory's metadata tells the exception's text as
    "truncated_by".
    """


class Policy(Protocol[PolicyObservationT, PolicyActionT]):
    """A synchronous policy: any callable from an observation to an action.

    A policy that declares parameters named `seed` or `step` is given, by keyword, the episode's seed
    and the number of the step, from 0; type checkers want them to have defaults. One with an
    attribute `version`, an integer or text, has it recorded at each call, as it was when the call
    began.
    """

    def __call__(
        self, observation: PolicyObservationT, /
    ) -> PolicyActionT | PolicyOutput[PolicyActionT]:
        """Choose an action.

        Args:
            observation: What the environment shows; a record of it does not change if the policy
                changes it.

        Returns:
            The action, alone or in a `PolicyOutput`.
        """
        ...


class AsyncPolicy(Protocol[PolicyObservationT, PolicyActionT]):
    """A policy for asynchronous rollouts: it may return its choice, or an awaitable of it.

    `seed`, `step` and `version` are as for `Policy`.
    """

    def __call__(
        self, observation: PolicyObservationT, /
    ) -> (
        PolicyActionT
        | PolicyOutput[PolicyActionT]
        | Awaitable[PolicyActionT | PolicyOutput[PolicyActionT]]
    ):
        """Choose an action.

        Args:
            observation: What the environment shows; a record of it does not change if the policy
                changes it.

        Returns:
            The action, alone or in a `PolicyOutput`, at once or when awaited.
        """
        ...


def accepted(function: Callable[..., object], names: Iterable[str]) -> frozenset[str]:
    """Return those of the names that a function declares as parameters, its first one aside.

    Not what `functools.partial` has bound, and not what `**kwargs` would swallow. A function that a
    decorator wraps in another is looked through, as far as the other lets its parameters through.
    """
    code = getattr(function, "__code__", None)
    is_wrapped = hasattr(function, "__wrapped__")
    if code is not None and code.co_argcount + code.co_kwonlyargcount == 1 and not is_wrapped:
        return frozenset()  # most policies: nothing but the observation
    bound: Mapping[str, object] = {}
    first = 0
    while isinstance(function, functools.partial):
        partial = cast("functools.partial[object]", function)
        bound = {**partial.keywords, **bound}
        first += len(partial.args)
        function = partial.func
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a function written in C
        return frozenset()
    declared = {
        parameter.name
        for position, parameter in enumerate(parameters)
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
        or (position > first and parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD)
    }
    if is_wrapped:
        with contextlib.suppress(TypeError, ValueError):  # a wrapper written in C lets all through
            outer = inspect.signature(function, follow_wrapped=False).parameters.values()
            if not any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in outer):
                declared.intersection_update(parameter.name for parameter in outer)
    return frozenset(declared.intersection(names) - bound.keys())


def convert_tokens(record: Any, *, prefix: str) -> None:
    """Make the token fields of a frozen record plain, and check that they fit together."""
    prompt_tokens, tokens, logprobs = (
        getattr(record, prefix + "prompt_tokens"),
        getattr(record, prefix + "tokens"),
        getattr(record, prefix + "logprobs"),
    )
    if prompt_tokens is not None:
        name = prefix + "prompt_tokens"
        object.__setattr__(record, name, TokenIds.of(prompt_tokens, name))
    if tokens is not None:
        name = prefix + "tokens"
        tokens = TokenIds.of(tokens, name)
        object.__setattr__(record, name, tokens)
    if logprobs is not None:
        name = prefix + "logprobs"
        logprobs = Logprobs.of(logprobs, name)
        object.__setattr__(record, name, logprobs)
        if tokens is not None and len(tokens) != len(logprobs):
            msg = (
                f"{name} must have one number a token: got {len(logprobs)} for {len(tokens)} tokens"
            )
            raise ValueError(msg)
    version = getattr(record, prefix + "version")
    if version is not None:
        name = prefix + "version"
        size = None if tokens is None else len(tokens)
        object.__setattr__(record, name, to_versions(version, size, name))
