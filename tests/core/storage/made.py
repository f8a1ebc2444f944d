"""Values and records of every kind, for the tests of storage."""

from __future__ import annotations

import dataclasses
import datetime
import uuid
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from rolloutlib import PolicyOutput, RolloutError, Score, Step, Trajectory, TrajectoryGroup


def objects(items: list[Any]) -> np.ndarray[Any, Any]:
    """An array of Python's objects."""
    array = np.empty(len(items), object)
    for index, item in enumerate(items):
        array[index] = item
    return array


def unfolded(time: Any) -> Any:
    """A time that is not the second of two with the same digits, which ISO 8601 cannot tell."""
    return time.replace(fold=0)


# All of Unicode, lone surrogates and NUL included, and what is easily lost more often.
texts = st.text(
    st.characters() | st.sampled_from("\0\n\r\x85\u2028\u2029\ud800\udfff$\\\"'\U0001f600")
)
dtypes = (
    npst.scalar_dtypes()
    | npst.unicode_string_dtypes()
    | npst.byte_string_dtypes()
    | npst.array_dtypes(allow_subarrays=True)
)
arrays = npst.arrays(dtypes, npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3))
scalars = (
    arrays.filter(lambda array: array.size > 0).map(lambda array: array.flat[0])
    | texts.map(np.str_)
    | st.binary().map(np.bytes_)
)
plain = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers().map(lambda number: number << 70)
    | st.floats()
    | texts
    | st.binary()
    | st.binary().map(bytearray)
    | st.complex_numbers()
    | st.decimals(allow_nan=False)
    | st.fractions()
    | st.uuids()
    | st.datetimes().map(unfolded)
    | st.datetimes(timezones=st.just(datetime.UTC)).map(unfolded)
    | st.dates()
    | st.times().map(unfolded)
    | arrays
    | scalars
)
keys = (
    texts
    | st.just("$")
    | st.integers()
    | st.none()
    | st.booleans()
    | st.binary()
    | st.tuples(texts, st.integers())
    | st.frozensets(st.integers(0, 9))
    | st.floats(allow_nan=False)
)
values = st.recursive(
    plain,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(keys, inner, max_size=3)
        | st.dictionaries(texts, inner, max_size=3)
        | st.sets(keys, max_size=3)
        | st.frozensets(keys, max_size=3)
        | st.lists(inner, max_size=3).map(objects)
    ),
    max_leaves=12,
)
messages = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "assistant", "tool"]), "content": texts},
        optional={"tool_calls": st.just([{"name": "f", "arguments": {"x": 1}, "id": "1"}])},
    ),
    max_size=3,
)
facts = st.dictionaries(texts, values, max_size=2)
observations = messages | texts | values
tokens = st.lists(st.integers(-(2**31), 2**31 - 1) | st.integers(0, 2**40), max_size=4)
numbers = st.floats(width=32, allow_nan=False)
rewards = st.floats(-1e300, 1e300)  # whose sums, the scores of episodes, are finite
versions = st.none() | st.integers() | texts
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | rewards | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)
scores = st.builds(
    Score,
    rewards,
    st.dictionaries(texts, rewards, max_size=2),
    st.dictionaries(texts, json_values, max_size=2),
    feedback=st.none() | texts,
)


def _pairs(num_tokens: int) -> st.SearchStrategy[Any]:
    """Versions that changed while tokens were sampled."""
    one = st.integers() | texts
    return st.tuples(one, one, st.integers(0, num_tokens)).map(
        lambda drawn: ((drawn[0], drawn[2]), (drawn[1], num_tokens - drawn[2]))
    )


@st.composite
def bundles(draw: st.DrawFn, prefix: str = "") -> dict[str, Any]:
    """The fields of tokens, which fit together."""
    ids = draw(st.none() | tokens)
    size = len(ids) if ids is not None else draw(st.integers(0, 3))
    return {
        f"{prefix}tokens": ids,
        f"{prefix}logprobs": draw(st.none() | st.lists(numbers, min_size=size, max_size=size)),
        f"{prefix}prompt_tokens": draw(st.none() | tokens),
        f"{prefix}stop_reason": draw(st.none() | texts),
        f"{prefix}version": draw(versions | _pairs(len(ids)) if ids else versions),
    }


@st.composite
def steps(draw: st.DrawFn, observation: Any = None) -> Step[Any, Any]:
    """A step; it begins with a given observation, or with one of its own."""
    return Step(
        draw(observations) if observation is None else observation,
        draw(observations),
        draw(rewards),
        draw(observations),
        draw(st.booleans()),
        draw(st.booleans()),
        draw(facts | scores.map(lambda score: score.as_info())),
        draw(facts),
        **draw(bundles("policy_")),
    )


@st.composite
def trajectories(draw: st.DrawFn) -> Trajectory[Any, Any]:
    """A trajectory whose steps follow each other, or do not."""
    initial = observation = draw(observations)
    chained = draw(st.booleans())
    played: list[Step[Any, Any]] = []
    for _ in range(draw(st.integers(0, 3))):
        played.append(draw(steps(observation if chained else None)))
        observation = played[-1].next_observation
    return Trajectory(
        initial,
        played,
        draw(facts),
        draw(st.booleans()),
        draw(st.booleans()),
        draw(facts),
        seed=draw(st.none() | st.integers(0, 2**31)),
        member=draw(st.none() | st.integers(0, 9)),
        attempt=draw(st.integers(0, 3)),
    )


outputs = st.builds(
    lambda action, info, bundle: PolicyOutput(action, info, **bundle),
    observations,
    facts,
    bundles(),
)
errors = st.builds(
    RolloutError,
    texts,
    texts,
    index=st.none() | st.integers(0, 9),
    attempt=st.integers(0, 3),
    phase=st.none() | st.sampled_from(["make_env", "reset", "policy", "step", "close", "grade"]),
    traceback=texts,
    seed=st.none() | st.integers(0, 2**31),
    trajectory=st.none() | trajectories(),
    output=st.none() | outputs,
)


@st.composite
def groups(draw: st.DrawFn) -> TrajectoryGroup[Any, Any, Any]:
    """A group."""
    members = draw(st.lists(trajectories(), max_size=2))
    return TrajectoryGroup(
        draw(values),
        draw(texts),
        members,
        draw(st.just(()) | st.lists(scores, min_size=len(members), max_size=len(members))),
        draw(st.lists(errors, max_size=2)),
        draw(facts),
        seed=draw(st.none() | st.integers(0, 2**31)),
        retried=draw(st.lists(errors, max_size=1)),
    )


EXAMPLES: list[Any] = [
    2**63 - 1,
    -(2**63),
    2**63,
    -(10**5000),
    -0.0,
    float("nan"),
    float("-inf"),
    "a\u2028b\u2029c\x85d\0e",
    "\ud800",
    {"\udfff": "\udfff"},
    {"$": "tuple", "items": [1]},
    {1: "integer", "1": "text", 1.5: "number", None: "none", (1, "x"): "tuple"},
    (1, (2, [3, (4,)]), ()),
    {frozenset({1, 2}), frozenset({3})},
    b"\0\xff",
    np.arange(6, dtype=">i2").reshape(2, 3),
    np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    np.array(["a", "bcd", "\ud800"]),
    np.array([1, "a", None, {"x": (1,)}], object),
    np.zeros((2,), np.dtype([("a", "i1"), ("b", "f8", (2,)), ("c", [("d", "U3")])], align=True)),
    np.zeros((), [(("title", "name"), "u1")])[()],
    np.datetime64("2026-01-02T03:04:05.678"),
    np.timedelta64(5, "s"),
    np.float32(0.1),
    np.longdouble("0.1"),
    np.bool_(True),
    np.str_("ends in NUL\0"),
    np.bytes_(b"ends in NUL\0"),
    Decimal("1.10"),
    Fraction(1, 3),
    uuid.UUID(int=5),
    complex("nan-infj"),
    datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone(datetime.timedelta(hours=1))),
    Score(0.5, {"format": 1.0}, {"k": [1, {"\ud800": None}]}, feedback="\u2028"),
]


def contents(record: Any) -> Any:
    """A record as the lists and arrays of its fields, to be compared strictly."""
    if isinstance(record, Score):
        return record
    if isinstance(record, Sequence) and not isinstance(record, (str, bytes, bytearray)):
        return [type(record).__name__, *map(contents, record)]
    if dataclasses.is_dataclass(record):
        return [contents(getattr(record, field.name)) for field in dataclasses.fields(record)]
    return record


def is_identical(one: Any, other: Any) -> bool:
    """Tell whether two values are the same in types, contents, order and signs of zeros."""
    if type(one) is not type(other):
        return False
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(is_identical, one, other))
    if isinstance(one, dict):
        return is_identical(list(one.items()), list(other.items()))
    if isinstance(one, np.ndarray):
        if one.dtype != other.dtype or one.shape != other.shape:
            return False
        if one.dtype == object:
            return is_identical(one.tolist(), other.tolist())
        if one.dtype == np.longdouble:  # with bytes that no number is in
            return np.array_equal(one, other)
        return one.tobytes() == other.tobytes()
    if isinstance(one, np.generic) and not isinstance(one, (str, bytes)):
        return is_identical(np.asarray(one), np.asarray(other))
    if isinstance(one, (float, complex, Decimal, datetime.datetime)):
        return repr(one) == repr(other)
    return one == other
