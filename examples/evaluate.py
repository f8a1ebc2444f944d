"""Evaluate a real language model on two benchmarks, with error bars, and a log that a run goes on with.

    uv run examples/evaluate.py
    uv run examples/evaluate.py --size 100 --gsm8k path/to/gsm8k_test.jsonl --limit 50 --logs runs

The model is SmolLM2-135M-Instruct on one thread; it solves a few of these problems. Each answer is in
the log as soon as it is graded. After Ctrl-C, or worse, the same command goes on where it was, and ends
as if it had never been interrupted.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from local_model import LocalModel, LocalPolicy

from rolloutlib.evals import BenchmarkResult, ProgressDisplay, run_benchmark
from rolloutlib.evals.benchmarks import gsm8k, reasoning_gym
from rolloutlib.evals.statistics import mean_score, pass_at_k

TEMPERATURE = 0.5
# Without examples so small a model does not keep to a form in which its answer can be found.
SHOTS = [
    {"question": question, "answer": f"<answer>{answer}</answer>"}
    for question, answer in (
        ("Tom has 3 apples and buys 4 more. How many apples has he?", 7),
        ("A box holds 6 eggs, and 2 are broken. How many are whole?", 4),
        ("A pen costs 2 dollars. How much do 3 pens cost?", 6),
    )
]


def main() -> None:
    """Evaluate the model on both benchmarks, or go on with it."""
    parser = argparse.ArgumentParser(description="Evaluate a small language model.")
    parser.add_argument("--size", type=int, default=20, help="problems of gsm_symbolic")
    parser.add_argument("--limit", type=int, default=10, help="problems of GSM8K, at most")
    parser.add_argument(
        "--gsm8k",
        metavar="PATH",
        default=Path(__file__).with_name("problems.jsonl"),
        help="file or dataset name of GSM8K problems; by default a few that are easier",
    )
    parser.add_argument("--epochs", type=int, default=2, help="answers to each problem")
    parser.add_argument("--max-tokens", type=int, default=24, help="where an answer is cut off")
    parser.add_argument("--seed", type=int, default=0, help="fixes the problems and the sampling")
    parser.add_argument("--logs", type=Path, default=Path("logs"), help="folder of the logs")
    args = parser.parse_args()
    if min(args.limit, args.epochs, args.max_tokens) < 1:
        parser.error("--limit, --epochs and --max-tokens must be at least 1")
    try:
        symbolic = reasoning_gym(
            "gsm_symbolic", size=args.size, seed=args.seed, system_prompt=None, few_shot=SHOTS
        )
        word_problems = gsm8k(dataset=str(args.gsm8k), few_shot=SHOTS)
        model = LocalModel(reuse_prompts=False)  # so that answers do not depend on the order
    except (ImportError, OSError, ValueError) as error:
        parser.error(str(error))

    policy = LocalPolicy(model, temperature=TEMPERATURE, max_tokens=args.max_tokens)
    for benchmark, limit in ((symbolic, args.size), (word_problems, args.limit)):
        num_samples = min(limit, len(benchmark.items)) * args.epochs
        try:
            with ProgressDisplay(num_samples) as display:
                result = run_benchmark(
                    benchmark,
                    policy=policy,
                    limit=limit,
                    epochs=args.epochs,
                    seed=args.seed,
                    concurrency=2,
                    log=args.logs / f"{benchmark.name}.jsonl",
                    model=model.name,
                    metadata={"temperature": TEMPERATURE, "max_tokens": args.max_tokens},
                    on_event=display,
                )
        except (OSError, ValueError) as error:  # the log is of another run, say
            sys.exit(f"{benchmark.name}: {error}")
        except KeyboardInterrupt as error:
            if (partial := BenchmarkResult.from_exception(error)) and partial.records:
                show(partial)
            sys.exit("interrupted: the same command goes on from here")
        show(result)


def show(result: BenchmarkResult) -> None:
    """Print what became of all samples, and the figures with their errors."""
    scores = result.item_scores
    print(f"{result.name}: {result.num_examples} of {result.num_expected} samples")
    print(
        f"  {result.num_credited} credited, {result.num_wrong} wrong, "
        f"{result.num_no_answer} without an answer, {result.num_truncated} cut off, "
        f"{result.num_errors} failed"
    )
    print(f"  {mean_score(scores)}")
    for name, mean in result.components.items():
        print(f"  {name}: {mean:.4g} over {result.component_counts[name]} samples")
    if not result.num_remaining:
        print(f"  {pass_at_k(scores, min(map(len, scores.values())))}")


if __name__ == "__main__":
    main()
