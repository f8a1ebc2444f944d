"""A display of how a run is getting on."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.text import Text

from rolloutlib.evals._tally import Tally, short_name
from rolloutlib.rollouts import Progress, RolloutError, RolloutEvent

LIVE_SECONDS = 0.25
PLAIN_SECONDS = 60.0
ERROR_WIDTH = 300

_logger = logging.getLogger("rolloutlib")


class ProgressDisplay:
    """Shows the progress of a run on a terminal, or tells it in a line now and then elsewhere.

    It tells the mean score so far, in which a failed episode scores 0, with an interval; counts, and what
    episodes failed with; rates and the time left. It is both the `on_event` of one run and a context manager around it:

        with ProgressDisplay(total=len(dataset) * 8) as display:
            async with acollect(dataset, ..., num_rollouts=8, on_event=display) as groups:
                ...

    The call itself only remembers what it is told. A thread draws, which ends with the block; if it
    cannot draw any more, that is logged, and the run goes on. Rates and the time left are those of
    what was played so far, failed attempts included; what an earlier run kept counts in neither.

    Args:
        total: How many episodes there will be. Without, no time left is shown.
        console: Where to draw; by default standard error, which leaves standard output to data.
        interval: How many seconds lie between two drawings; by default 0.25 on a terminal, and 60
            where lines are written.
        clock: Tells the time in seconds.

    Raises:
        ValueError: `total` is negative, or `interval` is not positive.
    """

    def __init__(
        self,
        total: int | None = None,
        *,
        console: Console | None = None,
        interval: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if total is not None and total < 0:
            msg = f"total must not be negative, got {total!r}"
            raise ValueError(msg)
        if interval is not None and not interval > 0:
            msg = f"interval must be positive, got {interval!r}"
            raise ValueError(msg)
        self._total = total
        self._console = console or Console(stderr=True)
        # A dumb terminal understands no control codes; in a notebook, lines are all it takes.
        self._is_live = self._console.is_terminal and not self._console.is_dumb_terminal
        self._interval = interval or (LIVE_SECONDS if self._is_live else PLAIN_SECONDS)
        self._clock = clock
        self._began = clock()
        self._tally = Tally()
        self._failure: tuple[RolloutEvent, RolloutError, float] | None = None
        self._thread: threading.Thread | None = None
        self._done = threading.Event()

    def __call__(self, event: RolloutEvent) -> None:
        """Take note of an event."""
        self._tally.add(event)
        if event.error is not None:
            self._failure = event, event.error, self._clock()

    def __enter__(self) -> Self:
        if self._thread is not None:
            msg = "a ProgressDisplay shows one run: make another for another"
            raise RuntimeError(msg)
        self._began = self._clock()
        self._thread = threading.Thread(target=self._draw, name="rolloutlib progress", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._done.set()
        if self._thread is not None:
            self._thread.join()

    def __rich__(self) -> Group:
        lines = [Text(line) for line in self._lines()]
        if self._failure is not None:
            lines[-1].stylize("red")
        if self._total is None:
            return Group(*lines)
        bar = ProgressBar(total=self._total, completed=_ended(self._tally.progress), width=60)
        return Group(Padding(bar), *lines)  # a bar alone does not end its line

    def __str__(self) -> str:
        return "; ".join(self._lines())

    def _lines(self) -> list[str]:
        tally, seconds = self._tally, self._clock() - self._began
        progress = tally.progress
        ended = _ended(progress)
        total = "" if self._total is None else f" of {self._total:,}"
        left = ""
        played = ended - tally.num_kept
        if self._total is not None and played:
            left = f", {_duration(seconds * max(self._total - ended, 0) / played)} left"
        kept = f", {tally.num_kept:,} of them kept from before" if tally.num_kept else ""
        tokens = tally.tokens
        rate = f"{tokens / seconds:,.0f}" if seconds > 0 else "0"
        is_over = self._done.is_set() and progress.running > 0
        counts = (
            f"{progress.started:,} started, {progress.running:,} {'stopped' if is_over else 'running'}, "
            f"{progress.completed:,} completed, {progress.truncated:,} truncated, "
            f"{progress.failed:,} failed, {progress.retried:,} retried"
        )
        lines = [
            f"{ended:,}{total} episodes{kept}, {_duration(seconds)} gone{left}",
            *([] if tally.score is None else [tally.score]),
            counts,
            *([f"failed with {tally.failures}"] if tally.failures else []),
            f"{progress.steps:,} steps, {tokens:,} tokens, {rate} tokens/s",
        ]
        if self._failure is not None:
            event, error, moment = self._failure
            lines.append(
                f"last error, at {_duration(moment - self._began)}: {_one_line(error)} (item "
                f"{event.item_id!r}, rollout {event.index}, attempt {event.attempt}, {error.phase})"
            )
        return lines

    def _draw(self) -> None:
        """Draw until the block is left, and once more then."""
        try:
            if self._is_live:
                self._draw_live()
            else:
                self._write_lines()
        except Exception:
            _logger.exception("progress cannot be shown any more")

    def _draw_live(self) -> None:
        live = Live(
            get_renderable=self.__rich__,
            console=self._console,
            auto_refresh=False,  # by a thread that is not waited for
            # What is printed meanwhile appears above the display, unless it goes into a file.
            redirect_stdout=sys.stdout.isatty(),
            redirect_stderr=sys.stderr.isatty(),
        )
        with live:  # which draws at its end
            live.refresh()
            while not self._done.wait(self._interval):
                live.refresh()

    def _write_lines(self) -> None:
        file = self._console.file
        more = True
        while more:
            more = not self._done.wait(self._interval)
            file.write(f"{self}\n")
            file.flush()


def _ended(progress: Progress) -> int:
    return progress.completed + progress.truncated + progress.failed


def _duration(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))


def _one_line(error: RolloutError) -> str:
    """Return the text of an error without line breaks and control codes, which it may quote."""
    text = Text.from_ansi(
        f"{short_name(error.error_type)}: {error.error_message[:ERROR_WIDTH]}"
    ).plain
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
