"""Problems with one short answer, and the environment that asks them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, ClassVar, TypeAlias, cast

from gymnasium import Space
from pydantic import BaseModel, ConfigDict, Field

from rolloutlib.envs import SingleTurnEnv
from rolloutlib.scores import Score
from rolloutlib.spaces.messages import chat
from rolloutlib.spaces.text import text
from rolloutlib.types import Chat

__all__ = [
    "Grade",
    "MathEnv",
    "MathExample",
    "check_few_shot",
    "example_id",
    "make_example_id",
    "read_examples",
]

Grade: TypeAlias = Callable[[str, str], Score]
"""Scores a response against the expected answer."""

_ANSWER = ("answer", "ground_truth")
_ID = ("example_id", "id")


class MathExample(BaseModel):
    """A problem and its answer.

    Attributes:
        question: The problem.
        answer: The expected answer, as its benchmark writes it.
        example_id: Names the problem, the same in every run.
        metadata: Whatever else is known about it.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True)

    question: str
    answer: str
    example_id: str | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)


class MathEnv(SingleTurnEnv[Chat, str]):
    """Asks a problem in a chat, takes the text of the reply and grades it.

    Args:
        example: The problem.
        grade: Scores a reply against `example.answer`.
        system_prompt: The content of a system message before the problem.
        prompt_suffix: What follows the problem in the user's message.
        few_shot: Problems and their solutions, which come before as earlier turns of the chat.
    """

    def __init__(
        self,
        example: MathExample,
        grade: Grade,
        *,
        system_prompt: str | None = None,
        prompt_suffix: str = "",
        few_shot: Sequence[tuple[str, str]] = (),
    ) -> None:
        super().__init__()
        self.example = example
        self.system_prompt = system_prompt
        self.prompt_suffix = prompt_suffix
        self.few_shot: tuple[tuple[str, str], ...] = tuple(few_shot)
        self.action_space: Space[str] = text()
        self.observation_space: Space[Chat] = chat()
        self._grade = grade

    def initial_observation(
        self, *, options: dict[str, Any] | None = None
    ) -> tuple[Chat, dict[str, Any]]:
        """Return the messages that ask the problem; the info holds "example_id"."""
        messages: Chat = []
        if self.system_prompt:
            messages.append({"role": "system", "content": self.system_prompt})
        for problem, solution in self.few_shot:
            messages.append({"role": "user", "content": problem + self.prompt_suffix})
            messages.append({"role": "assistant", "content": solution})
        messages.append({"role": "user", "content": self.example.question + self.prompt_suffix})
        return messages, {"example_id": self.example.example_id}

    def evaluate(self, action: str) -> tuple[Score, dict[str, Any]]:
        """Grade the reply; the info holds "example_id".

        Raises:
            TypeError: The reply is not text.
        """
        if not isinstance(cast("object", action), str):
            msg = f"{self} takes the text of a reply, got {action!r}"
            raise TypeError(msg)
        return self._grade(action, self.example.answer), {"example_id": self.example.example_id}

    def terminal_observation(self, action: str) -> Chat:
        """Return the reply as an assistant message."""
        return [{"role": "assistant", "content": action}]


def make_example_id(prefix: str, question: str) -> str:
    """Name a problem after its benchmark and text: `prefix`, a colon and 16 hexadecimal digits."""
    return f"{prefix}:{hashlib.sha256(question.strip().encode()).hexdigest()[:16]}"


def example_id(example: MathExample) -> str:
    """Return the name of an example that `read_examples` gave."""
    if example.example_id is None:
        msg = f"the example has no example_id: {example!r}"
        raise ValueError(msg)
    return example.example_id


def read_examples(
    rows: Iterable[MathExample | Mapping[str, Any]],
    name: str,
    check_answer: Callable[[str], object],
    *,
    question: tuple[str, ...],
) -> tuple[MathExample, ...]:
    """Make examples of rows, whatever their columns are called, and check each.

    Args:
        rows: Examples, or mappings with a problem, an answer ("answer" or "ground_truth": text or a
            number) and possibly an id ("example_id" or "id"). Other columns become metadata.
        name: The benchmark's name, with which ids are made for examples that have none.
        check_answer: Raises ValueError for an answer that cannot be graded against.
        question: The columns that may hold the problem, the likeliest first.

    Raises:
        TypeError: A row is neither, or `rows` is no collection of them.
        ValueError: A row lacks a column, or its answer cannot be graded against; the message says
            which row.
    """
    if isinstance(rows, (str, bytes, Mapping)) or not isinstance(cast("object", rows), Iterable):
        msg = (
            f"{name} needs a collection of examples, got {rows!r}: the name or path of a data set is "
            "given as `dataset`, and of several splits one"
        )
        raise TypeError(msg)
    examples: list[MathExample] = []
    for index, row in enumerate(rows):
        place = f"{name} example {index}"
        example = row if isinstance(row, MathExample) else _from_row(row, place, question)
        if example.example_id is None:
            made = make_example_id(name, example.question)
            example = example.model_copy(update={"example_id": made})
        try:
            check_answer(example.answer)
        except ValueError as error:
            msg = f"{place} ({example.example_id!r}): {error}"
            raise ValueError(msg) from error
        examples.append(example)
    return tuple(examples)


def check_few_shot(shots: Sequence[MathExample], examples: Sequence[MathExample]) -> None:
    """Refuse a worked example that is one of the problems: its answer would stand in the prompt.

    Raises:
        ValueError: One is; the message names it.
    """
    problems = {example.question.strip() for example in examples}
    for shot in shots:
        if shot.question.strip() in problems:
            msg = (
                f"the few-shot example {shot.example_id!r} is one of the problems of the benchmark: "
                "give others as `few_shot`, from a training split say"
            )
            raise ValueError(msg)


def _from_row(row: Mapping[str, Any], place: str, names: tuple[str, ...]) -> MathExample:
    if not isinstance(cast("object", row), Mapping):
        msg = f"{place} must be a MathExample or a mapping, got {row!r}"
        raise TypeError(msg)
    columns = dict(row)
    question = _take(columns, names)
    if not isinstance(question, str):
        raise _bad_column(place, "text", names, question, row)
    answer = _take(columns, _ANSWER)
    if isinstance(answer, bool) or not isinstance(answer, (str, Real)):
        raise _bad_column(place, "text or a number", _ANSWER, answer, row)
    identity = _take(columns, _ID)
    metadata = columns.pop("metadata", {})
    if isinstance(metadata, Mapping):
        columns.update(cast("Mapping[str, Any]", metadata))
    else:
        columns["metadata"] = metadata
    return MathExample(
        question=question,
        answer=str(answer),
        example_id=None if identity is None else str(identity),
        metadata=columns,
    )


def _take(columns: dict[str, Any], names: tuple[str, ...]) -> object:
    """Remove and return the value under the first of the names, in lower case or another."""
    spelled = {column.lower(): column for column in reversed(columns)}
    for name in names:
        if name in spelled and columns[spelled[name]] is not None:
            return columns.pop(spelled[name])
    return None


def _bad_column(
    place: str, kind: str, names: tuple[str, ...], value: object, row: Mapping[str, Any]
) -> ValueError:
    columns = ", ".join(repr(column) for column in row)
    wanted = " or ".join(repr(name) for name in names)
    return ValueError(
        f"{place} needs {kind} under {wanted}, got {value!r}; its columns are {columns}"
    )
