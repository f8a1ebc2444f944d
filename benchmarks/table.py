"""The printed table, and the files that results are kept in."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from measuring import Row

Results = Mapping[str, Mapping[str, Any]]
"""What `measure_row` returned, by the name of the row."""


def save(folder: Path, ours: Results, old: Results, *, quick: bool) -> Path:
    """Write results to a file of their own, and return its path."""
    now = datetime.now(UTC)
    content = {
        "date": now.isoformat(timespec="seconds"),
        "quick": quick,
        "python": platform.python_version(),
        "machine": {
            "platform": f"{platform.system()} {platform.machine()}",
            "cpus": os.cpu_count(),
        },
        "rows": ours,
        "rolloutlib 0.2.0": old,
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{now:%Y-%m-%dT%H-%M-%S.%f}.json"
    path.write_text(json.dumps(content, indent=1) + "\n")
    return path


def earlier(folder: Path) -> Results:
    """Return the newest result of each row that is kept in a folder, quick ones left aside."""
    rows: dict[str, Mapping[str, Any]] = {}
    for path in sorted(folder.glob("*.json")):
        content = json.loads(path.read_text())
        if not content["quick"]:
            rows |= content["rows"]
    return rows


def show(rows: Sequence[Row], ours: Results, old: Results, before: Results) -> None:
    """Print what was measured."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("row", no_wrap=True)
    table.add_column("work", min_width=16)
    for title in ("ours", "by hand", "", "ratio", "gate", "met", "before", "0.2.0"):
        justify = "left" if title in ("", "met") else "right"
        table.add_column(title, justify=justify, no_wrap=True)
    for row in rows:
        result = ours.get(row.name, {})
        table.add_row(
            row.name,
            row.work,
            _number(result.get("ours")),
            _number(result.get("hand")),
            row.unit,
            _ratio(result.get("ratio")),
            _gate(row),
            _met(row, result),
            _gated(row, before.get(row.name, {})),
            _gated(row, old.get(row.name, {})),
        )
    # As wide as the terminal, or as it needs to be where there is none.
    console = Console()
    (console if console.is_terminal else Console(width=160)).print(table)


def _met(row: Row, result: Mapping[str, Any]) -> str:
    if row.gate is None or not result:
        return ""
    return "[green]yes[/]" if result[row.gated] <= row.gate else "[red]no[/]"


def _gate(row: Row) -> str:
    if row.gate is None:
        return ""
    return f"x{row.gate:g}" if row.gated == "ratio" else f"{row.gate:g}"


def _gated(row: Row, result: Mapping[str, Any]) -> str:
    value = result.get(row.gated)
    return _ratio(value) if row.gated == "ratio" else _number(value)


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"x{_number(value)}"


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
