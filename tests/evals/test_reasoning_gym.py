"""The tasks of reasoning-gym as benchmarks: made here, the same everywhere, graded by its scorers."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import Any

import pytest

from rolloutlib import collect
from rolloutlib.evals import Benchmark
from rolloutlib.evals.benchmarks import (
    MathExample,
    ReasoningGymEnv,
    make,
    reasoning_gym,
)
from rolloutlib.scores import Score

pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec("reasoning_gym") is None, reason="needs the extra reasoning-gym"
    ),
    # It leaves a file that it read to the garbage collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


def tagged(answer: str) -> str:
    return f"<think>Or <answer>no</answer>?</think>Well.\n<answer>\n{answer}\n</answer>"


def graded(benchmark: Benchmark[MathExample], example: MathExample, reply: str) -> Score:
    environment = benchmark.make_env(example)
    environment.reset()
    score = Score.from_info(environment.step(reply)[4])
    assert score is not None
    return score


def test_a_seed_gives_the_same_problems_and_another_seed_others() -> None:
    items = reasoning_gym("chain_sum", size=4).items
    assert reasoning_gym("chain_sum", size=4).items == items
    assert reasoning_gym("chain_sum", size=2).items == items[:2]
    assert [item.question for item in reasoning_gym("chain_sum", size=3, seed=1).items] == [
        item.question for item in items[1:]
    ]


def test_an_environment_asks_with_the_prompt_of_reasoning_gym() -> None:
    benchmark = reasoning_gym("basic_arithmetic", size=1)
    environment: ReasoningGymEnv = benchmark.make_env(benchmark.items[0])
    chat, info = environment.reset()
    assert [message["role"] for message in chat] == ["system", "user"]
    assert "<answer>" in chat[0]["content"]
    assert chat[1]["content"] == benchmark.items[0].question
    assert info == {"example_id": "basic_arithmetic-0-0"}
    assert environment.observation_space.contains(chat)


@pytest.mark.parametrize(
    ("prompt", "beginning"),
    [(None, None), ("direct", "Answer the question directly."), ("Be brief.", "Be brief.")],
)
def test_prompts_are_chosen_by_name_or_given(prompt: str | None, beginning: str | None) -> None:
    benchmark = reasoning_gym("basic_arithmetic", size=1, system_prompt=prompt)
    chat, _ = benchmark.make_env(benchmark.items[0]).reset()
    assert (len(chat) == 1) if beginning is None else chat[0]["content"].startswith(beginning)


@pytest.mark.parametrize(
    ("reply", "value", "status"),
    [
        ("<answer>{}</answer>", 1.0, "found"),
        ("<ANSWER> {} </ANSWER> Done.", 1.0, "found"),
        ("<answer>wrong</answer> No: <answer>{}</answer>", 1.0, "found"),
        ("<answer>{}</answer> or <answer>wrong</answer>", 0.0, "found"),
        ("The answer is {}.", 0.0, "none"),
        ("<answer> </answer> {}", 0.0, "none"),
        ("<answer>{}</answer>, so <answer>4", 0.0, "truncated"),
        ("<think>It is <answer>{}</answer>", 0.0, "truncated"),
        ("<think>It is <answer>{}</answer></think> Who knows?", 0.0, "none"),
    ],
)
def test_the_answer_is_in_the_last_tags_outside_of_thinking(
    reply: str, value: float, status: str
) -> None:
    benchmark = reasoning_gym("leg_counting", size=1)
    [example] = benchmark.items
    score = graded(benchmark, example, reply.format(example.answer))
    assert (score.value, score.metadata["status"]) == (value, status)
    assert score.component_values == {"correct": value}
    assert score.metadata["expected"] == example.answer
    assert (score.metadata["reason"] is None) == (status == "found")


def test_an_answer_counts_as_it_is_written() -> None:
    benchmark = reasoning_gym("caesar_cipher", size=1)
    [example] = benchmark.items
    assert graded(benchmark, example, "<answer>** \uff0ax _y_ **</answer>").metadata[
        "extracted"
    ] == ("** \uff0ax _y_ **")


def test_partial_credit_is_no_full_score() -> None:
    benchmark = reasoning_gym("countdown", size=1)
    score = graded(benchmark, benchmark.items[0], "<answer>1 + 1</answer>")
    assert 0 < score.value < 1
    assert score.component_values == {"correct": 0.0}


def test_what_the_scorer_cannot_read_is_wrong() -> None:
    benchmark = reasoning_gym("prime_factorization", size=1)
    score = graded(benchmark, benchmark.items[0], "<answer>two and three</answer>")
    assert score.value == 0.0
    assert score.metadata["status"] == "found"
    assert "the scorer raised ValueError: invalid literal" in score.metadata["reason"]


@pytest.mark.parametrize(
    ("task", "answer", "run"),
    [
        ("countdown", "__import__('os').getpid()", False),
        ("countdown", "(1).__class__", False),
        ("countdown", "9**9**9", False),
        ("countdown", "factorial(10**9)", False),
        ("countdown", "100000000!", False),
        ("countdown", "1+" * 600 + "1", False),
        ("countdown", "9**(100/(1/100/100/100/100))", False),
        ("countdown", "9**(100+100)", False),
        ("countdown", "(9**90)**90", False),
        ("countdown", "2**-(9/1e-9)", False),
        ("countdown", "exp(exp(exp(100)))", False),
        ("puzzle24", "log(x)", False),
        ("puzzle24", "(8 - 2)*2**2*1", True),
        ("simple_integration", "((x**9)**9)**9", False),
        ("simple_integration", "(x + 1)**(3/2)*x**-n", True),
        ("countdown", "(3 + 4) * 5 / -2", True),
        ("simple_integration", "2*x**3/3 - 5.5*x**-2 + exp(x) + C", True),
        ("string_insertion", "getattr(str, 'join')", False),
        ("string_insertion", "['A', 'B']", True),
        ("string_insertion", "ABCDA", True),
        ("spiral_matrix", "1 2 3", True),
        ("leg_counting", "print(1)", True),
    ],
)
def test_programs_are_kept_from_scorers_that_would_run_them(
    task: str, answer: str, *, run: bool
) -> None:
    given: list[str | None] = []

    def score_answer(text: str | None, entry: dict[str, Any]) -> float:
        given.append(text)
        return 0.5

    example = MathExample(question="q", answer="1", metadata={"source_dataset": task})
    environment = ReasoningGymEnv(example, score_answer)
    environment.reset()
    environment.step(f"<answer>{answer}</answer>")
    assert given == ([answer] if run else [])


@pytest.mark.slow
def test_a_formula_that_takes_for_ever_to_simplify_is_given_up() -> None:
    benchmark = reasoning_gym("intermediate_integration", size=1)
    variable = benchmark.items[0].metadata["variable"]
    tracer = sys.gettrace()
    score = graded(
        benchmark, benchmark.items[0], tagged(f"(sin({variable})+cos({variable})+1)**99")
    )
    assert score.value == 0.0
    assert "given up after 2,000,000 calls" in score.metadata["reason"]
    assert sys.gettrace() is tracer


def test_parts_of_a_score_may_add_up_to_a_little_more_than_1() -> None:
    example = MathExample(question="q", answer="ab", metadata={"source_dataset": "spell_backward"})
    environment = ReasoningGymEnv(example, lambda answer, entry: 1.0000000000000002)
    environment.reset()
    assert environment.step("<answer>abx</answer>")[1] == 1.0


@pytest.mark.parametrize(
    ("value", "error"), [(1.5, ValueError), (float("nan"), ValueError), ("1", TypeError)]
)
def test_a_score_that_is_none_is_named(value: Any, error: type[Exception]) -> None:
    example = MathExample(question="q", answer="1", metadata={"source_dataset": "odd"})
    environment = ReasoningGymEnv(example, lambda answer, entry: value)
    environment.reset()
    with pytest.raises(error, match="task 'odd'"):
        environment.step("<answer>1</answer>")


def test_settings_reach_the_task_and_stand_in_the_metadata() -> None:
    config: dict[str, Any] = {"min_terms": 2, "max_terms": 2}
    benchmark = reasoning_gym("chain_sum", size=3, seed=9, **config)
    assert all(item.metadata["num_terms"] == 2 for item in benchmark.items)
    facts = dict(benchmark.metadata)
    assert facts.pop("reasoning-gym")
    assert facts == {"task": "chain_sum", "seed": 9, "config": config}
    assert (
        make("reasoning_gym", task="chain_sum", size=3, seed=9, **config).items == benchmark.items
    )


@pytest.mark.parametrize(
    ("task", "arguments", "error", "message"),
    [
        ("chain_some", {}, ValueError, "no task 'chain_some'; choose from .*'chain_sum'"),
        ("chain_sum", {"terms": 2}, TypeError, r"no settings \['terms'\]; it has .*'min_terms'"),
        ("chain_sum", {"min_terms": 0}, ValueError, "'chain_sum' refuses its settings"),
        ("chain_sum", {"min_terms": "a"}, ValueError, "'chain_sum' refuses its settings"),
        ("composite", {}, ValueError, "'composite' refuses its settings"),
        ("composite", {"datasets": ["chain_sum"]}, ValueError, "'composite' refuses its settings"),
        ("composite", {"datasets": [{"name": "x"}]}, ValueError, "'x' not registered"),
        ("chain_sum", {"size": 0}, ValueError, "size"),
        ("chain_sum", {"seed": -1}, ValueError, "seed"),
    ],
)
def test_bad_arguments_are_named(
    task: str, arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        reasoning_gym(task, **arguments)


def test_several_tasks_make_one_benchmark_and_each_grades_its_own() -> None:
    composite = importlib.import_module("reasoning_gym.composite")
    parts = [composite.DatasetSpec("leg_counting", 1, {}), {"name": "n_queens"}]
    benchmark = reasoning_gym("composite", size=4, datasets=parts)
    assert benchmark.metadata["config"]["datasets"][1]["name"] == "n_queens"
    tasks = [item.metadata["source_dataset"] for item in benchmark.items]
    assert set(tasks) == {"leg_counting", "n_queens"}
    for item in benchmark.items:
        assert graded(benchmark, item, tagged(item.answer)).value == 1.0
    queens = benchmark.items[tasks.index("n_queens")]
    reason = graded(benchmark, queens, tagged("print()")).metadata["reason"]
    assert "no plain value" in reason


def test_a_benchmark_is_a_data_set_to_train_on() -> None:
    dataset = reasoning_gym("basic_arithmetic", size=3, seed=1000).to_dataset()
    [group, *_] = collect(dataset, dataset.make_env, lambda chat: "<answer>x</answer>")
    assert group.item_id == "basic_arithmetic-1000-0"
    assert [dataset.item_id(index) for index in range(3)][-1] == "basic_arithmetic-1000-2"
    assert dataset.metadata["task"] == "basic_arithmetic"


def test_without_the_extra_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "reasoning_gym", None)
    with pytest.raises(ImportError, match=r"rolloutlib-evals\[reasoning-gym\]"):
        reasoning_gym("chain_sum")
