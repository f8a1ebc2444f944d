"""Ctrl-C while the event loop of a synchronous call starts on another thread."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType

import pytest

from core.rollouts.scripted import ScriptedEnv, policy
from rolloutlib import collect, rollout_group
from rolloutlib.rollouts import Timeouts

pytestmark = pytest.mark.usefixtures("threads_end")


def run_collect() -> None:
    list(collect(range(3), lambda _: ScriptedEnv(), policy, concurrency=2))


def run_group() -> None:
    rollout_group(1, lambda _: ScriptedEnv(), policy, timeouts=Timeouts())


@pytest.mark.parametrize("run", [run_collect, run_group])
def test_the_first_interrupt_ends_the_call(
    run: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    felt, count = threading.Event(), 0
    new_event_loop = asyncio.new_event_loop

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        nonlocal count
        count += 1
        felt.set()
        raise KeyboardInterrupt

    def interrupted_new_event_loop() -> asyncio.AbstractEventLoop:
        while not felt.is_set():  # one that comes just before a wait for a lock may be lost
            os.kill(os.getpid(), signal.SIGINT)
            felt.wait(1)
        return new_event_loop()

    monkeypatch.setattr("asyncio.events.new_event_loop", interrupted_new_event_loop)
    before = signal.signal(signal.SIGINT, interrupt)
    # Interrupts a call that would go on for ever, so that the test fails and does not hang.
    again = threading.Timer(20, os.kill, (os.getpid(), signal.SIGINT))
    again.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            run()
    finally:
        again.cancel()
        signal.signal(signal.SIGINT, before)
    assert count == 1
