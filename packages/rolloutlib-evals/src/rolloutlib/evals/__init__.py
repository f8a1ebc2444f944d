"""Evaluation: benchmarks, and runs over them with honest figures."""

from rolloutlib.evals import benchmarks
from rolloutlib.evals._benchmark import Benchmark
from rolloutlib.evals._item import EvaluationCallback
from rolloutlib.evals._results import BenchmarkResult, Evaluation, EvaluationRecord
from rolloutlib.evals._run import run_benchmark, run_benchmarks

__all__ = [
    "Benchmark",
    "BenchmarkResult",
    "Evaluation",
    "EvaluationCallback",
    "EvaluationRecord",
    "benchmarks",
    "run_benchmark",
    "run_benchmarks",
]
