"""Groups as Arrow tables and Parquet files, which other libraries read as well."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Generator, Iterable, Iterator
from itertools import chain
from pathlib import Path as FilePath
from typing import Any

from rolloutlib.rollouts import TrajectoryGroup
from rolloutlib.rollouts._codec import Decode, Decoder, Encode, Encoder
from rolloutlib.storage._arrow import (
    COLUMNS,
    NUMBERS,
    arrow_schema,
    check_schema,
    load_pyarrow,
    parquet_options,
)
from rolloutlib.storage._lines import Path
from rolloutlib.storage._row_reading import AnyGroup, RowReader
from rolloutlib.storage._row_writing import RowWriter
from rolloutlib.storage._tables import from_batch, to_batches

_ROWS_AT_ONCE = 256
"""How many rows are decoded together; more are no faster, and need more memory."""


def write_parquet(
    groups: Iterable[TrajectoryGroup[Any, Any, Any]], path: Path, *, encode: Encode | None = None
) -> None:
    """Write groups to a Parquet file, one row an attempt at an episode.

    The groups are taken one after another, so there may be more of them than memory holds. The file
    appears when it is whole: whatever happens before, one that is there already stays as it is.

    Needs the extra `parquet`: `pip install 'rolloutlib-core[parquet]'`.

    Args:
        groups: The groups.
        path: The file; it is replaced if it is there already, and its folder made if it is not.
        encode: Turns values of types of your own into such that can be stored, as in
            `TrajectoryGroup.to_dict`.

    Raises:
        ImportError: pyarrow is not installed.
        UnstorableError: Something in a group cannot be stored; the message tells its place.
        OSError: The file cannot be written.
    """
    parquet = load_pyarrow("pyarrow.parquet")
    with (
        _replacing(path) as temporary,
        parquet.ParquetWriter(temporary, arrow_schema(), **parquet_options()) as writer,
    ):
        for batch in _batches(groups, encode):
            writer.write_batch(batch, row_group_size=batch.num_rows)


def read_parquet(path: Path, *, decode: Decode | None = None) -> Iterator[AnyGroup]:
    """Read the groups of a Parquet file, equal to those that were written.

    Each is read when it is asked for, so that the file may be larger than memory.

    Args:
        path: The file.
        decode: Makes values of types of your own, as in `TrajectoryGroup.from_dict`.

    Raises:
        ImportError: pyarrow is not installed.
        FileNotFoundError: There is no such file.
        ValueError: It is no file of groups, or damaged.
    """
    parquet = load_pyarrow("pyarrow.parquet")
    try:
        schema = parquet.read_schema(
            os.fspath(path)
        )  # at once, not when the first group is asked for
    except ValueError as error:
        msg = f"{os.fspath(path)!r} is no Parquet file: {error}"
        raise ValueError(msg) from error
    check_schema(schema, repr(os.fspath(path)))
    return RowReader(Decoder(decode)).groups(_rows(path))


def to_arrow(
    groups: Iterable[TrajectoryGroup[Any, Any, Any]], *, encode: Encode | None = None
) -> Any:
    """Return groups as a `pyarrow.Table`, one row an attempt at an episode.

    Needs the extra `parquet`.

    Args:
        groups: The groups.
        encode: Turns values of types of your own into such that can be stored, as in
            `TrajectoryGroup.to_dict`.

    Raises:
        ImportError: pyarrow is not installed.
        UnstorableError: Something in a group cannot be stored; the message tells its place.
    """
    pa = load_pyarrow()
    return pa.Table.from_batches(_batches(groups, encode), arrow_schema())


def from_arrow(table: Any, *, decode: Decode | None = None) -> Iterator[AnyGroup]:
    """Read the groups of a table that has the columns of `to_arrow`.

    Rows may have been left out or put together from several tables since, by another library too.
    A group begins where "group" changes, or "row" is not larger than in the row before.

    Args:
        table: A `pyarrow.Table`, or whatever pyarrow makes one of: a frame of polars or pandas, say.
        decode: Makes values of types of your own, as in `TrajectoryGroup.from_dict`.

    Raises:
        ImportError: pyarrow is not installed.
        ValueError: The table lacks columns, or holds something else in them.
    """
    pa = load_pyarrow()
    table = table if isinstance(table, pa.Table) else pa.table(table)
    check_schema(table.schema, "the table")
    table = table.select([*COLUMNS, *NUMBERS]).cast(arrow_schema())
    batches = table.to_batches(max_chunksize=_ROWS_AT_ONCE)
    rows = chain.from_iterable(map(from_batch, batches))
    return RowReader(Decoder(decode)).groups(rows)


def _batches(groups: Iterable[TrajectoryGroup[Any, Any, Any]], encode: Encode | None) -> Any:
    writer = RowWriter(Encoder(encode))
    return to_batches(
        row for number, group in enumerate(groups) for row in writer.rows(group, number)
    )


def _rows(path: Path) -> Iterator[Any]:
    pa, parquet = load_pyarrow(), load_pyarrow("pyarrow.parquet")
    schema = arrow_schema()
    with parquet.ParquetFile(os.fspath(path)) as file:
        for number in range(file.num_row_groups):  # a batch would join small ones
            for batch in file.iter_batches(_ROWS_AT_ONCE, [number], schema.names):
                # Another library may have written the file, with its own types of text and lists.
                table = pa.Table.from_batches([batch]).select(schema.names).cast(schema)
                for part in table.to_batches():
                    yield from from_batch(part)


@contextlib.contextmanager
def _replacing(path: Path) -> Generator[str]:
    """Yield the path of a new file in the same folder, which takes the place of another at the end."""
    target = FilePath(os.path.realpath(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")
    try:
        yield str(temporary)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
