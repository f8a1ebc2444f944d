"""Evaluation: benchmarks, runs over them with honest figures, and a display of progress."""

from rolloutlib.evals import benchmarks
from rolloutlib.evals._benchmark import Benchmark
from rolloutlib.evals._item import EvaluationCallback
from rolloutlib.evals._progress import ProgressDisplay
from rolloutlib.evals._results import BenchmarkResult, Evaluation, EvaluationRecord
from rolloutlib.evals._run import run_benchmark, run_benchmarks

__all__ = [
    "Benchmark",
    "BenchmarkResult",
    "Evaluation",
    "EvaluationCallback",
    "EvaluationRecord",
    "ProgressDisplay",
    "benchmarks",
    "run_benchmark",
    "run_benchmarks",
]
