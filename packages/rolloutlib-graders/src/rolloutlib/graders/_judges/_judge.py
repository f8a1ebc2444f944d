"""A model that judges one candidate at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic

from typing_extensions import TypeVar

from rolloutlib.graders._criteria import Criterion
from rolloutlib.graders._judges._candidates import Candidate
from rolloutlib.graders._judges._exchanges import Exchange, JudgeModel, identity
from rolloutlib.graders._judges._prompts import JudgePrompt
from rolloutlib.graders._judges._templates import JudgeTemplate
from rolloutlib.graders._judges._usage import JudgeUsage
from rolloutlib.graders._llm import LLMGrader
from rolloutlib.graders._rubric import Rubric
from rolloutlib.rollouts import Trajectory
from rolloutlib.scores import Score

InputT = TypeVar("InputT", default=str | Candidate | Trajectory[Any, Any])


class Judge(
    LLMGrader[InputT, Criterion | Rubric, JudgePrompt, Score],
    Generic[InputT],
):
    """An `LLMGrader` with a prompt and a parser that candidates cannot fool, and with retries.

    Grades by a `Criterion`, so that it can be one of the graders of a `CompositeGrader`, or by a
    `Rubric`, all of whose criteria it judges in one call. A score has the judge's reason as its
    feedback and `JudgeUsage.to_dict()` under "judge" in its metadata.

    A reply without a verdict is answered with the parser's complaint. If there is none at last, a
    `VerdictError` comes out: a failure is never a score. What the model raises comes out as it is, and
    is not tried again, since a model's client knows best what to try again.

    Args:
        model: Takes a chat and returns a reply; any policy over chats is one. For a model that
            continues text, `lambda chat: complete(chat_text(chat))`.
        template: Makes the prompts.
        read: Makes a candidate of the input, if that is neither text nor a `Candidate` nor a
            `Trajectory`.
        max_retries: How many replies without a verdict are answered with a complaint.
        metadata: Goes into the metadata of each score, a copy of it: the name of the model, say.
        inline: As for `LLMGrader`.

    Raises:
        TypeError: A part is not callable, or `read` is asynchronous.
        ValueError: `max_retries` is negative, or JSON cannot hold the metadata.
    """

    def __init__(
        self,
        model: JudgeModel,
        *,
        template: JudgeTemplate | None = None,
        read: Callable[[InputT], str | Candidate | Trajectory[Any, Any]] | None = None,
        max_retries: int = 2,
        metadata: Mapping[str, Any] | None = None,
        inline: bool = False,
    ) -> None:
        prompts = JudgeTemplate() if template is None else template
        self._exchange = Exchange(model, max_retries=max_retries, inline=inline)

        def render(input: InputT, rubric: Criterion | Rubric) -> JudgePrompt:
            return prompts.render(input if read is None else read(input), rubric)

        super().__init__(
            sample=self._exchange.sample,
            render=render,
            parse=identity,
            metadata=metadata,
            scale=None,  # its verdicts are on their scales; the total of a rubric has none
            inline=inline,
        )

    @property
    def usage(self) -> JudgeUsage:
        """What the judge was asked until now, and what it used, failures included."""
        return self._exchange.meter.usage
