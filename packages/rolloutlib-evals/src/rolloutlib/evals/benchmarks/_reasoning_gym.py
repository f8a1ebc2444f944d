"""The procedural tasks of reasoning-gym (Stojanovski et al., arXiv:2505.24760), with its scorers."""

from __future__ import annotations

import dataclasses
import importlib
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from typing import Any, TypeAlias

from rolloutlib._calls import check_count
from rolloutlib._values import to_float
from rolloutlib.evals._benchmark import Benchmark
from rolloutlib.evals._plain import to_plain
from rolloutlib.evals.benchmarks._generation import generate
from rolloutlib.evals.benchmarks._guard import call_bounded, is_program
from rolloutlib.evals.benchmarks._math import (
    MathEnv,
    MathExample,
    check_few_shot,
    example_id,
    read_examples,
)
from rolloutlib.evals.benchmarks._tags import extract_tagged
from rolloutlib.scores import Score

__all__ = ["ReasoningGymEnv", "reasoning_gym", "reasoning_gym_tasks"]

Scorer: TypeAlias = Callable[[str | None, dict[str, Any]], float]
"""Scores an answer from 0 to 1, as `score_answer` of reasoning-gym's data sets."""


class ReasoningGymEnv(MathEnv):
    """Asks one problem of reasoning-gym; the reward is what its own scorer gives, from 0 to 1.

    The answer is the content of the last `<answer>` tags, outside of thinking. Without it the score
    is 0, and so it is for an answer that the scorer cannot read, or that is a program where the scorer
    would run it; the metadata of the score say which. The component "correct" is 1 for the full score
    and else 0.

    Args:
        example: The problem; its answer may be empty where many are right.
        score_answer: The scorer of the task.
        system_prompt: The content of a system message before the problem.
        few_shot: Problems and their solutions, which come before as earlier turns of the chat.
    """

    def __init__(
        self,
        example: MathExample,
        score_answer: Scorer,
        *,
        system_prompt: str | None = None,
        few_shot: Sequence[tuple[str, str]] = (),
    ) -> None:
        super().__init__(example, self._score, system_prompt=system_prompt, few_shot=few_shot)
        self._score_answer = score_answer

    def _score(self, response: str, expected: str) -> Score:
        found = extract_tagged(response)
        value = 0.0
        if found.status == "found" and found.text is not None:
            value, reason = self._value(found.text)
            found = dataclasses.replace(found, reason=reason)
        facts = {"expected": expected or None, **found.as_metadata()}
        return Score(value, {"correct": float(value == 1)}, facts)

    def _value(self, answer: str) -> tuple[float, str | None]:
        task = self.example.metadata.get("source_dataset")
        if is_program(task, answer):
            return 0.0, "the answer is no plain value or formula, and the scorer would run it"
        entry = {
            "question": self.example.question,
            "answer": self.example.answer or None,
            "metadata": self.example.metadata,
        }
        try:
            result: object = call_bounded(partial(self._score_answer, answer, entry))
        except Exception as error:  # whatever a scorer raises that cannot read an answer
            return 0.0, f"the scorer raised {type(error).__name__}: {error}"
        value = to_float(result, f"the score of reasoning-gym's task {task!r}", self)
        if not 0 <= value <= 1 + 1e-9:  # some add up parts
            msg = f"reasoning-gym's task {task!r} scored {value!r}, which is not from 0 to 1"
            raise ValueError(msg)
        return min(value, 1.0), None


def reasoning_gym(
    task: str,
    *,
    size: int = 100,
    seed: int = 0,
    system_prompt: str | None = "default",
    few_shot: Iterable[MathExample | Mapping[str, Any]] = (),
    **config: Any,
) -> Benchmark[MathExample]:
    """Make a benchmark of a task of reasoning-gym, whose problems are made on this machine.

    The problems are the same for the same arguments and version of reasoning-gym, in every process.
    Most tasks make problem `i` with the seed `seed + i`: keep seeds further apart than `size` where two
    sets are to differ, for training and for testing say.

    Args:
        task: One of `reasoning_gym_tasks`, or "composite" with `datasets=`, mappings with the "name" of a
            task and possibly its "weight", by default 1, and its settings as "config".
        size: How many problems.
        seed: The seed of the first.
        system_prompt: A system message before each problem: one of reasoning-gym's own by name
            ("default", "simple", "direct", "chain_of_draft" or "DeepSeekZero"), or a text; None for
            none.
        few_shot: Worked examples that come before each problem as earlier turns of the chat: examples,
            or mappings with "question" and "answer". An answer without tags is shown within them.
        **config: The settings of the task, by reasoning-gym's names.

    Raises:
        ImportError: It needs the extra `reasoning-gym`, which is not installed.
        TypeError: A number is none, or the task has no such setting.
        ValueError: There is no such task, a setting has no usable value, or a worked example is one of
            the problems.
    """
    check_count("size", size)
    check_count("seed", seed, least=0)
    factory = _library("factory")
    if task not in factory.DATASETS:
        msg = f"reasoning-gym has no task {task!r}; choose from {reasoning_gym_tasks()}"
        raise ValueError(msg)
    known = {field.name for field in dataclasses.fields(factory.DATASETS[task][1])}
    if unknown := sorted(config.keys() - known):
        msg = f"reasoning-gym's task {task!r} has no settings {unknown}; it has {sorted(known)}"
        raise TypeError(msg)
    settings = {**config, "size": size, "seed": seed}
    try:
        if task == "composite":
            settings["datasets"] = _parts(config.get("datasets", ()))
        scorer = _TaskScorer(task, settings)
    except (AssertionError, AttributeError, TypeError, ValueError) as error:
        msg = f"reasoning-gym's task {task!r} refuses its settings {config}: {error}"
        raise ValueError(msg) from error
    prompts: Mapping[str, str] = _library("utils").SYSTEM_PROMPTS
    if system_prompt is not None:
        system_prompt = prompts.get(system_prompt, system_prompt)
    items = [
        _example(f"{task}-{seed}-{index}", entry)
        for index, entry in enumerate(generate(scorer.dataset, task, settings))
    ]
    shots = read_examples(few_shot, "few-shot", str, question=("question", "problem"))
    check_few_shot(shots, items)
    return Benchmark(
        f"reasoning_gym-{task}",
        items,
        partial(
            ReasoningGymEnv,
            score_answer=scorer,
            system_prompt=system_prompt,
            few_shot=[(shot.question, _tagged(shot.answer)) for shot in shots],
        ),
        {
            "task": task,
            "seed": seed,
            "config": to_plain(config),
            "reasoning-gym": version("reasoning-gym"),
        },
        example_id,
    )


def reasoning_gym_tasks() -> list[str]:
    """Return the names of the tasks that need no further arguments.

    Raises:
        ImportError: It needs the extra `reasoning-gym`, which is not installed.
    """
    return sorted(_library("factory").DATASETS.keys() - {"composite"})


class _TaskScorer:
    """The scorer of a task, pickled as the task and its settings: data sets hold functions and texts."""

    def __init__(self, task: str, settings: Mapping[str, Any]) -> None:
        self.dataset: Any = _library("factory").create_dataset(task, **settings)
        self._arguments = (task, settings)

    def __call__(self, answer: str | None, entry: dict[str, Any]) -> float:
        return self.dataset.score_answer(answer, entry)

    def __reduce__(self) -> tuple[type[_TaskScorer], tuple[str, Mapping[str, Any]]]:
        return _TaskScorer, self._arguments


def _parts(datasets: Iterable[Any]) -> list[Any]:
    """Return the specifications of the tasks of a composite, which may be given as mappings."""
    kind: type = _library("composite").DatasetSpec
    return [
        part if isinstance(part, kind) else kind(**{"weight": 1, "config": {}, **part})
        for part in datasets
    ]


def _tagged(answer: str) -> str:
    return answer if "<answer>" in answer else f"<answer>{answer}</answer>"


def _example(name: str, entry: Mapping[str, Any]) -> MathExample:
    return MathExample(
        question=entry["question"],
        answer=entry["answer"] or "",
        example_id=name,
        metadata=entry["metadata"],
    )


def _library(module: str) -> Any:
    try:
        with warnings.catch_warnings():
            # Of one of its dependencies, when it is compiled.
            warnings.simplefilter("ignore", SyntaxWarning)
            importlib.import_module("reasoning_gym")
        return importlib.import_module(f"reasoning_gym.{module}")
    except ImportError as error:
        msg = "this needs reasoning-gym: install 'rolloutlib-evals[reasoning-gym]'"
        raise ImportError(msg) from error
