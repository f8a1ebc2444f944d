"""What a recorder has kept, in the form of records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rolloutlib.rollouts._arrays import Logprobs, TokenIds, compact
from rolloutlib.rollouts._policies import PolicyOutput
from rolloutlib.rollouts._steps import StepColumns

ENDS = slice(3, 5)
"""Where the row of a step has its flags."""

OUTPUT = 7
"""Where it has what the policy returned, None if that was a plain action."""


def to_columns(rows: list[tuple[Any, ...]]) -> StepColumns[Any, Any]:
    """Return the rows of steps as columns."""
    columns = StepColumns[Any, Any]()
    if not rows:
        return columns
    (
        columns.observations,
        columns.next_observations,
        columns.rewards,
        columns.terminated,
        columns.truncated,
        columns.infos,
        columns.actions,
        outputs,
        columns.policy_infos,
        columns.versions,
    ) = zip(*rows, strict=True)
    if not any(outputs):
        unknown = (None,) * len(rows)
        columns.stop_reasons = columns.tokens = columns.logprobs = columns.prompt_tokens = unknown
        return columns
    columns.versions = tuple(
        [
            version if output is None or output.version is None else output.version
            for output, version in zip(outputs, columns.versions, strict=True)
        ]
    )
    columns.stop_reasons = tuple([output and output.stop_reason for output in outputs])
    columns.tokens = compact(TokenIds, [output and output.tokens for output in outputs])
    columns.logprobs = compact(Logprobs, [output and output.logprobs for output in outputs])
    columns.prompt_tokens = compact(
        TokenIds, [output and output.prompt_tokens for output in outputs]
    )
    return columns


def to_answer(
    action: Any,
    output: PolicyOutput[Any] | None,
    info: Mapping[str, Any] | None,
    version: int | str | None,
) -> PolicyOutput[Any]:
    """Return what a policy returned, as it is kept."""
    if output is None:
        return PolicyOutput(action, version=version)
    return PolicyOutput(
        action,
        info or {},
        tokens=output.tokens,
        logprobs=output.logprobs,
        stop_reason=output.stop_reason,
        prompt_tokens=output.prompt_tokens,
        version=version if output.version is None else output.version,
    )


def count_tokens(output: PolicyOutput[Any] | None) -> int:
    """Return how many tokens the policy sampled for an action, as far as it tells."""
    return 0 if output is None or output.tokens is None else len(output.tokens)
