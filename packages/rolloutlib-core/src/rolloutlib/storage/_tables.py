"""Rows as batches of Arrow columns."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

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

_STEP_BYTES = 200
"""What Python's objects for a step need beside the contents of texts and arrays."""

_text_of = operator.itemgetter(*[name for name, kind in COLUMNS.items() if kind == "text"])
_texts_of = operator.itemgetter(*[name for name, kind in COLUMNS.items() if kind == "texts"])
_numbers_of = operator.itemgetter(*NUMBERS)


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
    """Return about how many bytes a row needs until it is written."""
    texts: Iterable[str | None] = chain(_text_of(row), *filter(None, _texts_of(row)))
    numbers: Iterable[Numbers] = filter(None, _numbers_of(row))
    return (
        _STEP_BYTES * (row["num_steps"] or 0)
        + sum(map(len, filter(None, texts)))
        + sum([values.nbytes for values, _, _ in numbers])
    )


def _to_batch(rows: Sequence[Row]) -> Any:
    pa, schema = load_pyarrow(), arrow_schema()
    columns = dict(zip(rows[0], zip(*[row.values() for row in rows], strict=True), strict=True))
    arrays = [pa.array(columns[name], schema.field(name).type) for name in COLUMNS]
    arrays += [_join(columns[name], kind) for name, kind in NUMBERS.items()]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _join(cells: Sequence[Numbers | None], kind: str) -> Any:
    """Return the column of such cells: a list of lists of numbers each."""
    pa, dtype = load_pyarrow(), np.dtype(kind)
    known = [cell for cell in cells if cell is not None]
    size = sum([numbers.size for numbers, _, _ in known])
    buffer = pa.allocate_buffer(size * dtype.itemsize)
    steps = missing = np.empty(0, np.int64)
    if known:
        if size:
            out = np.frombuffer(buffer, dtype)
            np.concatenate([numbers for numbers, _, _ in known], out=out, casting="unsafe")
        ends = np.concatenate([offsets[1:] for _, offsets, _ in known])
        steps = ends - np.concatenate([offsets[:-1] for _, offsets, _ in known])
        missing = ~np.concatenate([present for _, _, present in known])
    values = pa.Array.from_buffers(pa.from_numpy_dtype(dtype), size, [None, buffer])
    rows = np.array([0 if cell is None else cell[2].size for cell in cells], np.int64)
    return _lists(rows, [cell is None for cell in cells], _lists(steps, missing, values))


def _lists(sizes: NDArray[np.int64], missing: Any, values: Any) -> Any:
    """Return the array that has so many of the values in each list; some lists are null."""
    pa = load_pyarrow()
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    mask = pa.array(np.asarray(missing, np.bool_))
    return pa.ListArray.from_arrays(pa.array(offsets), values, mask=mask)


def _split(column: Any) -> list[Numbers | None]:
    """Return the cells of such a column."""
    inner = column.flatten()  # leaves out nulls, and what is beyond the ends of a slice
    sizes = inner.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    present = inner.is_valid().to_numpy(zero_copy_only=False)
    values = inner.flatten().to_numpy(zero_copy_only=False)
    cells: list[Numbers | None] = []
    step = 0
    for size in column.value_lengths().to_pylist():
        if size is None:
            cells.append(None)
            continue
        stops = offsets[step : step + size + 1]
        # Copies, since views would keep the numbers of all rows.
        numbers = values[stops[0] : stops[-1]].copy()
        cells.append((numbers, stops - stops[0], present[step : step + size].copy()))
        step += size
    return cells
