"""Rows as batches of Arrow columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from rolloutlib.storage._arrow import (
    COLUMNS,
    NUMBERS,
    Numbers,
    Row,
    arrow_schema,
    load_pyarrow,
)

_MOST_BYTES = 1 << 24
_MOST_ROWS = 1 << 13
"""A batch ends with the row that reaches one of these; its memory is bounded by that."""


def to_batches(rows: Iterable[Row]) -> Iterator[Any]:
    """Yield rows as `pyarrow.RecordBatch` objects of limited size; none if there are no rows."""
    batch: list[Row] = []
    size = 0
    for row in rows:
        batch.append(row)
        size += _size(row)
        if size >= _MOST_BYTES or len(batch) == _MOST_ROWS:
            yield _to_batch(batch)
            batch, size = [], 0
    if batch:
        yield _to_batch(batch)


def from_batch(batch: Any) -> Iterator[Row]:
    """Yield the rows of a `pyarrow.RecordBatch`."""
    columns = [batch.column(name).to_pylist() for name in COLUMNS]
    columns += [_split(batch.column(name)) for name in NUMBERS]
    names = (*COLUMNS, *NUMBERS)
    for values in zip(*columns, strict=True):
        yield dict(zip(names, values, strict=True))


def _size(row: Row) -> int:
    """Return about how many bytes a row needs, for what it may have much of."""
    size = len(row["item"])
    for name in NUMBERS:
        if numbers := row[name]:
            size += numbers[0].nbytes
    for name in ("observations", "actions", "infos", "policy_infos"):
        if texts := row[name]:
            size += sum([len(text) for text in texts if text])
    return size


def _to_batch(rows: Sequence[Row]) -> Any:
    pa, schema = load_pyarrow(), arrow_schema()
    columns = dict(zip(rows[0], zip(*[row.values() for row in rows], strict=True), strict=True))
    arrays = [pa.array(columns[name], schema.field(name).type) for name in COLUMNS]
    arrays += [_join(columns[name], kind) for name, kind in NUMBERS.items()]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _join(cells: Sequence[Numbers | None], kind: str) -> Any:
    """Return the column of such cells: a list of lists of numbers each."""
    pa = load_pyarrow()
    present = [cell for cell in cells if cell is not None]
    dtype, size = np.dtype(kind), sum([numbers.size for numbers, _ in present])
    buffer = pa.allocate_buffer(size * dtype.itemsize)
    if size:
        out = np.frombuffer(buffer, dtype)
        np.concatenate([numbers for numbers, _ in present], out=out, casting="unsafe")
    values = pa.Array.from_buffers(pa.from_numpy_dtype(dtype), size, [None, buffer])
    inner = _lists([length for _, lengths in present for length in lengths], values)
    return _lists([None if cell is None else len(cell[1]) for cell in cells], inner)


def _lists(sizes: Sequence[int | None], values: Any) -> Any:
    """Return the array that has so many of the values in each list, or null."""
    pa = load_pyarrow()
    offsets = np.cumsum([0, *[size or 0 for size in sizes]], dtype=np.int32)
    missing = np.array([size is None for size in sizes], np.bool_)
    return pa.ListArray.from_arrays(pa.array(offsets), values, mask=pa.array(missing))


def _split(column: Any) -> list[Numbers | None]:
    """Return the cells of such a column."""
    inner = column.flatten()  # leaves out nulls, and what is beyond the ends of a slice
    sizes = inner.value_lengths().to_pylist()
    values = inner.flatten().to_numpy(zero_copy_only=False)
    cells: list[Numbers | None] = []
    step = start = 0
    for size in column.value_lengths().to_pylist():
        if size is None:
            cells.append(None)
            continue
        lengths = sizes[step : step + size]
        stop = start + sum([length or 0 for length in lengths])
        # A copy, since a view would keep the numbers of all rows.
        cells.append((values[start:stop].copy(), lengths))
        step, start = step + size, stop
    return cells
