"""A server on loopback that the real SDK of Tinker talks to: it samples, or misbehaves, as told."""

from __future__ import annotations

import contextlib
import json
import logging
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain, repeat
from typing import Any, Self, TypeAlias, cast

import numpy as np

KEY = "tml-a-key-that-no-message-may-show"


@dataclass(frozen=True)
class Sampled:
    """A sequence that the server sampled; by default each token has probability one half."""

    tokens: Sequence[int]
    logprobs: Sequence[float] | None = ()
    stop_reason: str = "stop"

    def to_numbers(self) -> Sequence[float] | None:
        return [-0.6931472] * len(self.tokens) if self.logprobs == () else self.logprobs


@dataclass(frozen=True)
class Reply:
    """An answer of any status, with a body that is JSON."""

    status: int
    body: Any = field(default_factory=dict[str, Any])
    headers: dict[str, str] = field(default_factory=dict[str, str])


class Cut:
    """The connection ends in the middle of the answer."""


class Silence:
    """No answer comes, until the SDK leaves off."""


class Drip:
    """The answer begins, and does not go on until the SDK leaves off."""


Behaviour: TypeAlias = "Reply | Cut | Silence | Drip"

PENDING = Reply(200, {"type": "try_again", "request_id": "x", "queue_state": "active"})


def failed(error: str, category: str) -> Reply:
    """A request that was taken, and failed."""
    return Reply(200, {"error": error, "category": category})


class TinkerStub:
    """Answers all that a sampling client asks.

    Attributes:
        base_model: What the clients load the tokenizer of: a folder.
        sample: Called with the body of each request to sample; returns sequences.
        asample: What happens to requests to sample, one after the other, before they are taken.
        retrieve: What happens to requests for a result.
        received: The bodies of the requests to sample.
        paths: The paths of all requests.
        garbled: Whether results are no results.
        samplers: The clients of the SDK, whose sessions end with the server.
    """

    def __init__(self, base_model: str = "none") -> None:
        self.base_model = base_model
        self.sample: Callable[[Any], Sequence[Sampled]] = lambda body: (
            [Sampled([1])] * body["num_samples"]
        )
        self.asample: Iterator[Behaviour | None] = iter(())
        self.retrieve: Iterator[Behaviour | None] = iter(())
        self.received: list[Any] = []
        self.paths: list[str] = []
        self.asked = threading.Semaphore(0)  # how many requests for a result have come
        self.left = threading.Semaphore(0)  # how many have been left without an answer
        self.taken_back = threading.Semaphore(0)  # how many the SDK has told that it left
        self.garbled = False
        self.samplers: list[Any] = []
        self._meeting = threading.Barrier(1)
        self.config: dict[str, Any] = {}
        self._promises: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for sampler in self.samplers:
            sampler.holder.close()
        self._server.shutdown()
        self._server.end_connections()
        self._server.server_close()
        self._thread.join()

    def say(self, *texts: Sequence[int]) -> None:
        """Sample these tokens, for one sample after the other."""
        left = list(texts)
        self.sample = lambda body: [Sampled(left.pop(0)) for _ in range(body["num_samples"])]

    def meet(self, count: int) -> None:
        """Answer no request for a result before so many are there."""
        self._meeting = threading.Barrier(count, timeout=20)

    def answer(self, path: str, body: Any) -> Behaviour | bytes:
        """Return the answer to a request; what goes wrong is told, lest the SDK try it for hours."""
        try:
            return self._answer(path, body)
        except Exception as error:
            return Reply(422, {"error": f"the stub failed: {error!r}"})

    def _answer(self, path: str, body: Any) -> Behaviour | bytes:
        name = path.removeprefix("/api/v1/").partition("?")[0]
        if name == "retrieve_future":
            self._meeting.wait()
        with self._lock:
            self.paths.append(name)
            if name == "asample":
                self.received.append(body)
                return next(self.asample, None) or self._take(body)
            if name == "retrieve_future":
                self.asked.release()
                found = next(self.retrieve, None)
                return found or self._result(body["request_id"])
            if name == "cancel_future":
                self.taken_back.release()
        if name.startswith("samplers/"):
            return Reply(200, {"sampler_id": "s", "base_model": self.base_model})
        return Reply(200, {**_PLAIN.get(name, {}), **(self.config if "config" in name else {})})

    def _take(self, body: Any) -> Reply:
        promise = f"promise-{body['sampling_session_id']}-{body['seq_id']}"
        if promise not in self._promises:  # else the SDK has sent the request again
            self._promises[promise] = list(self.sample(body))
        sequences = self._promises[promise]
        ids = [f"{promise}-{index}" for index in range(len(sequences))]
        return Reply(200, {"request_id": promise, "sample_sequence_ids": ids})

    def _result(self, promise: str) -> bytes:
        from tinker.proto import tinker_public_pb2 as pb  # noqa: PLC0415 - slow to import

        reasons = {"stop": pb.STOP_REASON_STOP, "length": pb.STOP_REASON_LENGTH}
        if self.garbled:
            return b"\xff\xff"
        response = pb.SampleResponse()
        for one in self._promises[promise]:
            numbers = one.to_numbers()
            response.sequences.add(
                stop_reason=reasons[one.stop_reason],
                tokens=np.asarray(one.tokens, np.int32).tobytes(),
                logprobs=b"" if numbers is None else np.asarray(numbers, np.float32).tobytes(),
            )
        return response.SerializeToString()


def first(*behaviours: Behaviour) -> Iterator[Behaviour | None]:
    """These happen to the first requests, and nothing to later ones."""
    return iter(behaviours)


def always(*behaviours: Behaviour) -> Iterator[Behaviour | None]:
    """These happen, and the last again and again."""
    return chain(behaviours, repeat(behaviours[-1]))


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], stub: TinkerStub) -> None:
        self.stub = stub
        self._open: set[socket.socket] = set()
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def end_connections(self) -> None:
        for request in list(self._open):
            with contextlib.suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Connections break; that is what they are here for."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def stub(self) -> TinkerStub:
        return cast("_Server", self.server).stub

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        kind = self.headers.get("content-type", "")
        self._play(self.stub.answer(self.path, json.loads(body) if "json" in kind else None))

    def do_GET(self) -> None:
        self._play(self.stub.answer(self.path, None))

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def _play(self, answer: Behaviour | bytes) -> None:
        if isinstance(answer, bytes):
            self._send(200, answer, {"content-type": "application/x-protobuf"})
        elif isinstance(answer, Reply):
            content = json.dumps(answer.body).encode()
            self._send(
                answer.status, content, {"content-type": "application/json", **answer.headers}
            )
        else:
            if not isinstance(answer, Silence):
                self._send(200, b'{"request', {"content-type": "application/json"}, promised=1000)
            if not isinstance(answer, Cut):
                with contextlib.suppress(OSError):
                    self.connection.recv(1)  # ends when the connection does
                self.stub.left.release()
            self.close_connection = True

    def _send(
        self, status: int, content: bytes, headers: dict[str, str], *, promised: int = 0
    ) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(promised or len(content)))
        self.send_header("connection", "close")  # the SDK leaves open what it may use again
        self.end_headers()
        self.wfile.write(content)
        self.wfile.flush()


def made_by(stub: TinkerStub, **settings: Any) -> Any:
    """A service client of the real SDK that talks to the stub."""
    import tinker  # noqa: PLC0415 - slow to import

    return tinker.ServiceClient(base_url=stub.url, api_key=KEY, **settings)


def sampler_of(stub: TinkerStub, **settings: Any) -> Any:
    """A sampling client of the real SDK that talks to the stub; before 0.38 there is no future of one."""
    made = made_by(stub).create_sampling_client(base_model=stub.base_model, **settings)
    sampler: Any = made.result() if hasattr(type(made), "result") else made
    stub.samplers.append(sampler)
    return sampler


# Its sessions complain long after their server has gone, when no test hears it: to standard error.
logging.getLogger("tinker").addHandler(logging.NullHandler())

_PLAIN: dict[str, dict[str, Any]] = {
    "client/config": {},
    "create_session": {"type": "create_session", "session_id": "session"},
    "session_heartbeat": {"type": "session_heartbeat"},
    "telemetry": {"status": "accepted"},
    "create_sampling_session": {
        "type": "create_sampling_session",
        "sampling_session_id": "session:sample:0",
    },
}
