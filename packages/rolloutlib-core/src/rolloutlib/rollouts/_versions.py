"""Which weights chose an action: one version, or several if they changed while it was sampled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral
from operator import index
from typing import Any, TypeAlias, cast

Version: TypeAlias = int | str
"""The version of a policy's weights."""

Versions: TypeAlias = Version | Sequence[tuple[Version, int]]
"""One version, or several in the order of the tokens, each with how many of them it sampled."""


def version_of(policy: object) -> Version | None:
    """Return a policy's attribute `version`, or None if what goes by that name is no version."""
    version = getattr(policy, "version", None)
    try:
        return None if version is None else _to_version(version)
    except TypeError:  # a method, say, or the version of something else
        return None


def to_versions(value: object, num_tokens: int | None, name: str) -> Versions:
    """Return the version of an action, or the several versions of its tokens as a tuple of pairs.

    Of one version, and of one alone that sampled any token, there is but the version.

    Args:
        value: A version, or pairs of a version and a number of tokens.
        num_tokens: How many tokens the action has, or None if they are unknown.
        name: What the value is, for error messages.

    Raises:
        TypeError: It is neither.
        ValueError: The numbers of tokens are negative, or do not add up to the tokens that there are.
    """
    if isinstance(value, (str, Integral)):
        return _to_version(value, name)
    try:
        pairs = [
            (_to_version(version, name), index(count))
            for version, count in cast("Iterable[tuple[Any, Any]]", value)
        ]
    except (TypeError, ValueError) as error:
        raise _refusal(name, value) from error
    if not pairs:
        raise _refusal(name, value)
    total = sum(count for _, count in pairs)
    if total != num_tokens or min(count for _, count in pairs) < 0:
        given = "no tokens are given" if num_tokens is None else f"there are {num_tokens} tokens"
        msg = f"{name} must tell the version of each token once, but {given}: got {value!r}"
        raise ValueError(msg)
    runs: list[tuple[Version, int]] = []
    for version, count in pairs:
        if runs and runs[-1][0] == version:
            runs[-1] = (version, runs[-1][1] + count)
        elif count:
            runs.append((version, count))
    if not runs:
        return pairs[-1][0]
    return runs[0][0] if len(runs) == 1 else tuple(runs)


def version_runs(
    versions: Versions | None, num_tokens: int
) -> Sequence[tuple[Version | None, int]]:
    """Return each version of an action's tokens with how many it sampled, in order."""
    if versions is None or isinstance(versions, (str, int)):
        return [(versions, num_tokens)]
    return versions


def _to_version(value: object, name: str = "version") -> Version:
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise _refusal(name, value)
    return int(value)


def _refusal(name: str, value: object) -> TypeError:
    return TypeError(
        f"{name} must be an integer or text, or pairs of one and its number of tokens, got {value!r}"
    )
