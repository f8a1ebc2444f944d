"""How right and how fast the grading of answers is: a table with gates.

    uv run benchmarks/grading.py            # everything, in about a minute
    uv run benchmarks/grading.py --quick    # only see that it works

The data lie in a folder beside the project: real answers to GSM8K with labels made by hand, and short
cases. Hostile answers are made here: one piece of text over and over, inside and outside of boxes,
thinking and markers. Without the folder only they are measured. Times are of the processor, so
that a busy machine changes little.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import thread_time
from typing import Any

from rich.console import Console
from rich.table import Table

from rolloutlib.evals.benchmarks import (
    extract_aime_answer,
    extract_gsm8k_answer,
    grade_aime,
    grade_gsm8k,
)

DATA = Path(__file__).parents[2] / "shared" / "data"
SIZE = 200_000

PIECES = (
    r"\text{", r"\boxed{", r"\boxed{1}", r"\boxed{1} or ", r"\frac{", r"\left(", "\\", "[", "{", "}", "(", "((1", "{,}",
    "9", "1,", "1 ", "1.", "1/", "1-", "-", "=", "x=", "^{", "²", "½", "٣", "\uff19", "é", "。", "😀", "\u200b", "\u0336",
    " ", "\t", "\n", "\r\n", " \n", "\n ", "\n.", "\n*", ".", "...", ". ", "!", "? ", "$", "$$", "**", "*", "_", "`", "~~",
    "#", "####", "#### ", "#### a\n", "<", "<|", "<think>", "</think>", "<think></think>", "<answer>", "<answer>1</answer>",
    "<!--", "[", "[INST", "answer", "answer is ", "answer: ", "the answer is 1\n", "answer to ", "final result", "A:\n",
    "\nQuestion: 1", "\nQ", "答案", "答案是", "respuesta ", "or ", "not ", "1 or ", "one ", "million ", "1 million ", "dollars ",
    "wait, 1. ", "is not ", "```output\n", "\x00", "\ud800", "**5** ", "**5**.\n", "Thank you. ", "Note: 1\n", "\n2.\n", "- 1\n",
    "<b>", "</b>1", "(1 ab) ", "m^2 ", "let me check, so 1 ", "\nHuman: 1", r"\boxed{\boxed{1}", r"\boxed{1}_", "\u200b1", "\uff19</think>",
)  # fmt: skip
AROUND = (
    "{}", "5{}", "{}5", r"\boxed{{{}", r"\boxed{{{}}}", r"{}\boxed{{5}}", r"\boxed{{5}}{}", "The answer is {}", "#### {}",
    "<answer>{}</answer>", "<think>{}</think>#### 5",
)  # fmt: skip

Grade = Callable[[str], object]
GRADERS: dict[str, Grade] = {
    "gsm8k": lambda text: grade_gsm8k(text, "5"),
    "aime": lambda text: grade_aime(text, "5"),
}


def main() -> None:
    """Measure, print the table, and exit with 1 if a gate is missed."""
    parser = argparse.ArgumentParser(description="Measure the grading of answers.")
    parser.add_argument("--quick", action="store_true", help="only see that everything works")
    parser.add_argument("--data", type=Path, default=DATA, help="the folder with the data")
    arguments = parser.parse_args()
    rows: list[tuple[str, str, str, bool]] = []
    if arguments.data.is_dir():
        rows += real_answers(arguments.data, quick=arguments.quick)
        rows += short_cases(arguments.data)
    else:
        print(
            f"There is no folder {arguments.data}: only hostile answers are graded.",
            file=sys.stderr,
        )
    rows += hostile_answers(quick=arguments.quick)
    table = Table("measure", "value", "gate", "")
    for measure, value, gate, met in rows:
        table.add_row(measure, value, gate, "" if met else "missed")
    Console().print(table)
    sys.exit(not all(met for *_, met in rows))


def read(path: Path) -> Iterator[dict[str, Any]]:
    """Read a file of JSON lines."""
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def real_answers(data: Path, *, quick: bool) -> list[tuple[str, str, str, bool]]:
    """Grade the labelled answers to GSM8K, and time each."""
    labelled = [r for r in read(data / "gsm8k_model_responses.jsonl") if r["label"] is not None]
    labelled = labelled[:100] if quick else labelled
    agreed = accepted = 0
    times: list[float] = []
    for row in labelled:
        start = thread_time()
        right = grade_gsm8k(row["response"], row["gold"]).value == 1.0
        times.append(thread_time() - start)
        agreed += right == row["label"]
        accepted += right and not row["label"]
    agreement, median = agreed / len(labelled), statistics.median(times) * 1e3
    return [
        (
            f"agreement with {len(labelled):,} labels",
            f"{agreement:.3%}",
            ">= 99.97%",
            agreement >= 0.9997,
        ),
        ("wrong answers accepted", str(accepted), "0", accepted == 0),
        ("an answer, median", f"{median:.3f} ms", "<= 0.05 ms", quick or median <= 0.05),
    ]


def short_cases(data: Path) -> list[tuple[str, str, str, bool]]:
    """Read the short cases of all kinds."""
    extract = {"gsm8k": extract_gsm8k_answer, "aime": extract_aime_answer}
    cases = [row for row in read(data / "extraction_cases.jsonl") if row["kind"] == "answer"]
    wrong = sum(extract[r["benchmark"]](r["response"]) != r["expected_extracted"] for r in cases)
    return [(f"{len(cases)} short cases, read otherwise", str(wrong), "0", wrong == 0)]


def hostile_answers(*, quick: bool) -> list[tuple[str, str, str, bool]]:
    """Find the hostile answer that takes longest, and how the slowest ones grow with their length."""
    size = 2000 if quick else SIZE
    found = sorted(
        (
            (timed(grade, make(piece, around, size)), name, piece, around)
            for piece in PIECES
            for around in AROUND
            for name, grade in GRADERS.items()
        ),
        reverse=True,
    )
    again = [
        (
            min(timed(GRADERS[name], make(piece, around, size)) for _ in range(5)),
            name,
            piece,
            around,
        )
        for _, name, piece, around in found[:20]
    ]
    longest, name, piece, around = max(again)
    worst = longest * 1e3
    growth: list[str] = []
    ratios: list[float] = []
    for factor in (1, 2, 4, 8):
        text = make(piece, around, size * factor)
        growth.append(f"{min(timed(GRADERS[name], text) for _ in range(5)) * 1e3:.0f}")
    for _, name_, piece_, around_ in found[:20]:
        short, long = make(piece_, around_, size), make(piece_, around_, size * 4)
        grade = GRADERS[name_]
        ratios.append(
            min(timed(grade, long) for _ in range(3)) / min(timed(grade, short) for _ in range(3))
        )
    steepest = max(ratios) / 4
    return [
        (
            f"{len(found):,} hostile answers of {size // 1000} kB, worst",
            f"{worst:.1f} ms",
            "<= 50 ms",
            worst <= 50,
        ),
        (f"  which is {around!r} around {piece!r} ({name})", "", "", True),
        ("  at 1, 2, 4, 8 times the length", " ".join(growth) + " ms", "", True),
        (
            "4 times the length over 4 times the time, steepest",
            f"x{steepest:.2f}",
            "<= x2",
            quick or steepest <= 2,
        ),
    ]


def make(piece: str, around: str, size: int) -> str:
    """Repeat a piece up to a number of bytes, and put the rest around it."""
    return around.format(piece * (size // len(piece.encode("utf-8", "surrogatepass"))))


def timed(grade: Grade, text: str) -> float:
    """Return how many seconds grading takes."""
    start = thread_time()
    grade(text)
    return thread_time() - start


if __name__ == "__main__":
    main()
