"""Reading data sets: JSON Lines by itself, everything else through the `datasets` library."""

from __future__ import annotations

import importlib
import itertools
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

__all__ = ["Rows", "load_rows"]

# The commits that stand for data sets by default.
_PINNED = {
    "HuggingFaceH4/aime_2024": "2fe88a2f1091d5048c0f36abc874fb997b3dd99a",
    "MathArena/aime_2025": "c94da77eb22bbd6439e62a323bec18493a421302",
    "openai/gsm8k": "cc7b047b6e5bb11b4f1af84efc572db110a51b3c",
}

_FILES = {".csv": "csv", ".json": "json", ".jsonl": "json", ".parquet": "parquet"}
_MOST_FILES = 10_000
_COMMIT = re.compile("[0-9a-f]{40}")
_EXPRESSION = re.compile(r"[\[+]")


class Rows(NamedTuple):
    """The rows of a data set.

    Attributes:
        rows: The rows.
        revision: The commit on the Hugging Face Hub that they are of; None for local files.
    """

    rows: Iterable[Mapping[str, Any]]
    revision: str | None = None


def load_rows(
    dataset: str | os.PathLike[str],
    *,
    split: str,
    config: str | None = None,
    revision: str | None = None,
) -> Rows:
    """Load the rows of a data set.

    Args:
        dataset: A local JSON Lines, JSON, CSV or Parquet file, a local folder (also one that
            `save_to_disk` wrote), or a name on the Hugging Face Hub.
        split: Which part to load, or an expression of `datasets` like "test[:100]" or "train+test".
            A file is one part, and so may a data set be: that is loaded then, whatever it is called.
        config: Which configuration to load, of a data set that has it.
        revision: A commit, branch or tag of a data set on the Hugging Face Hub. By default a commit that
            is fixed here, for the data sets of the built-in benchmarks, else the newest.

    Raises:
        ImportError: The `datasets` library is needed and not installed.
        OSError: The data cannot be read; the message says what to pass instead.
        TypeError: A line of the file is JSON, but not an object.
        ValueError: A line of the file is not JSON, the file is of another kind, the folder holds more
            than a data set, there is no such split, or a revision is asked for of a local file.
    """
    dataset = os.fspath(dataset)
    path = Path(dataset)
    suffix = path.suffix.lower()
    is_file = path.is_file() or (suffix in _FILES and not path.is_dir())
    local = path.exists() or is_file
    if local and revision is not None:
        msg = f"{dataset!r} is local and has no revisions, got revision={revision!r}"
        raise ValueError(msg)
    if is_file:
        _check_file(path, suffix, split)
    elif local:
        _check_folder(path)
    if is_file and suffix == ".jsonl":
        return Rows(list(_json_lines(path)))
    datasets = _library(dataset)
    try:
        if is_file:
            name = _FILES[suffix]
            return Rows(datasets.load_dataset(name, data_files=str(path), split="train"))
        if (path / "state.json").is_file():
            return Rows(datasets.load_from_disk(dataset))
        if not local:
            revision = revision or _PINNED.get(dataset)
        return _load(datasets, dataset, split=split, config=config, revision=revision)
    except Exception as error:
        if isinstance(error, ValueError) and "has no split" in str(error):
            raise
        msg = (
            f"cannot load data set {dataset!r} ({type(error).__name__}: {error}); pass `examples`, or as "
            "`dataset` the path of a .jsonl file, a local folder, or a name that the Hugging Face Hub has "
            "and this machine can reach"
        )
        raise OSError(msg) from error


def _check_file(path: Path, suffix: str, split: str) -> None:
    if suffix not in _FILES:
        msg = f"{str(path)!r} is no file of a known kind: its name must end in one of {sorted(_FILES)}"
        raise ValueError(msg)
    if not path.is_file():
        msg = f"there is no file {str(path)!r} in {str(Path.cwd())!r}; pass `examples`, or another path"
        raise FileNotFoundError(msg)
    if _EXPRESSION.search(split):
        msg = (
            f"{str(path)!r} is one part, of which split={split!r} can choose none: pass the rows that "
            "you want as `examples`, or `limit` to the run"
        )
        raise ValueError(msg)


def _check_folder(path: Path) -> None:
    """Refuse a folder in which the library would look for a very long time."""
    files = itertools.chain.from_iterable(names for _, _, names in os.walk(path))
    if next(itertools.islice(files, _MOST_FILES, None), None) is not None:
        msg = (
            f"the folder {str(path)!r} holds more than {_MOST_FILES:,} files: pass that of the data set "
            "alone, or one of its files"
        )
        raise ValueError(msg)


def _load(
    datasets: Any, dataset: str, *, split: str, config: str | None, revision: str | None
) -> Rows:
    """Load a folder or what the Hub has.

    Without a network the library takes the newest commit that it has in its cache, whatever is asked for.
    """
    configs = datasets.get_dataset_config_names(dataset, revision=revision)
    chosen = config if config in configs else None
    builder = datasets.load_dataset_builder(dataset, chosen, revision=revision)
    commit = (
        builder.hash if not Path(dataset).exists() and _COMMIT.fullmatch(builder.hash) else None
    )
    if commit and revision and _COMMIT.fullmatch(revision) and commit != revision:
        msg = f"commit {revision} cannot be reached, and the cache has commit {commit}"
        raise OSError(msg)
    builder.download_and_prepare()
    splits = sorted(builder.info.splits)
    if split not in splits and not _EXPRESSION.search(split):
        if len(splits) > 1:
            msg = f"data set {dataset!r} has no split {split!r}; pass one of {splits}"
            raise ValueError(msg)
        split = splits[0]
    return Rows(builder.as_dataset(split), commit)


def _library(dataset: str) -> Any:
    try:
        return importlib.import_module("datasets")
    except ImportError as error:
        msg = (
            f"loading {dataset!r} needs the `datasets` library: install 'rolloutlib-evals[benchmarks]', or "
            "pass `examples`, or as `dataset` the path of a .jsonl file"
        )
        raise ImportError(msg) from error


def _json_lines(path: Path) -> Iterator[Mapping[str, Any]]:
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                row: object = json.loads(line)
            except ValueError as error:  # no JSON, or no UTF-8
                msg = f"line {number} of {str(path)!r} is not JSON: {error}"
                raise ValueError(msg) from error
            if not isinstance(row, dict):
                msg = f"line {number} of {str(path)!r} must be a JSON object, got {row!r}"
                raise TypeError(msg)
            yield cast("dict[str, Any]", row)
