"""Reading the files that users name."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import TYPE_CHECKING

from rolloutlib.evals._command._errors import CommandError

if TYPE_CHECKING:
    from rolloutlib.evals.reports import Report


def read_run(path: Path, baseline: Path | None = None) -> Report:
    """Read a log or a file of trajectories, and perhaps one to compare it with.

    Raises:
        CommandError: There is no such file, it is no such file, or the two cannot be compared.
    """
    from rolloutlib.evals.reports import read_report

    for each in (path, baseline):
        if each is not None:
            check_file(each)
    try:
        return read_report(path, baseline=baseline)
    except (OSError, ValueError) as error:
        raise CommandError(str(error)) from error


def check_file(path: Path) -> None:
    """Refuse what is no file, with the nearest name.

    Raises:
        CommandError: It is none.
    """
    if path.is_file():
        return
    if path.is_dir():
        msg = f"{str(path)!r} is a folder: name a file in it"
        raise CommandError(msg)
    if path.exists():
        msg = f"{str(path)!r} is no regular file, and is read more than once: copy what it gives to one"
        raise CommandError(msg)
    folder = path.parent
    names = [each.name for each in folder.iterdir()] if folder.is_dir() else []
    near = difflib.get_close_matches(path.name, names, 1)
    hint = f"; did you mean {str(folder / near[0])!r}?" if near else ""
    msg = f"there is no file {str(path)!r}{hint}"
    raise CommandError(msg)
