"""What inspect-ai takes for the work of a row in `evals.py`, in an environment that has it.

    python evals_inspect.py DATA COUNT ANSWER

has its mock model give that answer to so many problems of GSM8K, with a log, and prints the seconds.
The scorer is ours, so that both sides do the same work.
"""

from __future__ import annotations

import json
import sys
import tempfile
from itertools import repeat
from pathlib import Path
from time import perf_counter
from typing import Any

from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import Score, accuracy, scorer
from inspect_ai.solver import generate

from rolloutlib.evals.benchmarks import grade_gsm8k


@scorer(metrics=[accuracy()])
def graded() -> Any:
    """Grade the number in the answer."""

    async def score(state: Any, target: Any) -> Score:
        found = grade_gsm8k(state.output.completion, target.text)
        return Score(value=found.value, metadata=dict(found.metadata))

    return score


def evaluate(rows: list[dict[str, Any]], answer: str) -> float:
    """Return the seconds that an evaluation takes."""
    samples = [Sample(id=row["id"], input=row["question"], target=row["answer"]) for row in rows]
    task = Task(dataset=MemoryDataset(samples), solver=generate(), scorer=graded())
    output = ModelOutput.from_content("mockllm/model", answer)
    output.usage = ModelUsage(input_tokens=90, output_tokens=30, total_tokens=120)  # else it counts
    model = get_model("mockllm/model", custom_outputs=repeat(output))
    with tempfile.TemporaryDirectory() as folder:
        start = perf_counter()
        [log] = eval(
            task, model=model, log_dir=folder, display="none", max_samples=64, max_connections=64
        )
        seconds = perf_counter() - start
    if log.status != "success" or log.results is None or log.results.completed_samples != len(rows):
        msg = f"the evaluation failed: {log.error and log.error.message}"
        raise RuntimeError(msg)
    return seconds


def main() -> None:
    """Evaluate a few, and then all that the command line asks for."""
    _, path, count, answer = sys.argv
    with Path(path).open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file][: int(count)]
    evaluate(rows[:5], answer)
    print(evaluate(rows, answer))


if __name__ == "__main__":
    main()
