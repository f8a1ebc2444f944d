"""Ten thousand real answers on one page."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from evals.reports.episodes import answer
from evals.reports.pages import Page
from rolloutlib.evals import BenchmarkResult, EvaluationRecord
from rolloutlib.evals.benchmarks import grade_gsm8k
from rolloutlib.evals.reports import Report

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def report(shared_data: Path) -> Report:
    """The answers of eight models to the questions of GSM8K, as epochs, with tokens."""
    records: list[EvaluationRecord] = []
    indices: dict[str, int] = {}
    epochs: dict[str, int] = {}
    with (shared_data / "gsm8k_model_responses.jsonl").open(encoding="utf-8") as file:
        for row in map(json.loads, file):
            question, reply = row["question"], row["response"]
            index = indices.setdefault(question, len(indices))
            epoch = epochs[question] = epochs.get(question, -1) + 1
            score = grade_gsm8k(reply, row["gold"])
            tokens = list(range(len(reply) // 4))
            episode = answer(question, reply, score, tokens=tokens, logprobs=[-0.5] * len(tokens))
            name = f"question-{index}"
            records.append(
                EvaluationRecord(index, name, score, epoch=epoch, item=row, trajectory=episode)
            )
    return Report(BenchmarkResult.from_records("gsm8k", records))


def test_ten_thousand_samples_open_soon_and_scroll(
    report: Report, page: Callable[..., Page]
) -> None:
    opened = page(report)
    total = f"{len(report.samples):,}"
    assert len(report.samples) > 10_000
    assert opened.status == f"{total} of {total} samples"
    assert len(opened.find_all(".row")) < 60
    # A generous bound, which only a page that makes all samples at once exceeds.
    [load] = opened.run("return performance.getEntriesByType('navigation').map(e => e.toJSON())")
    assert load["loadEventEnd"] < 3_000
    assert opened.run("return document.querySelectorAll('*').length") < 2_000

    opened.run("document.getElementById('list').scrollTop = 1e9")
    last = len(report.samples) - 1
    opened.until("return document.getElementById(arguments[0]) !== null", f"row-{last}")
    opened.choose(last)
    assert opened.text("#detail h3") == list(report.samples)[-1]

    opened.find("input[type=search]").send_keys("ducks lay")
    opened.await_status(f"8 of {total} samples")
    assert opened.log() == []
