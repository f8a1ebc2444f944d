"""Runs that are killed at every point, and gone on with: a script, run by a test.

    python killed.py FOLDER KIND ORDER

Each run is a process of its own, forked from this one. Prints how often one was killed.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import anyio

from core.rollouts.scripted import AsyncScriptedEnv, ScriptedEnv, apolicy, policy
from rolloutlib import TrajectoryGroup, acollect, collect
from rolloutlib.rollouts import derive_seed
from rolloutlib.storage import GroupStore, read_groups

AnyGroup = TrajectoryGroup[Any, Any, Any]

ITEMS = ["a", "b", "a", "c"]
ROLLOUTS = 2
SEED = 7


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
        "seed": SEED,
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


def in_order(groups: Iterable[AnyGroup]) -> list[AnyGroup]:
    """Groups in the order of their items, which their seeds tell."""
    seeds = [derive_seed(SEED, position) for position in range(len(ITEMS))]
    return sorted(groups, key=lambda group: seeds.index(group.seed or 0))


def check(path: Path, kind: str, order: str) -> None:
    """Go on with a file, and compare what comes out, and what is in the file, with what should."""
    expected = in_order(read_groups(path.with_name("expected.jsonl")))
    found = play(path, kind, order, Killer(None))
    assert (found if order == "dataset" else in_order(found)) == expected
    assert in_order(read_groups(path)) == expected
    assert path.read_bytes().count(b"\n") == 1 + len(ITEMS)


def is_killed(function: Callable[..., object], *args: object) -> bool:
    """Call a function in a process of its own, and tell whether that was killed.

    This process never has other threads, which a fork would lose.
    """
    child = os.fork()
    if not child:
        status = 1
        try:
            function(*args)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or not os.WEXITSTATUS(status)
    return os.WIFSIGNALED(status)


def main() -> None:
    """Kill at every event once, then one run again and again, each a little later."""
    folder, kind, order = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    anyio.run(anyio.sleep, 0)  # imports once what each process would
    assert not is_killed(play, folder / "expected.jsonl", kind, order, Killer(None))
    kills = 0
    while is_killed(play, folder / f"{kills}.jsonl", kind, order, Killer(kills)):
        assert not is_killed(check, folder / f"{kills}.jsonl", kind, order)
        kills += 1

    path = folder / "again.jsonl"
    later = iter(range(2, kills))
    while is_killed(play, path, kind, order, Killer(next(later))):
        pass
    assert not is_killed(check, path, kind, order)
    print(kills)


if __name__ == "__main__":
    main()
