"""Start SkyRL's server for Tinker's API, or its engine; runs in the server's environment.

    python skyrl_launcher.py serve FD CONFIG   # FD: a bound socket; CONFIG: SkyRL's EngineConfig, as JSON
    python skyrl_launcher.py engine ...        # what the server starts

Standard input is a pipe that nobody writes to. It ends when the process that started the server does,
however that was, and then both processes do.

SkyRL 0.4.0 is changed in three places: its engine is started with this file rather than with `uv run`;
on Python 3.11 Pydantic is given the TypedDict that it needs; and samples have the ids without which
Tinker's SDK, from 0.26 on, takes none.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import socket
import sys
import threading
import typing
import uuid
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import typing_extensions

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]


class SampleIds:
    """Adds `sample_sequence_ids` to the answers of `POST /api/v1/asample`."""

    def __init__(self, app: App) -> None:
        """Wrap an ASGI application."""
        self.app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http" or scope["path"] != "/api/v1/asample":
            await self.app(scope, receive, send)
            return
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        received = iter([{"type": "http.request", "body": body, "more_body": False}])
        sent: list[Message] = []

        async def replay() -> Message:
            return next(received, None) or await receive()

        async def keep(message: Message) -> None:
            sent.append(message)

        await self.app(scope, replay, keep)
        start, *parts = sent
        content = b"".join(part.get("body", b"") for part in parts)
        if start["status"] == 200:
            ids = [str(uuid.uuid4()) for _ in range(json.loads(body).get("num_samples", 1))]
            content = json.dumps({**json.loads(content), "sample_sequence_ids": ids}).encode()
        headers = [(key, value) for key, value in start["headers"] if key != b"content-length"]
        headers.append((b"content-length", str(len(content)).encode()))
        await send({**start, "headers": headers})
        await send({"type": "http.response.body", "body": content})


def serve(fd: int, config: dict[str, Any]) -> None:
    """Serve on a bound socket until it is told to end."""
    api: Any = importlib.import_module("skyrl.tinker.api")
    settings: Any = importlib.import_module("skyrl.tinker.config")
    uvicorn: Any = importlib.import_module("uvicorn")

    def engine_command(_: list[str], engine: object) -> list[str]:
        return [sys.executable, __file__, "engine", *settings.config_to_argv(engine)]

    api._build_uv_run_cmd_engine = engine_command
    api.app.state.engine_config = settings.EngineConfig.model_validate(config)
    server = uvicorn.Config(
        SampleIds(api.app),
        headers=[("connection", "close")],  # the SDK never closes what it may use again
        lifespan="on",
        log_level="warning",
    )
    uvicorn.Server(server).run(sockets=[socket.socket(fileno=fd)])


def end_with_parent() -> None:
    """Wait for the end of standard input, then end this process."""
    while os.read(0, 1024):
        pass
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    """Run the server or the engine."""
    threading.Thread(target=end_with_parent, daemon=True).start()
    if sys.version_info < (3, 12):
        typing.TypedDict = typing_extensions.TypedDict
    what = sys.argv.pop(1)
    if what == "serve":
        serve(int(sys.argv[1]), json.loads(sys.argv[2]))
    else:
        importlib.import_module("skyrl.tinker.engine").main()


if __name__ == "__main__":
    main()
