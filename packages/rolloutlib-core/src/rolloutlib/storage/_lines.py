"""The lines of a file of groups: a header, then one group each."""

from __future__ import annotations

import os
import stat
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path as FilePath
from typing import IO, Any, BinaryIO, TypeAlias, cast

from pydantic_core import from_json, to_json

from rolloutlib import __version__

Path: TypeAlias = str | os.PathLike[str]

FORMAT = "rolloutlib.groups"
VERSION = 1

_BLOCK = 1 << 20
_START = f'{{"format":"{FORMAT}",'.encode()
# JSON lets these stand in text, but some readers take them for ends of lines.
_LINE_ENDS = (("\x85", b"\\u0085"), ("\u2028", b"\\u2028"), ("\u2029", b"\\u2029"))


class TornLineWarning(UserWarning):
    """Warns that the last line of a file is not whole, since the process that wrote it was killed."""


def open_file(path: Path) -> BinaryIO:
    """Open a file for reading.

    Raises:
        OSError: It cannot be opened.
        ValueError: It is no regular file, and may be without an end.
    """
    mode = os.stat(path).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # to open a folder is an error of its own
        msg = f"{os.fspath(path)!r} is no regular file, as groups are kept in"
        raise ValueError(msg)
    return FilePath(path).open("rb")


def write_line(value: Any) -> bytes:
    """Return a value as one line of JSON."""
    line = to_json(value)
    if not line.isascii():
        text = line.decode()  # a character is looked for sooner than its bytes are
        for character, escape in _LINE_ENDS:
            if character in text:
                line = line.replace(character.encode(), escape)
    return line + b"\n"


def header_line(settings: Any) -> bytes:
    """Return the first line of a file."""
    return write_line(
        {
            "format": FORMAT,
            "version": VERSION,
            "library": __version__,
            "settings": settings,
        }
    )


def read_header(line: bytes, path: Path) -> Mapping[str, Any]:
    """Return what the first line of a file says.

    Raises:
        ValueError: It is no header, or that of another version.
    """
    if not line.startswith(_START):
        msg = f"{os.fspath(path)!r} is no file of groups: its first line is {line[:80]!r}"
        raise ValueError(msg)
    header = cast("Mapping[str, Any]", parse(line, path, 1))
    if header.get("version") != VERSION:
        msg = (
            f"{os.fspath(path)!r} is of version {header.get('version')!r}, written by rolloutlib "
            f"{header.get('library')}; this one, {__version__}, reads version {VERSION}"
        )
        raise ValueError(msg)
    settings: object = header.get("settings")
    if not isinstance(settings, (dict, type(None))):
        raise damaged(path, 1, f"settings are a mapping or null, got {settings!r}")
    return header


def is_torn_header(line: bytes) -> bool:
    """Tell whether a line, the only one of a file, is the beginning of a header."""
    return not line.endswith(b"\n") and (_START.startswith(line) or line.startswith(_START))


def parse(line: bytes, path: Path, number: int) -> Any:
    """Return what a line holds.

    Raises:
        ValueError: It is not JSON.
    """
    try:
        return from_json(line)
    except ValueError as error:
        raise damaged(path, number, error) from error


def damaged(path: Path, number: int, reason: object) -> ValueError:
    """Return an error that tells which line of a file is damaged."""
    return ValueError(f"{os.fspath(path)!r} is damaged in line {number}: {reason}")


def is_whole(line: bytes) -> bool:
    """Tell whether a last line was written to its end, if for its line feed."""
    if line.endswith(b"\n"):
        return True
    try:
        from_json(line)
    except ValueError:
        return False
    return True


def whole_lines(file: IO[bytes], path: Path) -> Iterator[tuple[int, int, bytes]]:
    """Yield the number, the offset and the bytes of each line; warn of a torn one, and leave it."""
    offset = 0
    for number, line in enumerate(file, 1):
        if not is_whole(line):
            warn_of_torn_line(path, offset, len(line))
            return
        yield number, offset, line
        offset += len(line)


def start_of_last_line(file: IO[bytes]) -> int:
    """Return where the last line of a file begins, whether it is whole or not."""
    stop = file.seek(0, os.SEEK_END) - 1  # a line feed at the very end is part of the last line
    while stop > 0:
        start = max(0, stop - _BLOCK)
        file.seek(start)
        found = file.read(stop - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        stop = start
    return 0


def warn_of_torn_line(path: Path, offset: int, size: int) -> None:
    """Warn that a file ends within a line."""
    msg = (
        f"{os.fspath(path)!r} ends within a line, whose {size} bytes from byte {offset} on are left "
        "out: whoever wrote it was killed, or is still writing"
    )
    warnings.warn(msg, TornLineWarning, stacklevel=2)
