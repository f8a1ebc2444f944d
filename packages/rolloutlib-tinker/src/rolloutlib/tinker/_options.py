"""The keyword arguments that all policies take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, Required, cast, get_args

from typing_extensions import TypedDict

from rolloutlib.rollouts._requests import check_names, check_numbers
from rolloutlib.training._chat_tokenizer import Overrule


class PolicyOptions(TypedDict, total=False):
    """Keyword arguments of every policy; what is None or left out has its default.

    For `max_incomplete` None is a number of its own: any.

    Attributes:
        max_tokens: The most tokens of an answer. There is no default: Tinker's own is as many as fit.
        temperature: 1, the default, samples from the model's own distribution, 0 takes the likeliest
            token. Log probabilities are Tinker's, whatever it does to them for other temperatures.
        top_k: Sample from so many of the likeliest tokens.
        top_p: Sample from the likeliest tokens that have this probability together.
        stop: Texts, or ids of tokens, that end an answer, beside those with which the model ends it.
        seed: Mixed into the seed of each request, which is derived from the episode's seed and the
            number of the step. Without it, requests of episodes without seeds have none.
        send_seed: Whether requests have seeds at all.
        timeout: How many seconds a request may take, with all that the SDK tries again by itself and
            the time that it holds requests back; 600 by default.
        max_context: How many tokens prompt and answer may have together. A longer prompt ends the
            episode as truncated, and nothing is asked; an answer may have what the prompt leaves.
        max_incomplete: How many answers may lack log probabilities; None means any number. By default
            0: the first is an error.
        max_samples: The most samples of one prompt that a batch asks for in one request; None, the
            default, means no limit.
        overrule: Which rewriting of earlier turns by the template gives way to the tokens that the
            model knows, as for `rolloutlib.training.ChatTokenizer`; "everything" by default.
        max_chats: How many conversations to keep the tokens of; 4096 by default.
    """

    max_tokens: Required[int]
    temperature: float | None
    top_k: int | None
    top_p: float | None
    stop: str | Sequence[str] | Sequence[int] | None
    seed: int | None
    send_seed: bool | None
    timeout: float | None
    max_context: int | None
    max_incomplete: int | None
    max_samples: int | None
    overrule: Overrule | None
    max_chats: int | None


def check_options(options: PolicyOptions) -> None:
    """Refuse what no request could have, before anything is asked.

    Raises:
        TypeError: A name is unknown or missing, or an argument has the wrong type.
        ValueError: A number is out of its range.
    """
    given: Mapping[str, Any] = cast("Mapping[str, Any]", options)
    check_names(given, PolicyOptions.__annotations__, "see PolicyOptions")
    if given.get("max_tokens") is None:
        msg = "pass max_tokens=: without it an answer may fill the whole context, which costs"
        raise TypeError(msg)
    check_numbers(given, _COUNTS)
    for name, (kind, what) in _KINDS.items():
        if given.get(name) is not None and not isinstance(given[name], kind):
            msg = f"{name} must be {what}, got {given[name]!r}"
            raise TypeError(msg)
    if given.get("overrule") not in (None, *get_args(Overrule)):
        msg = f"overrule must be one of {get_args(Overrule)}, got {given['overrule']!r}"
        raise ValueError(msg)
    read_stop(options)


def read_stop(options: PolicyOptions) -> tuple[list[str], list[int]]:
    """Return the texts, or the ids, that end an answer.

    Raises:
        TypeError: They are neither, or both.
        ValueError: A text is empty, or an id negative.
    """
    given: Any = options.get("stop")
    if given is None:
        return [], []
    stops: list[Any] = [given] if isinstance(given, str) else [None]
    if isinstance(given, (list, tuple)):
        stops = list(cast("Sequence[Any]", given))
    texts = [stop for stop in stops if isinstance(stop, str)]
    ids = [int(stop) for stop in stops if isinstance(stop, Integral)]
    if len(stops) not in (len(texts), len(ids)):
        msg = f"stop must be a text, texts, or ids of tokens, got {given!r}"
        raise TypeError(msg)
    if "" in texts or min(ids, default=0) < 0:
        msg = f"stop must have no empty text and no negative id, got {given!r}"
        raise ValueError(msg)
    return texts, ids


_KINDS: dict[str, tuple[type | tuple[type, ...], str]] = {
    "seed": (Integral, "an integer"),
    "send_seed": (bool, "a bool"),
}
_COUNTS = {
    "max_tokens": 1,
    "top_k": 1,
    "max_context": 1,
    "max_incomplete": 0,
    "max_samples": 1,
    "max_chats": 1,
}
