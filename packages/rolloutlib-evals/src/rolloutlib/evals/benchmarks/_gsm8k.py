"""GSM8K: grade-school word problems with numbers for answers (Cobbe et al., arXiv:2110.14168)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

from rolloutlib._calls import check_count
from rolloutlib.evals._benchmark import Benchmark
from rolloutlib.evals.benchmarks._answers import grade_gsm8k, read_gsm8k_gold
from rolloutlib.evals.benchmarks._loading import load_rows
from rolloutlib.evals.benchmarks._math import (
    MathEnv,
    MathExample,
    check_few_shot,
    example_id,
    read_examples,
)

__all__ = ["GSM8KEnv", "gsm8k"]


class GSM8KEnv(MathEnv):
    """Asks one GSM8K problem; the reward is 1 for the right number, else 0.

    Args:
        example: The problem; its answer is a number, or a worked answer that ends in `#### number`.
        system_prompt: The content of a system message before the problem.
        few_shot: Problems and their solutions, which come before as earlier turns of the chat.
    """

    def __init__(
        self,
        example: MathExample,
        *,
        system_prompt: str | None = None,
        few_shot: Sequence[tuple[str, str]] = (),
    ) -> None:
        super().__init__(example, grade_gsm8k, system_prompt=system_prompt, few_shot=few_shot)


def gsm8k(
    examples: Iterable[MathExample | Mapping[str, Any]] | None = None,
    *,
    split: str = "test",
    dataset: str | os.PathLike[str] = "openai/gsm8k",
    config: str = "main",
    system_prompt: str | None = None,
    few_shot: int | Iterable[MathExample | Mapping[str, Any]] = 0,
    revision: str | None = None,
) -> Benchmark[MathExample]:
    """Make the GSM8K benchmark.

    Args:
        examples: The problems: examples, or mappings with "question" (or "problem") and "answer".
            None loads `dataset`.
        split: Which part of the data set to load.
        dataset: A name on the Hugging Face Hub, a local folder, or a JSON Lines, JSON, CSV or Parquet
            file.
        config: The configuration of a data set that has several.
        system_prompt: The content of a system message before each problem.
        few_shot: Worked examples that come before each problem as earlier turns of the chat, in the
            form of `examples`, or how many to take from the beginning of the training split of
            `dataset`. The notes for a calculator in their answers, `<<3*4=12>>`, are left out.
        revision: A commit, branch or tag of a data set on the Hub; by default a fixed commit of
            "openai/gsm8k", and the newest of another. The commit that was loaded stands in the metadata.

    Raises:
        ImportError: Loading needs the `benchmarks` extra, which is not installed.
        OSError: The data set cannot be read.
        TypeError: An example is neither a `MathExample` nor a mapping.
        ValueError: An example lacks a column, its answer holds no number, a worked example is
            one of the problems, or there are too few of them.
    """
    dataset = os.fspath(dataset)
    metadata: dict[str, Any] = {"dataset": dataset, "split": split, "task": "single_turn_math"}
    if examples is None:
        examples, loaded = load_rows(dataset, split=split, config=config, revision=revision)
        metadata["revision"] = loaded
        revision = loaded or revision
    items = _read(examples)
    make_env = partial(GSM8KEnv, system_prompt=system_prompt)
    if few_shot != 0:
        if isinstance(few_shot, int):
            check_count("few_shot", few_shot)
            training = load_rows(dataset, split="train", config=config, revision=revision)
            shots = _read(islice(training.rows, few_shot))
            if len(shots) < few_shot:
                msg = f"few_shot is {few_shot}, but the training split of {dataset!r} has {len(shots)}"
                raise ValueError(msg)
        else:
            shots = _read(few_shot)
        check_few_shot(shots, items)
        make_env = partial(make_env, few_shot=[(shot.question, _solution(shot)) for shot in shots])
        metadata["few_shot"] = [shot.example_id for shot in shots]
    return Benchmark("gsm8k", items, make_env, metadata, example_id, inline=True)


def _read(rows: Iterable[MathExample | Mapping[str, Any]]) -> tuple[MathExample, ...]:
    return read_examples(rows, "gsm8k", read_gsm8k_gold, question=("question", "problem"))


def _solution(example: MathExample) -> str:
    return re.sub(r"<<[^<>]*>>", "", example.answer)
