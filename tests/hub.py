"""A Hugging Face Hub on this machine, with data sets in several commits."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Commits = Mapping[str, Mapping[str, bytes]]
"""The files of each commit, which are named by branches and by 40 hexadecimal digits."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    repositories: Mapping[str, Commits]
    branches: Mapping[str, str]

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        path = self.path.partition("?")[0]
        if found := re.fullmatch(r"/datasets/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            self._file(*found.groups())
        elif found := re.fullmatch(
            r"/api/datasets/([^/]+/[^/]+)(?:/(revision|tree|paths-info)/([^/]+))?(?:/.*)?", path
        ):
            repository, kind, revision = found.groups()
            self._facts(repository, kind or "revision", revision or "main", body=body)
        else:
            self._send(404, b"")

    def _commit(self, repository: str, revision: str) -> tuple[str, Mapping[str, bytes] | None]:
        commit = self.branches.get(revision, revision)
        return commit, self.repositories.get(repository, {}).get(commit)

    def _file(self, repository: str, revision: str, name: str) -> None:
        commit, files = self._commit(repository, revision)
        if files is None or name not in files:
            error = "RevisionNotFound" if files is None else "EntryNotFound"
            self._send(404, b"", {"X-Error-Code": error})
            return
        headers = {"ETag": f'"{_digest(files[name])}"', "X-Repo-Commit": commit}
        self._send(200, files[name], headers)

    def _facts(self, repository: str, kind: str, revision: str, *, body: bytes) -> None:
        commit, files = self._commit(repository, revision)
        if files is None:
            self._send(404, b"", {"X-Error-Code": "RevisionNotFound"})
            return
        if kind == "revision":
            facts: Any = {
                "_id": "1",
                "id": repository,
                "sha": commit,
                "private": False,
                "disabled": False,
                "gated": False,
                "downloads": 0,
                "likes": 0,
                "tags": [],
                "siblings": [{"rfilename": name} for name in files],
            }
        else:
            facts = [
                {"type": "file", "path": name, "size": len(text), "oid": _digest(text)}
                for name, text in files.items()
                if kind == "tree" or name.encode() in body
            ]
        self._send(200, json.dumps(facts).encode(), {"Content-Type": "application/json"})

    def _send(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


@contextmanager
def serve(repositories: Mapping[str, Commits], branches: Mapping[str, str]) -> Generator[str]:
    """Serve data sets on loopback, and yield the address."""
    facts = {"repositories": repositories, "branches": branches}
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), facts))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _digest(text: bytes) -> str:
    return hashlib.sha1(text, usedforsecurity=False).hexdigest()
