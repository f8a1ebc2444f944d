"""Where grades are kept, so that nothing is graded twice."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import threading
import weakref
from collections.abc import Callable
from pathlib import Path as FilePath
from types import TracebackType
from typing import Self, TypeAlias

import anyio

from rolloutlib.envs._threads import find_call_soon
from rolloutlib.scores import Score

Path: TypeAlias = str | os.PathLike[str]

APPLICATION_ID = 0x726F6C67
"""Marks the files of caches, in SQLite's header."""

VERSION = 1
BUSY_SECONDS = 60.0
"""How long to wait for another process that writes. A write takes milliseconds."""


class GradeCache:
    """Keeps grades in memory, or in a file that outlives the process.

    May serve any number of `CachedGrader`s, in threads and tasks, under several event loops. The file
    is an SQLite database: several processes may use it at the same time, a process that is killed
    harms nothing, and no more of it is in memory than is asked for. It is not for folders that are
    shared over a network.

    Args:
        path: The file; it is made now if it is not there, and so is its folder. By default the grades
            are kept in memory.

    Raises:
        ValueError: The file is something else, or of a newer version.
        OSError: The folder cannot be made.
        sqlite3.Error: The file cannot be opened.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._flights: dict[str, Flight] = {}
        self._hits = self._misses = 0
        if path is not None:
            FilePath(path).parent.mkdir(parents=True, exist_ok=True)
        self._connection = self._connect()
        self._process = os.getpid()
        if path is None:  # nobody has to close what is in memory
            weakref.finalize(self, self._connection.close)

    @property
    def hits(self) -> int:
        """How many grades were found."""
        return self._hits

    @property
    def misses(self) -> int:
        """How many grades had to be made, those that failed included."""
        return self._misses

    @property
    def in_memory(self) -> bool:
        """Whether the grades are kept in memory."""
        return self._path is None

    def __len__(self) -> int:
        """Return how many grades are kept."""
        with self._lock:
            [(count,)] = self._open().execute("SELECT count(*) FROM grades")
        return int(count)

    def load(self, key: str, *, again: bool = False) -> Score | None:
        """Return the grade of a key, or None if it is not kept.

        Args:
            key: What was graded.
            again: Count it as a miss if it is not kept, since it is going to be made.
        """
        with self._lock:
            found = (
                self._open().execute("SELECT score FROM grades WHERE key = ?", (key,)).fetchone()
            )
            self._hits += found is not None
            self._misses += found is None and again
        return None if found is None else Score.from_dict(json.loads(found[0]))

    def save(self, key: str, grader: str, score: Score) -> Score:
        """Keep the grade of a key, and return it; one that is kept already is returned instead.

        Args:
            key: What was graded.
            grader: The fingerprint of the grader, for people who look into the file.
            score: The grade.
        """
        with self._lock:
            database = self._open()
            row = (key, grader, json.dumps(score.to_dict()))
            if database.execute("INSERT OR IGNORE INTO grades VALUES (?, ?, ?)", row).rowcount:
                return score
            # Another process was faster: grades that differ would not be comparable.
            query = "SELECT score FROM grades WHERE key = ?"
            [(kept,)] = database.execute(query, (key,))
        return Score.from_dict(json.loads(kept))

    def claim(self, key: str) -> tuple[Flight, bool]:
        """Return the making of a grade, and whether it is the caller's, since nobody makes it yet."""
        flight = Flight()
        with self._lock:
            made = self._flights.setdefault(key, flight)
        return made, made is flight

    def release(self, key: str, flight: Flight) -> None:
        """Tell those who wait for a grade that it is there, or that it failed."""
        with self._lock:
            if self._flights.get(key) is flight:
                del self._flights[key]
        flight.land()

    def close(self) -> None:
        """Close the file; a cache in memory is empty after it."""
        with self._lock:
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _open(self) -> sqlite3.Connection:
        """Return the connection; a forked process may not use that of its parent."""
        if self._path is not None and self._process != os.getpid():
            self._inherited = self._connection  # not to be closed here
            self._connection = self._connect()
            self._process = os.getpid()
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        database = sqlite3.connect(
            ":memory:" if self._path is None else os.fspath(self._path),
            timeout=BUSY_SECONDS,
            isolation_level=None,  # each statement is a transaction
            check_same_thread=False,  # the lock sees to it
        )
        try:
            _prepare(database, self._path)
        except BaseException:
            database.close()
            raise
        return database


class Flight:
    """A grade that is being made, and who waits for it.

    Attributes:
        thread: The thread that makes it, or whose event loop does.
    """

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self._lock = threading.Lock()
        self._landed = False
        self._waiting: list[Callable[[], object]] = []

    def wait(self) -> None:
        """Wait until it is there, or has failed."""
        event = threading.Event()
        if self._tell(event.set):
            event.wait()

    async def await_(self) -> None:
        """Wait for the same in an event loop."""
        event = anyio.Event()
        call_soon = find_call_soon()
        if self._tell(lambda: call_soon(event.set)):
            await event.wait()

    def land(self) -> None:
        """Wake all who wait."""
        with self._lock:
            self._landed = True
        for wake in self._waiting:
            with contextlib.suppress(RuntimeError):  # an event loop that has ended
                wake()

    def _tell(self, wake: Callable[[], object]) -> bool:
        with self._lock:
            if not self._landed:
                self._waiting.append(wake)
            return not self._landed


def _prepare(database: sqlite3.Connection, path: Path | None) -> None:
    """Make the table, or check that it is there.

    Raises:
        ValueError: The file is something else.
    """
    place = "the cache" if path is None else repr(os.fspath(path))
    try:
        database.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError as error:
        msg = f"{place} is no file of grades: {error}"
        raise ValueError(msg) from error
    [(application,)] = database.execute("PRAGMA application_id")
    [(version,)] = database.execute("PRAGMA user_version")
    [(tables,)] = database.execute("SELECT count(*) FROM sqlite_master")
    if application != (APPLICATION_ID if tables else 0):
        msg = f"{place} is no file of grades, but another database"
        raise ValueError(msg)
    if version > VERSION:
        msg = f"{place} is of version {version}; this rolloutlib reads version {VERSION}"
        raise ValueError(msg)
    if not tables:
        database.execute(
            "CREATE TABLE grades (key TEXT PRIMARY KEY, grader TEXT NOT NULL, score TEXT NOT NULL) "
            "WITHOUT ROWID"
        )
        database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        database.execute(f"PRAGMA user_version = {VERSION}")
    database.execute("COMMIT")
    # Appends to a log, and waits for the disk only when that is moved into the file: what a killed
    # process has saved is there. If another process has the file just now, the next one does it.
    with contextlib.suppress(sqlite3.OperationalError):
        database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = NORMAL")
