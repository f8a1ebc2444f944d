"""Keeping scorers of reasoning-gym that evaluate an answer as Python from running what a model wrote."""

from __future__ import annotations

import ast

__all__ = ["is_program"]

# Scorers that call `eval` on an answer, and those that have sympy parse it, which does the same.
_EVALUATED = {"binary_matrix", "n_queens", "spiral_matrix", "string_insertion"}
_FORMULAS = {
    "countdown",
    "intermediate_integration",
    "polynomial_multiplication",
    "puzzle24",
    "simple_integration",
}
_FUNCTIONS = {
    "Abs", "Integral", "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "cot", "csc",
    "exp", "ln", "log", "sec", "sin", "sinh", "sqrt", "tan", "tanh",
}  # fmt: skip
_LONGEST = 1000  # characters of a formula
_HIGHEST = 100  # power in a formula


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
        return not (_is_formula(tree, powers=2) if formula else _is_value(tree))
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


def _is_formula(node: ast.expr, *, powers: int) -> bool:
    """Tell whether a formula is one that takes no long time, with powers of powers up to a depth."""
    match node:
        case ast.Constant(value=value):
            return isinstance(value, (int, float))
        case ast.Name(id=name):
            return not name.startswith("_")
        case ast.UnaryOp(op=ast.USub() | ast.UAdd()):
            return _is_formula(node.operand, powers=powers)
        case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div()):
            return _is_formula(node.left, powers=powers) and _is_formula(node.right, powers=powers)
        case ast.BinOp(op=ast.Pow()):
            below = powers - 1
            return below >= 0 and _is_formula(node.left, powers=below) and _is_power(node.right)
        case ast.Call(func=ast.Name(id=name), keywords=[]):
            return name in _FUNCTIONS and all(
                _is_formula(part, powers=powers) for part in node.args
            )
        case _:
            return False


def _is_power(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=value):
            return isinstance(value, (int, float)) and value <= _HIGHEST
        case ast.Name(id=name):
            return not name.startswith("_")
        case ast.UnaryOp(op=ast.USub() | ast.UAdd()):
            return _is_power(node.operand)
        case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Div()):
            return _is_power(node.left) and _is_power(node.right)
        case _:
            return False
