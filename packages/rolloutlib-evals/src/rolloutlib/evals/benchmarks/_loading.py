"""Reading data sets: JSON Lines by itself, everything else through the `datasets` library."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

__all__ = ["load_rows"]

_BUILDERS = {".csv": "csv", ".json": "json", ".parquet": "parquet"}


def load_rows(
    dataset: str, *, split: str, config: str | None = None
) -> Iterable[Mapping[str, Any]]:
    """Load the rows of a data set.

    Args:
        dataset: A local JSON Lines, JSON, CSV or Parquet file, a local folder (also one that
            `save_to_disk` wrote), or a name on the Hugging Face Hub.
        split: Which part to load, or an expression of `datasets` like "test[:100]" or "train+test".
            A file is one part, and so may a data set be: that is loaded then.
        config: Which configuration to load, of a data set that has it.

    Raises:
        ImportError: The `datasets` library is needed and not installed.
        OSError: The data cannot be read; the message says what to pass instead.
        TypeError: A line of the file is JSON, but not an object.
        ValueError: A line of the file is not JSON, or there is no such split.
    """
    path = Path(dataset)
    suffix = path.suffix.lower()
    if suffix == ".jsonl":
        if not path.is_file():
            msg = f"there is no file {dataset!r} in {str(Path.cwd())!r}; pass `examples`, or another path"
            raise FileNotFoundError(msg)
        return list(_json_lines(path))
    datasets = _library(dataset)
    try:
        if suffix in _BUILDERS and path.is_file():
            return datasets.load_dataset(_BUILDERS[suffix], data_files=str(path), split="train")
        if (path / "state.json").is_file():
            return datasets.load_from_disk(dataset)
        configs = datasets.get_dataset_config_names(dataset)
        chosen = config if config in configs else None
        splits = datasets.get_dataset_split_names(dataset, chosen)
        if split not in splits and not re.search(r"[\[+]", split):
            if len(splits) > 1:
                msg = f"data set {dataset!r} has no split {split!r}; pass one of {sorted(splits)}"
                raise ValueError(msg)
            split = splits[0]
        return datasets.load_dataset(dataset, chosen, split=split)
    except Exception as error:
        if isinstance(error, ValueError) and "has no split" in str(error):
            raise
        msg = (
            f"cannot load data set {dataset!r} ({type(error).__name__}: {error}); pass `examples`, or as "
            "`dataset` the path of a .jsonl file, a local folder, or a name that the Hugging Face Hub has "
            "and this machine can reach"
        )
        raise OSError(msg) from error


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
