"""Keeping scorers of reasoning-gym that evaluate an answer as Python from running what a model wrote."""

from __future__ import annotations

import ast
import inspect
import math
import sys
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["call_bounded", "is_program"]

T = TypeVar("T")

# Scorers that call `eval` on an answer, and those that have sympy parse it, which does the same: of
# numbers alone, whose value they compute, and of variables and functions.
_EVALUATED = {"binary_matrix", "n_queens", "spiral_matrix", "string_insertion"}
_SUMS = {"countdown", "puzzle24"}
_FORMULAS = _SUMS | {
    "intermediate_integration",
    "polynomial_multiplication",
    "simple_integration",
}
_FUNCTIONS = {
    "Abs", "Integral", "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "cot", "csc",
    "exp", "ln", "log", "sec", "sin", "sinh", "sqrt", "tan", "tanh",
}  # fmt: skip
_LONGEST = 1000  # characters of a formula
_HIGHEST = 100  # power in a formula, of a power of a power too
_CALLS = 2_000_000  # eight times those of any right answer that was seen; some seconds
_GENERATORS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def call_bounded(function: Callable[[], T]) -> T:
    """Call a function, and give up when it has called too much: sympy may simplify for ever.

    Calls are counted, not seconds, so that a score does not depend on the machine, and in any thread.

    Raises:
        RuntimeError: It was given up.
    """
    calls = 0

    def count(frame: Any, event: str, argument: object) -> None:
        nonlocal calls
        calls += 1
        # Python drops what is raised in a generator that it throws away, and then counts no more.
        if calls > _CALLS and not frame.f_code.co_flags & _GENERATORS:
            raise _TooManyCallsError

    before = sys.gettrace()
    sys.settrace(count)
    try:
        result = function()
    except _TooManyCallsError:
        pass  # as if the function had caught it, which some do
    else:
        if calls <= _CALLS:
            return result
    finally:
        sys.settrace(before)
    msg = f"given up after {_CALLS:,} calls"
    raise RuntimeError(msg)


def is_program(task: object, answer: str) -> bool:
    """Tell whether the scorer of a task would run an answer that is no plain value or formula.

    Args:
        task: The name of the task.
        answer: The answer.
    """
    if task not in _EVALUATED and task not in _FORMULAS:
        return False
    formula = task in _FORMULAS
    if formula and len(answer) > _LONGEST:
        return True
    try:
        tree = ast.parse(answer.strip(), mode="eval").body
    except (MemoryError, RecursionError, SyntaxError, ValueError):
        return formula  # sympy reads more than Python; `eval` does not
    try:
        if not formula:
            return not _is_value(tree)
        return not _is_formula(tree, power=_HIGHEST, names=task not in _SUMS)
    except RecursionError:
        return True


def _is_value(node: ast.expr) -> bool:
    match node:
        case ast.Constant() | ast.Name():
            return True
        case ast.List() | ast.Tuple():
            return all(map(_is_value, node.elts))
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant()):
            return True
        case _:
            return False


def _is_formula(node: ast.expr, *, power: float, names: bool) -> bool:
    """Tell whether a formula has no number of more digits than can be computed.

    Args:
        node: The formula.
        power: To which power all of it may be raised.
        names: Whether it may have variables and functions.
    """
    match node:
        case ast.Constant(value=value):
            return isinstance(value, (int, float))
        case ast.Name(id=name):
            return names and not name.startswith("_")
        case ast.UnaryOp(op=ast.USub() | ast.UAdd()):
            return _is_formula(node.operand, power=power, names=names)
        case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div()):
            return all(
                _is_formula(part, power=power, names=names) for part in (node.left, node.right)
            )
        case ast.BinOp(op=ast.Pow()):
            times = _highest(node.right, names=names)
            return times <= power and _is_formula(node.left, power=power / times, names=names)
        case ast.Call(func=ast.Name(id=name), keywords=[]):
            return (
                names
                and name in _FUNCTIONS
                and all(_is_formula(part, power=power, names=names) for part in node.args)
            )
        case _:
            return False


def _highest(node: ast.expr, *, names: bool) -> float:
    """Return a number, 1 or more, that a power does not exceed, up or down; infinity if none is known."""
    match node:
        case ast.Constant(value=value) if isinstance(value, (int, float)):
            return max(1.0, value) if value <= _HIGHEST else math.inf
        case ast.Name(id=name) if names and not name.startswith("_"):
            return 1.0
        case ast.UnaryOp(op=ast.USub() | ast.UAdd()):
            return _highest(node.operand, names=names)
        case ast.BinOp(op=ast.Add() | ast.Sub()):
            return _highest(node.left, names=names) + _highest(node.right, names=names)
        case ast.BinOp(op=ast.Div(), right=ast.Constant(value=int(value))) if value >= 1:
            return _highest(node.left, names=names)
        case _:
            return math.inf


class _TooManyCallsError(BaseException):
    """Is caught by no handler of ordinary errors."""
