"""Groups as Arrow tables and Parquet files, which other libraries read as well."""

from __future__ import annotations

import contextlib
import errno
import os
import uuid
from collections.abc import Generator, Iterable, Iterator
from itertools import chain
from pathlib import Path as FilePath
from typing import IO, Any

from rolloutlib.rollouts import TrajectoryGroup
from rolloutlib.rollouts._codec import Decode, Decoder, Encode, Encoder
from rolloutlib.storage._arrow import (
    arrow_schema,
    check_schema,
    load_pyarrow,
    parquet_options,
    to_schema,
)
from rolloutlib.storage._lines import Path
from rolloutlib.storage._row_reading import AnyGroup, RowReader
from rolloutlib.storage._row_writing import RowWriter
from rolloutlib.storage._tables import from_batch, to_batches

_ROWS_AT_ONCE = 256
_BYTES_AT_ONCE = 1 << 22
"""How many rows, and bytes, are decoded together; more are no faster, and need more memory."""

_PIECE = 1 << 20
"""How many bytes of a column are read from a file at a time."""


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
    pa, parquet = load_pyarrow(), load_pyarrow("pyarrow.parquet")
    with (
        _replacing(path) as file,
        parquet.ParquetWriter(file, arrow_schema(), **parquet_options()) as writer,
    ):
        for batch in _batches(groups, encode):
            # `write_batch` would keep a copy until the row group is whole.
            writer.write_table(pa.Table.from_batches([batch]), batch.num_rows)


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
    with _opened(path) as file:  # at once, not when the first group is asked for
        check_schema(file.schema_arrow, _name(path))
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
    A group begins where "group", its item, seed or metadata change, or "row" is not larger than in the
    row before.

    Args:
        table: A `pyarrow.Table`, or whatever pyarrow makes one of: a frame of polars or pandas, say.
        decode: Makes values of types of your own, as in `TrajectoryGroup.from_dict`.

    Raises:
        ImportError: pyarrow is not installed.
        TypeError: pyarrow makes no table of it.
        ValueError: The table lacks columns, or holds something else in them.
    """
    pa = load_pyarrow()
    try:
        table = table if isinstance(table, pa.Table) else pa.table(table)
    except TypeError as error:
        msg = f"pyarrow makes no table of an object of type {type(table).__qualname__!r}: {error}"
        raise TypeError(msg) from error
    check_schema(table.schema, "the table")
    table = to_schema(table, "the table")
    batches = table.to_batches(max_chunksize=_ROWS_AT_ONCE)
    rows = chain.from_iterable(map(from_batch, batches))
    return RowReader(Decoder(decode)).groups(rows)


def _batches(groups: Iterable[TrajectoryGroup[Any, Any, Any]], encode: Encode | None) -> Any:
    writer = RowWriter(Encoder(encode))
    return to_batches(
        row for number, group in enumerate(groups) for row in writer.rows(group, number)
    )


def _rows(path: Path) -> Iterator[Any]:
    pa, names = load_pyarrow(), arrow_schema().names
    with _opened(path) as file:
        for number in range(file.num_row_groups):  # a batch would join small ones
            size = _rows_at_once(file.metadata.row_group(number))
            for batch in file.iter_batches(size, [number], names):
                # Another library may have written the file, with its own types of text and lists.
                table = to_schema(pa.Table.from_batches([batch]), _name(path))
                for part in table.to_batches():
                    yield from from_batch(part)


def _rows_at_once(group: Any) -> int:
    """Return how many rows of a row group to decode together: fewer if they are large."""
    row_bytes = group.total_byte_size // max(group.num_rows, 1)
    return min(_ROWS_AT_ONCE, 1 + _BYTES_AT_ONCE // max(row_bytes, 1))


@contextlib.contextmanager
def _opened(path: Path) -> Generator[Any]:
    """Open a Parquet file; errors in it tell its name.

    Row groups of other libraries may be as large as the file: they are read piece by piece.
    """
    pa, parquet = load_pyarrow(), load_pyarrow("pyarrow.parquet")
    # Not by its name, which pyarrow may take for that of something on the network.
    with FilePath(path).open("rb") as file:
        try:
            yield parquet.ParquetFile(file, pre_buffer=False, buffer_size=_PIECE)
        except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
            if getattr(error, "errno", None) is not None:  # of the disk
                raise
            msg = f"{_name(path)} is no Parquet file, or damaged: {error}"
            raise ValueError(msg) from error


def _name(path: Path) -> str:
    return repr(os.fspath(path))


@contextlib.contextmanager
def _replacing(path: Path) -> Generator[IO[bytes]]:
    """Yield a new file in the same folder, which takes the place of another at the end."""
    target = FilePath(os.path.realpath(path))
    if target.is_dir():  # at once, not when the file is finished
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")
    try:
        with temporary.open("xb") as file:
            yield file
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
