"""`Criterion` and `Rubric`: checked at construction, immutable, and named by their content."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from processes import outputs_under_hash_seeds
from rolloutlib.graders import Criterion, Rubric

text = st.text(min_size=1).filter(str.strip)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
metadata = st.dictionaries(st.text(), json_values, max_size=3)
criteria = st.builds(
    Criterion,
    id=text,
    description=text,
    weight=st.floats(min_value=0, max_value=1e300),
    kind=text,
    references=st.lists(text, max_size=3),
    metadata=metadata,
)
rubrics = st.builds(
    Rubric,
    id=st.none() | text,
    criteria=st.lists(criteria, min_size=1, max_size=4, unique_by=lambda each: each.id),
    instructions=st.none() | text,
    metadata=metadata,
)


def make_rubric(**fields: Any) -> Rubric:
    defaults: dict[str, Any] = {
        "criteria": (
            Criterion(id="a", description="first", references=("x", "y")),
            Criterion(id="b", description="second", weight=0.2, metadata={"k": [1]}),
        ),
        "instructions": "Be strict.",
    }
    return Rubric(**{**defaults, **fields})


@given(rubrics)
def test_a_rubric_comes_back_from_json_equal(rubric: Rubric) -> None:
    restored = Rubric.model_validate_json(rubric.model_dump_json())
    assert restored == rubric
    assert restored.fingerprint == rubric.fingerprint


@given(rubrics)
def test_a_rubric_comes_back_from_its_dictionary_a_copy_and_a_pickle_equal(rubric: Rubric) -> None:
    fingerprint = rubric.fingerprint
    for restored in (
        Rubric.model_validate(rubric.model_dump()),
        copy.deepcopy(rubric),
        pickle.loads(pickle.dumps(rubric)),  # noqa: S301 - made on the line itself
    ):
        assert restored == rubric
        assert restored.fingerprint == fingerprint


def test_reading_the_fingerprint_does_not_change_equality() -> None:
    read, unread = make_rubric(), make_rubric()
    assert read.fingerprint
    assert read == unread


@pytest.mark.parametrize("name", ["id", "description", "kind"])
@pytest.mark.parametrize("value", ["", " \n"])
def test_empty_text_is_refused(name: str, value: str) -> None:
    with pytest.raises(ValidationError, match="must not be empty"):
        Criterion.model_validate({"id": "a", "description": "d", name: value})


@pytest.mark.parametrize(
    "fields",
    [{"id": "\ud800"}, {"references": ("\ud800",)}, {"metadata": {"k": ["\ud800"]}}],
)
def test_half_a_character_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=r"half of a character, '\\ud800'"):
        Criterion.model_validate({"id": "a", "description": "d", **fields})


@pytest.mark.parametrize(
    "fields", [{"id": ""}, {"instructions": " "}, {"criteria": ()}, {"surplus": 1}]
)
def test_unusable_fields_of_a_rubric_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=next(iter(fields))):
        make_rubric(**fields)


def test_an_empty_reference_and_an_unknown_field_of_a_criterion_are_refused() -> None:
    with pytest.raises(ValidationError, match="must not be empty"):
        Criterion(id="a", description="d", references=("x", ""))
    with pytest.raises(ValidationError, match="surplus"):
        Criterion.model_validate({"id": "a", "description": "d", "surplus": 1})


@pytest.mark.parametrize("weight", [-1, -1e-9, math.nan, math.inf, -math.inf])
def test_a_weight_is_finite_and_not_negative(weight: float) -> None:
    with pytest.raises(ValidationError, match="weight"):
        Criterion(id="a", description="d", weight=weight)


def test_weights_whose_sum_is_infinite_are_refused() -> None:
    huge = [Criterion(id=name, description="d", weight=1e308) for name in "ab"]
    with pytest.raises(ValidationError, match="sum is infinite"):
        Rubric(criteria=tuple(huge))


def test_repeated_ids_are_refused_by_name() -> None:
    repeated = [Criterion(id=name, description="d") for name in "abcba"]
    with pytest.raises(ValidationError, match=r"more than one 'a', 'b' \["):
        Rubric(criteria=tuple(repeated))


def test_text_is_stripped() -> None:
    criterion = Criterion(id=" a ", description="\td\n", references=(" x ",))
    assert (criterion.id, criterion.description, criterion.references) == ("a", "d", ("x",))


def test_fields_cannot_be_set() -> None:
    rubric = make_rubric()
    for record, name in ((rubric, "id"), (rubric, "fingerprint"), (rubric.criteria[0], "weight")):
        with pytest.raises(ValidationError, match="frozen"):
            setattr(record, name, 1)


def test_metadata_is_a_copy() -> None:
    inner: list[int] = [1]
    given_metadata: dict[str, Any] = {"inner": inner}
    rubric = make_rubric(metadata=given_metadata)
    criterion = Criterion(id="a", description="d", metadata=given_metadata)
    inner.append(2)
    given_metadata["more"] = True
    assert rubric.metadata == criterion.metadata == {"inner": [1]}


@pytest.mark.parametrize("value", [object(), {1, 2}, math.nan, {"k": {1: 2}}])
def test_metadata_that_json_cannot_hold_is_refused(value: object) -> None:
    for make in (
        make_rubric,
        lambda metadata: Criterion(id="a", description="d", metadata=metadata),
    ):
        with pytest.raises(ValidationError, match=r"metadata\['place'\]"):
            make(metadata={"place": value})


def test_a_criterion_is_found_by_its_id() -> None:
    rubric = make_rubric(id="R")
    assert rubric.criterion("b") is rubric.criteria[1]
    with pytest.raises(KeyError, match=r"no criterion 'c' in rubric 'R', which has \['a', 'b'\]"):
        rubric.criterion("c")


CHANGES: list[dict[str, Any]] = [
    {"instructions": None},
    {"metadata": {"k": 1}},
    {"criteria": (Criterion(id="a", description="first", references=("x", "y")),)},
    *(
        {
            "criteria": (
                make_rubric().criteria[0].model_copy(update=change),
                make_rubric().criteria[1],
            )
        }
        for change in (
            {"id": "c"},
            {"description": "other"},
            {"weight": 2.0},
            {"kind": "bonus"},
            {"references": ("y", "x")},
            {"metadata": {"k": 1}},
        )
    ),
    {"criteria": tuple(reversed(make_rubric().criteria))},
]


@pytest.mark.parametrize("change", CHANGES)
def test_the_fingerprint_depends_on_every_field_that_graders_read(change: dict[str, Any]) -> None:
    rubric = make_rubric()
    assert make_rubric(**change).fingerprint != rubric.fingerprint
    assert rubric.model_copy(update=change).fingerprint == make_rubric(**change).fingerprint


def test_the_fingerprint_depends_on_the_fields_that_a_subclass_adds() -> None:
    class Levelled(Criterion):
        level: int

    one, two, plain = (
        Rubric(criteria=(criterion,)).fingerprint
        for criterion in (
            Levelled(id="a", description="d", level=1),
            Levelled(id="a", description="d", level=2),
            Criterion(id="a", description="d"),
        )
    )
    assert len({one, two, plain}) == 3


def test_the_fingerprint_does_not_depend_on_the_name_or_on_the_spelling_of_the_content() -> None:
    fingerprint = make_rubric(metadata={"a": 1, "b": (2,)}).fingerprint
    assert make_rubric(metadata={"b": [2], "a": 1}, id="R").fingerprint == fingerprint
    zero = [Criterion(id="a", description="d", weight=weight) for weight in (0, -0.0)]
    assert len({Rubric(criteria=(each,)).fingerprint for each in zero}) == 1


def test_the_fingerprint_is_computed_once() -> None:
    rubric = make_rubric()
    assert rubric.fingerprint is rubric.fingerprint


PROGRAM = """
from rolloutlib.graders import Criterion, Rubric
rubric = Rubric(
    criteria=(
        Criterion(id="correctness", description="c", weight=1),
        Criterion(id="\u00e9", description="\u2603", weight=0.2, metadata={"y": 1, "x": {"b": 1, "a": [2]}}),
    ),
    metadata={name: name for name in {"one", "two", "three", "four"}},
)
print(rubric.fingerprint)
"""


def test_the_fingerprint_is_the_same_in_every_process() -> None:
    assert len(outputs_under_hash_seeds(PROGRAM)) == 1


def test_the_fingerprint_equals_that_of_rolloutlib_0_2_0() -> None:
    rubric = Rubric(
        id="any",
        criteria=(
            Criterion(id="a", description="d"),
            Criterion(id="b", description="e", weight=0.2),
        ),
        instructions="i",
    )
    expected = "470bd777412328504800ad7d6d3ff451e32e4a5edae1f0b9ad9804cb342995b9"
    assert rubric.fingerprint == expected
