"""AIME: competition problems with integers from 0 to 999 for answers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from rolloutlib.evals._benchmark import Benchmark
from rolloutlib.evals.benchmarks._answers import grade_aime, read_aime_gold
from rolloutlib.evals.benchmarks._loading import load_rows
from rolloutlib.evals.benchmarks._math import (
    MathEnv,
    MathExample,
    check_few_shot,
    example_id,
    read_examples,
)

__all__ = ["AIME_PROMPT_SUFFIX", "AIMEEnv", "aime"]

_2025 = "MathArena/aime_2025"
_YEARS = {2024: "HuggingFaceH4/aime_2024", 2025: _2025}

AIME_PROMPT_SUFFIX = (
    "\n\nThis is an AIME problem. The answer is an integer from 000 to 999. Show your work step by"
    " step, then put your final answer in \\boxed{}."
)


class AIMEEnv(MathEnv):
    """Asks one AIME problem; the reward is 1 for the right integer, else 0.

    Args:
        example: The problem; its answer is an integer from 0 to 999, with or without leading zeros.
        system_prompt: The content of a system message before the problem.
        prompt_suffix: What follows the problem in the user's message.
        few_shot: Problems and their solutions, which come before as earlier turns of the chat.
    """

    def __init__(
        self,
        example: MathExample,
        *,
        system_prompt: str | None = None,
        prompt_suffix: str = AIME_PROMPT_SUFFIX,
        few_shot: Sequence[tuple[str, str]] = (),
    ) -> None:
        super().__init__(
            example,
            grade_aime,
            system_prompt=system_prompt,
            prompt_suffix=prompt_suffix,
            few_shot=few_shot,
        )


def aime(
    examples: Iterable[MathExample | Mapping[str, Any]] | None = None,
    *,
    split: str = "test",
    dataset: str | os.PathLike[str] = _2025,
    system_prompt: str | None = None,
    prompt_suffix: str = AIME_PROMPT_SUFFIX,
    few_shot: Iterable[MathExample | Mapping[str, Any]] = (),
    year: int | None = None,
    revision: str | None = None,
) -> Benchmark[MathExample]:
    """Make an AIME benchmark.

    Args:
        examples: The problems: examples, or mappings with "problem" (or "question") and "answer",
            text or an integer. None loads `dataset`.
        split: Which part of the data set to load, if it has several.
        dataset: A name on the Hugging Face Hub, a local folder, or a JSON Lines, JSON, CSV or Parquet
            file.
        system_prompt: The content of a system message before each problem.
        prompt_suffix: What follows each problem in the user's message.
        few_shot: Worked examples that come before each problem as earlier turns of the chat, in the
            form of `examples`. The reply is the column "solution", or else the answer in a box.
        year: 2024 or 2025 calls the benchmark "aime_2024" or "aime_2025", and loads the data set of that
            year unless another is given.
        revision: A commit, branch or tag of a data set on the Hub; by default a fixed commit of those
            of 2024 and 2025, and the newest of another. The commit that was loaded stands in the
            metadata.

    Raises:
        ImportError: Loading needs the `benchmarks` extra, which is not installed.
        OSError: The data set cannot be read.
        TypeError: An example is neither a `MathExample` nor a mapping.
        ValueError: The year is another, an example lacks a column, its answer is no integer from 0 to
            999, or a worked example is one of the problems.
    """
    name = "aime"
    if year is not None:
        if year not in _YEARS:
            msg = f"year must be one of {list(_YEARS)}, got {year!r}: pass `dataset` for another"
            raise ValueError(msg)
        name = f"aime_{year}"
        dataset = _YEARS[year] if dataset == _2025 else dataset
    dataset = os.fspath(dataset)
    metadata: dict[str, Any] = {"dataset": dataset, "split": split, "task": "single_turn_math"}
    if examples is None:
        examples, metadata["revision"] = load_rows(dataset, split=split, revision=revision)
    items = _read(examples)
    make_env = partial(AIMEEnv, system_prompt=system_prompt, prompt_suffix=prompt_suffix)
    shots = _read(few_shot)
    if shots:
        check_few_shot(shots, items)
        make_env = partial(make_env, few_shot=[(shot.question, _solution(shot)) for shot in shots])
        metadata["few_shot"] = [shot.example_id for shot in shots]
    return Benchmark(name, items, make_env, metadata, example_id, inline=True)


def _read(rows: Iterable[MathExample | Mapping[str, Any]]) -> tuple[MathExample, ...]:
    return read_examples(rows, "aime", _check_answer, question=("problem", "question"))


def _solution(example: MathExample) -> str:
    solution: object = example.metadata.get("solution")
    return solution if isinstance(solution, str) else f"\\boxed{{{example.answer}}}"


def _check_answer(answer: str) -> None:
    if not 0 <= read_aime_gold(answer) <= 999:
        msg = f"an AIME answer must be an integer from 0 to 999, got {answer!r}"
        raise ValueError(msg)
