"""Writing groups to a file, each as soon as it is finished."""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
import threading
from collections.abc import Mapping
from pathlib import Path as FilePath
from types import TracebackType
from typing import Any, BinaryIO, Self

from pydantic_core import from_json, to_json

from rolloutlib.rollouts import TrajectoryGroup
from rolloutlib.rollouts._codec import Decoder, Encode, Encoder, UnstorableError
from rolloutlib.storage._lines import (
    Path,
    header_line,
    is_torn_header,
    is_whole,
    open_file,
    read_header,
    start_of_last_line,
    warn_of_torn_line,
    write_line,
)

if sys.platform != "win32":
    import fcntl

_CONTEXT = 50  # characters


class GroupWriter:
    """Appends groups to a file of JSON Lines, which `read_groups` reads.

    What was appended survives the death of the process; with `fsync`, that of the machine. A file
    that is there already is appended to, after a last line that is not whole was cut off, with a
    `TornLineWarning`. Only one writer at a time may have a file. Any thread may append.

    Args:
        path: The file; it is made now if it is not there, and so is its folder.
        settings: What the groups were made with, for the file's first line.
        encode: Turns values of types of your own into such that can be stored, as in
            `TrajectoryGroup.to_dict`.
        fsync: Wait after each group until the disk has it.

    Raises:
        UnstorableError: The settings cannot be stored.
        ValueError: The file is no file of groups, or its groups were made with other settings, which
            the message names.
        BlockingIOError: Another writer has the file.
        OSError: The file cannot be written.
    """

    def __init__(
        self,
        path: Path,
        *,
        settings: Mapping[str, Any] | None = None,
        encode: Encode | None = None,
        fsync: bool = False,
    ) -> None:
        self._path = path
        self._encode = encode
        self._fsync = fsync
        self._lock = threading.Lock()
        self._dirty = True  # there may be bytes where the next line is to be written
        form = None if settings is None else _form(settings, encode)
        folder = FilePath(path).parent
        folder.mkdir(parents=True, exist_ok=True)
        self._file = _open_locked(path)
        try:
            self._size = self._begin(form)
            if fsync:
                _sync_folder(folder)
        except BaseException:
            self._file.close()
            raise

    def append(self, group: TrajectoryGroup[Any, Any, Any], *, position: int | None = None) -> None:
        """Write a group.

        Args:
            group: The group.
            position: Which item of a run it is about, from 0, if it belongs to one.

        Raises:
            UnstorableError: Something in the group cannot be stored; nothing of it is written.
            OSError: It cannot be written; the next call writes where this one began.
        """
        form = group.to_dict(encode=self._encode)
        line = write_line({"position": position, "group": form})
        with self._lock:
            self._size = self._write(self._size, line)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _begin(self, settings: Any) -> int:
        """Write the header or check it, and return where the next line is to be written."""
        with open_file(self._path) as file:
            first = file.readline()
            size = file.seek(0, os.SEEK_END)
            if not first or (len(first) == size and is_torn_header(first)):
                return self._write(0, header_line(settings))
            header = read_header(first, self._path)
            if settings is not None and header.get("settings") != settings:
                if len(first) == size:  # nothing was made with the old ones
                    return self._write(0, header_line(settings))
                _check_settings(self._path, header.get("settings"), settings)
            start = start_of_last_line(file)
            file.seek(start)
            line = file.read()
        if line.endswith(b"\n"):
            return size
        if is_whole(line):
            return self._write(size, b"\n")
        warn_of_torn_line(self._path, start, len(line))
        self._file.truncate(start)
        return start

    def _write(self, start: int, data: bytes) -> int:
        """Write at an offset, and return that of the end."""
        file = self._file
        try:
            file.seek(start)
            if self._dirty:
                file.truncate()
            self._dirty = True
            rest = memoryview(data)
            while rest:
                rest = rest[file.write(rest) :]
            if self._fsync:
                os.fsync(file.fileno())
        except OSError as error:  # the disk is full, say
            error.filename = os.fspath(self._path)
            raise
        self._dirty = False
        return start + len(data)


def _open_locked(path: Path) -> BinaryIO:
    """Open a file, or make it, as its only writer.

    Raises:
        BlockingIOError: Another writer has the file.
        OSError: It cannot be opened.
    """
    while True:
        # Not buffered: what is written is the system's, and nothing of it is written later.
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
        file: BinaryIO = os.fdopen(descriptor, "r+b", buffering=0)
        try:
            _lock(file, path)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
                    return file
        except BaseException:
            file.close()
            raise
        file.close()  # another file has taken its place since it was opened


def _lock(file: BinaryIO, path: Path) -> None:
    if sys.platform == "win32":
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        msg = (
            f"another writer has {os.fspath(path)!r}, of this process or of another, or a "
            "process that was forked from a writer's, and has outlived it"
        )
        raise BlockingIOError(msg) from error
    except OSError:  # a file system without locks
        return


def _form(settings: Mapping[str, Any], encode: Encode | None) -> Any:
    """Return settings as they are read from a header."""
    try:
        return from_json(to_json(Encoder(encode).write(dict(settings))))
    except UnstorableError as error:
        error.path.append("settings")
        raise


def _check_settings(path: Path, before: Mapping[str, Any] | None, now: Mapping[str, Any]) -> None:
    """Refuse other settings. One that is lacking is None: it may be one that came with an update."""
    if before is None:
        msg = f"{os.fspath(path)!r} holds groups of no run, so no run can go on with it"
        raise ValueError(msg)
    changes = [
        _change(name, before.get(name), now.get(name))
        for name in sorted({*before, *now})
        if before.get(name) != now.get(name)
    ]
    if not changes:
        return
    msg = (
        f"{os.fspath(path)!r} holds groups that were made with other settings: "
        f"{'; '.join(changes)}. Use the same, or another file"
    )
    raise ValueError(msg)


def _change(name: str, before: object, now: object) -> str:
    """Tell how a setting has changed; of long ones the part around the first difference."""
    decoder = Decoder(lambda _, value: value)
    one, other = repr(decoder.read(before)), repr(decoder.read(now))
    pairs = enumerate(itertools.zip_longest(one, other))
    start = next((at for at, (left, right) in pairs if left != right), 0) - _CONTEXT
    return f"{name} was {_cut(one, start)} and is {_cut(other, start)}"


def _cut(text: str, start: int) -> str:
    if len(text) <= 4 * _CONTEXT:
        return text
    start = max(start, 0)
    stop = start + 3 * _CONTEXT
    return f"{'...' if start else ''}{text[start:stop]}{'...' if stop < len(text) else ''}"


def _sync_folder(folder: FilePath) -> None:
    """Wait until the disk knows that the file is there."""
    with contextlib.suppress(OSError):  # Windows opens no folders
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
