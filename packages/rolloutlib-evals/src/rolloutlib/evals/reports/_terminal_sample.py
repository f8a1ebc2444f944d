"""One sample in full on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from rolloutlib.evals._plain import to_text
from rolloutlib.evals._records import EvaluationRecord
from rolloutlib.evals.reports._conversation import Highlight, Turn, conversation, marked
from rolloutlib.evals.reports._figures import OUTCOMES, number
from rolloutlib.evals.reports._report import Report
from rolloutlib.evals.reports._terminal import STYLES
from rolloutlib.evals.reports._text import visible
from rolloutlib.evals.reports._thinking import take_thinking
from rolloutlib.rollouts import Trajectory
from rolloutlib.scores import Score

__all__ = ["print_sample"]

_URL = 60


def print_sample(report: Report, name: str, console: Console | None = None) -> None:
    """Print one sample in full: what was said, where the answer was read, and what it scored.

    Args:
        report: The report.
        name: The name of the sample, or that of an item which has only one.
        console: Where to print; by default standard output.

    Raises:
        LookupError: The report has no such sample; the message has the nearest names.
    """
    console = console or Console()
    record = report.sample(name)
    kind, style = OUTCOMES[record.outcome], STYLES[record.outcome]
    head = Text.assemble((visible(name), "bold"), "  ", (kind.name, style))
    if record.score is not None:
        head.append(f"  score {number(record.score.value)}")
    console.print(head)
    facts = {
        "epoch": record.epoch or None,
        "seed": record.seed,
        "attempts": record.attempts if record.attempts > 1 else None,
        "seconds": None if record.seconds is None else f"{record.seconds:.3g}",
    }
    told = [f"{fact} {value}" for fact, value in facts.items() if value is not None]
    console.print(", ".join(told), style="dim")
    if record.trajectory is not None:
        _print_conversation(console, record.trajectory, record.score)
    if record.score is not None:
        console.print(Rule("score", align="left", style="dim"))
        table = Table.grid(padding=(0, 2, 0, 0))
        _add_score(table, "score", record.score, 0)
        console.print(table)
    if record.error is not None:
        _print_error(console, record)


def _print_conversation(
    console: Console, trajectory: Trajectory[object, object], score: Score | None
) -> None:
    for said, found in marked(conversation(trajectory), score):
        thinking, turn, marks = take_thinking(said, found)
        console.print(Rule(Text(visible(_title(turn, trajectory))), align="left", style="dim"))
        if turn.reasoning is not None:
            console.print(Text(f"[reasoning] {visible(turn.reasoning)}", "dim italic"))
        if thinking is not None:  # with its tags
            console.print(Text(visible(thinking), "dim italic"))
        for index, part in enumerate(turn.parts):
            if not isinstance(part, str):
                url = part["url"] if len(part["url"]) <= _URL else f"{part['url'][:_URL]}…"
                console.print(Text(f"[{part['type']}] {visible(url)}", "dim"))
                continue
            console.print(_marked(part, marks if index == 0 else ()))
        for call in turn.calls:
            line = f"-> {visible(call.name)}({visible(call.arguments)})"
            console.print(Padding(Text(line, "magenta"), (0, 0, 0, 2)))
        if turn.extra is not None:
            console.print(Text(visible(turn.extra), "dim"))


def _title(turn: Turn, trajectory: Trajectory[object, object]) -> str:
    title = turn.role if turn.name is None else f"{turn.role} ({turn.name})"
    if turn.answers is not None:
        title += f" answers {turn.answers}"
    if turn.step is None:
        return title
    step = trajectory.steps[turn.step]
    if len(trajectory.steps) > 1:
        title += f", step {turn.step}"
    title += f", reward {number(step.reward)}"
    if step.policy_tokens is not None:
        title += f", {len(step.policy_tokens):,} tokens"
    return title if step.policy_stop_reason is None else f"{title}, stop: {step.policy_stop_reason}"


def _marked(text: str, marks: Sequence[Highlight]) -> Text:
    shown, place = Text(), 0
    for mark in sorted(marks, key=lambda mark: mark.start):
        start = max(mark.start, place)
        if mark.stop < start:
            continue
        shown.append(visible(text[place:start]))
        shown.append(visible(text[start : mark.stop]), "reverse")
        shown.append(f" [{visible(mark.label)}]", "cyan")
        place = mark.stop
    return shown.append(visible(text[place:]))


def _add_score(table: Table, name: str, score: Score, depth: int) -> None:
    facts = [
        f"{key} {to_text(value)}" for key, value in score.metadata.items() if value is not None
    ]
    remarks = "; ".join([*([score.feedback] if score.feedback else []), *facts])
    table.add_row(
        Text("  " * depth + visible(name)), number(score.value), Text(visible(remarks), "dim")
    )
    for part, component in score.components.items():
        _add_score(table, part, component, depth + 1)


def _print_error(console: Console, record: EvaluationRecord) -> None:
    phase = record.metadata.get("phase")
    where = f" in {phase}" if phase else ""
    kind = to_text(record.metadata.get("error_type") or "error")
    console.print(Rule(Text(visible(f"{kind}{where}")), align="left", style="red"))
    console.print(Text(visible(record.error or ""), "red"))
    if traceback := record.metadata.get("traceback"):
        console.print(Text(visible(to_text(traceback)), "dim"))
