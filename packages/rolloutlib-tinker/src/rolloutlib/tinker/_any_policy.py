"""What synchronous and asynchronous policies have in common."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING, Generic, NoReturn, Self, TypeAlias

from rolloutlib.rollouts import ActionT, PolicyOutput
from rolloutlib.tinker._exchanges import Exchange, Outcome
from rolloutlib.tinker._outputs import ActionKind
from rolloutlib.tinker._requests import Request
from rolloutlib.tools import Tools

if TYPE_CHECKING:
    import tinker
    from tinker import APIFuture

Sampler: TypeAlias = (
    "tinker.SamplingClient | APIFuture[tinker.SamplingClient] | Future[tinker.SamplingClient]"
)


class AnyPolicy(Generic[ActionT]):
    _exchange: Exchange[ActionT]

    @property
    def version(self) -> int | str | None:
        """The version of the weights, as it was given."""
        return self._exchange.version

    @property
    def num_incomplete(self) -> int:
        """How many answers lacked log probabilities."""
        return self._exchange.model.num_incomplete

    def with_sampler(self, sampler: Sampler, *, version: int | str | None = None) -> Self:
        """Return a policy like this one over other weights; conversations go on in it.

        Args:
            sampler: A sampling client with the weights, or the future of one.
            version: What to record as their version.

        Raises:
            TypeError: It is no sampling client.
        """
        other = object.__new__(type(self))
        other._exchange = Exchange(sampler, self._exchange.model, version)
        return other

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._exchange.model.place}, version={self.version!r})"

    def __reduce__(self) -> NoReturn:
        msg = (
            f"{self!r} can be neither pickled nor copied, since it has conversations and a client: "
            "make it in the process that uses it"
        )
        raise TypeError(msg)


def read_kind(tools: Tools | None, actions: str | None) -> ActionKind:
    if actions not in (None, "tokens"):
        msg = f"actions must be 'tokens' or None, got {actions!r}"
        raise ValueError(msg)
    if actions is None:
        return "text" if tools is None else "message"
    if tools is not None:
        msg = "actions that are token ids call no tools: pass tools= to the renderer"
        raise ValueError(msg)
    return "tokens"


def first(outputs: list[Outcome[ActionT]]) -> PolicyOutput[ActionT]:
    output = outputs[0]
    if isinstance(output, Exception):
        raise output
    return output


def fill(
    entries: list[Outcome[ActionT]], request: Request, outputs: list[Outcome[ActionT]]
) -> None:
    for position, output in zip(request.positions, outputs, strict=False):
        entries[position] = output
