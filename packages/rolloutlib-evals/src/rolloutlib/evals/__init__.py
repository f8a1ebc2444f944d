"""Evaluation: benchmarks, runs over them with honest figures, and a display of progress."""

from rolloutlib.evals import benchmarks, statistics
from rolloutlib.evals._benchmark import Benchmark
from rolloutlib.evals._item import AsyncEvaluationCallback, EvaluationCallback
from rolloutlib.evals._log import EvaluationLog, read_log
from rolloutlib.evals._progress import ProgressDisplay
from rolloutlib.evals._recorder import ErrorBudgetError
from rolloutlib.evals._records import Evaluation, EvaluationRecord, Outcome
from rolloutlib.evals._regrade import regrade_log
from rolloutlib.evals._results import BenchmarkResult
from rolloutlib.evals._run import arun_benchmark, run_benchmark
from rolloutlib.evals._run_many import arun_benchmarks, run_benchmarks
from rolloutlib.evals._stopping import StopWhen

__all__ = [
    "AsyncEvaluationCallback",
    "Benchmark",
    "BenchmarkResult",
    "ErrorBudgetError",
    "Evaluation",
    "EvaluationCallback",
    "EvaluationLog",
    "EvaluationRecord",
    "Outcome",
    "ProgressDisplay",
    "StopWhen",
    "arun_benchmark",
    "arun_benchmarks",
    "benchmarks",
    "read_log",
    "regrade_log",
    "run_benchmark",
    "run_benchmarks",
    "statistics",
]
