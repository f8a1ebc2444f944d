"""How the command ends: exit codes, and mistakes in one line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from enum import IntEnum

from rolloutlib._exceptions import read_error


class ExitCode(IntEnum):
    """What the command tells the shell; `docs/command.md` says it to users."""

    OK = 0
    NOT_MET = 1
    """What was asked about does not hold: all samples failed, a check does not pass, a run is worse."""
    USAGE = 2
    """An option, an argument or a file is wrong; nothing was run."""
    BROKEN = 3
    """What the command needs is missing or broke: a package, a model server, the code of an environment."""
    INTERRUPTED = 130
    """Ctrl-C, as shells count it: 128 + SIGINT."""
    CLOSED = 141
    """Nobody reads standard output any more, as shells count it: 128 + SIGPIPE."""


class CommandError(Exception):
    """Raised for what a user can mend, with a message of one line.

    Args:
        message: What is wrong, and what to do about it.
        code: How the command ends.
    """

    def __init__(self, message: str, code: ExitCode = ExitCode.USAGE) -> None:
        super().__init__(message)
        self.code = code


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint at the name that was meant, or nothing if none is near."""
    known = list(known)
    near = difflib.get_close_matches(name, known, 1) or [
        each for each in known if each.startswith(name)
    ]
    return f"; did you mean {near[0]!r}?" if near else ""


def describe(error: BaseException) -> str:
    """Return the kind of an error and what it says."""
    text = read_error(error, str)
    return f"{type(error).__qualname__}: {text}" if text else type(error).__qualname__
