"""Benchmarks that are ready to run: GSM8K, AIME, reasoning-gym, and what other packages bring."""

from rolloutlib.evals.benchmarks._aime import AIME_PROMPT_SUFFIX, AIMEEnv, aime
from rolloutlib.evals.benchmarks._answers import (
    extract_aime_answer,
    extract_gsm8k_answer,
    grade_aime,
    grade_gsm8k,
)
from rolloutlib.evals.benchmarks._gsm8k import GSM8KEnv, gsm8k
from rolloutlib.evals.benchmarks._math import MathEnv, MathExample, make_example_id
from rolloutlib.evals.benchmarks._reasoning_gym import (
    ReasoningGymEnv,
    reasoning_gym,
    reasoning_gym_tasks,
)
from rolloutlib.evals.benchmarks._registry import (
    REGISTRY,
    BenchmarkFactory,
    list_benchmarks,
    make,
)

__all__ = [
    "AIMEEnv",
    "AIME_PROMPT_SUFFIX",
    "BenchmarkFactory",
    "GSM8KEnv",
    "MathEnv",
    "MathExample",
    "REGISTRY",
    "ReasoningGymEnv",
    "aime",
    "extract_aime_answer",
    "extract_gsm8k_answer",
    "grade_aime",
    "grade_gsm8k",
    "gsm8k",
    "list_benchmarks",
    "make",
    "make_example_id",
    "reasoning_gym",
    "reasoning_gym_tasks",
]
