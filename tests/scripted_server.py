"""A server on loopback that does with each request what a test has told it: answer, or misbehave."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

Behaviour: TypeAlias = Callable[[socket.socket], bool]
"""Answers the request that was read from a connection, and tells whether the connection stays."""


@dataclass(frozen=True)
class Received:
    """A request: its path, its headers in lower case, its body, and which connection it came by."""

    path: str
    headers: Mapping[str, str]
    body: Any
    connection: int


class ScriptedServer:
    """Takes the behaviours of `script` one after the other, and the last one again and again."""

    def __init__(self, *script: Behaviour) -> None:
        self.script = list(script)
        self.received: list[Received] = []
        self.ended = threading.Semaphore(0)  # how many connections have been closed
        self._connections: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._count = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads = [threading.Thread(target=self._accept)]
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1"

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._threads[0].join()  # after it, no connection comes that nobody would end
        for one in list(self._connections):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()

    def plays(self, *script: Behaviour) -> str:
        """Set the script and return the server's URL."""
        self.script = list(script)
        return self.url

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                with self._lock:
                    self._count += 1
                    number = self._count
                    self._connections.add(connection)
                thread = threading.Thread(target=self._serve, args=(connection, number))
                self._threads.append(thread)
                thread.start()

    def _serve(self, connection: socket.socket, number: int) -> None:
        with connection, contextlib.suppress(OSError), connection.makefile("rb") as stream:
            while line := stream.readline():
                headers: dict[str, str] = {}
                while (header := stream.readline()) not in (b"\r\n", b""):
                    name, _, value = header.decode().partition(":")
                    headers[name.lower()] = value.strip()
                length = int(headers.get("content-length", 0))
                content = stream.read(length)
                if len(content) < max(length, 1):
                    break  # the client left within its request
                body = json.loads(content)
                with self._lock:
                    path = line.decode().split()[1]
                    self.received.append(Received(path, headers, body, number))
                    behaviour = self.script.pop(0) if len(self.script) > 1 else self.script[0]
                if not behaviour(connection):
                    break
        with self._lock:
            self._connections.discard(connection)
        self.ended.release()


def respond(
    body: object, status: int = 200, headers: Mapping[str, str] | None = None, *, keep: bool = True
) -> Behaviour:
    """Answer with a JSON body, or a text; with `keep=False` the connection is closed afterwards."""
    content = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(content)}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]

    def behave(connection: socket.socket) -> bool:
        connection.sendall("\r\n".join([*lines, "", ""]).encode() + content)
        return keep

    return behave


def respond_in_part(body: object) -> Behaviour:
    """Promise a whole answer, give half of it and hang up."""
    content = json.dumps(body).encode()

    def behave(connection: socket.socket) -> bool:
        connection.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {len(content)}\r\n\r\n".encode())
        connection.sendall(content[: len(content) // 2])
        return False

    return behave


def respond_slowly(body: object, *, pause: float = 0.05, least_seconds: float = 20) -> Behaviour:
    """Give an answer byte by byte, preceded by white space that takes so many seconds."""
    content = json.dumps(body).encode().rjust(int(least_seconds / pause))

    def behave(connection: socket.socket) -> bool:
        connection.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {len(content)}\r\n\r\n".encode())
        for byte in content:
            connection.sendall(bytes([byte]))
            time.sleep(pause)
        return True

    return behave


def hang_up(connection: socket.socket) -> bool:
    """Close the connection in place of an answer."""
    return False


def stall(connection: socket.socket) -> bool:
    """Never answer; the client has to give up."""
    connection.recv(1)
    return False
