"""GSM8K and AIME: their problems as environments, their answers graded exactly."""

from rolloutlib.evals.benchmarks._aime import AIME_PROMPT_SUFFIX, AIMEEnv, aime
from rolloutlib.evals.benchmarks._answers import (
    extract_aime_answer,
    extract_gsm8k_answer,
    grade_aime,
    grade_gsm8k,
)
from rolloutlib.evals.benchmarks._gsm8k import GSM8KEnv, gsm8k
from rolloutlib.evals.benchmarks._math import MathEnv, MathExample, make_example_id
from rolloutlib.evals.benchmarks._registry import REGISTRY, BenchmarkFactory, make

__all__ = [
    "AIMEEnv",
    "AIME_PROMPT_SUFFIX",
    "BenchmarkFactory",
    "GSM8KEnv",
    "MathEnv",
    "MathExample",
    "REGISTRY",
    "aime",
    "extract_aime_answer",
    "extract_gsm8k_answer",
    "grade_aime",
    "grade_gsm8k",
    "gsm8k",
    "make",
    "make_example_id",
]
