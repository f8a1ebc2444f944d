"""The looks of the page in a real browser: for eyes of all kinds, narrow, dark, printed, without scripts."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from evals.reports.episodes import answer, write_groups
from evals.reports.pages import Page
from evals.sums import add, sums
from rolloutlib import Score
from rolloutlib.evals import BenchmarkResult, EvaluationRecord, run_benchmark
from rolloutlib.evals.benchmarks import gsm8k
from rolloutlib.evals.reports import Report, read_report, write_html

pytestmark = pytest.mark.slow

OpenPage = Callable[..., Page]


def group(*scores: float, length: int = 10) -> Report:
    """A group of samples, whose answers are read at the end of a reply."""
    records: list[EvaluationRecord] = []
    for epoch, value in enumerate(scores):
        score = Score(value, None, {"status": "found", "span": [length, length + 1]})
        episode = answer("2 + 2?", "x" * length + "4", score)
        records.append(EvaluationRecord(0, "sum", score, epoch=epoch, trajectory=episode))
    return Report(BenchmarkResult.from_records("group", records))


def list_items(page: Page) -> None:
    page.run("arguments[0].click()", page.find("input[name=view][value=items]"))
    page.until("return document.querySelector('.row .strip') !== null")


@pytest.fixture
def groups(page: OpenPage, tmp_path: Path) -> Page:
    return page(read_report(write_groups(tmp_path / "groups.jsonl")))


def test_every_control_has_a_name_and_every_part_a_heading(groups: Page) -> None:
    groups.choose(1)
    nameless = groups.run(
        """return [...document.querySelectorAll('button, input, select, [role=img], [role=listbox]')]
        .filter(e => !e.getAttribute('aria-label') && !e.getAttribute('aria-labelledby')
          && !e.textContent.trim() && !e.closest('label')?.textContent.trim())
        .map(e => e.outerHTML)"""
    )
    assert nameless == []
    levels = groups.run(
        "return [...document.querySelectorAll('h1,h2,h3,h4,h5')].map(e => Number(e.tagName[1]))"
    )
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    for landmark in ("header", "nav", "main", "footer", "[role=search]", "[role=status]"):
        assert len(groups.find_all(landmark)) == 1


def test_what_is_read_aloud_tells_parts_apart_and_has_no_signs(page: OpenPage) -> None:
    opened = page(Report(run_benchmark(sums(), policy=add)))
    tree = opened.browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    names = [
        (node["role"]["value"], node["name"]["value"])
        for node in tree
        if not node["ignored"] and "name" in node
    ]
    for title in ("Scores of samples", "Lengths of replies, in tokens"):
        assert ("DisclosureTriangle", f"As a table ({title})") in names
    assert ("checkbox", "credited 5") in names
    assert "no answer: 1 of 6" in [name for _, name in names]


def test_what_folds_is_large_enough_to_hit(groups: Page) -> None:
    groups.choose(0)
    groups.run("document.querySelectorAll('details').forEach(e => e.open = true)")
    groups.until("return document.querySelectorAll('#detail .pairs').length > 0")
    heights = groups.run(
        "return [...document.querySelectorAll('summary')].map(e => e.getBoundingClientRect().height)"
    )
    assert min(heights) >= 24
    assert [head.text for head in groups.find_all("#detail thead th")] == [
        *("component", "value", "remarks")
    ]


def test_the_signs_of_a_group_are_all_in_sight(page: OpenPage) -> None:
    opened = page(group(0, 1, 1, 0, 0.5, 0, 1, 1))
    list_items(opened)
    assert [sign.text for sign in opened.find_all(".strip .badge")] == list("✗✓✓✗✓✗✓✓")
    strip = "const strip = document.querySelector('.strip');"
    assert opened.run(f"{strip} return strip.scrollWidth <= strip.clientWidth")
    opened.choose(0)
    verdict = opened.text("#detail .verdict")
    assert verdict == "mean score 0.5625 over 8 samples, scores from 0 to 1"


def test_the_outcomes_of_a_large_group_are_counted(page: OpenPage) -> None:
    opened = page(group(*[0.0] * 70, *[1.0] * 58))
    list_items(opened)
    assert opened.text(".strip").split() == ["✓", "58", "✗", "70"]


def test_columns_make_the_page_no_wider(page: OpenPage) -> None:
    opened = page(group(*[1.0] * 8, length=400))
    list_items(opened)
    opened.choose(0)
    root = "document.documentElement"
    assert opened.run(f"return {root}.scrollWidth === {root}.clientWidth")


def test_a_wrong_answer_is_marked_otherwise_than_a_right_one(page: OpenPage) -> None:
    opened = page(group(1, 0))
    colours: list[Any] = []
    for number in range(2):
        opened.choose(number)
        mark = "document.querySelector('#detail mark')"
        colours.append(opened.run(f"return getComputedStyle({mark}).backgroundColor"))
    assert colours[0] != colours[1]


def test_thinking_is_folded(page: OpenPage) -> None:
    benchmark = gsm8k([{"question": "6 * 7?", "answer": "42"}])
    reply = "<think>\U0001f600\U0001f600 41?</think>\n\n\U0001f600 It is 42."
    opened = page(Report(run_benchmark(benchmark, policy=lambda _: reply)))
    opened.choose(0)
    assert opened.text("#detail mark") == "42"
    assert opened.text("#detail .action summary") == "Thinking, 21 characters of the reply"
    assert opened.text("#detail .action > .text").startswith("\U0001f600 It is 42")
    opened.find("#detail .action summary").click()
    opened.await_detail("41?</think>")
    opened.find("input[type=search]").send_keys("41?")
    opened.await_status("1 of 1 samples")


def test_a_list_says_that_nothing_is_found(groups: Page) -> None:
    assert groups.text(".nothing") == ""
    groups.find("input[type=search]").send_keys("nowhere")
    groups.await_status("0 of 7 samples")
    assert groups.text(".nothing") == "No sample meets all conditions."


def test_numbers_of_any_size_are_told(page: OpenPage) -> None:
    opened = page(group(1e-7, 1 / 3, 123456.7, 1e30, length=12_345))
    opened.run("document.querySelector('input[name=view][value=samples]').click()")
    opened.await_status("4 of 4 samples")
    assert [row.text for row in opened.find_all(".row .figure")] == [
        *("1e-7", "0.3333", "123,500", "1e30")
    ]
    assert opened.text(".row .small") == "12,346 characters"


def test_without_scripts_there_are_figures_and_no_dead_controls(
    browser: Any, tmp_path: Path
) -> None:
    baseline = Report(run_benchmark(sums(6), policy=lambda _: "3"), title="threes")
    report = Report(run_benchmark(sums(5), policy=add), baseline=baseline)
    write_html(report, tmp_path / "report.html")
    off = "Emulation.setScriptExecutionDisabled"
    browser.execute_cdp_cmd(off, {"value": True})
    try:
        browser.get((tmp_path / "report.html").as_uri())
        text = browser.find_element("css selector", "main").text
        assert "paired over 5 items; 1 left out" in text
        assert "which this browser does not run" in text
        controls = browser.find_elements("css selector", "button, input, select, #list")
        assert not [control for control in controls if control.is_displayed()]
    finally:
        browser.execute_cdp_cmd(off, {"value": False})


def test_on_paper_stands_the_chosen_sample_whole(page: OpenPage) -> None:
    opened = page(group(*[1.0] * 8, length=400))
    list_items(opened)
    opened.choose(0)
    opened.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        columns = opened.find_all(".column")
        assert len(columns) == 8
        right = [column.rect["x"] + column.rect["width"] for column in columns]
        assert max(right) <= 1400
        assert not opened.find("#filters").is_displayed()
        assert opened.run(
            "return getComputedStyle(document.getElementById('detail')).overflow"
        ) == ("visible")
    finally:
        opened.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_a_page_knows_light_and_dark(groups: Page) -> None:
    grounds: list[str] = []
    for scheme in ("light", "dark"):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        groups.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        grounds.append(groups.run("return getComputedStyle(document.body).backgroundColor"))
    groups.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert grounds == ["rgb(251, 251, 250)", "rgb(19, 20, 24)"]


def test_a_narrow_page_does_not_scroll_sideways(page: OpenPage) -> None:
    opened = page(group(*[1.0] * 1000))
    size = {"width": 320, "height": 700, "deviceScaleFactor": 1, "mobile": True}
    opened.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        opened.choose(0)
        opened.run("document.querySelectorAll('details').forEach(e => e.open = true)")
        assert opened.run("return document.documentElement.scrollWidth") == 320
    finally:
        opened.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
