"""Runs that are killed at every point, and gone on with: a script, run by a test.

    python killed.py FOLDER KIND ORDER

Each run is a process of its own, forked from this one. Prints how often one was killed.
"""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio

from core.rollouts.scripted import AsyncScriptedEnv, ScriptedEnv, apolicy, policy
from rolloutlib import TrajectoryGroup, acollect, collect
from rolloutlib.storage import GroupStore, TornLineWarning, read_groups

AnyGroup = TrajectoryGroup[Any, Any, Any]

ITEMS = ["a", "b", "a", "c"]
ROLLOUTS = 2


class Killer:
    """Kills its process at the event of a number, or lets it live."""

    def __init__(self, number: int | None) -> None:
        self._left = number

    def __call__(self) -> None:
        if self._left is not None:
            if not self._left:
                os.kill(os.getpid(), signal.SIGKILL)
            self._left -= 1


class DeadlyStore(GroupStore):
    """A store whose process may be killed before and after each call."""

    def __init__(self, path: Path, kill: Callable[[], None]) -> None:
        super().__init__(path)
        self._kill = kill

    def prepare(self, settings: Any) -> None:
        self._kill()
        super().prepare(settings)
        self._kill()

    def save(self, position: int, group: AnyGroup) -> None:
        self._kill()
        super().save(position, group)
        self._kill()


def play(path: Path, kind: str, order: Any, kill: Callable[[], None]) -> list[AnyGroup]:
    """One run, with kills at each call of a policy and of the store."""
    arguments: dict[str, Any] = {
        "num_rollouts": ROLLOUTS,
        "seed": 7,
        "order": order,
        "store": DeadlyStore(path, kill),
        "concurrency": 3 if kind == "async" else 1,
    }
    if kind == "sync":

        def deadly_policy(observation: str) -> Any:
            kill()
            return policy(observation)

        return list(collect(ITEMS, lambda _: ScriptedEnv(), deadly_policy, **arguments))

    async def deadly_apolicy(observation: str) -> Any:
        kill()
        return await apolicy(observation)

    async def main() -> list[AnyGroup]:
        run = acollect(ITEMS, lambda _: AsyncScriptedEnv(), deadly_apolicy, **arguments)
        async with run as groups:
            return [group async for group in groups]

    return anyio.run(main)


def is_killed(path: Path, kind: str, order: str, number: int) -> bool:
    """Play in a process that is killed at an event; tell whether it came so far."""
    child = os.fork()
    if not child:
        try:
            play(path, kind, order, Killer(number))
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def in_order(groups: list[AnyGroup]) -> list[AnyGroup]:
    """Groups in the order of their seeds, of which each position has another."""
    return sorted(groups, key=lambda group: group.seed or 0)


def check(path: Path, kind: str, order: str, expected: list[AnyGroup]) -> None:
    """Go on with a file, and compare what comes out, and what is in the file, with what should."""
    found = play(path, kind, order, Killer(None))
    if order == "completion":
        found, expected = in_order(found), in_order(expected)
    assert found == expected
    assert in_order(list(read_groups(path))) == in_order(expected)
    assert path.read_bytes().count(b"\n") == 1 + len(ITEMS)


def main() -> None:
    """Kill at every event once, then one run again and again, then cut the file anywhere."""
    folder, kind, order = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    expected = play(folder / "expected.jsonl", kind, order, Killer(None))
    kills = 0
    while is_killed(folder / f"{kills}.jsonl", kind, order, kills):
        check(folder / f"{kills}.jsonl", kind, order, expected)
        kills += 1

    path = folder / "again.jsonl"
    for number in range(1_000):
        if not is_killed(path, kind, order, 2 + number % 7):
            break
    check(path, kind, order, expected)

    data = path.read_bytes()
    for cut in range(0, len(data), 257):
        path.write_bytes(data[:cut])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TornLineWarning)
            check(path, kind, order, expected)
    print(kills)


if __name__ == "__main__":
    main()
