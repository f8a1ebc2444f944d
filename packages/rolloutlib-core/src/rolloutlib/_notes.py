"""Notes on exceptions."""

from __future__ import annotations

import contextlib


def add_note(error: BaseException, note: str) -> None:
    """Add a note to an exception, unless it takes none, as a frozen data class does."""
    with contextlib.suppress(Exception):  # a user's class may refuse in any way
        error.add_note(note)
