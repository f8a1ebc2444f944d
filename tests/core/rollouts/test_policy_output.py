"""What a policy may tell: tokens, log probabilities, and how they are kept."""

from __future__ import annotations

import array
import copy
import json
import math
import pickle
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.rollouts.scripted import ScriptedEnv
from rolloutlib import PolicyOutput, Step, Trajectory, rollout
from rolloutlib.rollouts import StopReason


class Tensor:
    """What PyTorch's tensors on the CPU offer to NumPy."""

    def __init__(self, values: list[Any]) -> None:
        self.values = values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.values, dtype=dtype)


FORMS: list[Any] = [
    list,
    tuple,
    iter,
    np.array,
    lambda values: np.array(values, dtype=np.int64),
    lambda values: array.array("q", values),
    Tensor,
]


@pytest.mark.parametrize("form", FORMS)
@given(ids=st.lists(st.integers(0, 200_000), max_size=8))
def test_token_ids_of_every_form_read_as_the_tuple(form: Any, ids: list[int]) -> None:
    tokens = PolicyOutput("a", tokens=form(ids)).tokens
    assert tokens == tuple(ids)
    assert tokens == ids
    assert tokens is not None
    assert list(tokens) == ids
    assert all(type(token) is int for token in tokens)
    assert len(tokens) == len(ids)
    assert tokens[1:] == ids[1:]
    assert repr(tokens) == repr(tuple(ids))
    assert hash(tokens) == hash(tuple(ids))
    assert np.asarray(tokens).dtype in (np.int32, np.int64)


@pytest.mark.parametrize(("ids", "dtype"), [([1, 2], np.int32), ([1, 2**40], np.int64)])
def test_a_trajectory_keeps_token_ids_as_small_as_they_fit(ids: list[int], dtype: Any) -> None:
    forms: list[Any] = [[3], np.array(ids)]
    steps = [Step("o", "a", 0.0, "p", False, False, policy_tokens=form) for form in forms]
    tokens = Trajectory("o", steps).steps[1].policy_tokens
    assert tokens == ids
    assert np.asarray(tokens).dtype == dtype


@given(st.lists(st.floats(width=32, allow_nan=False, max_value=0), max_size=8))
def test_log_probabilities_read_as_the_tuple(values: list[float]) -> None:
    forms: list[Any] = [list, tuple, np.array, lambda x: array.array("d", x), Tensor]
    for form in forms:
        logprobs = PolicyOutput("a", logprobs=form(values)).logprobs
        assert logprobs == tuple(values)
        assert logprobs is not None
        assert list(logprobs) == values
        assert np.asarray(logprobs).dtype == np.float32


def test_a_float64_equals_the_float32_that_is_kept_of_it() -> None:
    output = PolicyOutput("a", tokens=[1, 2], logprobs=[-0.1, -0.2])
    assert output.logprobs == (-0.1, -0.2)
    assert output.logprobs != (-0.1, -0.3)
    assert output.logprobs != (-0.1,)
    assert output.tokens != (1, 3)
    assert output.tokens != "12"
    assert output.tokens != ("a", "b")
    assert output == PolicyOutput("a", tokens=(1, 2), logprobs=(-0.1, -0.2))


class GradientTensor(Tensor):
    """A tensor that NumPy may not read."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        msg = "Can't call numpy() on Tensor that requires grad."
        raise RuntimeError(msg)


class ListedTensor(GradientTensor):
    """One whose numbers can be listed all the same, as PyTorch's with a gradient or of bfloat16."""

    def tolist(self) -> list[Any]:
        return self.values


class EmptiedTensor(GradientTensor):
    """One that has no numbers, as those on PyTorch's meta device."""

    def tolist(self) -> list[Any]:
        msg = "Cannot copy out of meta tensor; no data!"
        raise NotImplementedError(msg)


def test_tensors_that_numpy_cannot_read_are_listed() -> None:
    ids: Any = ListedTensor([1, 2])
    numbers: Any = ListedTensor([-0.5, -0.25])
    output = PolicyOutput("a", tokens=ids, logprobs=numbers)
    assert (output.tokens, output.logprobs) == ((1, 2), (-0.5, -0.25))
    with pytest.raises(TypeError, match="tokens must be integers in one dimension, got float64"):
        PolicyOutput("a", tokens=numbers)


@pytest.mark.parametrize("form", [list, np.array, ListedTensor])
def test_log_probabilities_beyond_a_float32_are_infinite(form: Any) -> None:
    assert PolicyOutput("a", logprobs=form([-1e300, -1.0])).logprobs == (-math.inf, -1.0)


@pytest.mark.parametrize(
    "values", [GradientTensor([1.0]), EmptiedTensor([1.0]), 5, np.array([[1]]), [10**400]]
)
def test_what_is_no_sequence_of_numbers_is_refused_by_the_name_of_its_field(values: Any) -> None:
    for name in ("tokens", "prompt_tokens", "logprobs"):
        with pytest.raises(TypeError, match=f"^{name} must be .*"):
            PolicyOutput("a", **{name: values})


@pytest.mark.parametrize("ids", [[2**64], np.array([2**63], np.uint64)])
def test_ids_beyond_64_bits_are_refused(ids: Any) -> None:
    with pytest.raises(TypeError, match="at most 64 bits"):
        PolicyOutput("a", tokens=ids)


def test_ids_beyond_32_bits_are_kept() -> None:
    ids = [2**31, 2**40]
    forms: list[Any] = [list, np.array]
    for form in forms:
        tokens = PolicyOutput("a", tokens=form(ids)).tokens
        assert tokens == ids
        assert np.asarray(tokens).dtype == np.int64
    unsigned: Any = np.array([7], np.uint64)
    assert PolicyOutput("a", tokens=unsigned).tokens == [7]


def test_they_are_sequences_like_tuples() -> None:
    tokens = PolicyOutput("a", tokens=[3, 1, 3]).tokens
    assert tokens is not None
    assert tokens[0] == tokens[-1] == 3
    assert tokens.count(3) == 2
    assert tokens.index(1) == 1
    assert 1 in tokens
    assert (*tokens, 7) == tokens + (7,) == (3, 1, 3, 7)  # pyright: ignore[reportOperatorIssue]  # noqa: RUF005
    assert (7,) + tokens == (7, 3, 1, 3)  # pyright: ignore[reportOperatorIssue]  # noqa: RUF005
    assert json.dumps(list(tokens)) == "[3, 1, 3]"
    with pytest.raises(IndexError):
        tokens[3]


def test_what_is_handed_over_is_copied_and_cannot_be_changed() -> None:
    ids, buffer = [1, 2], np.array([-1.0, -2.0], np.float32)
    output = PolicyOutput("a", tokens=ids, logprobs=buffer)  # pyright: ignore[reportArgumentType]
    ids[0] = 9
    buffer[0] = -9
    assert output.tokens == (1, 2)
    assert output.logprobs == (-1, -2)
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(output.tokens)[0] = 9


def test_empty_is_not_unknown() -> None:
    empty, unknown = PolicyOutput("a", tokens=[], logprobs=[]), PolicyOutput("a")
    assert empty.tokens == ()
    assert empty.logprobs == []
    assert unknown.tokens is None
    assert empty != unknown
    assert PolicyOutput("a", prompt_tokens=np.array([])).prompt_tokens == ()  # pyright: ignore


@pytest.mark.parametrize("kind", ["policy", "step"])
def test_a_bundle_that_does_not_fit_together_is_refused(kind: str) -> None:
    def make(**fields: Any) -> Any:
        if kind == "policy":
            return PolicyOutput("a", **fields)
        fields = {f"policy_{name}": value for name, value in fields.items()}
        return Step("o", "a", 1.0, "n", True, False, **fields)

    with pytest.raises(ValueError, match="one number a token: got 1 for 3 tokens"):
        make(tokens=[1, 2, 3], logprobs=[-0.1])
    with pytest.raises(ValueError, match="got 0 for 3 tokens"):
        make(tokens=[1, 2, 3], logprobs=[])
    with pytest.raises(TypeError, match="logprobs must be numbers"):
        make(tokens=[1], logprobs=[None])
    with pytest.raises(ValueError, match="NaN, but number 1 of 2 is"):
        make(tokens=[1, 2], logprobs=[-1.0, float("nan")])
    for ids in ([1.5], ["a"], [None], np.array([1.5]), np.array([[1]]), 5):
        with pytest.raises(TypeError):
            make(tokens=ids)
    make(tokens=[1, 2])  # log probabilities may be unknown,
    make(logprobs=[-1.0])  # and so may ids


def test_outputs_survive_pickling_and_copying() -> None:
    output = PolicyOutput(
        "a", {"k": [1]}, tokens=[1], logprobs=[-0.5], prompt_tokens=[], stop_reason="x"
    )
    for again in (pickle.loads(pickle.dumps(output)), copy.deepcopy(output)):  # noqa: S301
        assert again == output
        assert np.asarray(again.tokens).flags.writeable is False
    with pytest.raises(AttributeError):
        output.action = "b"  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("form", FORMS)
def test_a_step_and_its_prompt_take_the_same_forms(form: Any) -> None:
    step = Step(
        "o", "a", 0.0, "p", False, False, policy_tokens=form([3, 4]), policy_prompt_tokens=form([])
    )
    assert step.policy_tokens == (3, 4)
    assert step.policy_prompt_tokens == ()
    assert Trajectory("o", [step]).steps[0] == step


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        *[(reason, reason) for reason in get_args(StopReason)],
        ("eos", "stop"),
        ("end_turn", "stop"),
        ("STOP", "stop"),
        ("max_tokens", "length"),
        ("MAX_TOKENS", "length"),
        ("tool_use", "tool_calls"),
        ("tool-calls", "tool_calls"),
        ("abort", "aborted"),
        ("cancelled", "aborted"),
        ("model_context_window_exceeded", "context_overflow"),
        ("content_filter", None),
        ("", None),
        (None, None),
    ],
)
def test_the_samplers_words_are_kept_and_read_as_one_of_a_few_reasons(
    text: str | None, reason: str | None
) -> None:
    output = PolicyOutput("a", stop_reason=text)
    step = Step("o", "a", 0.0, "p", False, False, policy_stop_reason=text)
    assert (output.stop_reason, output.finish) == (text, reason)
    assert (step.policy_stop_reason, step.policy_finish) == (text, reason)


def test_a_stop_reason_that_is_no_text_is_kept_and_unknown() -> None:
    reason: Any = {"type": "stop", "matched": 2}
    output = PolicyOutput("a", stop_reason=reason)
    assert (output.stop_reason, output.finish) == (reason, None)


def test_a_rollout_records_why_each_turn_ended() -> None:
    words = iter(["length", "end_turn"])
    trajectory = rollout(
        ScriptedEnv(2), lambda observation: PolicyOutput("a", tokens=[1], stop_reason=next(words))
    )
    assert [step.policy_stop_reason for step in trajectory.steps] == ["length", "end_turn"]
    assert [step.policy_finish for step in trajectory.steps] == ["length", "stop"]
