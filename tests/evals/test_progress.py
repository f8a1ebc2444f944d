"""`ProgressDisplay`: what it says of a run, on a terminal and elsewhere, and that it harms none."""

from __future__ import annotations

import dataclasses
import io
import threading
from typing import Any

import pytest
from rich.console import Console
from rich.text import Text

from rolloutlib import PolicyOutput, SingleTurnEnv, acollect, rollout_group, spaces
from rolloutlib.evals import ProgressDisplay
from rolloutlib.rollouts import Progress, Retry, RolloutEvent

NEVER = 3600.0
ESCAPE = "\x1b"


class EchoEnv(SingleTurnEnv[str, str]):
    observation_space = spaces.text.text()
    action_space = spaces.text.text()

    def __init__(self, item: str) -> None:
        super().__init__()
        self.item = item

    def initial_observation(
        self, *, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        return self.item, {}

    def evaluate(self, action: str) -> float:
        return float(action == self.item)

    def terminal_observation(self, action: str) -> str:
        return action


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


class Script:
    """A policy whose call takes a minute and samples 300 tokens, or fails as it is told to."""

    def __init__(self, clock: Clock, *failures: Exception | None) -> None:
        self.clock = clock
        self.failures = list(failures)

    def __call__(self, observation: str) -> PolicyOutput[str]:
        self.clock.seconds += 60
        failure = self.failures.pop(0) if self.failures else None
        if failure is not None:
            raise failure
        return PolicyOutput(observation, tokens=[1] * 300)


class SignallingFile(io.StringIO):
    """Tells when a text has been written."""

    def __init__(self, awaited: str) -> None:
        super().__init__()
        self.awaited = awaited
        self.written = threading.Event()

    def write(self, text: str, /) -> int:
        if self.awaited in text:
            self.written.set()
        return super().write(text)


class StuckFile(io.StringIO):
    """Blocks whoever writes to it, as a terminal does after Ctrl-S, until it is released."""

    def __init__(self) -> None:
        super().__init__()
        self.released = threading.Event()

    def write(self, text: str, /) -> int:
        assert self.released.wait(30)
        return super().write(text)


def plain(file: io.StringIO) -> Console:
    return Console(file=file, force_terminal=False, width=40)


def terminal(file: io.StringIO, width: int = 120) -> Console:
    return Console(file=file, force_terminal=True, width=width, _environ={"TERM": "xterm"})


def show(console: Console, *failures: Exception | None, total: int | None = 4) -> None:
    """Play three episodes of one minute each; each failure is one more attempt."""
    clock = Clock()
    with ProgressDisplay(total, console=console, interval=NEVER, clock=clock) as display:
        rollout_group(
            "a",
            EchoEnv,
            Script(clock, *failures),
            num_rollouts=3,
            item_id="a",
            retry=Retry(attempts=2, initial_delay=0),
            on_event=display,
        )


def played(
    item_id: str, answer: str, *, error: Exception | None = None, usage: int = 0
) -> list[RolloutEvent]:
    """The events of an episode."""
    events: list[RolloutEvent] = []

    def policy(observation: str) -> PolicyOutput[str]:
        if error is not None:
            raise error
        return PolicyOutput(answer, info={"usage": {"completion_tokens": usage}})

    rollout_group(item_id, EchoEnv, policy, num_rollouts=1, item_id=item_id, on_event=events.append)
    return events


def tell(display: ProgressDisplay, *episodes: list[RolloutEvent]) -> str:
    for episode in episodes:
        for each in episode:
            display(each)
    return str(display)


def event(progress: Progress) -> RolloutEvent:
    return RolloutEvent(kind="finished", item_id="a", index=0, attempt=0, seed=0, progress=progress)


def test_a_line_tells_counts_rates_and_the_time_left() -> None:
    file = io.StringIO()
    show(plain(file))
    assert file.getvalue() == (
        "3 of 4 episodes, 0:03:00 gone, 0:01:00 left; "
        "score 1.000, 95% interval 0.207 to 1.000, over 1 item; "
        "3 started, 0 running, 3 completed, 0 truncated, 0 failed, 0 retried; "
        "3 steps, 900 tokens, 5 tokens/s\n"
    )


def test_without_a_total_no_time_is_left() -> None:
    file = io.StringIO()
    show(plain(file), total=None)
    assert file.getvalue().startswith("3 episodes, 0:03:00 gone; score 1.000")


def test_failed_and_retried_episodes_are_counted_and_the_last_error_told() -> None:
    file = io.StringIO()
    show(plain(file), ConnectionError("gone"), None, ValueError("bad\nanswer"))
    assert (
        "3 started, 0 running, 2 completed, 0 truncated, 1 failed, 1 retried; failed with 1 ValueError; "
        in file.getvalue()
    )
    assert file.getvalue().endswith(
        "; last error, at 0:03:00: ValueError: bad answer (item 'a', rollout 1, attempt 0, policy)\n"
    )


def test_large_numbers_are_readable() -> None:
    display = ProgressDisplay(total=20_000, console=plain(io.StringIO()))
    display(event(Progress(started=12_345, completed=9_000, truncated=3_000, failed=300)))
    assert "12,300 of 20,000 episodes" in str(display)
    assert "12,345 started, 45 running, 9,000 completed, 3,000 truncated, 300 failed" in str(
        display
    )


def test_more_episodes_than_expected_leave_no_time() -> None:
    file = io.StringIO()
    show(plain(file), total=2)
    assert "3 of 2 episodes, 0:03:00 gone, 0:00:00 left" in file.getvalue()


def test_a_display_that_was_told_nothing_says_so() -> None:
    file = io.StringIO()
    with ProgressDisplay(total=4, console=plain(file), interval=NEVER, clock=Clock()):
        pass
    assert file.getvalue().startswith("0 of 4 episodes, 0:00:00 gone; 0 started")
    assert file.getvalue().endswith("0 tokens, 0 tokens/s\n")


def test_no_control_codes_are_written_where_there_is_no_terminal() -> None:
    file = io.StringIO()
    show(plain(file), ValueError(f"a {ESCAPE}[31mred{ESCAPE}[0m\x07 word {ESCAPE}"))
    assert "ValueError: a red word (item" in file.getvalue()
    assert ESCAPE not in file.getvalue()
    assert file.getvalue().count("\n") == 1


def test_no_control_codes_are_written_on_a_dumb_terminal() -> None:
    file = io.StringIO()
    show(Console(file=file, force_terminal=True, _environ={"TERM": "dumb"}))
    assert "3 of 4 episodes" in file.getvalue()
    assert ESCAPE not in file.getvalue()


def test_a_terminal_shows_a_bar_and_the_same_facts() -> None:
    file = io.StringIO()
    show(terminal(file), ValueError("[bold] is no markup"))
    bar, *lines = Text.from_ansi(file.getvalue()).plain.rstrip().split("\n")[-7:]
    assert bar.startswith("━━━━━━━━")
    assert lines[0] == "3 of 4 episodes, 0:03:00 gone, 0:01:00 left"
    assert lines[1] == "score 0.667 over 1 item"
    assert lines[2].startswith("3 started, 0 running, 2 completed")
    assert lines[3] == "failed with 1 ValueError"
    assert lines[4] == "2 steps, 600 tokens, 3 tokens/s"
    assert lines[5].startswith("last error, at 0:01:00: ValueError: [bold] is no markup (item")


def test_a_narrow_terminal_shows_all_that_a_wide_one_does() -> None:
    file, wide = io.StringIO(), io.StringIO()
    show(terminal(file, width=20), ValueError("bad"))
    show(terminal(wide, width=200), ValueError("bad"))
    lines = Text.from_ansi(file.getvalue()).plain.splitlines()
    assert max(len(line.rstrip()) for line in lines) <= 20
    _, _, facts = Text.from_ansi(wide.getvalue()).plain.rpartition("━")
    assert "".join(lines).replace(" ", "").endswith("".join(facts.split()))


def test_kinds_of_failures_go_without_their_modules() -> None:
    class BusyError(ConnectionError):
        pass

    display = ProgressDisplay(console=plain(io.StringIO()))
    text = tell(display, played("a", "", error=BusyError("busy")))
    assert "failed with 1 BusyError; " in text
    assert ": BusyError: busy (item" in text


def test_episodes_that_were_stopped_do_not_run_any_more() -> None:
    file = io.StringIO()
    with ProgressDisplay(console=plain(file), interval=NEVER) as display:
        display(event(Progress(started=5, completed=2)))
        assert "3 running" in str(display)
    assert "5 started, 3 stopped, 2 completed" in file.getvalue()


def test_a_terminal_is_drawn_again_while_the_run_goes_on() -> None:
    file = SignallingFile("1 of 2 episodes")
    with ProgressDisplay(total=2, console=terminal(file), interval=0.001) as display:
        display(event(Progress(started=1, completed=1)))
        assert file.written.wait(30)


def test_lines_are_written_while_the_run_goes_on() -> None:
    file = SignallingFile("1 of 2 episodes")
    with ProgressDisplay(total=2, console=plain(file), interval=0.001) as display:
        display(event(Progress(started=1, completed=1)))
        assert file.written.wait(30)


@pytest.mark.parametrize("console", [plain, terminal])
def test_no_thread_is_left_after_the_block_whatever_ends_it(console: Any) -> None:
    before = set(threading.enumerate())
    display = ProgressDisplay(console=console(io.StringIO()))

    def interrupted() -> None:
        with display:
            assert len(set(threading.enumerate()) - before) == 1
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert set(threading.enumerate()) <= before  # those of other tests may end meanwhile


def test_a_terminal_that_takes_nothing_does_not_hold_up_the_run() -> None:
    file = StuckFile()
    with ProgressDisplay(console=terminal(file)) as display:
        group = rollout_group("a", EchoEnv, lambda _: "a", num_rollouts=3, on_event=display)
        assert group.num_completed == 3
        assert not file.getvalue()
        file.released.set()
    assert "3 episodes" in file.getvalue()


@pytest.mark.parametrize("console", [plain, terminal])
def test_a_display_that_cannot_draw_is_logged_and_the_run_goes_on(
    console: Any, caplog: pytest.LogCaptureFixture
) -> None:
    file = io.StringIO()
    file.close()
    with ProgressDisplay(console=console(file)) as display:
        group = rollout_group("a", EchoEnv, lambda _: "a", num_rollouts=3, on_event=display)
    assert group.num_completed == 3
    assert "progress cannot be shown any more" in caplog.text


def test_data_on_standard_output_is_not_drawn_into_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = SignallingFile("0 episodes")
    with ProgressDisplay(console=terminal(file)):
        assert file.written.wait(30)
        print('{"reward": 1.0}')
    assert capsys.readouterr().out == '{"reward": 1.0}\n'
    assert "reward" not in file.getvalue()


def test_by_default_it_goes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressDisplay(total=1):
        pass
    captured = capsys.readouterr()
    assert not captured.out
    assert captured.err.startswith("0 of 1 episodes")


@pytest.mark.anyio
async def test_it_follows_a_run_over_a_dataset() -> None:
    file = io.StringIO()

    async def policy(observation: str) -> str:
        if observation == "b":
            msg = "no"
            raise ValueError(msg)
        return observation

    with ProgressDisplay(total=6, console=plain(file), interval=NEVER) as display:
        async with acollect(
            ["a", "b", "c"], EchoEnv, policy, num_rollouts=2, on_event=display
        ) as groups:
            assert len([group async for group in groups]) == 3
    assert "6 of 6 episodes" in file.getvalue()
    assert "6 started, 0 running, 4 completed, 0 truncated, 2 failed" in file.getvalue()
    assert "ValueError: no (item" in file.getvalue()


def test_it_shows_one_run() -> None:
    display = ProgressDisplay(console=plain(io.StringIO()))
    with display:
        pass
    with pytest.raises(RuntimeError, match="shows one run"), display:
        pass


@pytest.mark.parametrize("arguments", [{"total": -1}, {"interval": 0.0}, {"interval": -1.0}])
def test_numbers_out_of_range_are_refused(arguments: dict[str, Any]) -> None:
    [(name, value)] = arguments.items()
    with pytest.raises(ValueError, match=f"{name} must .* got {value}"):
        ProgressDisplay(**arguments)


def test_the_score_so_far_has_an_interval_over_items_in_which_a_failure_scores_nothing() -> None:
    display = ProgressDisplay(console=plain(io.StringIO()))
    assert "score" not in str(display)
    told = tell(display, played("a", "a"), played("b", "b"), played("c", "no"))
    assert "score 0.667, 95% interval 0.208 to 0.939, over 3 items" in told
    told = tell(display, played("d", "", error=ValueError("no")))
    assert "score 0.500, 95% interval 0.150 to 0.850, over 4 items" in told


def test_failures_are_counted_by_kind_the_most_frequent_first() -> None:
    display = ProgressDisplay(console=plain(io.StringIO()))
    kinds = [KeyError, ValueError, ValueError, OSError, OSError, OSError, TypeError]
    for number, kind in enumerate(kinds):
        for each in played(str(number), "", error=kind("no")):
            display(dataclasses.replace(each, progress=Progress(failed=number + 1)))
    words = (
        "7 failed, 0 retried; failed with 3 OSError, 2 ValueError, 1 KeyError, 1 of other kinds; "
    )
    assert words in str(display)


def test_tokens_that_only_the_server_counts_are_told_too() -> None:
    clock = Clock()
    display = ProgressDisplay(console=plain(io.StringIO()), clock=clock)
    clock.seconds += 10
    told = tell(display, played("a", "a", usage=300), played("b", "b", usage=100))
    assert "400 tokens, 40 tokens/s" in told


def test_what_an_earlier_run_kept_counts_in_no_rate() -> None:
    clock = Clock()
    display = ProgressDisplay(4, console=plain(io.StringIO()), clock=clock)
    kept = [each for each in played("a", "a", usage=90) if each.kind != "step"]
    assert "1 of 4 episodes, 1 of them kept from before, 0:00:00 gone;" in tell(display, kept)
    clock.seconds += 60
    now = Progress(started=2, completed=2, steps=1)
    text = tell(
        display, [dataclasses.replace(each, progress=now) for each in played("b", "b", usage=30)]
    )
    assert "2 of 4 episodes, 1 of them kept from before, 0:01:00 gone, 0:02:00 left" in text
    assert "30 tokens, 0 tokens/s" in text
    assert "score 1.000" in text


def test_an_episode_that_cannot_be_graded_counts_once() -> None:
    display = ProgressDisplay(console=plain(io.StringIO()))

    def grade(group: object) -> list[float]:
        raise ValueError("no")

    rollout_group("a", EchoEnv, lambda _: "a", num_rollouts=1, grade_group=grade, on_event=display)
    assert "score 0.000, 95% interval 0.000 to 0.793, over 1 item" in str(display)
