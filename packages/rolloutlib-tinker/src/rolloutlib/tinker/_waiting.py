"""Waiting for what the SDK does on its own thread, and leaving off."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Sequence
from concurrent import futures
from concurrent.futures import Future
from typing import Any

import anyio

from rolloutlib.envs._threads import find_call_soon


def wait(pending: Sequence[Future[Any]], seconds: float) -> None:
    """Wait until all are done, at most so many seconds, or until Ctrl-C."""
    end = time.monotonic() + seconds
    # By naps, since Ctrl-C does not wake a wait on Windows, nor one that it comes just before.
    while futures.wait(pending, max(min(end - time.monotonic(), _NAP), 0)).not_done:
        if time.monotonic() >= end:
            return


def wait_all(begin: Iterable[Future[Any]], seconds: float) -> list[Future[Any]]:
    """Wait until all are done, at most so many seconds; then let go of those that are not.

    Args:
        begin: Begins one after the other, which Ctrl-C may interrupt too.
        seconds: How long to wait.
    """
    pending: list[Future[Any]] = []
    try:
        pending.extend(begin)
        wait(pending, seconds)
    finally:
        for future in pending:
            future.cancel()
    return pending


async def await_one(pending: Future[Any], seconds: float) -> None:
    """Wait until it is done, at most so many seconds; then let go of it."""
    finished = anyio.Event()
    call_soon = find_call_soon()

    def tell(_: object) -> None:
        with contextlib.suppress(RuntimeError):  # the event loop has ended, and the caller with it
            call_soon(finished.set)

    pending.add_done_callback(tell)
    try:
        with anyio.move_on_after(seconds):
            await finished.wait()
    finally:
        pending.cancel()


_NAP = 1.0
