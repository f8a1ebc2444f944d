"""The page, as it is written."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from evals.reports.episodes import answer, hostile_records, write_groups
from evals.sums import add, sums
from rolloutlib.evals import BenchmarkResult, EvaluationRecord, run_benchmark
from rolloutlib.evals.reports import Report, read_report, write_html


class Reader(HTMLParser):
    """The elements of a page with their attributes, and what scripts and styles hold."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.contents: list[tuple[str, dict[str, str | None], str]] = []
        self.inside = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.inside = tag
        if tag in ("script", "style"):
            self.contents.append((tag, dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        if self.inside in ("script", "style"):
            tag, attributes, before = self.contents.pop()
            self.contents.append((tag, attributes, before + data))


def read(path: Path) -> Reader:
    return Reader(path.read_text(encoding="utf-8"))


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    title = "</title><script>window.hacked = 1</script>\u202e\x00\ud800"
    result = BenchmarkResult.from_records(title, hostile_records())
    report = Report(result, settings={title: title}, baseline=Report(result))
    write_html(report, tmp_path / "report.html")
    return tmp_path / "report.html"


def test_the_policy_lets_one_script_and_one_style_run(hostile: Path) -> None:
    page = read(hostile)
    [policy] = [
        attributes["content"] or ""
        for tag, attributes in page.elements
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert "default-src 'none'" in policy
    running = [
        (tag, text)
        for tag, attributes, text in page.contents
        if attributes.get("type") != "application/json"
    ]
    assert [tag for tag, _ in running] == ["style", "script"]
    for tag, text in running:
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


def test_nothing_is_loaded_and_nothing_has_a_handler(hostile: Path) -> None:
    for tag, attributes in read(hostile).elements:
        assert tag not in ("link", "img", "iframe", "object", "base"), attributes
        assert "src" not in attributes
        assert "style" not in attributes
        assert not [name for name in attributes if name.startswith("on")]
        assert (attributes.get("href") or "#").startswith("#")


def test_all_data_is_json_whatever_the_texts(hostile: Path) -> None:
    data = [
        json.loads(text)
        for _, attributes, text in read(hostile).contents
        if attributes.get("type") == "application/json"
    ]
    assert len(data[0]["runs"]) == 2
    assert sum(map(len, data[1:-1])) == 2 * len(hostile_records())


def test_what_is_hidden_is_not_in_the_markup(hostile: Path) -> None:
    text = hostile.read_text(encoding="utf-8")
    assert not re.search("[\x00-\x08\x0e-\x1f\u200e\u200f\u202a-\u202e\u2066-\u2069]", text)
    assert "&lt;/title&gt;&lt;script&gt;window.hacked = 1&lt;/script&gt;[U+202E][U+0000]" in text


def test_tokens_may_be_left_out(tmp_path: Path) -> None:
    report = read_report(write_groups(tmp_path / "groups.jsonl"))
    write_html(report, tmp_path / "with.html", token_text="<{}>".format)
    write_html(report, tmp_path / "without.html", tokens=False, token_text="<{}>".format)
    with_tokens, without = (
        [
            json.loads(text)
            for _, attributes, text in read(tmp_path / name).contents
            if attributes.get("type")
        ]
        for name in ("with.html", "without.html")
    )
    [row] = with_tokens[1][1]["rows"]
    assert row == {
        "tokens": [1, 2, 3, 5, 0],
        "sampled": [[3, 5]],
        "steps": [[3, 5, 0]],
        "logprobs": [-0.1, -3.0],
    }
    assert with_tokens[-1] == {str(number): f"<{number}>" for number in (0, 1, 2, 3, 5)}
    assert "rows" not in without[1][1]
    assert without[-1] == {}


def test_an_unlikely_token_may_have_no_probability_at_all(tmp_path: Path) -> None:
    episode = answer("?", "!", 1.0, tokens=[7], logprobs=[float("-inf")])
    result = BenchmarkResult.from_records(
        "one", [EvaluationRecord(0, "a", episode.score, trajectory=episode)]
    )
    write_html(Report(result), tmp_path / "report.html")
    assert '"logprobs":[null]' in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_page_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    report = read_report(write_groups(tmp_path / "groups.jsonl"))
    (tmp_path / "report.html").write_text("before", encoding="utf-8")

    def fail(token: int) -> str:
        raise ValueError(token)

    with pytest.raises(ValueError, match="0"):
        write_html(report, tmp_path / "report.html", token_text=fail)
    assert [path.name for path in tmp_path.glob("report*")] == ["report.html"]
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == "before"


def test_an_empty_run_has_a_page(tmp_path: Path) -> None:
    write_html(Report(run_benchmark(sums(0), policy=add)), tmp_path / "report.html")
    assert "too few items for an interval" in (tmp_path / "report.html").read_text(encoding="utf-8")
