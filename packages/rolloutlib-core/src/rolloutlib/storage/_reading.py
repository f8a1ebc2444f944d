"""Reading groups from a file, one at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias, cast

from rolloutlib.rollouts import TrajectoryGroup
from rolloutlib.rollouts._codec import Decode, Decoder
from rolloutlib.rollouts._forms import read_facts
from rolloutlib.storage._lines import Path, damaged, open_file, parse, read_header, whole_lines

AnyGroup: TypeAlias = TrajectoryGroup[Any, Any, Any]


def read_groups(path: Path, *, decode: Decode | None = None) -> Iterator[AnyGroup]:
    """Read the groups of a file, in the order in which they were written.

    Each is read when it is asked for, so that the file may be larger than memory. A last line that
    is not whole is left out, with a `TornLineWarning`.

    Args:
        path: The file.
        decode: Makes values of types of your own, as in `TrajectoryGroup.from_dict`.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is no file of groups, or a line is damaged; the message names the line.
    """
    read_settings(path)  # at once, not when the first group is asked for
    return _read(path, decode)


def read_settings(path: Path) -> dict[str, Any] | None:
    """Read the settings of the run that a file holds, or None if it holds none.

    Those of a run of `collect` are its seed, and the arguments that decide what is played.

    Args:
        path: The file.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is no file of groups.
    """
    with open_file(path) as file:
        settings = read_header(file.readline(), path).get("settings")
    decoder = Decoder(lambda name, value: value)
    try:
        return None if settings is None else read_facts(settings, decoder)
    except ValueError as error:
        raise damaged(path, 1, error) from error


def parse_group(line: bytes, path: Path, number: int, decode: Decode | None) -> AnyGroup:
    """Return the group of a line.

    Raises:
        ValueError: It is damaged, or holds something else.
    """
    content = parse(line, path, number)
    try:
        return TrajectoryGroup[Any, Any, Any].from_dict(content["group"], decode=decode)
    except (ValueError, TypeError, LookupError) as error:
        raise damaged(path, number, error) from error


def parse_position(line: bytes, path: Path, number: int) -> int | None:
    """Return the position of the group of a line, without reading all of it where that is possible.

    Raises:
        ValueError: It is damaged, or holds something else.
    """
    text = line[:40].partition(b",")[0].removeprefix(b'{"position":')
    if text.isdigit():
        return int(text)
    content = parse(line, path, number)
    if not isinstance(content, dict) or "group" not in content:
        raise damaged(path, number, "it holds no group")
    position: object = cast("dict[str, Any]", content).get("position")
    if position is None or (type(position) is int and position >= 0):
        return position
    raise damaged(path, number, f"position is a number from 0 or null, got {position!r}")


def _read(path: Path, decode: Decode | None) -> Iterator[AnyGroup]:
    with open_file(path) as file:
        for number, _, line in whole_lines(file, path):
            if number > 1:
                yield parse_group(line, path, number, decode)
