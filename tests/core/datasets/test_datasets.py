"""Datasets, over tuples and over what is read lazily."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from typing import Any, assert_type

import numpy as np
import pytest

from core.rollouts.scripted import ScriptedEnv
from rolloutlib import Dataset, RLDataset


class Lazy(Sequence[int]):
    """A million items, of which it counts the ones that were read."""

    def __init__(self) -> None:
        self.read: list[int] = []

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: Any) -> Any:
        assert type(index) is int
        self.read.append(index)
        return index * 10


def make_env(item: int) -> ScriptedEnv:
    return ScriptedEnv(length=item)


def name(item: int) -> str:
    return f"item-{item}"


def test_it_is_a_sequence_of_its_items() -> None:
    dataset = Dataset([1, 2, 3], {"split": "train"})
    assert len(dataset) == 3
    assert dataset[0] == dataset[-3] == dataset[np.int64(0)] == 1
    assert dataset[1:] == (2, 3)
    assert list(dataset) == [1, 2, 3]
    assert 2 in dataset
    assert dataset.items == (1, 2, 3)
    assert dataset.metadata == {"split": "train"}
    assert repr(dataset) == "Dataset(items=(1, 2, 3), metadata={'split': 'train'})"
    assert not Dataset[int]()
    assert Dataset(iter([1, 2])) == Dataset((1, 2)) == Dataset(Dataset([1, 2]))  # pyright: ignore[reportArgumentType]
    assert Dataset([1]) != Dataset([2])
    assert Dataset([1]) != Dataset([1], {"split": "test"})


@pytest.mark.parametrize("index", [3, -4])
def test_an_index_out_of_range_is_named(index: int) -> None:
    dataset = Dataset([1, 2, 3])
    message = f"index {index} is out of range for a dataset of 3 items"
    with pytest.raises(IndexError, match=message):
        dataset[index]
    with pytest.raises(IndexError, match=message):
        dataset.item_id(index)
    with pytest.raises(IndexError, match=message):
        RLDataset([1, 2, 3], make_env=make_env, get_item_id=name).item_id(index)


def test_what_it_was_made_of_may_change() -> None:
    items, metadata = [1, 2], {"split": "train"}
    dataset = Dataset(items, metadata)
    items.append(3)
    metadata["split"] = "test"
    assert dataset == Dataset([1, 2], {"split": "train"})
    with pytest.raises(AttributeError):
        dataset.items = ()  # pyright: ignore[reportAttributeAccessIssue]


def test_datasets_are_derived() -> None:
    dataset = Dataset([1, 2, 3], {"split": "train"})
    assert dataset.map(str) == Dataset(["1", "2", "3"], {"split": "train"})
    assert dataset.filter(lambda item: item > 1) == Dataset([2, 3], {"split": "train"})
    assert dataset.take(2) == Dataset([1, 2], {"split": "train"})
    assert dataset.take(9) == dataset.take(None) == dataset
    assert dataset.take(0) == Dataset([], {"split": "train"})
    assert dataset.with_metadata(seed=1) == Dataset([1, 2, 3], {"split": "train", "seed": 1})
    with pytest.raises(ValueError, match="limit must not be negative, got -1"):
        dataset.take(-1)


def test_a_dataset_for_rl_stays_one() -> None:
    dataset = RLDataset([1, 2, 3], {"a": 1}, make_env=make_env, get_item_id=name)
    for derived in (dataset.take(2), dataset.filter(lambda i: i < 3), dataset.with_metadata(b=2)):
        assert isinstance(derived, RLDataset)
        assert derived.make_env is make_env
        assert derived.item_id(1) == derived.item_id(1 - len(derived)) == "item-2"
        assert derived.make_env(derived[1]).length == 2
    assert RLDataset([5], make_env=make_env).item_id(-1) == "0"
    assert dataset == RLDataset([1, 2, 3], {"a": 1}, make_env=make_env, get_item_id=name)
    assert dataset != RLDataset([1, 2, 3], {"a": 1}, make_env=make_env)
    assert dataset != Dataset([1, 2, 3], {"a": 1})
    assert pickle.loads(pickle.dumps(dataset)) == dataset  # noqa: S301


def test_a_lazy_sequence_is_read_item_by_item() -> None:
    lazy = Lazy()
    dataset = RLDataset(lazy, make_env=make_env, get_item_id=name)
    assert dataset.items is lazy
    assert dataset[-1] == 9_999_990
    assert dataset[2:4] == (20, 30)
    assert dataset.take(5)[3] == 30
    assert dataset.take(500_000).take(3)[:2] == (0, 10)
    assert dataset.item_id(7) == "item-70"
    assert lazy.read == [999_999, 2, 3, 3, 0, 1, 7]
    few = dataset.take(100).filter(lambda item: item % 200 == 0)
    assert list(few) == [0, 200, 400, 600, 800]
    assert few[-1] == 800


def test_an_array_is_held_as_it_is() -> None:
    array = np.arange(6).reshape(3, 2)
    dataset = Dataset[Any](array)
    assert dataset.items is array
    assert len(dataset) == 3
    assert list(dataset[1]) == [2, 3]
    assert list(dataset.take(1)[0]) == [0, 1]
    assert dataset == Dataset[Any](array.copy())
    assert dataset != Dataset[Any](array + 1)
    assert pickle.loads(pickle.dumps(dataset)) == dataset  # noqa: S301


def test_items_are_not_asked_for_beyond_the_length() -> None:
    class Endless(Lazy):
        def __len__(self) -> int:
            return 3

    assert list(Dataset(Endless())) == [0, 10, 20]
    assert list(Dataset(Endless()).filter(lambda item: item > 0)) == [10, 20]
    assert Dataset(Endless()) == Dataset(Endless())


def test_an_integer_names_an_item_and_other_values_do_not() -> None:
    def whole(item: int) -> Any:
        return np.int64(item)

    def none(item: int) -> Any:
        return None

    assert RLDataset([7], make_env=make_env, get_item_id=whole).item_id(0) == "7"
    with pytest.raises(TypeError, match="get_item_id must return text, got None for item 0"):
        RLDataset([7], make_env=make_env, get_item_id=none).item_id(0)


def test_what_makes_environments_and_names_can_be_called() -> None:
    wrong: Any = "env"
    with pytest.raises(TypeError, match="make_env must be a function of an item, got 'env'"):
        RLDataset([7], make_env=wrong)
    with pytest.raises(TypeError, match="get_item_id must be a function of an item, got 'env'"):
        RLDataset([7], make_env=make_env, get_item_id=wrong)


def test_a_hugging_face_dataset_gives_rows() -> None:
    datasets = pytest.importorskip("datasets")
    rows = [{"question": f"q{i}", "answer": i} for i in range(4)]
    held = datasets.Dataset.from_list(rows)
    dataset = RLDataset[dict[str, Any], ScriptedEnv](
        held,
        make_env=lambda row: ScriptedEnv(row["answer"]),
        get_item_id=lambda row: row["question"],
    )
    assert dataset.items is held
    assert list(dataset) == rows
    assert dataset[-1] == rows[3]
    assert dataset[1:3] == tuple(rows[1:3])
    assert list(dataset.take(2)) == rows[:2]
    assert list(dataset.filter(lambda row: row["answer"] > 1)) == rows[2:]
    assert dataset.item_id(2) == "q2"


@pytest.mark.parametrize("wrong", [{"train": [1]}, "abc", 5, None])
def test_what_is_no_sequence_of_items_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match="items must be a sequence of items, got"):
        Dataset(wrong)


def test_types_are_carried_through() -> None:
    dataset = Dataset([1, 2])
    assert_type(dataset, Dataset[int])
    assert_type(dataset[0], int)
    assert_type(dataset[:1], tuple[int, ...])
    assert_type(iter(dataset), Iterator[int])
    assert_type(dataset.map(str), Dataset[str])
    rl = RLDataset([1, 2], make_env=make_env)
    assert_type(rl, RLDataset[int, ScriptedEnv])
    assert_type(rl.take(1), RLDataset[int, ScriptedEnv])
    assert_type(rl.make_env(rl[0]), ScriptedEnv)


class FromFolder(Dataset[str]):
    """A dataset made of other arguments than items."""

    def __init__(self, folder: str) -> None:
        super().__init__([f"{folder}/{name}" for name in "abc"], {"folder": folder})


def test_a_subclass_with_arguments_of_its_own_can_be_narrowed() -> None:
    dataset = FromFolder("f")
    assert list(dataset.take(2)) == ["f/a", "f/b"]
    assert list(dataset.filter(lambda item: item > "f/a")) == ["f/b", "f/c"]
    assert dataset.with_metadata(split="test").metadata == {"folder": "f", "split": "test"}
    assert isinstance(dataset.take(2), FromFolder)
    assert dataset.metadata == {"folder": "f"}
    assert len(dataset) == 3
