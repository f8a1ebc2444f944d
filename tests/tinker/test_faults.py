"""What policies raise when Tinker fails, and how they leave off."""

from __future__ import annotations

import pickle
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any, TypeAlias

import anyio
import anyio.to_thread
import pytest

from rolloutlib.envs import ChatEnv
from rolloutlib.rollouts import EpisodeTruncated, PolicyOutput, Retry, rollout_group
from rolloutlib.tinker import (
    AsyncTinkerPolicy,
    ModelServerError,
    RequestRefusedError,
    ServerTimeoutError,
    ServerUnavailableError,
    TinkerPolicy,
)
from tinker_stub import (
    KEY,
    PENDING,
    Cut,
    Drip,
    Reply,
    Sampled,
    Silence,
    TinkerStub,
    always,
    failed,
    first,
    sampler_of,
)

Ask: TypeAlias = Callable[..., PolicyOutput[str]]


@pytest.fixture(params=["sync", "asyncio", "trio"])
def ask(request: pytest.FixtureRequest, sampler: Any) -> Ask:
    """Ask a policy once: a synchronous one, or its twin in a loop of its own."""

    def ask_in_a_loop(**options: Any) -> PolicyOutput[str]:
        async def main() -> PolicyOutput[str]:
            return await AsyncTinkerPolicy(sampler, max_tokens=10, **options)("hello")

        return anyio.run(main, backend=request.param)

    def ask_at_once(**options: Any) -> PolicyOutput[str]:
        return TinkerPolicy(sampler, max_tokens=10, **options)("hello")

    return ask_at_once if request.param == "sync" else ask_in_a_loop


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_what_will_not_pass_is_told_at_once(stub: TinkerStub, ask: Ask, status: int) -> None:
    stub.asample = always(Reply(status, {"detail": f"no, {KEY} is wrong"}))
    with pytest.raises(
        RequestRefusedError, match=rf"status {status}: no, \*\*\* is wrong"
    ) as caught:
        ask()
    assert caught.value.status_code == status
    assert not isinstance(caught.value, OSError)
    assert len(stub.received) == 1


@pytest.mark.parametrize(
    ("fault", "kind", "problem"),
    [
        (failed("no such model", "user"), RequestRefusedError, "no such model"),
        (failed("out of memory", "server"), ServerUnavailableError, "out of memory"),
        (failed("who knows", "unknown"), ServerUnavailableError, "who knows"),
        (Reply(401, {"detail": "expired"}), RequestRefusedError, "status 401"),
        (Reply(400, {"detail": "odd"}), RequestRefusedError, "status 400"),
    ],
)
def test_a_request_that_fails_later_is_told_by_its_kind(
    stub: TinkerStub, ask: Ask, fault: Reply, kind: type[Exception], problem: str
) -> None:
    stub.retrieve = always(fault)
    with pytest.raises(kind, match=problem) as caught:
        ask()
    assert type(caught.value) is kind
    assert len(stub.received) == 1


TRIED_AGAIN = {
    "429": Reply(429, {"detail": "busy"}),
    "429 that tells when": Reply(429, {"detail": "busy"}, {"Retry-After": "1"}),
    "500": Reply(500, {"detail": "failed"}),
    "cut off": Cut(),
    "silent": Silence(),
    "dripping": Drip(),
}


@pytest.mark.parametrize("fault", TRIED_AGAIN)
def test_what_the_sdk_tries_again_for_ever_is_given_up_in_time(
    stub: TinkerStub, ask: Ask, fault: str
) -> None:
    stub.asample = always(TRIED_AGAIN[fault])
    with pytest.raises(ServerTimeoutError, match=r"gave no answer in 0\.2 seconds"):
        ask(timeout=0.2)


@pytest.mark.parametrize("fault", [PENDING, Silence(), Reply(500, {}), Reply(410, {}), Drip()])
def test_a_result_that_never_comes_is_given_up_in_time(
    stub: TinkerStub, ask: Ask, fault: Any
) -> None:
    stub.retrieve = always(fault)
    with pytest.raises(ServerTimeoutError, match=r"gave no answer in 0\.2 seconds"):
        ask(timeout=0.2)


@pytest.mark.parametrize("fault", [PENDING, Reply(500, {}), Reply(408, {}), Reply(410, {})])
def test_a_result_that_is_late_is_waited_for(stub: TinkerStub, ask: Ask, fault: Any) -> None:
    stub.retrieve = first(fault)
    assert ask().tokens == (1,)


@pytest.mark.parametrize("sequences", [[], [Sampled([1]), Sampled([1])]])
def test_an_answer_of_another_size_is_no_answer(
    stub: TinkerStub, ask: Ask, sequences: list[Sampled]
) -> None:
    stub.sample = lambda _: sequences
    if sequences:
        assert ask().tokens == (1,)
    else:
        with pytest.raises(ServerUnavailableError, match="an answer without a sequence"):
            ask()


def test_an_answer_that_cannot_be_read_may_pass(stub: TinkerStub, ask: Ask) -> None:
    stub.garbled = True
    with pytest.raises(ServerUnavailableError, match="Proto deserialization failed"):
        ask()


def test_a_prompt_that_does_not_fit_truncates(stub: TinkerStub, ask: Ask) -> None:
    told = "Prompt length plus max_tokens exceeds the model's context window: 40000 > 32768"
    stub.retrieve = first(failed(told, "user"))
    with pytest.raises(EpisodeTruncated, match=r"context_overflow: .*40000 > 32768"):
        ask()
    stub.asample = first(Reply(400, {"detail": told}))
    with pytest.raises(EpisodeTruncated, match="context_overflow"):
        ask()


def test_core_retries_the_episodes_that_a_fault_ended(stub: TinkerStub, sampler: Any) -> None:
    stub.retrieve = first(failed("out of memory", "server"))
    policy = TinkerPolicy(sampler, max_tokens=10)
    group = rollout_group(
        1, lambda _: ChatEnv("hello"), policy, retry=Retry(attempts=2, initial_delay=0), seed=1
    )
    assert (group.num_completed, len(stub.received)) == (1, 2)


def test_errors_survive_pickling(stub: TinkerStub, sampler: Any) -> None:
    stub.asample = always(Reply(401, {"detail": "wrong key"}))
    with pytest.raises(ModelServerError) as caught:
        TinkerPolicy(sampler, max_tokens=10)("hello")
    copy = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - our own
    assert (type(copy), str(copy), copy.status_code) == (
        RequestRefusedError,
        str(caught.value),
        401,
    )


def test_a_key_is_in_nothing_that_is_raised(stub: TinkerStub, sampler: Any) -> None:
    def chain(error: BaseException | None) -> Iterator[BaseException]:
        while error is not None:
            yield error
            error = error.__cause__ or error.__context__

    stub.asample = always(Reply(401, {"detail": f"Bearer {KEY}"}))
    with pytest.raises(RequestRefusedError) as caught:
        TinkerPolicy(sampler, max_tokens=10)("hello")
    for error in chain(caught.value):
        assert KEY not in f"{error} {error!r} {vars(error)}"
        assert not hasattr(error, "request")  # which has the key in its headers


def test_a_client_that_cannot_be_made_is_told_by_its_kind(stub: TinkerStub) -> None:
    import tinker  # noqa: PLC0415 - slow to import

    request: Any = None
    lost: Future[Any] = Future()
    lost.set_exception(tinker.APIConnectionError(request=request))
    with pytest.raises(ServerUnavailableError, match="making a sampling client"):
        TinkerPolicy(lost, max_tokens=10)


@pytest.mark.anyio
async def test_a_call_that_is_cancelled_lets_its_request_go(stub: TinkerStub, sampler: Any) -> None:
    stub.retrieve = first(Silence())
    policy = AsyncTinkerPolicy(sampler, max_tokens=10)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(policy, "hello")
        await anyio.to_thread.run_sync(stub.asked.acquire)
        tasks.cancel_scope.cancel()
    await anyio.to_thread.run_sync(stub.left.acquire)
    assert (await policy("hello")).tokens == (1,)


@pytest.mark.anyio
async def test_a_batch_that_is_cancelled_lets_all_its_requests_go(
    stub: TinkerStub, sampler: Any
) -> None:
    stub.retrieve = always(Silence())
    policy = AsyncTinkerPolicy(sampler, max_tokens=10)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(policy.batch, ["hello", "there"])
        for _ in range(2):
            await anyio.to_thread.run_sync(stub.asked.acquire)
        tasks.cancel_scope.cancel()
    for _ in range(2):
        await anyio.to_thread.run_sync(stub.left.acquire)


def test_a_request_that_timed_out_is_let_go(stub: TinkerStub, ask: Ask) -> None:
    stub.retrieve = first(Silence())
    with pytest.raises(ServerTimeoutError):
        ask(timeout=0.2)
    assert stub.left.acquire(timeout=20)


@pytest.mark.parametrize("woken", [True, False])
def test_ctrl_c_ends_the_wait_and_lets_the_requests_go(
    stub: TinkerStub, sampler: Any, woken: bool
) -> None:
    stub.retrieve = always(Silence())
    policy = TinkerPolicy(sampler, max_tokens=10)
    left: list[bool] = []

    def interrupt() -> None:
        for _ in range(2):
            stub.asked.acquire()
        # A signal that comes just before the wait, or on Windows, wakes it no more than one that
        # another thread takes.
        signal.pthread_kill(main if woken else threading.get_ident(), signal.SIGINT)
        left.extend(stub.left.acquire(timeout=20) for _ in range(2))
        if not all(left):
            signal.pthread_kill(main, signal.SIGINT)

    main = threading.get_ident()
    interrupter = threading.Thread(target=interrupt)
    interrupter.start()
    with pytest.raises(KeyboardInterrupt):
        policy.batch(["hello", "there"])
    interrupter.join()
    assert left == [True, True]


def test_ctrl_c_between_two_requests_lets_the_first_go(sampler: Any) -> None:
    begun: list[Future[Any]] = []

    class Interrupted:
        get_tokenizer = sampler.get_tokenizer

        def sample(self, *_: Any) -> Future[Any]:
            if begun:
                raise KeyboardInterrupt
            begun.append(Future())
            return begun[0]

    client: Any = Interrupted()
    policy = TinkerPolicy(client, max_tokens=10)
    with pytest.raises(KeyboardInterrupt):
        policy.batch(["hello", "there"])
    assert begun[0].cancelled()


def test_a_request_that_is_let_go_is_taken_back_from_the_server(stub: TinkerStub) -> None:
    stub.config = {"sample_cancel_enabled": True}
    sampler = sampler_of(stub)
    if not hasattr(sampler.holder, "enqueue_cancel"):
        pytest.skip("this version of the SDK takes nothing back")
    stub.retrieve = first(Silence())
    with pytest.raises(ServerTimeoutError):
        TinkerPolicy(sampler, max_tokens=10, timeout=0.2)("hello")
    assert stub.taken_back.acquire(timeout=20)
