"""Every snippet of the README of 0.2.0 runs as written, over real objects under its free names.

The file is the README's text without its code fences. A snippet is a run of paragraphs that parse as
Python; a heading of one word parses too, as a bare name, and is left out.
"""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import pytest

from rolloutlib import (
    AsyncEnv,
    Env,
    GradingWrapper,
    Score,
    SingleTurnEnv,
    Trajectory,
    TrajectoryGroup,
    arollout,
    rollout,
    spaces,
)
from rolloutlib.datasets import Dataset, RLDataset
from rolloutlib.evals import BenchmarkResult
from rolloutlib.graders import Criterion, LLMGrader, Rubric

README = Path(__file__).parents[3] / "shared" / "contract" / "readme-0.2.0.txt"
if not README.is_file():
    pytest.skip(f"needs {README.name}, which is not part of the project", allow_module_level=True)


def is_code(text: str) -> bool:
    try:
        statements = ast.parse(text).body
    except SyntaxError:
        return False
    words = [
        node
        for node in statements
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Name)
    ]
    return bool(statements) and not words


def read_snippets() -> list[str]:
    snippets = [""]
    for part in re.split(r"(\n{2,})", README.read_text(encoding="utf-8")):
        if is_code(snippets[-1] + part) or (snippets[-1] and part.isspace()):
            snippets[-1] += part
        else:
            snippets.append(part if is_code(part) else "")
    return [snippet.strip() for snippet in snippets if snippet]


SNIPPETS = read_snippets()


async def run(marker: str, **names: Any) -> SimpleNamespace:
    """Run the one snippet that has a word, with names filled in, and return what it defined."""
    (snippet,) = [text for text in SNIPPETS if re.search(rf"\b{marker}\b", text)]
    code = compile(snippet, README.name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    result = eval(code, names)  # noqa: S307 - the file is a specification of this project
    if inspect.isawaitable(result):
        await result
    return SimpleNamespace(**names)


class Problem(SimpleNamespace):
    """What the README calls an item or a problem."""

    id: str
    question: str
    answer: str


class ProblemEnv(SingleTurnEnv[str, str]):
    """An environment whose free names the README calls ExistingEnv, ProblemEnv and make_env."""

    observation_space = spaces.text.text()
    action_space = spaces.text.text()
    closed: int = 0

    def __init__(self, item: Problem) -> None:
        super().__init__()
        self.item = item
        self.state = {"question": item.question}

    def initial_observation(
        self, *, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        return self.item.question, {}

    def evaluate(self, action: str) -> float:
        return float(action == self.item.answer)

    def terminal_observation(self, action: str) -> str:
        return action


def make_problem(number: int) -> Problem:
    rubric = Rubric(criteria=(Criterion(id="right", description="The answer is right."),))
    return Problem(id=f"p{number}", question=f"{number} + 0?", answer=str(number), rubric=rubric)


class Model:
    """A model that answers with the first word of the prompt."""

    logprobs = (-0.25,)

    def generate(self, prompt: str) -> tuple[list[int], str]:
        text = prompt.split(maxsplit=1)[0]
        return [len(text)], text


pytestmark = pytest.mark.anyio


async def test_the_readme_has_all_its_snippets() -> None:
    assert len(SNIPPETS) == 10


async def test_sync_environment() -> None:
    environment = (await run("EchoEnv")).EchoEnv()
    assert isinstance(environment, Env)
    trajectory = rollout(environment, lambda observation: 4, seed=1)
    assert trajectory.observations == ("ready", "4")
    assert trajectory.total_reward == 4.0


async def test_async_environment() -> None:
    async def execute_tool(action: str) -> str:
        return action.upper()

    found = await run(
        "ToolEnv",
        observation="start",
        execute_tool=execute_tool,
        next_observation="end",
        reward=0.5,
        terminated=True,
        truncated=False,
    )
    environment = found.ToolEnv()
    assert isinstance(environment, AsyncEnv)
    trajectory: Trajectory[str, str] = await arollout(environment, lambda observation: "look")
    assert trajectory.observations == ("start", "end")
    assert trajectory.steps[0].info["result"] == "LOOK"
    assert trajectory.total_reward == 0.5


async def test_grading_wrapper() -> None:
    item = make_problem(7)
    inputs: list[Any] = []

    def grader(grading_input: Any, rubric: Rubric) -> Score:
        inputs.append(grading_input)
        return Score(0.25, {rubric.criteria[0].id: 0.25})

    found = await run("GradingWrapper", ExistingEnv=ProblemEnv, item=item, grader=grader)
    environment: GradingWrapper[str, str, Any, Rubric] = found.environment
    environment.reset(seed=1)
    _, reward, terminated, _, info = environment.step("7")
    assert (reward, terminated) == (0.25, True)
    score = Score.from_info(info)
    assert score is not None
    assert (score.value, score.component_values) == (0.25, {"right": 0.25})
    assert inputs == [(item, {"question": "7 + 0?"}, "7")]


async def test_spaces() -> None:
    found = await run("token_sequence")
    assert [0, 127_999] in found.token_sequence
    assert [128_000] not in found.token_sequence
    assert [{"role": "user", "content": "Hello"}] in found.chat
    assert [] not in found.chat
    call = {"name": "search", "arguments": {"query": "rain"}}
    assert call in found.tool_call
    assert {"name": "search", "arguments": {"query": ""}} not in found.tool_call
    assert [call, call] in found.tool_calls


async def test_policy_and_rollout() -> None:
    found = await run("generate", environment=ProblemEnv(make_problem(3)), model=Model())
    step = found.trajectory.steps[0]
    assert (step.action, step.reward) == ("3", 1.0)
    assert (step.policy_tokens, step.policy_logprobs) == ((1,), (-0.25,))


async def test_rollout_group() -> None:
    made: list[ProblemEnv] = []
    closed: list[ProblemEnv] = []

    class Closing(ProblemEnv):
        def close(self) -> None:
            closed.append(self)
            super().close()

    def make_env(item: Problem) -> gym.Env[str, str]:
        made.append(Closing(item))
        return made[-1]

    found = await run(
        "num_rollouts", item=make_problem(5), make_env=make_env, policy=lambda observation: "5"
    )
    group: TrajectoryGroup[Problem, str, str] = found.group
    assert (group.item_id, len(group.trajectories)) == ("problem-17", 8)
    assert group.rewards == (1.0,) * 8
    assert len(made) == 8
    assert closed == made


async def test_datasets() -> None:
    problems = [make_problem(1), make_problem(2)]
    found = await run(
        "RLDataset", ProblemEnv=ProblemEnv, problem_a=problems[0], problem_b=problems[1]
    )
    items: Dataset[Problem] = found.items
    rl_items: RLDataset[Problem, ProblemEnv] = found.rl_items
    assert list(items.items) == problems
    assert items.metadata == {"split": "train"}
    assert [rl_items.item_id(index) for index in range(2)] == ["p1", "p2"]
    assert rl_items.make_env(problems[1]).item is problems[1]


async def test_graders() -> None:
    judge: LLMGrader[str, Criterion, str, str] = LLMGrader(
        sample=lambda prompt: "yes" if "heading" in prompt else "no",
        render=lambda answer, criterion: f"{criterion.description} {answer}",
        parse=lambda reply, criterion: float(reply == "yes"),
    )
    found = await run(
        "llm_criterion_grader",
        llm_criterion_grader=judge,
        exact_answer_grader=lambda answer, criterion: 0.4,
        context="an answer with a heading",
    )
    assert found.score.component_values == {"correctness": 0.4, "format": 1.0}
    assert found.reward == pytest.approx((0.4 * 1.0 + 1.0 * 0.2) / 1.2)


async def test_scores() -> None:
    info: dict[str, Any] = {"turn": 1}
    found = await run("feedback", Score=Score, info=info)
    assert found.score.components["format"].feedback
    assert info["turn"] == 1


async def test_evaluation(capsys: pytest.CaptureFixture[str]) -> None:
    found = await run("run_benchmark", sample_answer=lambda observation: r"\boxed{42}")
    result: BenchmarkResult = found.result
    assert result.score == 1.0
    assert result.num_completed == 1
    assert capsys.readouterr().out == "1.0\n"
