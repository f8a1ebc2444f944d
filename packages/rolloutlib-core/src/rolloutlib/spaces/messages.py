"""Messages, and the conversations that they make up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from sys import maxsize
from typing import Any, cast

import gymnasium as gym

from rolloutlib.spaces._arguments import checked_kind, checked_lengths, length_problem
from rolloutlib.spaces._shapes import is_text, message_problem
from rolloutlib.spaces._structured import StructuredSpace
from rolloutlib.spaces.text import TextSpace
from rolloutlib.types import Chat, Message, Role

__all__ = ["ChatSpace", "DEFAULT_ROLES", "MessageSpace", "chat", "message"]

DEFAULT_ROLES: tuple[Role, ...] = ("system", "user", "assistant", "tool")
"""The roles of chat models."""

_SAMPLE_MAX_LENGTH = 8


class MessageSpace(StructuredSpace[Message]):
    """Messages: dictionaries of the form of `rolloutlib.types.Message`, without further keys.

    Args:
        roles: The roles that there are. Those of a set are sorted, so that samples do not depend on
            the order in which a process keeps it.
        content_space: The texts that there are: as the content of a message, and as each text part
            of it; by default every text.
        seed: Seeds the sampling, also of the content space.

    Raises:
        TypeError: A role is not text, or `content_space` is not a space.
        ValueError: There are no roles.
    """

    def __init__(
        self,
        *,
        roles: Sequence[Role] = DEFAULT_ROLES,
        content_space: gym.Space[str] | None = None,
        seed: int | None = None,
    ) -> None:
        in_set = isinstance(cast("object", roles), AbstractSet)
        many = in_set or isinstance(cast("object", roles), Sequence)
        if not many or isinstance(roles, str) or not all(map(is_text, roles)):
            msg = f"roles must be a sequence of names, got {roles!r}"
            raise TypeError(msg)
        if not roles:
            msg = f"roles must name at least one role, got {roles!r}"
            raise ValueError(msg)
        self.roles: tuple[Role, ...] = tuple(dict.fromkeys(sorted(roles) if in_set else roles))
        self.content_space: gym.Space[str] = checked_kind(
            "content_space", TextSpace() if content_space is None else content_space, gym.Space
        )
        super().__init__(Message, parts=[self.content_space], seed=seed)

    def seed(self, seed: int | None = None) -> list[int]:
        """Seed the sampling of the space and of its content space; return both seeds."""
        return self._seed_all(seed)

    def _problem(self, value: Any) -> str | None:
        return message_problem(value, self.roles, self.content_space.contains)

    def _draw(self) -> Message:
        role = self.roles[self.np_random.integers(len(self.roles))]
        return {"role": role, "content": self.content_space.sample()}

    def _settings(self) -> tuple[Any, ...]:
        return (self.roles, self.content_space)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(roles={self.roles}, content_space={self.content_space})"


class ChatSpace(StructuredSpace[Chat]):
    """Conversations: lists of messages.

    Args:
        message_space: The messages that there are; by default every message.
        min_length: The least number of messages.
        max_length: The greatest number of messages, or None for no limit.
        sample_max_length: The greatest length of samples; longer where `min_length` asks for it.
        seed: Seeds the sampling, also of the message space.

    Raises:
        TypeError: A length is not an integer, or `message_space` is not a `MessageSpace`.
        ValueError: The lengths contradict each other.
    """

    min_length: int
    max_length: int | None
    sample_max_length: int

    def __init__(
        self,
        message_space: MessageSpace | None = None,
        *,
        min_length: int = 0,
        max_length: int | None = None,
        sample_max_length: int = _SAMPLE_MAX_LENGTH,
        seed: int | None = None,
    ) -> None:
        self.message_space: MessageSpace = checked_kind(
            "message_space",
            MessageSpace() if message_space is None else message_space,
            MessageSpace,
        )
        self.min_length, self.max_length, self.sample_max_length = checked_lengths(
            min_length, max_length, sample_max_length, default=_SAMPLE_MAX_LENGTH
        )
        super().__init__(Chat, parts=[self.message_space], seed=seed)

    def seed(self, seed: int | None = None) -> list[int]:
        """Seed the sampling of the space and of all spaces in it; return the seeds."""
        return self._seed_all(seed)

    def _problem(self, value: Any) -> str | None:
        if not isinstance(value, list):
            return f"a chat is a list of messages, got {value!r}"
        messages = cast("list[Any]", value)
        problem = length_problem(len(messages), self.min_length, self.max_length, "messages")
        if problem is not None:
            return problem
        space, kind = self.message_space, _type
        roles, free, least, greatest = _plain(space)
        for item in messages:
            # Most messages are a role and a text. Looking at these here, without a call or a count,
            # is what makes a chat as cheap as checks written by hand.
            if (
                kind(item) is dict
                and len(item) == 2
                and kind(text := item.get("content")) is str
                and (text.isascii() or is_text(text))
                and (free or least <= len(text) <= greatest)
                and kind(role := item.get("role")) is str
                and role in roles
            ):
                continue
            if not space.contains(item):
                index = next(index for index, one in enumerate(messages) if one is item)
                return f"message {index}: {space._reason(item) or f'not in {space}'}"
        return None

    def _draw(self) -> Chat:
        length = self.np_random.integers(self.min_length, self.sample_max_length + 1)
        return [self.message_space.sample() for _ in range(length)]

    def _settings(self) -> tuple[Any, ...]:
        lengths = (self.min_length, self.max_length, self.sample_max_length)
        return (self.message_space, *lengths)

    def __repr__(self) -> str:
        lengths = f"min_length={self.min_length}, max_length={self.max_length}"
        return f"{type(self).__name__}({self.message_space}, {lengths})"


def message(
    *,
    roles: Sequence[Role] = DEFAULT_ROLES,
    content_space: gym.Space[str] | None = None,
    seed: int | None = None,
) -> MessageSpace:
    """Return a `MessageSpace` of these arguments."""
    return MessageSpace(roles=roles, content_space=content_space, seed=seed)


def chat(
    message_space: MessageSpace | None = None,
    *,
    min_length: int = 0,
    max_length: int | None = None,
    sample_max_length: int = _SAMPLE_MAX_LENGTH,
    seed: int | None = None,
) -> ChatSpace:
    """Return a `ChatSpace` of these arguments."""
    return ChatSpace(
        message_space,
        min_length=min_length,
        max_length=max_length,
        sample_max_length=sample_max_length,
        seed=seed,
    )


# Not narrowed by type checkers, to whom what is looked at stays Any.
_type: Callable[[object], object] = type


def _plain(space: MessageSpace) -> tuple[frozenset[Role], bool, int, int]:
    """Return the roles, whether the text may have any length, and its bounds.

    There are no roles where a subclass or a content space of another class has its own say.
    """
    content = space.content_space
    if type(space) is not MessageSpace or type(content) is not TextSpace:
        return frozenset(), False, 0, 0
    roles, least, greatest = frozenset(space.roles), content.min_length, content.max_length
    if greatest is None:
        return roles, least == 0, least, maxsize
    return roles, False, least, greatest
