"""A language model as judge: several verdicts on each answer, and how far they can be trusted.

    uv run examples/model_judge.py

`LLMGrader` takes the model as a callable, so any backend fits; here it is the small local model,
whose verdicts are poor. A reply that is not a verdict is no score: it is counted, and kept apart
from "no". Compare a judge with answers whose truth is known before its verdicts become rewards.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from local_model import LocalModel, LocalPolicy

from rolloutlib import Score
from rolloutlib.graders import Criterion, LLMGrader
from rolloutlib.types import Chat

NUM_VERDICTS = 5
CORRECT = Criterion(id="correct", description="Is the answer correct?")


@dataclass(frozen=True)
class Case:
    """An answer whose truth is known."""

    question: str
    answer: str
    right: bool


CASES = [
    Case("What do bees make?", "honey", True),
    Case("What do bees make?", "cheese", False),
    Case("What is the capital of France?", "Paris", True),
    Case("What is the capital of France?", "London", False),
    Case("How many legs has a spider?", "eight", True),
    Case("How many legs has a spider?", "four", False),
]
EXAMPLES = [Case("What is 1 + 1?", "2", True), Case("How many days has a week?", "four", False)]


def render(case: Case, criterion: Criterion) -> Chat:
    """Ask for a verdict, after two worked examples."""
    chat: Chat = []
    for example in EXAMPLES:
        verdict = "yes" if example.right else "no"
        chat.extend(
            (
                {"role": "user", "content": ask(example, criterion)},
                {"role": "assistant", "content": verdict},
            )
        )
    return [*chat, {"role": "user", "content": ask(case, criterion)}]


def ask(case: Case, criterion: Criterion) -> str:
    """Put one case into words."""
    return (
        f"Question: {case.question}\nAnswer: {case.answer}\n"
        f"{criterion.description} Reply with yes or no."
    )


def parse(reply: str, criterion: Criterion) -> Score:
    """Read a verdict.

    Raises:
        ValueError: The reply is neither yes nor no.
    """
    verdict = reply.strip().rstrip(".").lower()
    if verdict not in {"yes", "no"}:
        msg = f"the judge replied {reply!r} instead of yes or no"
        raise ValueError(msg)
    return Score(float(verdict == "yes"), feedback=reply)


def main() -> None:
    """Judge every case several times and compare the verdicts with the truth."""
    parser = argparse.ArgumentParser(description="Let a small model judge answers.")
    parser.add_argument("--seed", type=int, default=0, help="fixes the sampling")
    judge_model = LocalPolicy(
        LocalModel(), temperature=1.0, max_tokens=12, seed=parser.parse_args().seed
    )
    judge = LLMGrader(sample=lambda chat: judge_model(chat).action, render=render, parse=parse)

    usable = agreed = 0
    for case in CASES:
        verdicts: list[float] = []
        for _ in range(NUM_VERDICTS):
            try:
                verdicts.append(judge.score(case, CORRECT).value)
            except ValueError as error:
                print(f"    no verdict: {error}")
        usable += len(verdicts)
        agreed += sum(verdict == case.right for verdict in verdicts)
        yes = int(sum(verdicts))
        print(
            f"{case.question} {case.answer} ({'right' if case.right else 'wrong'}): "
            f"{yes} yes, {len(verdicts) - yes} no, {NUM_VERDICTS - len(verdicts)} unusable"
        )
    print(f"{usable} of {len(CASES) * NUM_VERDICTS} verdicts usable, {agreed} of them true")
    print("guessing makes half of them true")


if __name__ == "__main__":
    main()
