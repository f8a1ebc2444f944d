"""Compares mathematical answers by math-verify, inside a worker process."""

from __future__ import annotations

import functools
import importlib
import logging
import re
from typing import Any


def _import() -> tuple[Any, Any]:
    logging.disable()  # math-verify warns that it has no time-out, which its process has
    return importlib.import_module("math_verify"), importlib.import_module("sympy")


_verifier, _sympy = _import()
_HUNDREDTH = _sympy.Rational(1, 100)
# By default it would also take the last number out of what it cannot parse.
_CONFIG = [_verifier.LatexExtractionConfig()]
_UNEVALUATED = ("Integral", "Derivative", "Sum", "Product", "Limit")
_CALCULATION = re.compile(  # of what sympy calculates as it reads
    r"\\(?:[dt]?binom|choose|det|ln|log|lg|exp|(?:arc)?(?:sin|cos|tan|cot)h?)(?![a-zA-Z])"
)
_BASE = re.compile(r"(?<=[0-9])_\s?\{?\s?([0-9]+)")


def handle(job: dict[str, Any]) -> dict[str, Any]:
    """Compare a target with golds, all of them TeX without dollar signs.

    Args:
        job: "golds" and "target"; "unevaluated": whether a calculation counts as its result. Without
            a target only the golds are read.

    Returns:
        "unreadable": the place of a gold that is not mathematical; else "status" and "matched": the
        place of the first gold that is equal.
    """
    golds = [_parse(gold) for gold in job["golds"]]
    for place, gold in enumerate(golds):
        if not gold or isinstance(gold[0], str):
            return {"unreadable": place}
    if job["target"] is None:
        for gold in golds:  # what cannot be calculated in time is seen now
            _verifier.verify(gold, _parse("0"), timeout_seconds=None)
        return {}
    target = _parse(job["target"])
    if not target:
        return {"status": "invalid", "matched": None}
    unevaluated = False
    for place, gold in enumerate(golds):
        if _other_base(job["target"], job["golds"][place]):
            continue
        if _verifier.verify(gold, target, timeout_seconds=None):
            if job["unevaluated"] or not _is_unevaluated(job["target"], target[0], gold[0]):
                return {"status": "found", "matched": place}
            unevaluated = True
    return {"status": "unevaluated" if unevaluated else "found", "matched": None}


@functools.lru_cache(maxsize=256)
def _parse(text: str) -> Any:
    return _verifier.parse(f"${text}$", extraction_config=_CONFIG, parsing_timeout=None)


def _other_base(text: str, gold: str) -> bool:
    """Tell whether both name a base of numbers, which math-verify passes over, and not the same."""
    bases, golds = set(_BASE.findall(text)), set(_BASE.findall(gold))
    return bool(bases and golds) and bases != golds


def _is_unevaluated(text: str, target: Any, gold: Any) -> bool:
    """Tell whether a target leaves work to be done that the gold has done."""
    if not isinstance(target, _sympy.Basic) or not isinstance(gold, _sympy.Basic):
        return False
    kinds = [getattr(_sympy, name) for name in _UNEVALUATED]
    if target.has(*kinds) and not gold.has(*kinds):
        return True
    if not _is_written_out(gold) or not (gold.is_Number or isinstance(target, type(gold))):
        return False
    return all(map(_CALCULATION.search, text.split("="))) or not _is_written_out(target)


def _is_written_out(value: Any) -> bool:
    """Tell whether it is a number, several, an interval or an equation with a number on one side."""
    if isinstance(value, (_sympy.FiniteSet, _sympy.Tuple)):
        return all(map(_is_written_out, value.args))
    if isinstance(value, _sympy.Interval):
        return all(map(_is_written_out, value.args[:2]))
    if isinstance(value, _sympy.Eq):
        return any(map(_is_written_out, value.args))
    return _is_number(value)


def _is_number(value: Any) -> bool:
    """Tell whether it is a number as one writes it: a fraction, a percentage, scientific notation."""
    if value.is_Number or _is_scale(value):
        return True
    if not isinstance(value, _sympy.Mul):
        return False
    plain = [factor for factor in value.args if not _is_scale(factor)]
    return len(plain) <= 1 and all(factor.is_Number for factor in plain)


def _is_scale(value: Any) -> bool:
    """Tell whether it is a sign, a denominator, a percent sign or a power of ten."""
    if not isinstance(value, _sympy.Pow):
        # A percent sign is a hundredth, which math-verify 0.9 keeps from being multiplied.
        return value in (-1, _HUNDREDTH, _sympy.UnevaluatedExpr(_HUNDREDTH))
    base, exponent = value.args
    return exponent.is_Integer and (base == 10 or (base.is_Integer and exponent == -1))


_WARM_UP = (
    ("2x", "x+x"),
    (r"\sqrt{12}", r"2\sqrt{3}"),
    (r"\{1,2\}", r"(1,2]"),
    ("x<3", r"\int_0^1 x dx"),
)
for _gold, _target in _WARM_UP:  # what sympy loads late counts for no answer
    handle({"golds": [_gold], "target": _target, "unevaluated": False})
