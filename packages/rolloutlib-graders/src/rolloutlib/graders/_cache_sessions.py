"""What one process has of a cache: its database, and the grades that it is making."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import weakref
from collections.abc import Generator
from pathlib import Path as FilePath
from typing import TypeAlias

from rolloutlib._exceptions import add_note
from rolloutlib.graders._flights import Flights

Path: TypeAlias = str | os.PathLike[str]

APPLICATION_ID = 0x726F6C67
"""Marks the files of caches, in SQLite's header."""

VERSION = 1
BUSY_SECONDS = 60.0
"""How long to wait for another process that writes. A write takes milliseconds."""


class Session:
    """An open database of grades, for one process.

    Args:
        path: The file, or None for a database in memory.

    Attributes:
        flights: The grades that are being made.

    Raises:
        ValueError: The file is something else, or of a newer version.
        OSError: The folder cannot be made.
        sqlite3.Error: The file cannot be opened.
    """

    def __init__(self, path: Path | None) -> None:
        self._place = "a cache in memory" if path is None else f"the cache {os.fspath(path)!r}"
        self._lock = threading.Lock()
        self.flights = Flights()
        if path is not None:
            FilePath(path).parent.mkdir(parents=True, exist_ok=True)
        with self._noting():
            self._database = sqlite3.connect(
                ":memory:" if path is None else os.fspath(path),
                timeout=BUSY_SECONDS,
                isolation_level=None,  # each statement is a transaction
                check_same_thread=False,  # the lock sees to it
            )
            try:
                self._prepare()
            except BaseException:
                self._database.close()
                raise
        if path is None:  # nobody has to close what is in memory
            weakref.finalize(self, self._database.close)

    @contextlib.contextmanager
    def use(self) -> Generator[sqlite3.Connection]:
        """Have the database to oneself, in a `with` block."""
        with self._lock, self._noting():
            yield self._database

    def close(self) -> None:
        """Close the database."""
        with self._lock:
            self._database.close()

    @contextlib.contextmanager
    def _noting(self) -> Generator[None]:
        try:
            yield
        except sqlite3.Error as error:
            add_note(error, f"in {self._place}")
            raise

    def _prepare(self) -> None:
        """Make the table if it is not there."""
        database = self._database
        if not self._is_prepared():
            database.execute("BEGIN IMMEDIATE")
            if not self._is_prepared():  # another process may have been faster
                database.execute(
                    "CREATE TABLE grades "
                    "(key TEXT PRIMARY KEY, grader TEXT NOT NULL, score TEXT NOT NULL) WITHOUT ROWID"
                )
                database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                database.execute(f"PRAGMA user_version = {VERSION}")
            database.execute("COMMIT")
        # Appends to a log, and waits for the disk only when that is moved into the file: what a killed
        # process has saved is there. If another process has the file just now, the next one does it.
        with contextlib.suppress(sqlite3.OperationalError):
            database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")

    def _is_prepared(self) -> bool:
        """Tell whether the table is there, or raise `ValueError` if something else is."""
        query = (
            "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master) "
            "FROM pragma_application_id, pragma_user_version"
        )
        try:
            [(application, version, tables)] = self._database.execute(query)
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError as error:
            msg = f"{self._place} is no file of grades: {error}"
            raise ValueError(msg) from error
        if application != (APPLICATION_ID if tables else 0):
            msg = f"{self._place} is no file of grades, but another database"
            raise ValueError(msg)
        if version > VERSION:
            msg = f"{self._place} is of version {version}; this rolloutlib reads version {VERSION}"
            raise ValueError(msg)
        return bool(tables)
