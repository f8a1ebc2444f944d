"""`run_benchmark` and `run_benchmarks`: one record an item, and nothing finished is lost."""

from __future__ import annotations

import copy
import math
import uuid
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolloutlib.evals import (
    Benchmark,
    BenchmarkResult,
    Evaluation,
    run_benchmark,
    run_benchmarks,
)
from rolloutlib.scores import Score


class Counter:
    """An environment that says whether it was closed."""

    def __init__(self, item: int, closing: BaseException | None = None) -> None:
        self.item = item
        self.closed = 0
        self.closing = closing

    def close(self) -> None:
        self.closed += 1
        if self.closing is not None:
            raise self.closing


class Factory:
    """Makes counters and remembers them; fails for the items that it is told to."""

    def __init__(
        self,
        failing: dict[int, BaseException] | None = None,
        closing: dict[int, BaseException] | None = None,
    ) -> None:
        self.made: list[Counter] = []
        self.failing = failing or {}
        self.closing = closing or {}

    def __call__(self, item: int) -> Counter:
        if item in self.failing:
            raise self.failing[item]
        self.made.append(Counter(item, self.closing.get(item)))
        return self.made[-1]


def one(environment: Counter) -> Evaluation:
    return Evaluation(Score(1.0))


def raising(errors: dict[int, BaseException]) -> Callable[[Counter], Evaluation]:
    def evaluate(environment: Counter) -> Evaluation:
        if environment.item in errors:
            raise errors[environment.item]
        return Evaluation(Score(1.0))

    return evaluate


def benchmark(factory: Factory, count: int = 4, name: str = "counting") -> Benchmark[int]:
    return Benchmark(name, range(count), factory)


def test_each_item_gets_a_fresh_environment_that_is_closed_once() -> None:
    factory = Factory()
    result = run_benchmark(benchmark(factory), one)
    assert [environment.item for environment in factory.made] == [0, 1, 2, 3]
    assert [environment.closed for environment in factory.made] == [1, 1, 1, 1]
    assert [record.index for record in result.records] == [0, 1, 2, 3]
    assert [record.item_id for record in result.records] == ["0", "1", "2", "3"]
    assert (result.score, result.score_completed, result.num_remaining) == (1.0, 1.0, 0)


def test_a_failing_item_counts_zero_and_its_record_says_why() -> None:
    factory = Factory()
    result = run_benchmark(benchmark(factory), raising({1: ValueError("boom")}))
    assert result.score == 0.75
    assert result.score_completed == 1.0
    assert (result.num_examples, result.num_scored, result.num_errors) == (4, 3, 1)
    record = result.records[1]
    assert (record.item_id, record.score, record.error) == ("1", None, "boom")
    assert record.metadata["error_type"] == "ValueError"
    assert "raise errors[environment.item]" in record.metadata["traceback"]
    assert [environment.closed for environment in factory.made] == [1, 1, 1, 1]


def test_an_error_without_a_message_is_still_an_error() -> None:
    result = run_benchmark(benchmark(Factory(), 1), raising({0: AssertionError()}))
    assert result.records[0].error == "AssertionError"


def test_an_error_that_cannot_be_shown_costs_no_record() -> None:
    class UnshowableError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    factory = Factory(closing={0: UnshowableError()})
    result = run_benchmark(benchmark(factory, 2), raising({0: UnshowableError()}))
    assert [record.error for record in result.records] == ["UnshowableError", None]
    assert [environment.closed for environment in factory.made] == [1, 1]


def test_a_failing_factory_is_an_error_record() -> None:
    result = run_benchmark(benchmark(Factory({2: RuntimeError("no port")})), one)
    assert result.records[2].error == "no port"
    assert result.num_scored == 3


def test_a_failing_item_id_is_an_error_record() -> None:
    def item_id(item: int) -> str:
        if item == 1:
            raise KeyError
        return f"item-{item}"

    result = run_benchmark(Benchmark("named", range(3), Factory(), item_id=item_id), one)
    assert [record.item_id for record in result.records] == ["item-0", None, "item-2"]
    assert result.records[1].error is not None
    assert result.num_scored == 2


def test_ids_of_other_types_are_kept() -> None:
    items = [7, uuid.uuid4()]
    name: Any = copy.copy  # of an immutable value: the value itself
    result = run_benchmark(Benchmark("named", items, lambda _: Counter(0), item_id=name), one)
    assert [record.item_id for record in result.records] == items
    assert result.score == 1.0


def test_a_failing_close_keeps_the_evaluation() -> None:
    factory = Factory(closing={1: OSError("socket gone")})
    result = run_benchmark(benchmark(factory), one, fail_fast=True)
    assert result.score == 1.0
    assert result.num_errors == 0
    assert result.records[1].metadata == {"close_error": "OSError: socket gone"}


def test_a_failing_close_does_not_hide_the_error() -> None:
    factory = Factory(closing={1: OSError("socket gone")})
    error = ValueError("boom")
    result = run_benchmark(benchmark(factory), raising({1: error}))
    assert result.records[1].error == "boom"
    assert result.records[1].metadata["close_error"] == "OSError: socket gone"
    with pytest.raises(ValueError, match="boom") as caught:
        run_benchmark(benchmark(factory), raising({1: error}), fail_fast=True)
    assert any("socket gone" in note for note in caught.value.__notes__)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_propagates_with_what_was_finished(kind: type[BaseException]) -> None:
    factory = Factory()
    with pytest.raises(kind) as caught:
        run_benchmark(benchmark(factory), raising({0: ValueError("boom"), 2: kind()}))
    result = BenchmarkResult.from_exception(caught.value)
    assert result is not None
    assert [record.index for record in result.records] == [0, 1]
    assert (result.score, result.num_errors, result.num_remaining) == (0.5, 1, 2)
    assert [environment.closed for environment in factory.made] == [1, 1, 1]
    replaced = TimeoutError()
    replaced.__context__ = caught.value  # as what `asyncio.run` or a timeout puts in its place
    assert BenchmarkResult.from_exception(replaced) == result
    assert BenchmarkResult.from_exception(TimeoutError()) is None


def test_an_interrupt_before_the_first_item_has_no_score() -> None:
    with pytest.raises(KeyboardInterrupt) as caught:
        run_benchmark(benchmark(Factory()), raising({0: KeyboardInterrupt()}))
    result = BenchmarkResult.from_exception(caught.value)
    assert result is not None
    assert math.isnan(result.score)
    assert (result.score_completed, result.num_remaining) == (None, 4)


def test_an_interrupt_while_closing_keeps_the_item() -> None:
    with pytest.raises(KeyboardInterrupt) as caught:
        run_benchmark(benchmark(Factory(closing={1: KeyboardInterrupt()})), one)
    result = BenchmarkResult.from_exception(caught.value)
    assert result is not None
    assert [record.index for record in result.records] == [0, 1]


def test_a_failing_close_does_not_hide_an_interrupt() -> None:
    factory = Factory(closing={1: OSError("socket gone")})
    with pytest.raises(KeyboardInterrupt) as caught:
        run_benchmark(benchmark(factory), raising({1: KeyboardInterrupt()}))
    assert any("socket gone" in note for note in caught.value.__notes__)


class InterruptedCopy:
    """Interrupts whoever copies it for the second time, as its record does."""

    def __init__(self, copies: int = 0) -> None:
        self.copies = copies

    def __deepcopy__(self, memo: object) -> InterruptedCopy:
        if self.copies:
            raise KeyboardInterrupt
        return InterruptedCopy(self.copies + 1)


def test_an_interrupt_while_a_record_is_made_closes_the_environment() -> None:
    factory = Factory()
    with pytest.raises(KeyboardInterrupt) as caught:
        run_benchmark(
            benchmark(factory), lambda _: Evaluation(Score(1.0), metadata={"k": InterruptedCopy()})
        )
    assert [environment.closed for environment in factory.made] == [1]
    assert BenchmarkResult.from_exception(caught.value) is not None


class InterruptedScore(Score):
    """Interrupts whoever first asks for the values of its components."""

    asked: ClassVar[list[bool]] = []

    @property
    def component_values(self) -> dict[str, float]:
        self.asked.append(True)
        if len(self.asked) == 1:
            raise KeyboardInterrupt
        return super().component_values


def test_an_interrupt_while_the_figures_are_computed_loses_no_record() -> None:
    InterruptedScore.asked.clear()
    with pytest.raises(KeyboardInterrupt) as caught:
        run_benchmark(benchmark(Factory()), lambda _: Evaluation(InterruptedScore(1.0)))
    result = BenchmarkResult.from_exception(caught.value)
    assert result is not None
    assert (result.num_completed, result.num_remaining) == (4, 0)


def test_an_error_in_close_that_cannot_be_shown_hides_nothing() -> None:
    class SilentError(Exception):
        def __repr__(self) -> str:
            raise RuntimeError

        __str__ = __repr__

    factory = Factory(closing={1: SilentError()})
    with pytest.raises(ValueError, match="boom"):
        run_benchmark(benchmark(factory), raising({1: ValueError("boom")}), fail_fast=True)


def test_fail_fast_raises_the_users_own_error_with_the_records_on_it() -> None:
    factory = Factory()
    error = ValueError("boom")
    with pytest.raises(ValueError, match="boom") as caught:
        run_benchmark(benchmark(factory), raising({2: error}), fail_fast=True)
    assert caught.value is error
    result = BenchmarkResult.from_exception(error)
    assert result is not None
    assert [record.error for record in result.records] == [None, None, "boom"]
    assert result.num_remaining == 1
    assert len(factory.made) == 3


def test_an_exception_that_stopped_no_run_carries_no_result() -> None:
    assert BenchmarkResult.from_exception(ValueError("boom")) is None
    assert BenchmarkResult.all_from_exception(ValueError("boom")) == {}


def test_component_means_are_over_the_items_that_have_the_component() -> None:
    scores = [Score(1.0, {"a": 1.0, "b": 0.5}), Score(0.0), Score(0.5, {"a": 0.5})]

    def evaluate(environment: Counter) -> Evaluation:
        return Evaluation(scores[environment.item])  # the fourth item fails

    result = run_benchmark(benchmark(Factory()), evaluate)
    assert result.components == {"a": 0.75, "b": 0.5}
    assert result.component_counts == {"a": 2, "b": 1}
    assert result.score == 1.5 / 4


def test_truncated_items_count_in_the_score_but_not_as_completed() -> None:
    def evaluate(environment: Counter) -> Evaluation:
        truncated = environment.item == 0
        return Evaluation(Score(0.5 if truncated else 1.0), truncated=truncated, metadata={"n": 1})

    result = run_benchmark(benchmark(Factory(), 2), evaluate)
    assert (result.score, result.score_completed) == (0.75, 1.0)
    assert (result.num_scored, result.num_completed, result.num_truncated) == (2, 1, 1)
    assert result.records[0].truncated
    assert result.records[0].metadata == {"n": 1}


@given(st.lists(st.sampled_from(["right", "wrong", "cut", "fail"]), max_size=20))
def test_every_item_has_exactly_one_outcome(outcomes: list[str]) -> None:
    def evaluate(environment: Counter) -> Evaluation:
        outcome = outcomes[environment.item]
        if outcome == "fail":
            raise RuntimeError
        return Evaluation(Score(float(outcome == "right")), truncated=outcome == "cut")

    factory = Factory()
    result = run_benchmark(benchmark(factory, len(outcomes)), evaluate)
    assert result.num_completed + result.num_truncated + result.num_errors == len(outcomes)
    assert result.num_examples == len(result.records) == len(outcomes)
    assert all(environment.closed == 1 for environment in factory.made)
    if outcomes:
        assert result.score == outcomes.count("right") / len(outcomes)


@pytest.mark.parametrize(("count", "limit"), [(0, None), (4, 0)])
def test_an_empty_run_has_no_score(count: int, limit: int | None) -> None:
    result = run_benchmark(benchmark(Factory(), count), one, limit=limit)
    assert math.isnan(result.score)
    assert result.score_completed is None
    assert (result.num_examples, result.components) == (0, {})


def test_limit_takes_the_first_items() -> None:
    assert run_benchmark(benchmark(Factory()), one, limit=3).num_examples == 3
    assert run_benchmark(benchmark(Factory()), one, limit=9).num_examples == 4
    two: Any = np.int64(2)
    assert run_benchmark(benchmark(Factory()), one, limit=two).num_examples == 2


@pytest.mark.parametrize(
    ("limit", "error"), [(-1, ValueError), (1.5, TypeError), (True, TypeError)]
)
def test_a_limit_that_makes_no_sense_is_rejected_before_anything_runs(
    limit: Any, error: type[Exception]
) -> None:
    factory = Factory()
    with pytest.raises(error, match="limit"):
        run_benchmark(benchmark(factory), one, limit=limit)
    assert factory.made == []


@pytest.mark.parametrize("value", [1.0, None, Score(1.0)])
def test_a_callback_must_return_an_evaluation(value: Any) -> None:
    def evaluate(environment: Counter) -> Any:
        return value

    result = run_benchmark(benchmark(Factory(), 1), evaluate)
    error = result.records[0].error
    assert error is not None
    assert "must return an Evaluation" in error
    assert repr(value) in error


def test_asynchronous_callbacks_and_factories_are_rejected_before_anything_runs() -> None:
    async def play(environment: Counter) -> Evaluation:
        raise NotImplementedError

    async def make_env(item: int) -> Counter:
        raise NotImplementedError

    factory = Factory()
    evaluate: Any = play
    with pytest.raises(TypeError, match="evaluate must be synchronous"):
        run_benchmark(benchmark(factory), evaluate)
    with pytest.raises(TypeError, match="make_env must be synchronous"):
        run_benchmark(Benchmark("asynchronous", [1], make_env), one)
    assert factory.made == []


def test_a_coroutine_that_comes_as_a_surprise_is_an_error_record() -> None:
    async def coroutine() -> Evaluation:
        raise NotImplementedError

    def evaluate(environment: Counter) -> Any:
        return coroutine()

    result = run_benchmark(benchmark(Factory(), 1), evaluate)
    assert "evaluate must be synchronous" in str(result.records[0].error)


def test_an_asynchronous_environment_is_an_error_before_it_is_played() -> None:
    class Asynchronous:
        async def close(self) -> None:
            raise NotImplementedError

    played: list[object] = []

    def evaluate(environment: Asynchronous) -> Evaluation:
        played.append(environment)
        return Evaluation(Score(1.0))

    result = run_benchmark(Benchmark("asynchronous", [1], lambda _: Asynchronous()), evaluate)
    assert "as_sync" in str(result.records[0].error)
    assert played == []


def test_environments_without_close_are_fine() -> None:
    assert run_benchmark(Benchmark("plain", [1], str), one).score == 1.0


def test_records_are_snapshots_of_what_the_callback_returned() -> None:
    metadata = {"tokens": [1]}

    def evaluate(environment: Counter) -> Evaluation:
        metadata["tokens"].append(environment.item)
        return Evaluation(Score(1.0), metadata=metadata)

    result = run_benchmark(benchmark(Factory(), 2), evaluate)
    assert [record.metadata["tokens"] for record in result.records] == [[1, 0], [1, 0, 1]]


def test_evaluations_take_numbers_and_reject_the_rest() -> None:
    number: Any = 0.5
    assert Evaluation(number).score == Score(0.5)
    wrong: Any = "no"
    with pytest.raises(TypeError, match="'no'"):
        Evaluation(wrong)
    with pytest.raises(TypeError, match="truncated must be a bool, got 'no'"):
        Evaluation(Score(1.0), truncated=wrong)
    with pytest.raises(TypeError, match="metadata must be a mapping, got 'no'"):
        Evaluation(Score(1.0), metadata=wrong)


def test_benchmarks_check_their_fields() -> None:
    wrong: Any = 3
    with pytest.raises(ValueError, match="name"):
        Benchmark("", [1], Factory())
    with pytest.raises(TypeError, match="name of a benchmark must be text, got 3"):
        Benchmark(wrong, [1], Factory())
    with pytest.raises(TypeError, match="make_env of benchmark 'x' must be callable, got 3"):
        Benchmark("x", [1], wrong)
    with pytest.raises(TypeError, match="item_id of benchmark 'x' must be callable, got 3"):
        Benchmark("x", [1], Factory(), item_id=wrong)
    with pytest.raises(TypeError, match="metadata of benchmark 'x' must be a mapping, got 3"):
        Benchmark("x", [1], Factory(), wrong)


def test_benchmarks_run_in_order_under_their_names() -> None:
    results = run_benchmarks(
        (benchmark(Factory(), 3, name) for name in ("second", "first")), one, limit=2
    )
    assert list(results) == ["second", "first"]
    assert [result.num_examples for result in results.values()] == [2, 2]


def test_benchmarks_are_all_checked_before_the_first_runs() -> None:
    factory = Factory()
    with pytest.raises(ValueError, match="'same'"):
        run_benchmarks([benchmark(factory, name="same"), benchmark(factory, name="same")], one)
    wrong: Any = "gsm8k"
    with pytest.raises(TypeError, match="expected a Benchmark, got 'gsm8k'"):
        run_benchmarks([benchmark(factory), wrong], one)
    with pytest.raises(TypeError, match="evaluate must be callable, got 'gsm8k'"):
        run_benchmarks([benchmark(factory)], wrong)
    assert factory.made == []


def test_an_interrupted_series_carries_the_finished_benchmarks_too() -> None:
    failing = Factory({1: KeyboardInterrupt()})
    with pytest.raises(KeyboardInterrupt) as caught:
        run_benchmarks([benchmark(Factory(), name="whole"), benchmark(failing, name="part")], one)
    results = BenchmarkResult.all_from_exception(caught.value)
    assert {name: result.num_remaining for name, result in results.items()} == {
        "whole": 0,
        "part": 3,
    }
    assert BenchmarkResult.from_exception(caught.value) == results["part"]
