"""Groups that are taken out by processes that are killed at every call of a store: a script, run by a test.

    python killed_remove.py FILE

Prints how often one was killed.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from rolloutlib.storage import GroupStore, read_groups


def remove(path: Path, left: int) -> None:
    """Take out the groups with errors, and die at a call of a number."""

    def count(frame: FrameType, *_: Any) -> None:
        nonlocal left
        left -= Path(frame.f_code.co_filename).name == "_store.py"
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(count)
    GroupStore(path).remove(lambda group: group.errors)
    sys.setprofile(None)


def main(path: Path) -> None:
    """Kill at each call in turn, until a process lives."""
    before = path.read_bytes()
    lines = before.splitlines(keepends=True)
    groups = list(read_groups(path))
    kept = [line for line, group in zip(lines[1:], groups, strict=True) if not group.errors]
    after = b"".join([lines[0], *kept])
    number, lived = 0, False
    found: set[bytes] = set()
    while not lived:
        number += 1
        path.write_bytes(before)
        child = os.fork()
        if not child:
            remove(path, number)
            os._exit(0)
        lived = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        found.add(path.read_bytes())
        GroupStore(path).remove(lambda group: group.errors)  # also over what was left beside it
        assert path.read_bytes() == after
        assert list(path.parent.iterdir()) == [path]
    assert found == {before, after}
    print(number)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
