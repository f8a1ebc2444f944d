"""What statistics take from the result of a run."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from rolloutlib.evals import BenchmarkResult, EvaluationRecord, read_log, run_benchmark
from rolloutlib.evals.benchmarks import gsm8k
from rolloutlib.evals.statistics import maj_at_k, mean_score, pass_at_k
from rolloutlib.scores import Score

PROBLEMS = [{"question": f"What is {n} plus 1?", "answer": f"#### {n + 1}"} for n in (1, 999)]
REPLIES = {
    "1": ["The answer is 2.", "So it is \\boxed{2.0}", "It is 3.", "No idea."],
    "999": ["\\boxed{1{,}000}", "The answer is 1,000", "The answer is $999.", None],
}


def replayed() -> Any:
    """Answer with the replies in turn; None fails."""
    turns = {problem: itertools.cycle(replies) for problem, replies in REPLIES.items()}

    def policy(chat: list[dict[str, Any]]) -> str:
        problem = chat[-1]["content"].split()[2]
        reply = next(turns[problem])
        if reply is None:
            msg = "gone"
            raise ConnectionError(msg)
        return reply

    return policy


def test_a_result_and_its_log_have_scores_and_answers_by_item(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    result = run_benchmark(gsm8k(PROBLEMS), policy=replayed(), epochs=4, log=path)
    first, second = result.item_scores
    assert result.item_scores == {first: [1, 1, 0, 0], second: [1, 1, 0, None]}
    assert result.item_answers == {
        first: ["2", "2", "3", None],
        second: ["1000", "1000", "999", None],
    }
    logged = read_log(path).result()
    assert (logged.item_scores, logged.item_answers) == (result.item_scores, result.item_answers)


def test_one_line_says_what_is_published(tmp_path: Path) -> None:
    result = run_benchmark(gsm8k(PROBLEMS), policy=replayed(), epochs=4)
    assert mean_score(result.item_scores).value == result.score == 0.5
    assert mean_score(result.item_scores).bounds == result.score_bounds
    assert pass_at_k(result.item_scores, 2).value == pytest.approx(5 / 6)
    voted = maj_at_k(result.item_answers, result.item_scores, 4)
    assert voted.value == pytest.approx(1)
    assert voted.num_failed == 1


def record(index: int, item_id: str, score: Score | None) -> EvaluationRecord:
    return EvaluationRecord(index, item_id, score)


def test_items_of_one_id_are_not_taken_for_epochs_of_one_item() -> None:
    records = [record(0, "sum", Score(1.0)), record(1, "sum", Score(0.0))]
    result = BenchmarkResult.from_records("sums", records)
    for name in ("item_scores", "item_answers"):
        with pytest.raises(
            ValueError, match=r"the items 0 and 1 of 'sums' have one id, 'sum', .* by their index"
        ):
            getattr(result, name)


def test_scores_that_tell_no_answer_have_no_majority() -> None:
    known = record(0, "a", Score(1.0, metadata={"extracted": "7"}))
    failed = record(1, "b", None)
    result = BenchmarkResult.from_records("sums", [known, failed])
    assert result.item_answers == {"a": ["7"], "b": [None]}
    result = BenchmarkResult.from_records("sums", [known, record(1, "b", Score(1.0))])
    with pytest.raises(ValueError, match="the score of item 'b' in epoch 0 has no \"extracted\""):
        _ = result.item_answers
