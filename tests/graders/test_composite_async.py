"""`CompositeGrader.ascore`: bounded, off the event loop, and ended together."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from rolloutlib.graders import CompositeGrader, Criterion, Rubric, Score

pytestmark = pytest.mark.anyio

NAMES = tuple("abcdefgh")
RUBRIC = Rubric(id="R", criteria=tuple(Criterion(id=name, description="d") for name in NAMES))


class Meeting:
    """An asynchronous grader that records how many of its calls run at once.

    Calls wait until `size` of them run; those are as many as can, or the test would not end.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.running = self.most = 0
        self.full = anyio.Event()

    async def __call__(self, input: object, criterion: Criterion) -> float:
        self.running += 1
        self.most = max(self.most, self.running)
        if self.running == self.size:
            self.full.set()
        await self.full.wait()
        await anyio.lowlevel.checkpoint()
        self.running -= 1
        return 1.0


@pytest.mark.parametrize("concurrency", [1, 3, len(NAMES)])
async def test_as_many_criteria_run_at_once_as_concurrency_says(concurrency: int) -> None:
    meeting = Meeting(concurrency)
    with anyio.fail_after(10):
        await CompositeGrader(meeting, concurrency=concurrency).ascore("x", RUBRIC)
    assert meeting.most == concurrency


async def test_without_a_bound_all_criteria_run_at_once() -> None:
    rubric = Rubric(criteria=tuple(Criterion(id=str(i), description="d") for i in range(100)))
    meeting = Meeting(100)
    with anyio.fail_after(10):
        await CompositeGrader(meeting, concurrency=None).ascore("x", rubric)
    assert meeting.most == 100


async def test_a_limiter_bounds_calls_and_graders_together() -> None:
    limiter = anyio.CapacityLimiter(3)
    meeting = Meeting(3)
    graders = [CompositeGrader(meeting, concurrency=limiter) for _ in range(2)]
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            for grader in graders * 2:
                tasks.start_soon(grader.ascore, "x", RUBRIC)
    assert meeting.most == 3
    assert limiter.borrowed_tokens == 0


async def test_components_keep_the_rubric_s_order_whatever_ends_first() -> None:
    ended = {name: anyio.Event() for name in NAMES}
    order: list[str] = []

    async def backwards(input: object, criterion: Criterion) -> float:
        index = NAMES.index(criterion.id)
        if index + 1 < len(NAMES):
            await ended[NAMES[index + 1]].wait()
        order.append(criterion.id)
        ended[criterion.id].set()
        return index / 10

    with anyio.fail_after(10):
        score = await CompositeGrader(backwards).ascore("x", RUBRIC)
    assert order == list(reversed(NAMES))
    assert score.component_values == {name: index / 10 for index, name in enumerate(NAMES)}
    assert list(score.components) == list(NAMES)


async def test_synchronous_graders_run_at_the_same_time_and_off_the_event_loop() -> None:
    number = 50  # more than a pool of 40 threads would let in
    rubric = Rubric(criteria=tuple(Criterion(id=str(i), description="d") for i in range(number)))
    barrier = threading.Barrier(number)
    loop_thread = threading.current_thread()

    def block(input: object, criterion: Criterion) -> float:
        barrier.wait(timeout=10)
        return float(threading.current_thread() is not loop_thread)

    score = await CompositeGrader(block, concurrency=None).ascore("x", rubric)
    assert score.value == 1.0


async def test_inline_graders_run_on_the_event_loop() -> None:
    loop_thread = threading.current_thread()

    def here(input: object, criterion: Criterion) -> float:
        return float(threading.current_thread() is loop_thread)

    assert (await CompositeGrader(here, inline=True).ascore("x", RUBRIC)).value == 1.0


async def test_a_synchronous_function_may_return_an_awaitable() -> None:
    async def later() -> Score:
        await anyio.lowlevel.checkpoint()
        return Score(0.5)

    grader = CompositeGrader[str](lambda text, criterion: later())
    assert (await grader.ascore("x", RUBRIC)).value == 0.5


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_grader_may_return_a_future_of_asyncio(anyio_backend: str) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[float] = loop.create_future()
    loop.call_soon(ready.set_result, 0.5)

    async def later() -> float:
        await asyncio.sleep(0)
        return 0.5

    def give(input: object, criterion: Criterion) -> asyncio.Future[float]:
        return ready

    def submit(input: object, criterion: Criterion) -> asyncio.Future[float]:
        return asyncio.wrap_future(asyncio.run_coroutine_threadsafe(later(), loop), loop=loop)

    def start(input: object, criterion: Criterion) -> asyncio.Future[float]:
        return asyncio.ensure_future(later())

    for grader in (
        CompositeGrader(give),
        CompositeGrader(submit),
        CompositeGrader(start, inline=True),
    ):
        assert (await grader.ascore("x", RUBRIC)).value == 0.5


async def test_a_grader_with_a_method_ascore_is_asked_through_it() -> None:
    class Twin:
        def __call__(self, input: str, criterion: Criterion) -> float:
            return 0.0

        async def ascore(self, input: str, criterion: Criterion) -> float:
            return 1.0

    grader = CompositeGrader(Twin())
    assert grader.score("x", RUBRIC).value == 0.0
    assert (await grader.ascore("x", RUBRIC)).value == 1.0


def test_one_composite_serves_successive_event_loops(anyio_backend: str) -> None:
    async def grade(input: object, criterion: Criterion) -> float:
        await anyio.lowlevel.checkpoint()
        return 1.0

    grader = CompositeGrader(grade)
    for _ in range(2):
        assert anyio.run(grader.ascore, "x", RUBRIC, backend=anyio_backend).value == 1.0


async def test_one_composite_grades_by_several_rubrics_at_once() -> None:
    rubrics = [Rubric(criteria=(Criterion(id=name, description="d"),)) for name in NAMES]
    meeting = Meeting(len(rubrics))
    grader = CompositeGrader[Any](meeting)
    named: dict[str, Score] = {}

    async def run(rubric: Rubric) -> None:
        named[rubric.criteria[0].id] = await grader.ascore("x", rubric)

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            for rubric in rubrics:
                tasks.start_soon(run, rubric)
    for rubric in rubrics:
        score = named[rubric.criteria[0].id]
        assert list(score.components) == [rubric.criteria[0].id]
        assert score.metadata["rubric_fingerprint"] == rubric.fingerprint
