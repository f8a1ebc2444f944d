"""Where grades are kept, so that nothing is graded twice."""

from __future__ import annotations

import json
import os
from types import TracebackType
from typing import Self

from rolloutlib.graders._cache_sessions import Path, Session
from rolloutlib.graders._flights import Flights
from rolloutlib.scores import Score


class GradeCache:
    """Keeps grades in memory, or in a file that outlives the process.

    May serve any number of `CachedGrader`s, in threads and tasks, under several event loops. The file
    is an SQLite database: several processes may use it at the same time, a process that is killed
    harms nothing, and no more of it is in memory than is asked for. It is not for folders that are
    shared over a network.

    Args:
        path: The file; it is made now if it is not there, and so is its folder. By default the grades
            are kept in memory, and a process that is forked begins without any.

    Raises:
        ValueError: The file is something else, or of a newer version.
        OSError: The folder cannot be made.
        sqlite3.Error: The file cannot be opened.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._hits = self._misses = 0
        self._sessions = {os.getpid(): Session(path)}

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

    @property
    def flights(self) -> Flights:
        """The grades that this process is making."""
        return self._session.flights

    def __len__(self) -> int:
        """Return how many grades are kept."""
        with self._session.use() as database:
            [(count,)] = database.execute("SELECT count(*) FROM grades")
        return int(count)

    def load(self, key: str, *, again: bool = False) -> Score | None:
        """Return the grade of a key, or None if it is not kept.

        Args:
            key: What was graded.
            again: Count it as a miss if it is not kept, since it is going to be made.
        """
        with self._session.use() as database:
            found = database.execute("SELECT score FROM grades WHERE key = ?", (key,)).fetchone()
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
        with self._session.use() as database:
            row = (key, grader, json.dumps(score.to_dict()))
            if database.execute("INSERT OR IGNORE INTO grades VALUES (?, ?, ?)", row).rowcount:
                return score
            # Another process was faster: grades that differ would not be comparable.
            query = "SELECT score FROM grades WHERE key = ?"
            [(kept,)] = database.execute(query, (key,))
        return Score.from_dict(json.loads(kept))

    def close(self) -> None:
        """Close the file; a cache in memory is empty after it."""
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def _session(self) -> Session:
        """What this process has; a forked one may use neither the locks of its parent nor its file."""
        process = os.getpid()
        session = self._sessions.get(process)
        return session or self._sessions.setdefault(process, Session(self._path))
