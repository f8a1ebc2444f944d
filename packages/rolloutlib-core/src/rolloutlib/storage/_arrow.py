"""The columns of trajectories in Arrow and Parquet: one row an attempt at an episode."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from rolloutlib import __version__

Row: TypeAlias = dict[str, Any]
"""The values of a row by column, None where there is none."""

Numbers: TypeAlias = tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_]]
"""The value of a row in a column of numbers: the parts of an `ArrayColumn`."""

FORMAT = "rolloutlib.trajectories"
VERSION = 1

Kind: TypeAlias = Literal["text", "int", "int32", "float", "flag", "texts", "floats", "flags"]

COLUMNS: Mapping[str, Kind] = {
    "group": "int",
    "row": "int32",
    "item_id": "text",
    "item": "text",
    "item_format": "text",
    "group_seed": "int",
    "group_metadata": "text",
    "outcome": "text",
    "member": "int",
    "attempt": "int",
    "seed": "int",
    "score": "float",
    "score_details": "text",
    "reward": "float",
    "num_steps": "int32",
    "terminated": "flag",
    "truncated": "flag",
    "observations": "texts",
    "observation_format": "text",
    "actions": "texts",
    "action_format": "text",
    "rewards": "floats",
    "step_terminated": "flags",
    "step_truncated": "flags",
    "stop_reasons": "texts",
    "versions": "texts",
    "initial_info": "text",
    "infos": "texts",
    "policy_infos": "texts",
    "metadata": "text",
    "error_type": "text",
    "error_message": "text",
    "phase": "text",
    "traceback": "text",
    "exact": "text",
}
"""All columns but those of numbers."""

NUMBERS: Mapping[str, str] = {"prompt_tokens": "int32", "tokens": "int32", "logprobs": "float32"}
"""The columns of numbers, which hold a list of them for each step, and their types."""

_REPEATED = (
    "item_id",
    "item",
    "item_format",
    "group_metadata",
    "outcome",
    "observation_format",
    "action_format",
    "stop_reasons.list.element",
    "versions.list.element",
    "error_type",
    "phase",
)


def load_pyarrow(module: str = "pyarrow") -> Any:
    """Import pyarrow or a module of it.

    Raises:
        ImportError: It is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        msg = (
            "Parquet and Arrow need pyarrow, which cannot be imported; "
            "install it with: pip install 'rolloutlib-core[parquet]'"
        )
        raise ImportError(msg, name="pyarrow") from error


@functools.cache
def arrow_schema() -> Any:
    """Return the columns and their types as a `pyarrow.Schema`."""
    pa = load_pyarrow()
    scalars = {
        "text": pa.string(),
        "int": pa.int64(),
        "int32": pa.int32(),
        "float": pa.float64(),
        "flag": pa.bool_(),
    }
    kinds = {**scalars, **{f"{kind}s": pa.list_(scalars[kind]) for kind in scalars}}
    numbers = {"int32": pa.int32(), "float32": pa.float32()}
    fields = [pa.field(name, kinds[kind]) for name, kind in COLUMNS.items()]
    fields += [pa.field(name, pa.list_(pa.list_(numbers[kind]))) for name, kind in NUMBERS.items()]
    version = {"format": FORMAT, "version": str(VERSION), "library": __version__}
    return pa.schema(fields, {f"rolloutlib.{key}": text for key, text in version.items()})


def parquet_options() -> dict[str, Any]:
    """Return how the columns are written to a file.

    Dictionaries pay where few values are repeated, statistics where one filters by a column; for
    numbers and long texts both cost time and space.
    """
    return {
        "compression": "zstd",
        "use_dictionary": list(_REPEATED),
        "write_statistics": [name for name, kind in COLUMNS.items() if not kind.endswith("s")],
    }


def check_schema(schema: Any, source: str) -> None:
    """Refuse a table of something else, or of another version.

    A table that was made anew, by another library say, need not tell its version.

    Raises:
        ValueError: It is no table of trajectories.
    """
    metadata = cast("Mapping[bytes, bytes]", schema.metadata or {})
    found = metadata.get(b"rolloutlib.version", str(VERSION).encode()).decode()
    if found != str(VERSION):
        library = metadata.get(b"rolloutlib.library", b"").decode()
        msg = (
            f"{source} holds trajectories in version {found!r} of the columns, written by "
            f"rolloutlib {library}; this one, {__version__}, reads version {VERSION}"
        )
        raise ValueError(msg)
    missing = [name for name in (*COLUMNS, *NUMBERS) if name not in schema.names]
    if missing:
        msg = f"{source} holds no trajectories that can be read: it lacks the columns {missing}"
        raise ValueError(msg)


def to_schema(table: Any, source: str) -> Any:
    """Return a table in the columns and types of `arrow_schema`.

    Raises:
        ValueError: A column holds something that has no such type.
    """
    pa, schema = load_pyarrow(), arrow_schema()
    return pa.table([_cast(table.column(field.name), field, source) for field in schema], schema)


def _cast(column: Any, field: Any, source: str) -> Any:
    pa = load_pyarrow()
    try:
        if pa.types.is_floating(column.type) and pa.types.is_integer(field.type):
            return _to_integers(column, field)
        return column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        msg = (
            f"the column {field.name!r} of {source} is of type {column.type}, and cannot be read "
            f"as {field.type}: {error}"
        )
        raise ValueError(msg) from error


def _to_integers(column: Any, field: Any) -> Any:
    """Return integers that pandas has made floats, since others in the column are missing."""
    pa, compute = load_pyarrow(), load_pyarrow("pyarrow.compute")
    most = compute.max(compute.abs(column)).as_py()
    if most is not None and most >= 2**53:
        msg = "integers of more than 53 bits have lost digits; pandas' dtype_backend='pyarrow' keeps them"
        raise pa.ArrowInvalid(msg)
    return column.cast(field.type)
