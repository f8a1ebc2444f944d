"""The page in a real browser: reading, filtering, comparing, by mouse and by keyboard."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.keys import Keys

from evals.reports.episodes import HOSTILE, answer, hostile_records, with_reasoning, write_groups
from evals.reports.pages import Page
from evals.sums import add, sums
from rolloutlib import Score, Trajectory
from rolloutlib.evals import BenchmarkResult, EvaluationRecord, run_benchmark
from rolloutlib.evals.benchmarks import gsm8k
from rolloutlib.evals.reports import Report, read_report

pytestmark = pytest.mark.slow

OpenPage = Callable[..., Page]


def one_sample(trajectory: Trajectory[Any, Any]) -> Report:
    record = EvaluationRecord(0, "one", trajectory.score, trajectory=trajectory)
    return Report(BenchmarkResult.from_records("one", [record]))


@pytest.fixture
def groups(page: OpenPage, tmp_path: Path) -> Page:
    return page(read_report(write_groups(tmp_path / "groups.jsonl")))


def test_a_page_opens_with_the_figures_of_the_run(page: OpenPage) -> None:
    opened = page(Report(run_benchmark(sums(), policy=add)))
    assert opened.text("h1") == "sums"
    figure = opened.text(".figures .first").splitlines()
    assert figure == ["score", "0.75", "0.311 to 1.189 (95% t); mean over 6 samples of 6 items"]
    assert opened.status == "6 of 6 samples"
    assert opened.rows == [f"sum-{number}" for number in range(6)]
    assert opened.log() == []


def test_the_first_sample_is_shown_at_once_and_the_page_stays_at_its_top(groups: Page) -> None:
    groups.await_detail("1 of 7")
    assert groups.text("#detail h3") == "product#0"
    assert groups.find("#row-0").get_attribute("aria-selected") == "true"
    assert groups.run("return [location.hash, scrollY]") == ["", 0]
    groups.run("arguments[0].click()", groups.find("input[name=view][value=items]"))
    groups.await_status("3 of 3 items")
    assert groups.log() == []


def test_names_of_any_length_are_cut_in_lists_and_whole_in_the_facts(page: OpenPage) -> None:
    name = "n" * 1_000_000
    score = Score(0.5, None, {"expected": name, "extracted": name, "status": "found", "rule": name})
    record = EvaluationRecord(0, name, score, trajectory=answer("?", "yes", score))
    opened = page(Report(BenchmarkResult.from_records("long", [record])))
    opened.await_detail("1 of 1")
    text = "return document.getElementById(arguments[0]).textContent.length"
    assert opened.run(text, "list") < 5_000
    assert opened.run(text, "detail") < 5_000
    opened.run("document.querySelectorAll('#detail details').forEach(e => e.open = true)")
    opened.until("return document.querySelector('#detail .pairs .gap') !== null")


def test_a_conversation_is_shown_with_its_tools_folded(groups: Page) -> None:
    groups.choose(0)
    assert [turn.get_attribute("data-role") for turn in groups.find_all(".turn")] == [
        *("system", "user", "assistant", "tool", "assistant")
    ]
    call = groups.find(".call")
    assert call.get_attribute("open") is None
    assert call.text.startswith("multiply")
    call.find_element("css selector", "summary").click()
    groups.until("return document.querySelector('.call .text')?.textContent.includes('\"b\": 23')")
    assert groups.text("#detail mark") == "391"
    assert "Right, and short." in groups.text(".scores")
    assert groups.log() == []


def test_the_answer_is_marked_where_it_was_read(page: OpenPage) -> None:
    benchmark = gsm8k([{"question": "6 * 7?", "answer": "42"}])
    opened = page(Report(run_benchmark(benchmark, policy=lambda _: r"😀😀 It is \boxed{42}.")))
    opened.choose(0)
    assert opened.text("#detail mark") == "42"
    assert "found, box" in opened.find("#detail mark").get_attribute("title")


def test_images_are_shown_if_they_are_at_hand_and_never_loaded(page: OpenPage) -> None:
    opened = page(one_sample(with_reasoning()))
    opened.choose(0)
    [image] = opened.find_all("#detail img")
    opened.until("return arguments[0].naturalWidth === 1", image)
    assert image.get_attribute("alt") == "a dot"
    assert "image, which is not loaded: https://example.org/tracker.png" in opened.text("#detail")
    assert opened.log() == []


def test_reasoning_stands_apart(page: OpenPage) -> None:
    opened = page(one_sample(with_reasoning()))
    opened.choose(0)
    assert [turn.get_attribute("data-role") for turn in opened.find_all(".turn")] == [
        *("user", "assistant")
    ]
    assert "It is very small." not in opened.text("#detail")
    opened.run("document.querySelectorAll('#detail .action details').forEach(e => e.open = true)")
    opened.await_detail("It is very small.")


def test_log_probabilities_without_ids_are_shown(page: OpenPage) -> None:
    opened = page(one_sample(with_reasoning()))
    opened.choose(0)
    opened.run("document.querySelectorAll('#detail details').forEach(e => e.open = true)")
    opened.until("return document.querySelectorAll('.token-row .token').length === 2")
    assert "2 tokens, 2 sampled, mean log probability -1" in opened.text(".tokens")


def test_a_failure_is_shown_with_its_traceback(groups: Page) -> None:
    groups.choose(6)
    assert "builtins.TimeoutError in policy" in groups.text(".error")
    assert "too slow" in groups.text(".error")


def test_samples_are_filtered_and_ordered(groups: Page) -> None:
    groups.run("arguments[0].click()", groups.find("input[name=outcome][value=wrong]"))
    groups.await_status("1 of 7 samples")
    assert groups.rows == ["sum#0"]
    groups.run("arguments[0].click()", groups.find("input[name=outcome][value=failed]"))
    groups.await_status("2 of 7 samples")
    groups.find("button[type=reset]").click()
    groups.await_status("7 of 7 samples")
    groups.find("input[name=low]").send_keys("0.5")
    groups.find("input[name=high]").send_keys("0.75")
    groups.await_status("2 of 7 samples")
    assert groups.rows == ["product#0", "sum#1"]
    groups.find("button[type=reset]").click()
    groups.find("select[name=order]").send_keys("score, lowest")
    groups.until("return document.querySelector('.row .name').textContent === 'sum#0'")
    assert groups.rows[-1] == "slow#1"  # which has none
    groups.find("select[name=reason]").send_keys("builtins")
    groups.await_status("1 of 7 samples")


def test_a_search_finds_what_was_said_or_went_wrong(groups: Page) -> None:
    for text, found in (("TOO slow", ["slow#1"]), ('"b": 23', ["product#0"]), ("nowhere", [])):
        groups.find("input[type=search]").clear()
        groups.find("input[type=search]").send_keys(text)
        groups.until(
            "return JSON.stringify([...document.querySelectorAll('.row .name')]"
            ".map(e => e.textContent)) === arguments[0]",
            json.dumps(found),
        )
    assert groups.status == "0 of 7 samples"


def test_the_members_of_a_group_stand_side_by_side(groups: Page) -> None:
    groups.run("arguments[0].click()", groups.find("input[name=view][value=items]"))
    groups.await_status("3 of 3 items")
    groups.choose(1)
    assert len(groups.find_all(".column")) == 4
    assert groups.text("#detail").count("2 + 3?") == 1
    assert [column.text.splitlines()[0] for column in groups.find_all(".column")] == [
        *("sum#0", "sum#1", "sum#2", "sum#3")
    ]
    assert groups.log() == []


def test_two_runs_are_compared_item_by_item(page: OpenPage) -> None:
    baseline = Report(run_benchmark(sums(6), policy=lambda _: "3"), title="threes")
    opened = page(Report(run_benchmark(sums(5), policy=add), baseline=baseline))
    assert "Compared with threes" in opened.text("#comparison")
    assert "paired over 5 items; 1 left out" in opened.text("#comparison")
    assert opened.status == "6 of 6 items"
    opened.find("button[data-change=equal]").click()
    opened.await_status("1 of 6 items")
    assert opened.rows == ["sum-2"]
    opened.find("button[data-change=better]").click()
    opened.await_status("4 of 6 items")
    opened.choose(0)
    assert [column.text.splitlines()[0] for column in opened.find_all(".column")] == [
        *("this run", "baseline")
    ]
    assert "mean score 1 · baseline 0 · +1, better" in opened.text("#detail .verdict")
    opened.find("button[type=reset]").click()
    opened.find("input[type=search]").send_keys("sum-5")  # which only the baseline has
    opened.await_status("1 of 6 items")
    assert opened.rows == ["sum-5"]
    assert opened.log() == []


def test_tokens_are_shown_on_demand(page: OpenPage, tmp_path: Path) -> None:
    report = read_report(write_groups(tmp_path / "groups.jsonl"))
    opened = page(report, token_text="<{}>".format)
    opened.choose(2)
    assert opened.find_all(".token-row") == []
    [fold] = [fold for fold in opened.find_all("#detail summary") if fold.text.startswith("Tokens")]
    fold.click()
    opened.until("return document.querySelector('.token-row') !== null")
    tokens = opened.find_all(".token-row .token")
    assert [token.text for token in tokens] == ["<1>", "<2>", "<3>", "<5>", "<1>"]
    masked = ["sampled" not in (token.get_attribute("class") or "") for token in tokens]
    assert masked == [True, True, True, False, False]
    assert "log probability -3, probability 0.04979" in (tokens[-1].get_attribute("title") or "")


def test_all_can_be_done_with_the_keyboard(groups: Page) -> None:
    groups.press(Keys.TAB)
    assert groups.run("return document.activeElement.className") == "skip"
    groups.press(Keys.ENTER)
    groups.until("return location.hash === '#samples'")
    for _ in range(30):
        groups.press(Keys.TAB)
        if groups.run("return document.activeElement.id") == "list":
            break
    groups.press(Keys.ARROW_DOWN)
    groups.await_detail("2 of 7")
    active = groups.find(f"#{groups.find('#list').get_attribute('aria-activedescendant')}")
    assert active.get_attribute("aria-selected") == "true"
    assert (active.get_attribute("aria-posinset"), active.get_attribute("aria-setsize")) == (
        "2",
        "7",
    )
    groups.press(Keys.END)
    groups.await_detail("7 of 7")
    groups.press(Keys.ENTER)
    assert groups.run("return document.activeElement.id") == "detail"
    groups.press(Keys.ESCAPE)
    assert groups.run("return document.activeElement.id") == "list"
    groups.press(Keys.HOME)
    groups.await_detail("1 of 7")
    groups.press(Keys.ENTER, Keys.TAB, Keys.SPACE)
    groups.await_detail("2 of 7")
    assert groups.run("return document.activeElement.textContent") == "Next"


def test_a_sample_has_an_address(groups: Page) -> None:
    groups.choose(3)
    address = groups.run("return location.href")
    assert address.endswith("#sample=sum%232")
    groups.browser.get("about:blank")
    groups.browser.get(address)
    groups.await_detail("4 of 7")
    assert "sum#2" in groups.text("#detail h3")


def test_hostile_text_is_shown_and_never_runs(page: OpenPage) -> None:
    title = "</title><script>window.hacked = 1</script>\u202e"
    result = BenchmarkResult.from_records(title, hostile_records())
    opened = page(
        Report(
            result, settings={title: title, "model": title}, baseline=Report(result, title=title)
        )
    )
    for view in ("samples", "items"):
        opened.run("arguments[0].click()", opened.find(f"input[name=view][value={view}]"))
        opened.await_status(f"{len(result.records)} of {len(result.records)} {view}")
        for number, record in enumerate(result.records):
            opened.run("document.getElementById('list').scrollTop = arguments[0] * 60", number - 2)
            opened.until(f"return document.getElementById('row-{number}') !== null")
            opened.choose(number)
            opened.run("document.querySelectorAll('#detail details').forEach(e => e.open = true)")
            shown = opened.run("return document.getElementById('detail').textContent")
            assert not set(shown) & {"\x00", "\x1b", "\u202e", "\u2067", "\U000e0069"}
            text = HOSTILE.get((record.item_id or "").removeprefix("failed ").split()[0], "")
            if "U+" not in shown:
                assert text in shown
    assert opened.run("return window.hacked") is None
    assert opened.log() == []
    assert "<script>window.hacked = 1</script>" in opened.browser.title
    assert opened.text("header p").startswith("</title><script>window.hacked = 1</script>[U+202E]")


def test_hidden_characters_are_shown_by_their_numbers(page: OpenPage) -> None:
    opened = page(Report(BenchmarkResult.from_records("hostile", hostile_records())))
    expected = {
        "bidi": ["U+202E", "U+202C", "U+2067", "U+2069"],
        "nul": ["U+0000", "U+001B", "U+0007"],
        "surrogate": ["U+D83D"],
        "tags": ["U+E0069"],
        "separators": ["U+2028", "U+2029"],
    }
    for name, numbers in expected.items():
        opened.choose(list(HOSTILE).index(name))
        shown = {mark.text for mark in opened.find_all("#detail .action .hidden")}
        assert shown >= set(numbers), name


def test_a_long_answer_is_shortened_around_what_was_read(page: OpenPage) -> None:
    records = [record for record in hostile_records() if record.item_id == "long"]
    assert records[0].trajectory is not None
    opened = page(Report(BenchmarkResult.from_records("long", records)))
    opened.choose(0)
    text = "return document.querySelector('#detail .action .text').textContent"
    assert len(opened.run(text)) < 20_000
    assert opened.text("#detail mark") == "MIDDLE"
    assert opened.run(text).endswith("yEND")
    gaps = opened.find_all("#detail .gap")
    assert len(gaps) == 2
    for gap in gaps:
        opened.run("arguments[0].click()", gap)
    whole = opened.run(text)
    assert whole.replace("found, box", "").replace("\u2009", "") == records[0].trajectory.actions[0]
