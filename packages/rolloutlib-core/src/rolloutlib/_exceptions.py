"""What travels with exceptions: notes, and the work that was finished."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from typing import Any


def add_note(error: BaseException, note: str) -> None:
    """Add a note to an exception, unless it takes none, as a frozen data class does."""
    with contextlib.suppress(Exception):  # a user's class may refuse in any way
        error.add_note(note)


def add_end_note(error: BaseException, further: BaseException) -> None:
    """Note on what ended a run what its end raised in turn: it does not hide the first."""
    add_note(error, f"the end of the run failed too: {read_error(further, repr)}")


def attach(error: BaseException, **records: object) -> None:
    """Let records travel with an exception; `from_exception` finds them there.

    An environment may raise one exception many times, so None takes the place of an earlier record.
    """
    for kind, record in records.items():
        error.__dict__[f"_rolloutlib_{kind}"] = record


def find(error: BaseException | None, kind: str) -> Any:
    """Return the record of a kind that travels with an exception, or with what led to it.

    `asyncio.run` turns the cancellation by Ctrl-C into a `KeyboardInterrupt` of its own.
    """
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if f"_rolloutlib_{kind}" in error.__dict__:
            return error.__dict__[f"_rolloutlib_{kind}"]
        seen.add(id(error))
        error = error.__context__ if error.__cause__ is None else error.__cause__
    return None


def read_error(error: BaseException, form: Callable[[BaseException], str]) -> str:
    """Return a text form of an exception, or say that it has none: user code writes it."""
    try:
        return form(error)
    except Exception as failure:
        return f"<{type(error).__qualname__}, whose text raises {type(failure).__qualname__}>"


def class_name(kind: type[BaseException]) -> str:
    """Return the name of an exception's class by which users import it, without `builtins`.

    Private modules are left out where a package above them exports the class.
    """
    module = kind.__module__
    while "._" in module:
        above = module.rpartition(".")[0]
        if getattr(sys.modules.get(above), kind.__qualname__, None) is not kind:
            break
        module = above
    return kind.__qualname__ if module == "builtins" else f"{module}.{kind.__qualname__}"
