"""`rolloutlib eval`: a model on a benchmark, its log, and how it ends."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from command_line import run, says
from rolloutlib.evals import read_log
from scripted_server import ScriptedServer, respond

KEY = "sk-secret-0123456789"


def ask(server: ScriptedServer, *more: object, target: str = "lab:dataset") -> tuple[object, ...]:
    return ("eval", target, "--model", "m", "--base-url", server.url, *more)


def test_a_model_is_evaluated_and_the_figures_are_told(server: ScriptedServer) -> None:
    server.plays(says("It is 1, or 4."))
    ended = run(*ask(server))
    assert ended.code == 0, ended.err
    assert "score        0.3333" in ended.out
    assert "6 of 6" in ended.out
    assert "dataset: 6 samples with m" in ended.err
    assert "log: runs/dataset-m.jsonl" in ended.err
    assert "rolloutlib show runs/dataset-m.jsonl" in ended.err
    result = read_log("runs/dataset-m.jsonl").result()
    assert (result.score, result.num_examples) == (2 / 6, 6)


def test_json_alone_is_on_standard_output(server: ScriptedServer) -> None:
    server.plays(says("It is 4."))
    ended = run(*ask(server, "--json"))
    figures = ended.json
    assert (figures["benchmark"], figures["model"]) == ("dataset", "m")
    assert figures["score"] == pytest.approx(1 / 6)
    assert figures["interval"]["method"] == "Wilson"
    assert (figures["num_expected"], figures["num_wrong"]) == (6, 5)
    assert (figures["log"], figures["resume"]) == ("runs/dataset-m.jsonl", None)


def test_the_same_command_goes_on_with_its_log(server: ScriptedServer) -> None:
    server.plays(says("It is 1."))
    run(*ask(server))
    lines = Path("runs/dataset-m.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    Path("runs/dataset-m.jsonl").write_text("".join(lines[:4]), encoding="utf-8")
    before = len(server.received)
    ended = run(*ask(server, "--json"))
    assert "which has 3 samples\n" in ended.err
    assert ended.json["num_examples"] == 6
    assert len(server.received) == before + 3


def test_failed_samples_are_played_again_on_demand(server: ScriptedServer) -> None:
    fine = says("It is 1.")
    server.plays(fine, respond({"error": {"message": "no"}}, 404), fine)
    failed = run(*ask(server, "--json", "--concurrency", 1))
    assert failed.json["num_errors"] == 1
    before = len(server.received)
    kept = run(*ask(server, "--json"))
    assert (kept.json["num_errors"], len(server.received)) == (1, before)
    again = run(*ask(server, "--json", "--retry-failed"))
    assert (again.json["num_errors"], len(server.received)) == (0, before + 1)
    assert again.json["num_examples"] == 6


def test_a_run_in_which_all_failed_tells_how_to_play_again(server: ScriptedServer) -> None:
    server.plays(respond({"error": {"message": "no"}}, 400))
    for _ in range(2):  # the second time nothing is played
        failed = run(*ask(server))
        assert failed.code == 1
        again = failed.err.splitlines()[-2]
        assert again.startswith("to play again what failed: rolloutlib eval lab:dataset ")
        assert again.endswith(" --retry-failed")
        assert "show runs/dataset-m.jsonl --outcome failed tells of each" in failed.err
    assert "status 400: no" in run("show", "runs/dataset-m.jsonl", "--outcome", "failed").out


@pytest.mark.parametrize("status", [401, 404, 405, 501])
def test_a_server_that_will_answer_nobody_ends_the_run(server: ScriptedServer, status: int) -> None:
    server.plays(respond({"error": {"message": "no"}}, status))
    ended = run(*ask(server))
    assert ended.code == 3
    assert f"status {status}: no" in ended.err
    assert run(*ask(server)).code == 3  # no failure is kept


@pytest.mark.parametrize("subcommand", ["eval", "collect"])
def test_an_environment_that_leaves_the_process_is_no_success(
    server: ScriptedServer, folder: Path, subcommand: str
) -> None:
    text = "import lab\nclass Leave(lab.Hello):\n    def grade(self, chat):\n        raise SystemExit(0)\n"
    (folder / "leaving.py").write_text(text, encoding="utf-8")
    server.plays(says("Hello Ann."))
    ended = run(subcommand, "leaving:Leave", "-m", "m", "--base-url", server.url)
    assert ended.code == 3
    assert ended.err.splitlines()[-1].startswith(
        "error: code that was run here left it: SystemExit"
    )


def test_a_score_beyond_what_an_early_stop_takes_is_told_in_words_of_the_command(
    server: ScriptedServer, folder: Path
) -> None:
    text = (
        "import lab\n"
        "class Three(lab.Sum):\n    evaluate = lambda self, action: 3.0\n"
        "dataset = lab.RLDataset([{'a': 1}], make_env=Three)\n"
    )
    (folder / "threes.py").write_text(text, encoding="utf-8")
    server.plays(says("It is 1."))
    ended = run(*ask(server, "--shuffle", "--stop-width", 0.5, target="threes:dataset"))
    assert ended.code == 1
    error = ended.err.splitlines()[-1]
    assert "scored 3.0 in epoch 0, and --stop-width needs scores from 0 to 1" in error
    assert "StopWhen" not in error
    assert "Error:" not in error


def test_a_run_stops_when_its_interval_is_narrow_enough(server: ScriptedServer) -> None:
    server.plays(says("It is 1."))
    options = ["--json", "--shuffle", "--stop-width", 0.99, "--concurrency", 1]
    ended = run(*ask(server, *options))
    result = read_log(ended.json["log"]).result()
    assert result.stopped_early
    assert result.interval is not None
    assert ended.json["interval"]["method"] == result.interval.method
    assert ended.json["interval"]["high"] == result.interval.high
    assert ended.json["stopped_early"]
    assert f"95% interval {result.interval.low:.3f} to {result.interval.high:.3f} by" in ended.err
    refused = run(*ask(server, "--stop-width", 0.5))
    assert refused.code == 2
    assert "shuffle" in refused.err


def test_a_command_with_other_settings_has_another_log(server: ScriptedServer) -> None:
    server.plays(says("It is 1."))
    logs = {
        run(*ask(server, "--json", *more)).json["log"]
        for more in (
            [],
            ["--limit", 2],
            ["--limit", 3],
            ["--limit", 2, "--seed", 1],
            ["--limit", 2, "--temperature", 0.5],
        )
    }
    assert len(logs) == 5
    again = run(*ask(server, "--json", "--limit", 2, "--concurrency", 1, "--max-retries", 0))
    assert again.json["log"] in logs


def test_a_log_of_another_run_is_refused_with_what_differs(server: ScriptedServer) -> None:
    server.plays(says("It is 1."))
    run(*ask(server, "--log", "mine.jsonl"))
    before = len(server.received)
    ended = run(*ask(server, "--log", "mine.jsonl", "--epochs", 2))
    assert ended.code == 2
    assert "epochs was 1 and is 2" in ended.err
    assert "or another file by --log" in ended.err
    assert len(server.received) == before


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (".", "cannot write '.': Is a directory; --log names another file"),
        ("lab.py/x", "cannot write 'lab.py/x': "),
        ("lab.py", "lab.py' is no file of groups"),
    ],
)
def test_a_log_that_cannot_be_written_is_told_before_anything_is_asked(
    server: ScriptedServer, log: str, words: str
) -> None:
    ended = run(*ask(server, "--log", log))
    assert (ended.code, ended.out, server.received) == (2, "", [])
    assert words in ended.err.splitlines()[-1]
    assert "which has" not in ended.err


def test_logs_and_files_of_trajectories_are_told_apart(server: ScriptedServer) -> None:
    server.plays(says("It is 1."))
    run(*ask(server, "--log", "log.jsonl"))
    collecting = ("collect", *ask(server)[1:])
    run(*collecting, "--log", "groups.jsonl")
    ended = run(*collecting, "--log", "log.jsonl")
    assert ended.code == 2
    assert "'log.jsonl' is a log of an evaluation: --log names another file" in ended.err
    ended = run(*ask(server, "--log", "groups.jsonl"))
    assert ended.code == 2
    assert "'groups.jsonl' is a file of trajectories: --log names another file" in ended.err


def test_options_of_the_model_reach_the_server_and_the_log(server: ScriptedServer) -> None:
    server.plays(says("It is 1."))
    run(
        *ask(server, "--limit", 1, "--temperature", 0.5, "--max-tokens", 7, "--top-p", 0.9),
        *("--stop", "END", "--extra-body", "top_k=20", "--extra-body", "mode=fast"),
        *("--log", "mine.jsonl"),
    )
    body = server.received[0].body
    assert (body["temperature"], body["top_p"], body["stop"]) == (0.5, 0.9, ["END"])
    assert (body["top_k"], body["mode"]) == (20, "fast")
    assert 7 in (body.get("max_tokens"), body.get("max_completion_tokens"))
    sampling = read_log("mine.jsonl").header["metadata"]["sampling"]
    assert sampling["extra_body"] == {"top_k": 20, "mode": "fast"}


def test_a_key_comes_from_the_environment_and_is_written_nowhere(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    server.plays(respond({"error": {"message": f"bad key {KEY}", "code": "x"}}, 500))
    ended = run(
        *ask(server, "--api-key-env", "MY_KEY", "--max-retries", 0, "--limit", 2, "--debug")
    )
    assert server.received[0].headers["authorization"] == f"Bearer {KEY}"
    assert ended.code == 1
    written = [path.read_text(encoding="utf-8") for path in folder.rglob("*.jsonl")]
    assert "bad key ***" in written[0]
    assert KEY not in "".join([*written, ended.out, ended.err])


def test_the_key_of_openai_is_sent_to_no_other_server(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server.plays(says("It is 1."))
    run(*ask(server, "--limit", 1))
    assert KEY not in server.received[0].headers.get("authorization", "")


def test_a_server_that_is_not_there_ends_the_run_and_leaves_nothing_failed() -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))  # so that no other server gets the port meanwhile
        url = f"http://127.0.0.1:{holder.getsockname()[1]}/v1"
        ended = run("eval", "lab:dataset", "-m", "m", "--base-url", url, "--max-retries", 0)
    assert ended.code == 3
    [error] = [line for line in ended.err.splitlines() if line.startswith("error:")]
    assert "'m'" in error
    assert url in error
    assert list(read_log("runs/dataset-m.jsonl")) == []


@pytest.mark.parametrize(("status", "text"), [(401, "wrong key"), (404, "no such model")])
def test_a_server_that_refuses_key_or_model_ends_the_run(
    server: ScriptedServer, status: int, text: str
) -> None:
    server.plays(respond({"error": {"message": text}}, status))
    ended = run(*ask(server))
    assert ended.code == 3
    assert text in ended.err
    assert list(read_log("runs/dataset-m.jsonl")) == []


def test_one_request_that_is_refused_is_one_failed_sample(server: ScriptedServer) -> None:
    fine = says("It is 1.")
    server.plays(fine, respond({"error": {"message": "no"}}, 404), fine)
    ended = run(*ask(server, "--concurrency", 1, "--json"))
    assert ended.code == 0
    assert (ended.json["num_errors"], ended.json["num_scored"]) == (1, 5)


def test_a_run_in_which_all_fails_ends_with_1(server: ScriptedServer) -> None:
    server.plays(respond({"error": {"message": "overloaded"}}, 500))
    ended = run(*ask(server, "--max-retries", 0, "--json"))
    assert ended.code == 1
    assert ended.json["num_errors"] == 6
    assert (
        "all of 6 samples failed: rolloutlib show runs/dataset-m.jsonl --outcome failed tells of each"
        in ended.err
    )


def test_a_run_that_is_given_up_tells_what_it_has(server: ScriptedServer) -> None:
    server.plays(says("It is 1."), respond({"error": {"message": "overloaded"}}, 500))
    for more in (["--max-failures", 2], ["--max-errors", 1], ["--fail-fast"]):
        ended = run(
            *ask(server, "--json", "-c", 1, "--max-retries", 0, *more, "--log", f"{more[0]}.jsonl")
        )
        assert ended.code == 1
        assert ended.json["num_remaining"] > 0
        assert "; not played: " in ended.err
        server.plays(says("It is 1."), respond({"error": {"message": "overloaded"}}, 500))


@pytest.mark.parametrize(("least", "code"), [(0.1, 0), (0.5, 1)])
def test_a_score_below_the_one_asked_for_ends_with_1(
    server: ScriptedServer, least: float, code: int
) -> None:
    server.plays(says("It is 1."))
    assert run(*ask(server, "--min-score", least)).code == code


def test_items_epochs_and_limits_choose_the_samples(server: ScriptedServer) -> None:
    server.plays(says("It is 1."))
    items = [part for name in ("sum-4", "sum-2", "sum-4") for part in ("--item", name)]
    ended = run(*ask(server, *items, "--epochs", 2, "--log", "a.jsonl"))
    assert ended.err.startswith("dataset: 4 samples with m\n")
    assert sorted((r.item_id, r.epoch) for r in read_log("a.jsonl")) == [
        ("sum-2", 0),
        ("sum-2", 1),
        ("sum-4", 0),
        ("sum-4", 1),
    ]
    run(*ask(server, "--limit", 2, "--log", "b.jsonl"))
    assert sorted(r.item_id or "" for r in read_log("b.jsonl")) == ["sum-0", "sum-1"]


def test_a_built_in_benchmark_takes_arguments(server: ScriptedServer, folder: Path) -> None:
    rows = [{"question": "What is 6 times 7?", "answer": "#### 42"}]
    (folder / "items.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    server.plays(says("The answer is 42."))
    more = ["-a", "dataset=items.jsonl", "-a", "system_prompt=Think.", "--json"]
    ended = run(*ask(server, *more, target="gsm8k"))
    assert ended.json["score"] == 1.0
    assert server.received[0].body["messages"][0] == {"role": "system", "content": "Think."}


@pytest.mark.parametrize("target", ["lab:Tooled", "lab:wrapped"])
def test_an_environment_that_has_tools_offers_them_to_the_model(
    server: ScriptedServer, target: str
) -> None:
    call = {
        "id": "c",
        "type": "function",
        "function": {"name": "add", "arguments": '{"a":2,"b":3}'},
    }
    calling = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice = {"index": 0, "message": calling, "finish_reason": "tool_calls"}
    server.plays(respond({"id": "1", "model": "m", "choices": [choice]}), says("It is 5."))
    assert run(*ask(server, "--json", target=target)).json["score"] == 1.0
    assert server.received[0].body["tools"][0]["function"]["name"] == "add"
    assert server.received[1].body["messages"][-1]["content"] == "5"
