"""Where a policy that plays many episodes at once keeps the tokens of each conversation."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, TypeAlias

from rolloutlib.training._chat_tokenizer import ChatTokenizer, Messages, plain_messages
from rolloutlib.training._deltas import ChatTokens

_Key: TypeAlias = tuple[int | None, bytes]


class Chats:
    """The conversations of all episodes that a policy plays.

    A policy sees an observation and, if it asks for them, the seed of the episode and the number of
    the step. `find` tells by these which conversation is meant:

        def policy(messages, *, seed=None, step=0):
            chat = chats.find(messages, seed=seed, step=step)
            prompt = chat.prompt(messages)
            tokens, logprobs = sample(prompt)
            chat.add(tokens)
            return PolicyOutput(..., tokens=tokens, logprobs=logprobs, prompt_tokens=prompt)

    A conversation is found by the messages of its last prompt and its seed; among several of the
    same, by the text that was sampled. So without seeds two episodes that saw the same and said the
    same may be taken for one another, and the prompt of one begin with the other's tokens: true to
    what the model read, but perhaps another row for the trainer. Groups give each member a seed.

    Args:
        tokenizer: Renders and encodes the conversations.
        max_chats: How many conversations to keep; those used least recently are forgotten. More than
            the episodes that are open at once.

    Raises:
        ValueError: `max_chats` is not positive.
    """

    def __init__(self, tokenizer: ChatTokenizer, *, max_chats: int = 4096) -> None:
        if max_chats < 1:
            msg = f"max_chats must be positive, got {max_chats!r}"
            raise ValueError(msg)
        self._tokenizer = tokenizer
        self._max_chats = max_chats
        self._lock = threading.Lock()
        self._chats: OrderedDict[_Key, list[ChatTokens]] = OrderedDict()
        self._count = 0

    def find(self, messages: Messages, *, seed: int | None, step: int) -> ChatTokens:
        """Return the tokens of a conversation, to be asked for the prompt of the same messages.

        Asked again at the same step, to sample anew after a failure, say, it has the same prompt. Safe
        to call from several threads.

        Args:
            messages: The observation: the whole conversation.
            seed: The seed that the policy was given.
            step: The number of the step; a conversation begins with 0. One that is not found in a
                later step begins anew, and reports it.

        Raises:
            TypeError: A message is not a mapping.
            ValueError: A message has an image or a sound.
        """
        messages = plain_messages(messages)
        *before, (_, now) = _digests(messages)
        with self._lock:
            chat = None
            if step:
                replies = [
                    ((seed, digest), messages[index].get("content"))
                    for index, digest in reversed(before)
                    if messages[index].get("role") == "assistant"
                ]
                chat = (
                    self._take(replies, exactly=True)
                    or self._again((seed, now))
                    or self._take(replies, exactly=False)
                )
            if chat is None:
                chat = ChatTokens(self._tokenizer, resumed=step > 0)
            self._keep((seed, now), chat)
        return chat

    def __len__(self) -> int:
        return self._count

    def _take(self, replies: list[tuple[_Key, Any]], *, exactly: bool) -> ChatTokens | None:
        """Take the conversation in which a reply came last, or one for whose prompt some reply came."""
        for key, content in replies:
            chats = self._chats.get(key, [])
            # Older ones may be left of episodes that are over.
            for chat in reversed(chats):
                if chat.reply is not None and (chat.reply == content or not exactly):
                    chats.remove(chat)
                    self._count -= 1
                    if not chats:
                        del self._chats[key]
                    return chat
        return None

    def _again(self, key: _Key) -> ChatTokens | None:
        """Return a conversation for whose last prompt there is to be another reply."""
        chats = self._chats.get(key)
        return chats[-1].again() if chats else None

    def _keep(self, key: _Key, chat: ChatTokens) -> None:
        self._chats.setdefault(key, []).append(chat)
        self._chats.move_to_end(key)
        self._count += 1
        while self._count > self._max_chats:
            oldest = next(iter(self._chats))
            self._chats[oldest].pop(0)
            self._count -= 1
            if not self._chats[oldest]:
                del self._chats[oldest]


def _digests(messages: list[dict[str, Any]]) -> Iterator[tuple[int, bytes]]:
    """Yield a number of messages from 0, and a digest of that many; of all of them last."""
    sha = hashlib.sha256()
    yield 0, sha.digest()
    for count, message in enumerate(messages, start=1):
        sha.update(json.dumps(message, sort_keys=True, default=repr).encode() + b"\n")
        yield count, sha.digest()
