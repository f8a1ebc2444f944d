"""GSM8K: grade-school word problems with numbers for answers (Cobbe et al., arXiv:2110.14168)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from rolloutlib.evals._benchmark import Benchmark
from rolloutlib.evals.benchmarks._answers import grade_gsm8k, read_gsm8k_gold
from rolloutlib.evals.benchmarks._loading import load_rows
from rolloutlib.evals.benchmarks._math import MathEnv, MathExample, example_id, read_examples

__all__ = ["GSM8KEnv", "gsm8k"]


class GSM8KEnv(MathEnv):
    """Asks one GSM8K problem; the reward is 1 for the right number, else 0.

    Args:
        example: The problem; its answer is a number, or a worked answer that ends in `#### number`.
        system_prompt: The content of a system message before the problem.
    """

    def __init__(self, example: MathExample, *, system_prompt: str | None = None) -> None:
        super().__init__(example, grade_gsm8k, system_prompt=system_prompt)


def gsm8k(
    examples: Iterable[MathExample | Mapping[str, Any]] | None = None,
    *,
    split: str = "test",
    dataset: str = "openai/gsm8k",
    config: str = "main",
    system_prompt: str | None = None,
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

    Raises:
        ImportError: Loading needs the `benchmarks` extra, which is not installed.
        OSError: The data set cannot be read.
        TypeError: An example is neither a `MathExample` nor a mapping.
        ValueError: An example lacks a column, or its answer holds no number.
    """
    rows = load_rows(dataset, split=split, config=config) if examples is None else examples
    return Benchmark(
        name="gsm8k",
        items=read_examples(rows, "gsm8k", read_gsm8k_gold, question=("question", "problem")),
        make_env=partial(GSM8KEnv, system_prompt=system_prompt),
        metadata={"dataset": dataset, "split": split, "task": "single_turn_math"},
        item_id=example_id,
    )
