"""A file of groups that a run goes on with after it was interrupted."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path as FilePath
from typing import Any

from rolloutlib.rollouts import TrajectoryGroup
from rolloutlib.rollouts._codec import Decode, Encode, Encoder
from rolloutlib.rollouts._forms import Record
from rolloutlib.storage._lines import Path, damaged, is_torn_header, open_file, whole_lines
from rolloutlib.storage._reading import parse_group, parse_position, read_settings
from rolloutlib.storage._writing import GroupWriter


class GroupStore:
    """Keeps the groups of a run of `collect` or `acollect` in a file, so that it can be gone on with.

        for group in collect(items, make_env, policy, store=GroupStore("run.jsonl")):
            ...

    Each group is appended when it is finished. Run again with the same file, the same call yields
    the finished groups from there without playing them, and plays the rest. The file is one that
    `read_groups` reads.

    Args:
        path: The file; it is made before the first episode, and so is its folder.
        encode: Turns values of types of your own into such that can be stored, as in
            `TrajectoryGroup.to_dict`.
        decode: Makes them again, as in `TrajectoryGroup.from_dict`.
        fsync: Wait after each group until the disk has it, so that it survives the death of the
            machine, not of the process alone.
    """

    def __init__(
        self,
        path: Path,
        *,
        encode: Encode | None = None,
        decode: Decode | None = None,
        fsync: bool = False,
    ) -> None:
        self._path = FilePath(path).absolute()  # an environment may change the folder
        self._encode = encode
        self._decode = decode
        self._fsync = fsync
        self._settings: dict[str, Any] | None = None
        self._lock = threading.Lock()
        self._writer: GroupWriter | None = None
        self._places: dict[int, tuple[int, int]] = {}  # line number and offset, by position

    def read_seed(self) -> int | None:
        """Return the seed of the run that the file holds, or None if it holds none yet.

        Raises:
            ValueError: The file holds something else.
        """
        if not self._path.exists():
            return None
        with open_file(self._path) as file:
            if is_torn_header(file.readline()):  # or there is none
                return None
        seed: object = (read_settings(self._path) or {}).get("seed")
        if seed is None or (type(seed) is int and seed >= 0):
            return seed
        raise damaged(self._path, 1, f"the seed is a number from 0 or null, got {seed!r}")

    def prepare(self, settings: Mapping[str, Any]) -> None:
        """Make the file, or check that it can be gone on with; before anything is played.

        Raises:
            UnstorableError: The settings cannot be stored.
            ValueError: The file holds something else, or groups of a run with other settings.
            OSError: The file cannot be written, or another writer has it.
        """
        self._settings = dict(settings)
        self._open_writer().close()

    def check(self, value: object) -> None:
        """Refuse a record, or a value for one, that cannot be stored.

        Raises:
            UnstorableError: It cannot be stored.
        """
        if isinstance(value, Record):
            value.to_dict(encode=self._encode)
        else:
            Encoder(self._encode).write(value)

    def load(self, position: int) -> TrajectoryGroup[Any, Any, Any] | None:
        """Return the group of the item at a position, or None if it is not finished.

        Raises:
            ValueError: The file is damaged; the message names the line.
        """
        with self._lock:
            self._open()
            place = self._places.get(position)
        if place is None:
            return None
        number, offset = place
        with open_file(self._path) as file:
            file.seek(offset)
            return parse_group(file.readline(), self._path, number, self._decode)

    def save(self, position: int, group: TrajectoryGroup[Any, Any, Any]) -> None:
        """Keep a group that is finished.

        Raises:
            UnstorableError: Something in it cannot be stored.
            OSError: It cannot be written.
        """
        with self._lock:
            self._open().append(group, position=position)

    def remove(self, unwanted: Callable[[TrajectoryGroup[Any, Any, Any]], object]) -> int:
        """Take groups out of the file, so that a run plays them again.

            GroupStore("run.jsonl").remove(lambda group: group.errors)

        The file is written anew beside the old one, and then takes its place at once: a process that is
        killed meanwhile leaves the one or the other.

        Args:
            unwanted: Tells whether a group is to go.

        Returns:
            How many went.

        Raises:
            ValueError: The file is damaged, or no file of groups.
            OSError: It cannot be written, or another writer has it.
        """
        with self._lock:
            if not self._path.exists():
                return 0
            writer = self._open()
            new = FilePath(f"{os.path.realpath(self._path)}.new")  # on the same disk, links or not
            try:
                count = self._copy(new, unwanted)
                if count:
                    if sys.platform == "win32":  # where an open file cannot be replaced
                        writer.close()
                    new.replace(os.path.realpath(self._path))
            finally:
                new.unlink(missing_ok=True)
                self._writer = None  # of the old file; the next call opens the new one
                writer.close()
            return count

    def finish(self, num_items: int) -> None:
        """Take note of the end of the items.

        Raises:
            ValueError: The file has groups of further ones.
        """
        with self._lock:
            self._open()
            last = max(self._places, default=-1)
        if last >= num_items:
            msg = (
                f"{os.fspath(self._path)!r} has a group of item {last}, but there are only "
                f"{num_items} items: they are not those that the file was begun with"
            )
            raise ValueError(msg)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._writer is not None:
                self._writer.close()
                self._writer = None

    def _open(self) -> GroupWriter:
        """Open the file, if it is not open, and find out which groups it has."""
        if self._writer is None:
            writer = self._open_writer()
            try:
                self._places = self._find()
            except BaseException:
                writer.close()
                raise
            self._writer = writer
        return self._writer

    def _open_writer(self) -> GroupWriter:
        return GroupWriter(
            self._path, settings=self._settings, encode=self._encode, fsync=self._fsync
        )

    def _copy(
        self, new: FilePath, unwanted: Callable[[TrajectoryGroup[Any, Any, Any]], object]
    ) -> int:
        """Write all lines but those of unwanted groups to another file, and count these."""
        count = 0
        with open_file(self._path) as file, new.open("wb") as copy:
            for number, _, line in whole_lines(file, self._path):
                if number > 1 and unwanted(parse_group(line, self._path, number, self._decode)):
                    count += 1
                else:
                    copy.write(line)
            copy.flush()
            os.fsync(copy.fileno())
        shutil.copymode(self._path, new)
        return count

    def _find(self) -> dict[int, tuple[int, int]]:
        places: dict[int, tuple[int, int]] = {}
        with open_file(self._path) as file:
            for number, offset, line in whole_lines(file, self._path):
                position = None if number == 1 else parse_position(line, self._path, number)
                if position is None:
                    continue
                if position in places:
                    msg = (
                        f"{os.fspath(self._path)!r} has two groups of item {position}, in the "
                        f"lines {places[position][0]} and {number}"
                    )
                    raise ValueError(msg)
                places[position] = (number, offset)
        return places
