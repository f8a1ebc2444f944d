"""Values of any kind in records, their forms, and back."""

from __future__ import annotations

import dataclasses
import json
import zoneinfo
from collections import OrderedDict
from datetime import datetime
from enum import Enum
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from pydantic_core import from_json, to_json

from core.storage.made import EXAMPLES, is_identical, values
from processes import outputs_under_hash_seeds
from rolloutlib import PolicyOutput
from rolloutlib.rollouts import UnstorableError


def through_json(value: Any) -> Any:
    form = PolicyOutput(value).to_dict()
    text = json.dumps(form, allow_nan=False)
    assert from_json(to_json(form)) == json.loads(text) == form
    return PolicyOutput[Any].from_dict(json.loads(text)).action


@pytest.mark.parametrize("value", EXAMPLES, ids=lambda value: type(value).__name__)
def test_a_value_comes_back_as_it_was(value: Any) -> None:
    for wrapped in (value, [value], {"a": (value,)}):
        assert is_identical(through_json(wrapped), wrapped)


@given(values)
def test_every_value_comes_back_as_it_was(value: Any) -> None:
    assert is_identical(through_json(value), value)


def test_what_json_has_stands_for_itself() -> None:
    chat = [{"role": "user", "content": "2 + 3 = ?"}, {"role": "tool", "content": [{"n": 1.5}]}]
    assert PolicyOutput(chat).to_dict()["action"] == chat
    assert PolicyOutput(chat).to_dict()["action"] is not chat


def test_arrays_that_were_read_can_be_written_to() -> None:
    array = through_json(np.zeros(3))
    array[0] = 1
    assert array.tolist() == [1, 0, 0]


def test_sets_have_one_form_in_every_process() -> None:
    script = """
from rolloutlib import PolicyOutput
print(PolicyOutput({"b", "a", ("c", frozenset({"e", "d"}))}).to_dict())
"""
    assert len(outputs_under_hash_seeds(script)) == 1


def test_values_may_be_nested_deeply() -> None:
    value: Any = {1: ()}
    for level in range(62):
        value = (value,) if level % 2 else {level: value}
    assert through_json(value) == value
    with pytest.raises(UnstorableError, match="nested more than 64 levels deep, or holds itself"):
        PolicyOutput([value]).to_dict()


def test_a_list_that_holds_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(UnstorableError, match=r"^action\[0\]\[0\].* holds itself"):
        PolicyOutput(value).to_dict()


class Color(Enum):
    RED = 1


class Point(tuple[int, int]):
    pass


@pytest.mark.parametrize(
    "value",
    [
        object(),
        Color.RED,
        Point((1, 2)),
        OrderedDict(a=1),
        len,
        range(3),
        np.ma.masked_array([1, 2], [True, False]),
        np.zeros(2, [("a", "O")]),
        np.zeros(2, [("a", "i4")]).view(np.recarray),
        np.zeros(2, [("a", "i4")]).view(np.recarray)[0],
        np.zeros(2, np.dtype({"names": ["a", "b"], "formats": ["i4"] * 2, "offsets": [0, 2]})),
        datetime(2026, 1, 2, tzinfo=zoneinfo.ZoneInfo("UTC")),
        datetime(2026, 1, 2, fold=1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_that_would_not_come_back_is_refused_by_its_place(value: Any) -> None:
    with pytest.raises(
        UnstorableError, match=r"^info\['a'\]\[1\]\[\(2, 3\)\] is .*cannot be stored"
    ):
        PolicyOutput("", {"a": [0, {(2, 3): value}]}).to_dict()
    with pytest.raises(UnstorableError, match=r"^action is "):
        PolicyOutput(value).to_dict()


@dataclasses.dataclass(frozen=True)
class Move:
    x: int
    then: Any = None


def encode(value: Any) -> Any:
    if isinstance(value, Move):
        return vars(value)
    raise TypeError


def decode(name: str, value: Any) -> Any:
    assert name == f"{Move.__module__}.Move"
    return Move(**value)


def test_types_of_ones_own_are_stored_by_ones_own_functions() -> None:
    output = PolicyOutput([Move(1, Move(2, (np.int8(3),)))])
    form = output.to_dict(encode=encode)
    assert PolicyOutput[Any].from_dict(json.loads(json.dumps(form)), decode=decode) == output
    with pytest.raises(UnstorableError, match=r"^action\[0\] is of type .*Move, which cannot be"):
        output.to_dict()
    with pytest.raises(
        UnstorableError, match=r"give `encode` and `decode` functions for it that know"
    ):
        PolicyOutput(object()).to_dict(encode=encode)
    with pytest.raises(ValueError, match=r"of type .*\.Move needs a function `decode`"):
        PolicyOutput[Any].from_dict(form)
    read = PolicyOutput[Any].from_dict(form, decode=lambda name, value: value)
    assert read.action[0]["x"] == 1


@pytest.mark.parametrize(
    "form",
    [
        {"$": "unheard-of"},
        {"$": "tuple"},
        {"$": "tuple", "items": 5},
        {"$": ["dict"]},
        {"$": "int", "text": "x"},
        {"$": "Decimal", "text": "x"},
        {"$": "Fraction", "text": "1/0"},
        {"$": "bytes", "base64": "ä"},
        {"$": "bytes", "base64": "YQ"},
        {"$": "array", "dtype": "<f4", "shape": [2], "base64": "AAAA"},
        {"$": "array", "dtype": "|O", "shape": [1], "base64": "AAAAAAAAAAA="},
        {"$": "array", "dtype": "nonsense", "shape": [], "base64": ""},
        {"$": "array", "dtype": "(2,", "shape": [], "base64": ""},
        {"$": "array", "dtype": [["a", []]], "shape": [0], "base64": ""},
        {"$": "array", "dtype": "|V0", "shape": [-1], "base64": ""},  # which NumPy divides by 0
        {"$": "array", "dtype": "|V0", "shape": [10**40], "base64": ""},
        {"$": "dict", "keys": [1], "values": []},
        {"$": "dict", "keys": [[]], "values": [1]},
    ],
    ids=str,
)
def test_what_is_no_form_of_a_value_is_refused(form: Any) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        PolicyOutput[Any].from_dict({**PolicyOutput(0).to_dict(), "action": form})
