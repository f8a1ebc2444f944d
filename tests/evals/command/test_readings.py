"""`show`, `compare`, `regrade`, `list`, and `--config`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import pytest

import rolloutlib
from command_line import run, says
from rolloutlib.evals import Outcome, read_log
from rolloutlib.evals._command._show import ChangeName, OutcomeName
from rolloutlib.evals.benchmarks import list_benchmarks
from rolloutlib.evals.reports import Change
from scripted_server import ScriptedServer


@pytest.fixture
def logs(server: ScriptedServer) -> tuple[str, str]:
    """Two evaluations of six sums, of which the second has twice as many right."""
    for name, text in (("old.jsonl", "It is 1, or 4."), ("new.jsonl", "It is 1, 2, 3 or 4.")):
        server.plays(says(text))
        run("eval", "lab:dataset", "-m", "m", "--base-url", server.url, "--log", name)
    return "old.jsonl", "new.jsonl"


def test_show_tells_the_figures(logs: tuple[str, str]) -> None:
    ended = run("show", logs[0])
    assert ended.code == 0
    assert "score        0.3333" in ended.out
    assert run("show", logs[0], "--json").json["score"] == pytest.approx(1 / 3)


def test_show_lists_the_samples_that_a_filter_finds(logs: tuple[str, str]) -> None:
    assert "6 of 6 found" in run("show", logs[0], "--samples").out
    wrong = run("show", logs[0], "--outcome", "wrong", "--json").json["samples"]
    assert [row["name"] for row in wrong] == ["sum-1", "sum-2", "sum-4", "sum-5"]
    assert len(run("show", logs[0], "--samples", "--limit", 2, "--json").json["samples"]) == 2
    right = run("show", logs[0], "--min-score", 0.5, "--text", "3 + 1", "--json").json["samples"]
    assert [row["name"] for row in right] == ["sum-3"]
    better = run("show", logs[1], "--baseline", logs[0], "--change", "better", "--json").json
    assert [row["name"] for row in better["samples"]] == ["sum-1", "sum-2"]
    assert better["comparison"]["num_better"] == 2


def test_show_tells_one_sample_in_full(logs: tuple[str, str]) -> None:
    ended = run("show", logs[0], "sum-3")
    assert "What is 3 + 1?" in ended.out
    assert "It is 1, or 4." in ended.out
    sample = run("show", logs[0], "sum-3", "--json").json
    assert sample["steps"][0]["action"] == "It is 1, or 4."
    assert sample["steps"][0]["policy_info"]["usage"]["completion_tokens"] == 5
    unknown = run("show", logs[0], "sum-99")
    assert unknown.code == 2
    assert "did you mean 'sum-" in unknown.err


def test_show_writes_a_page(logs: tuple[str, str]) -> None:
    ended = run("show", logs[0], "--html", "page.html", "--json")
    assert ended.json["html"] == "page.html"
    assert "<html" in Path("page.html").read_text(encoding="utf-8")


def test_show_reads_collected_trajectories_too(server: ScriptedServer) -> None:
    server.plays(says("It is 1."))
    run("collect", "lab:dataset", "-m", "m", "--base-url", server.url, "-r", 2, "--log", "t.jsonl")
    figures = run("show", "t.jsonl", "--json", "--html", "page.html").json
    assert (figures["num_examples"], figures["model"]) == (12, "m")
    assert "<p>m</p>" in Path("page.html").read_text(encoding="utf-8")
    assert "model m\n" in run("show", "t.jsonl").out
    assert "sum-0#1" in run("show", "t.jsonl", "--samples").out


def test_a_page_never_takes_the_place_of_a_run(logs: tuple[str, str]) -> None:
    before = [Path(log).read_bytes() for log in logs]
    for log in logs:
        ended = run("show", logs[0], "--baseline", logs[1], "--html", f"./{log}")
        assert ended.code == 2
        assert "is the run itself" in ended.err
    ended = run("show", logs[0], "--html", "no/such/page.html")
    assert (ended.code, ended.out) == (2, "")
    assert "error: cannot write 'no/such/page.html': " in ended.err
    assert [Path(log).read_bytes() for log in logs] == before


def test_the_choices_of_show_are_those_of_the_report() -> None:
    assert tuple(OutcomeName) == get_args(Outcome)
    assert tuple(ChangeName) == get_args(Change)


def test_compare_tells_the_difference_and_its_tests(logs: tuple[str, str]) -> None:
    ended = run("compare", *logs)
    assert ended.code == 0
    assert "+0.3333" in ended.out
    assert "2 better, 0 worse, 4 equal" in ended.out
    figures = run("compare", *logs, "--json").json
    assert figures["difference"]["value"] == pytest.approx(1 / 3)
    assert (figures["num_better"], figures["is_worse"]) == (2, False)


@pytest.mark.parametrize(("alpha", "code"), [(0.05, 0), (0.5, 1)])
def test_compare_ends_with_1_for_a_worse_candidate_if_asked(
    logs: tuple[str, str], alpha: float, code: int
) -> None:
    old, new = logs
    assert run("compare", new, old, "--alpha", alpha).code == 0
    assert run("compare", new, old, "--alpha", alpha, "--fail-if-worse").code == code
    assert run("compare", old, new, "--alpha", alpha, "--fail-if-worse").code == 0


def test_compare_takes_metrics_of_several_samples(server: ScriptedServer) -> None:
    server.plays(says("It is 1."))
    for name in ("a.jsonl", "b.jsonl"):
        run(*f"eval lab:dataset -m m --base-url {server.url} --epochs 2 --log {name}".split())
    for metric in ("avg@2", "pass@2", "pass^2"):
        figures = run("compare", "a.jsonl", "b.jsonl", "--metric", metric, "--json").json
        assert figures["candidate"]["name"] == metric
        assert figures["candidate"]["value"] == pytest.approx(1 / 6)
    ended = run("compare", "a.jsonl", "b.jsonl", "--metric", "pass@3")
    assert ended.code == 2
    assert run("compare", "a.jsonl", "b.jsonl", "--metric", "best@2").code == 2


def test_compare_refuses_what_is_not_alike(server: ScriptedServer, folder: Path) -> None:
    server.plays(says("It is 1."))
    server_options = f"-m m --base-url {server.url} --log".split()
    run("eval", "lab:dataset", *server_options, "all.jsonl")
    run("eval", "lab:dataset", "--limit", 3, *server_options, "few.jsonl")
    run("eval", "lab:Hello", *server_options, "hello.jsonl")
    text = (folder / "lab.py").read_text(encoding="utf-8")
    (folder / "lab2.py").write_text(text.replace('"a": a}', '"a": a + 7}'), encoding="utf-8")
    text = (folder / "lab2.py").read_text(encoding="utf-8")
    (folder / "lab2.py").write_text(text.replace("{item['a']}", "{item['a'] - 7}"))
    run("eval", "lab2:dataset", *server_options, "other.jsonl")
    run("collect", "lab:dataset", *server_options, "groups.jsonl")
    for path, words in (
        ("few.jsonl", "--common compares them on the 3 that both have"),
        ("hello.jsonl", "cannot compare a log of 'hello' with a log of 'dataset'"),
        ("other.jsonl", "the item 'sum-0' is not the same in both runs"),
        ("groups.jsonl", "a file of trajectories"),
    ):
        ended = run("compare", "all.jsonl", path)
        assert ended.code == 2, path
        assert words in ended.err
    assert run("compare", "all.jsonl", "few.jsonl", "--common", "--json").json["num_left_out"] == 3


def test_regrade_takes_a_function_or_a_benchmark(logs: tuple[str, str]) -> None:
    ended = run("regrade", logs[0], "--grade", "lab:brief", "--to", "brief.jsonl")
    assert ended.code == 0
    assert "score 0.3333 before, 0 now" in ended.out
    assert "2 of 6 samples changed" in ended.out
    assert read_log("brief.jsonl").result().score == 0
    same = run("regrade", "brief.jsonl", "lab:dataset", "--json").json
    assert same["after"]["score"] == pytest.approx(1 / 3)
    assert same["changed"] == ["sum-0", "sum-3"]


def test_regrade_names_samples_as_show_does(server: ScriptedServer) -> None:
    server.plays(says("It is 1."))
    model = ("-m", "m", "--base-url", server.url)
    log = run("eval", "lab:dataset", *model, "--epochs", 2, "--json").json["log"]
    changed = run("regrade", log, "--grade", "lab:brief", "--json").json["changed"]
    assert any(name.endswith("#0") for name in changed)
    for name in changed:
        assert run("show", log, name).code == 0


def test_regrade_refuses_a_file_that_is_there_and_a_choice_of_two(logs: tuple[str, str]) -> None:
    assert "already" in run("regrade", logs[0], "--grade", "lab:brief", "--to", logs[1]).err
    for more in ([], ["lab:dataset", "--grade", "lab:brief"]):
        ended = run("regrade", logs[0], *more)
        assert ended.code == 2
        assert "The log is of 'dataset'" in ended.err


def test_regrade_ends_with_1_if_samples_cannot_be_graded(
    logs: tuple[str, str], folder: Path
) -> None:
    (folder / "odd.py").write_text("def grade(record):\n    return 1 / 0\n", encoding="utf-8")
    ended = run("regrade", logs[0], "--grade", "odd:grade")
    assert ended.code == 1
    assert "6 samples cannot be graded now; the first: division by zero" in ended.err
    ended = run("regrade", logs[0], "--grade", "lab:dataset")
    assert (ended.code, ended.out) == (2, "")
    assert "--grade must name a function" in ended.err
    ended = run("regrade", logs[0], "--grade", "lab:brief", "--to", "lab.py/x.jsonl")
    assert ended.code == 2
    assert "error: cannot write 'lab.py/x.jsonl': " in ended.err


def test_list_names_the_benchmarks_and_what_one_takes() -> None:
    assert run("list").out.split() == list_benchmarks()
    assert run("list", "--json").json == {"benchmarks": list_benchmarks()}
    told = run("list", "gsm8k").out
    assert "-a few_shot=..." in told
    described = told[told.index("Args:") : told.index("Raises:")].splitlines()[1:-1]
    assert all(line.startswith("    ") for line in described)  # on the 80 columns that there are
    arguments = {
        each["name"]: each for each in run("list", "reasoning_gym", "--json").json["arguments"]
    }
    assert arguments["task"]["required"]
    assert (arguments["size"]["required"], arguments["size"]["default"]) == (False, 100)


def test_the_version_is_told() -> None:
    assert run("--version").out == f"rolloutlib {rolloutlib.__version__}\n"


def test_a_config_gives_options_and_the_command_line_wins(
    server: ScriptedServer, folder: Path
) -> None:
    server.plays(says("The answer is 42."))
    (folder / "items.jsonl").write_text('{"question": "What is 6 times 7?", "answer": "42"}')
    (folder / "run.toml").write_text(
        f"""
        benchmark = "gsm8k"
        model = "from the file"
        base-url = "{server.url}"
        max_tokens = 9
        temperature = 0.25
        stop = ["END", "STOP"]
        json = true
        send-seed = false
        [arg]
        dataset = "items.jsonl"
        system_prompt = '''Think "hard".
Then answer.'''
        [extra-body]
        chat_template_kwargs = {{ enable_thinking = false }}
        """,
        encoding="utf-8",
    )
    ended = run("eval", "--config", "run.toml", "--temperature", 1)
    assert ended.code == 0, ended.err
    assert ended.json["model"] == "from the file"
    body = server.received[0].body
    assert (body["temperature"], body["stop"]) == (1, ["END", "STOP"])
    assert body["messages"][0]["content"] == 'Think "hard".\nThen answer.'
    assert body["chat_template_kwargs"] == {"enable_thinking": False}
    assert "seed" not in body


def test_a_config_may_begin_with_the_mark_of_its_encoding(logs: tuple[str, str]) -> None:
    Path("run.toml").write_text("samples = true", encoding="utf-8-sig")  # as editors on Windows do
    assert "6 of 6 found" in run("show", logs[0], "--config", "run.toml").out


def test_pairs_of_the_command_line_stand_beside_those_of_a_config(
    server: ScriptedServer, folder: Path
) -> None:
    server.plays(says("The answer is 42."))
    (folder / "items.jsonl").write_text('{"question": "What is 6 times 7?", "answer": "42"}')
    (folder / "run.toml").write_text(
        """
        stop = "END"
        [arg]
        dataset = "items.jsonl"
        system_prompt = "Think."
        [extra-body]
        top_k = 20
        mode = "slow"
        """,
        encoding="utf-8",
    )
    line = f"eval gsm8k -m m --base-url {server.url} --config run.toml --json"
    ended = run(*line.split(), "-a", "system_prompt=Hurry.", "--extra-body", "mode=fast")
    assert ended.code == 0, ended.err
    body = server.received[0].body
    assert body["messages"][0]["content"] == "Hurry."
    assert (body["top_k"], body["mode"], body["stop"]) == (20, "fast", ["END"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("temprature = 1", ["unknown option 'temprature'", "did you mean 'temperature'?"]),
        ("config = 'b.toml'", ["a config names no other config"]),
        ("limit = 'few'", ["--limit"]),
        ("limit = ", ["run.toml' is not TOML"]),
        ("[stop]\nword = 'x'", ["{'word': 'x'} for 'stop', which takes a list of texts"]),
        ("stop = [['x']]", ["[['x']] for 'stop', which takes a list of texts"]),
        ("max-tokens = true", ["True for 'max-tokens', which takes a text or a number"]),
        ("limit = [1]", ["[1] for 'limit', which takes a text or a number"]),
        ("[limit]\nn = 1", ["{'n': 1} for 'limit', which takes"]),
        ("log = 1979-05-27", ["for 'log', which takes a text or a number"]),
        ("logprobs = 1", ["1 for 'logprobs', which takes true or false"]),
        ("send-seed = 'no'", ["'no' for 'send-seed', which takes true or false"]),
        ("extra-body = 3", ["3 for 'extra-body', which takes a table, or a list of NAME=VALUE"]),
        ("extra-body = [3]", ["[3] for 'extra-body', which takes"]),
    ],
)
def test_a_wrong_config_is_refused(folder: Path, text: str, words: list[str]) -> None:
    (folder / "run.toml").write_text(text, encoding="utf-8")
    ended = run("eval", "lab:dataset", "-m", "m", "--config", "run.toml")
    assert ended.code == 2
    for word in words:
        assert word in ended.err
    assert "cannot read the config" in run("eval", "--config", "no.toml").err


def test_what_json_cannot_hold_is_null(server: ScriptedServer) -> None:
    server.plays(says("It is 1."))
    command = f"eval lab:dataset -m m --base-url {server.url} --limit 1 --log".split()
    run(*command, "a.jsonl")
    run(*command, "b.jsonl")
    assert "too few items for an interval" in run("compare", "a.jsonl", "b.jsonl").out
    text = run("compare", "a.jsonl", "b.jsonl", "--json").out
    assert json.loads(text, parse_constant=pytest.fail)["p_value"] is None
