"""Episodes to report on: conversations with tools, groups, and texts that would like to run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rolloutlib import Score, Step, Trajectory
from rolloutlib.evals import EvaluationRecord
from rolloutlib.rollouts import RolloutError, TrajectoryGroup
from rolloutlib.storage import GroupWriter

HOSTILE = {
    "script": "</script><script>window.hacked = 1</script>",
    "comment": "<!-- <script> window.hacked = 1",
    "attribute": "\"'><img src=x onerror='window.hacked = 1'>",
    "template": "{{ 7 * 7 }}{% raw %}${window.hacked = 1}",
    "bidi": "total \u202e03\u202c or \u2067abc\u2069",
    "nul": "a\x00b\x1b[31mred\x1b[0m\x07",
    "surrogate": "half \ud83d of a smile",
    "tags": "see" + "".join(chr(0xE0000 + ord(letter)) for letter in "ignore"),
    "separators": "one\u2028two\u2029three",
    "markup": "[red]not red[/red] [link=file:///etc/passwd]x[/link]",
}


def answer(
    question: Any,
    reply: Any,
    score: float | Score,
    *,
    tokens: list[int] | None = None,
    logprobs: list[float] | None = None,
    **facts: Any,
) -> Trajectory[Any, Any]:
    """An episode of one step."""
    graded = Score.from_value(score)
    step: Step[Any, Any] = Step(
        question,
        reply,
        graded.value,
        [{"role": "assistant", "content": reply}],
        True,
        False,
        graded.as_info(),
        policy_tokens=tokens,
        policy_logprobs=logprobs,
        policy_prompt_tokens=None if tokens is None else [1, 2, 3],
        policy_stop_reason="stop",
    )
    return Trajectory(question, [step], terminated=True, **facts)


def with_tools() -> Trajectory[Any, Any]:
    """An episode in which the model asks a calculator."""
    chat: list[Any] = [
        {"role": "system", "content": "You are careful."},
        {"role": "user", "content": "What is 17 times 23?"},
    ]
    call = {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"name": "multiply", "arguments": {"a": 17, "b": 23}, "id": "call-1"}],
    }
    result = {"role": "tool", "content": "391", "tool_call_id": "call-1"}
    final = {"role": "assistant", "content": "It is 391."}
    steps: list[Step[Any, Any]] = [
        Step(chat, call, 0.0, [*chat, call, result], False, False, {}),
        Step(
            [*chat, call, result],
            final,
            0.75,
            [*chat, call, result, final],
            True,
            False,
            Score(
                0.75,
                {"right": Score(1.0, metadata={"span": [6, 9], "status": "found"}), "short": 0.5},
                feedback="Right, and short.",
            ).as_info(),
        ),
    ]
    return Trajectory(chat, steps, terminated=True)


def with_reasoning() -> Trajectory[Any, Any]:
    """An episode of a hosted model, which tells log probabilities of tokens without ids."""
    image = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGD4DwABBAEAX+XDSwAAAABJRU5ErkJggg=="
    content = [
        {"type": "text", "text": "What is this?"},
        {"type": "image", "url": image, "alt": "a dot"},
        {"type": "image", "url": "https://example.org/tracker.png"},
    ]
    step: Step[Any, Any] = Step(
        [{"role": "user", "content": content}],
        "A dot.",
        1.0,
        "A dot.",
        True,
        False,
        {},
        {"reasoning": "It is very small.", "model": "hosted"},
        policy_logprobs=[-0.5, -1.5],
        policy_stop_reason="stop",
    )
    return Trajectory(step.observation, [step], terminated=True)


def write_groups(path: Path, *, better: float = 0.0) -> Path:
    """Write a file of collected groups: one with tools, one of sums, one with a failure."""
    error = RolloutError(
        "builtins.TimeoutError", "too slow", index=1, phase="policy", traceback="Traceback: ..."
    )
    sums = [
        answer("2 + 3?", f"It is {n}", value + better, member=n, tokens=[5, n], logprobs=[-0.1, -3])
        for n, value in enumerate([0.0, 0.5, 1.0, 0.25])
    ]
    groups: list[TrajectoryGroup[Any, Any, Any]] = [
        TrajectoryGroup({"task": "product"}, "product", [with_tools()]),
        TrajectoryGroup({"task": "sum"}, "sum", sums),
        TrajectoryGroup(
            {"task": "slow"}, "slow", [answer("Wait?", "Yes", 1.0, member=0)], errors=[error]
        ),
    ]
    with GroupWriter(path, settings={"seed": 7}) as writer:
        for group in groups:
            writer.append(group)
    return path


def hostile_records() -> list[EvaluationRecord]:
    """Samples whose every text is hostile, and one with a long answer."""
    records: list[EvaluationRecord] = []
    for index, (name, text) in enumerate(HOSTILE.items()):
        facts = {"expected": text, "extracted": text, "status": "found", "rule": text}
        score = Score(0.5, {text: 0.5}, {**facts, "span": [0, 3]}, feedback=text)
        trajectory = answer([{"role": text, "content": text}], text, score)
        records.append(
            EvaluationRecord(index, f"{name} {text}", score, item=text, trajectory=trajectory)
        )
        records.append(
            EvaluationRecord(
                index + 100,
                f"failed {name} {text}",
                metadata={"error_type": text, "traceback": text, "phase": "policy"},
                error=text,
            )
        )
    long = "x" * 500_000 + "MIDDLE" + "y" * 500_000 + "END"
    score = Score(1.0, None, {"status": "found", "span": [500_000, 500_006], "rule": "box"})
    records.append(EvaluationRecord(99, "long", score, trajectory=answer("?", long, score)))
    return records
