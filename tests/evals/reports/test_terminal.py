"""The report on a terminal."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from pydantic_core import to_json
from rich.console import Console

from evals.reports.episodes import answer, hostile_records, write_groups
from evals.sums import add, sums
from rolloutlib import Score
from rolloutlib.evals import BenchmarkResult, EvaluationRecord, run_benchmark
from rolloutlib.evals.benchmarks import gsm8k
from rolloutlib.evals.reports import (
    Report,
    print_sample,
    print_samples,
    print_summary,
    read_report,
)


@pytest.fixture
def console() -> Console:
    return Console(file=io.StringIO(), width=160)


def printed(console: Console) -> list[str]:
    """The lines, with one space between their parts."""
    assert isinstance(console.file, io.StringIO)
    return [" ".join(line.split()) for line in console.file.getvalue().splitlines()]


def test_the_summary_has_figures_with_denominators(console: Console) -> None:
    print_summary(Report(run_benchmark(sums(), policy=add)), console)
    lines = printed(console)
    assert lines[0] == "sums"
    assert "score 0.75 0.311 to 1.189 (95% t); mean over 6 samples of 6 items" in lines
    assert "completed 6 of 6 0 failed, 0 truncated" in lines
    assert any(line.startswith("no answer 1 █████ gave no") for line in lines)
    assert "exact 0.75 over 6 samples" not in lines
    assert "exact 0.9 over 5 samples" in lines


def test_the_summary_tells_failures_by_kind(console: Console, tmp_path: Path) -> None:
    print_summary(read_report(write_groups(tmp_path / "groups.jsonl")), console)
    lines = printed(console)
    assert "1 builtins.TimeoutError in policy failed" in lines
    assert "bounds 0.5 to 0.6429 if what failed (1) all scored 0, or all 1" in lines
    assert "score 0.5 mean over 7 samples of 3 items" in lines
    assert "mean over items 0.5625 0.1517 to 0.9733 (95% t); each item counts the same" in lines


def test_the_summary_compares(console: Console) -> None:
    baseline = Report(run_benchmark(sums(), policy=lambda _: "3"), title="threes")
    print_summary(Report(run_benchmark(sums(), policy=add), baseline=baseline), console)
    lines = printed(console)
    assert "Compared with threes" in lines
    assert any(line.startswith("difference +0.4167 ") and "6 items" in line for line in lines)
    assert "baseline 0.3333 -0.0951 to 0.7618 (95% t), over 6 items" in lines
    assert "p-value by items 0.125 sign test: 4 better, 0 worse, 2 equal" in lines


def test_an_empty_run_is_printed(console: Console) -> None:
    print_summary(Report(run_benchmark(sums(0), policy=add)), console)
    assert "score unknown too few items for an interval; mean over 0 samples of 0 items" in printed(
        console
    )


def test_samples_are_listed_with_what_was_left_out(console: Console) -> None:
    report = Report(run_benchmark(sums(), policy=add))
    print_samples(report, report.select(outcomes=["credited"]), console, limit=2)
    assert printed(console) == [
        "sample outcome score tokens expected extracted reply",
        "sum-0 credited 1 2 1 1 1",
        "sum-1 credited 1 2 2 2 2",
        "2 of 5 found, of 6 samples",
    ]


def test_a_narrow_list_has_the_replies_on_lines_of_their_own(tmp_path: Path) -> None:
    console = Console(file=io.StringIO(), width=80)
    path = write_groups(tmp_path / "groups.jsonl")
    report = read_report(path, baseline=path)
    print_samples(report, report.select(text="sum#0"), console)
    print_samples(report, report.select(text="slow#1"), console)
    assert printed(console) == [
        "sample outcome score tokens expected extracted change",
        "sum#0 wrong 0 2 equal",
        "It is 0",
        "1 of 1 found, of 7 samples",
        "sample outcome score tokens expected extracted change",
        "slow#1 failed equal",
        "too slow",
        "1 of 1 found, of 7 samples",
    ]


def test_a_terminal_of_40_columns_cuts_no_heading_and_no_outcome(tmp_path: Path) -> None:
    console = Console(file=io.StringIO(), width=40)
    path = write_groups(tmp_path / "groups.jsonl")
    report = read_report(path, baseline=path)
    print_samples(report, report.select(text="sum#0"), console)
    assert printed(console) == [
        "sample outcome score change",
        "sum#0 wrong 0 equal",
        "It is 0",
        "1 of 1 found, of 7 samples",
    ]


@pytest.mark.parametrize("width", [40, 80])
def test_outcomes_have_a_line_each_however_narrow_the_terminal(width: int) -> None:
    console = Console(file=io.StringIO(), width=width)
    print_summary(Report(run_benchmark(sums(), policy=add)), console)
    lines = printed(console)
    start = lines.index("Outcomes") + 1
    names = ["credited", "wrong", "no answer", "truncated", "failed"]
    for name, line in zip(names, lines[start:], strict=False):
        assert line.startswith(name)


def test_a_list_shows_what_is_said_after_thinking_and_the_calls(console: Console) -> None:
    calls = [{"name": "f", "arguments": {}}]
    call = {"role": "assistant", "content": "", "tool_calls": calls}
    replies: list[Any] = ["<think>Hm.</think> 4", call]
    records = [
        EvaluationRecord(index, f"item-{index}", Score(1.0), trajectory=answer("?", reply, 1.0))
        for index, reply in enumerate(replies)
    ]
    report = Report(BenchmarkResult.from_records("replies", records))
    print_samples(report, report.samples, console)
    assert [line.partition(" credited ")[2] for line in printed(console)[1:3]] == [
        "1 20 4",
        f"1 {len(to_json(calls))} -> f({{}})",
    ]


def test_a_sample_is_printed_with_its_tools_and_components(
    console: Console, tmp_path: Path
) -> None:
    print_sample(read_report(write_groups(tmp_path / "groups.jsonl")), "product", console)
    text = "\n".join(printed(console))
    assert "product credited score 0.75" in text
    assert text.count("What is 17 times 23?") == 1
    assert '-> multiply({"a": 17, "b": 23})' in text
    assert "tool answers call-1" in text
    assert "It is 391 [right, found]." in text
    assert "right 1 span [6,9]; status found" in text
    assert "Right, and short." in text


def test_a_failed_sample_is_printed_with_its_error(console: Console, tmp_path: Path) -> None:
    print_sample(read_report(write_groups(tmp_path / "groups.jsonl")), "slow#1", console)
    lines = printed(console)
    assert lines[0] == "slow#1 failed"
    assert lines[-2:] == ["too slow", "Traceback: ..."]


def test_the_answer_is_marked_where_it_was_read(console: Console) -> None:
    benchmark = gsm8k([{"question": "6 * 7?", "answer": "42"}])
    reply = r"😀 It is \boxed{42}, surely."
    report = Report(run_benchmark(benchmark, policy=lambda _: reply))
    print_sample(report, next(iter(report.samples)), console)
    assert r"😀 It is \boxed{42 [found, box]}, surely." in printed(console)


def test_hostile_text_commands_no_terminal(console: Console) -> None:
    report = Report(BenchmarkResult.from_records("\x1b[2J\u202e", hostile_records()))
    print_summary(report, console)
    print_samples(report, report.samples, console, limit=None)
    for name in report.samples:
        print_sample(report, name, console)
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert not set(text) & {"\x00", "\x1b", "\x07", "\u202e", "\u2067", "\ud83d", "\U000e0069"}
    for shown in (
        "[U+202E]",
        "[U+0000]",
        "[U+001B]",
        "[U+D83D]",
        "[U+E0069]",
        "[red]not red[/red]",
    ):
        assert shown in text
