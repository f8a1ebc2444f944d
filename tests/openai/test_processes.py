"""Policies across processes, and the end of a process."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from multiprocessing.connection import Connection
from typing import Any

import pytest

from rolloutlib.openai import ChatPolicy
from scripted_server import ScriptedServer, respond, stall


def ask(policy: ChatPolicy[str], answers: Connection) -> None:
    answers.send(policy("Hi").action)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")  # the server's threads
def test_a_forked_process_has_connections_of_its_own(server: ScriptedServer) -> None:
    server.plays(respond({"choices": [{"message": {"content": "4"}}]}))
    with ChatPolicy("m", base_url=server.url) as policy:
        policy("Hi")
        ours, theirs = multiprocessing.Pipe(duplex=False)
        process = multiprocessing.get_context("fork").Process(target=ask, args=(policy, theirs))
        process.start()
        theirs.close()
        assert ours.recv() == "4"
        process.join()
        policy("Hi")
    assert [one.connection for one in server.received] == [1, 2, 1]


@pytest.mark.parametrize("woken", [True, False])
def test_ctrl_c_ends_the_wait_for_a_batch(server: ScriptedServer, woken: bool) -> None:
    main = threading.get_ident()
    there = threading.Barrier(3, timeout=20)

    def meet_and_stall(connection: Any) -> bool:
        there.wait()
        return stall(connection)

    def interrupt() -> None:
        there.wait()
        # One that another thread takes wakes the wait no more than one that comes just before it.
        signal.pthread_kill(main if woken else threading.get_ident(), signal.SIGINT)

    server.plays(meet_and_stall)
    policy = ChatPolicy("m", base_url=server.url, timeout=20, max_retries=0)
    interrupter = threading.Thread(target=interrupt)
    interrupter.start()
    with pytest.raises(KeyboardInterrupt):
        policy.batch(["a", "b"])
    assert not server.ended.acquire(blocking=False)  # as it is once the requests have timed out
    interrupter.join()
