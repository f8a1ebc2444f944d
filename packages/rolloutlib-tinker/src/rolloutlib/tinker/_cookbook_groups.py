"""Groups and datasets of ours in tinker-cookbook, which is not imported for it."""

from __future__ import annotations

import dataclasses
import logging
import math
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, cast

from rolloutlib._calls import async_form, call, check_count
from rolloutlib._values import snapshot
from rolloutlib.datasets import RLDataset
from rolloutlib.rollouts import (
    ActionT,
    ItemT,
    ObservationT,
    Trajectory,
    TrajectoryGroup,
    derive_seed,
)
from rolloutlib.rollouts._identity import SEED_BITS, content_id, member_seed
from rolloutlib.scores import Score, ScoreValue
from rolloutlib.tinker._cookbook_envs import AnyEnv, CookbookEnv
from rolloutlib.tinker._cookbook_steps import score_metrics
from rolloutlib.tinker._renderers import Renderer
from rolloutlib.tools import Tools

_logger = logging.getLogger("rolloutlib")


@dataclass(eq=False)
class CookbookGroupBuilder(Generic[ItemT, ObservationT, ActionT]):
    """A group of episodes of one item, as tinker-cookbook plays it: its `EnvGroupBuilder`.

    The reward of an episode, of which the cookbook computes advantages, is that of `group.rewards`: what
    `grade_group` gives it, else the score in the last step's info, else the sum of the steps' rewards.
    Seeds are derived as for `rollout_group`. `make_envs` opens nothing: each environment is made when
    its episode begins. The cookbook's versions without `cleanup` leave those open whose episodes it
    breaks off.

    It can be pickled if the item, `make_env`, the renderer and the rest can. Of tinker-cookbook itself
    nothing is needed; `class Builder(CookbookGroupBuilder, EnvGroupBuilder)` is for what checks types.

    Source: tinker-cookbook, `tinker_cookbook/rl/types.py` at commits 06a755a3 and 30a5f559, and later
    with `cleanup`.

    Args:
        item: What the episodes are about; each is played with a copy.
        make_env: Makes an environment for an item.
        renderer: One of tinker-cookbook's, or a `ChatTemplateRenderer`.
        num_rollouts: How many episodes.
        item_id: The name of the item; by default one made from its contents.
        seed: Fixes the seed of each member; drawn by default.
        options: Go to each `reset`.
        max_steps: After that many steps an episode is cut short.
        tools: What the model may call, as for `TinkerPolicy`.
        tokenizer: The model's; by default the renderer's attribute `tokenizer`.
        grade_group: Gives each episode its score, from all that the cookbook kept, also those that it
            broke off; a coroutine function, or one that may block. The records have no log
            probabilities.
        tags: By which the cookbook groups what it logs.
        inline: Call synchronous environments on the event loop, not each on a thread of its own.

    Raises:
        TypeError: An argument has the wrong type, or the renderer has no tokenizer, or cannot tell a
            model of tools.
        ValueError: `num_rollouts` or `max_steps` is less than 1.
    """

    item: ItemT
    make_env: Callable[
        [ItemT], AnyEnv[ObservationT, ActionT] | Awaitable[AnyEnv[ObservationT, ActionT]]
    ]
    renderer: Renderer
    _: dataclasses.KW_ONLY
    num_rollouts: int
    item_id: str | None = None
    seed: int | None = None
    options: Mapping[str, Any] | None = None
    max_steps: int | None = None
    tools: Tools | None = None
    tokenizer: Any = None
    grade_group: (
        Callable[
            [TrajectoryGroup[ItemT, ObservationT, ActionT]],
            Iterable[ScoreValue] | Awaitable[Iterable[ScoreValue]],
        ]
        | None
    ) = None
    tags: Sequence[str] = ()
    inline: bool = False
    _envs: list[CookbookEnv[ObservationT, ActionT]] = field(
        default_factory=list["CookbookEnv[ObservationT, ActionT]"], init=False, repr=False
    )
    _attempt: int = field(default=0, init=False, repr=False)

    def __post_init__(self) -> None:
        check_count("num_rollouts", self.num_rollouts)
        if self.item_id is None:
            self.item_id = content_id(self.item, self.make_env)
        if self.seed is None:
            self.seed = secrets.randbits(SEED_BITS)
        self._make_env(0, 0)  # which refuses what could not be played

    async def make_envs(self) -> Sequence[CookbookEnv[ObservationT, ActionT]]:
        """Return an episode for each member.

        A further call, as by a cookbook that tries anew what failed, returns further attempts at them;
        after `cleanup` they are the first again, with the same seeds.
        """
        attempt, self._attempt = self._attempt, self._attempt + 1
        made = [self._make_env(member, attempt) for member in range(self.num_rollouts)]
        self._envs += made
        return made

    async def compute_group_rewards(
        self,
        trajectory_group: Sequence[object],
        env_group: Sequence[CookbookEnv[ObservationT, ActionT]] | None = None,
    ) -> list[tuple[float, dict[str, float]]]:
        """Return what is to be added to the sum of each episode's rewards, and metrics.

        Args:
            trajectory_group: The cookbook's own records.
            env_group: The environments that they are of; its first versions do not tell.

        Raises:
            BaseException: What `grade_group` raises.
            TypeError: It gives something else than scores.
            ValueError: It does not give one score an episode.
        """
        envs = self._envs[-len(trajectory_group) :] if env_group is None else env_group
        # None of an episode that was given up before its first observation.
        records = [env.trajectory for env in envs]
        begun = [record for record in records if record is not None]
        graded = iter(await self._grade(begun))
        return [(0.0, {}) if record is None else next(graded) for record in records]

    async def cleanup(self) -> None:
        """Close the environments of all episodes that have not ended; it raises nothing."""
        envs, self._envs, self._attempt = self._envs, [], 0
        for env in envs:
            try:
                await env.close()
            except Exception:  # whatever an environment raises
                _logger.exception("closing %r failed", env)

    def logging_tags(self) -> list[str]:
        """Return the tags."""
        return list(self.tags)

    async def _grade(
        self, played: list[Trajectory[ObservationT, ActionT]]
    ) -> list[tuple[float, dict[str, float]]]:
        if self.grade_group is None or not played:
            return [(each.score.value - each.total_reward, {}) for each in played]
        group = TrajectoryGroup(self.item, cast("str", self.item_id), played, seed=self.seed)
        grades = await call(async_form(self.grade_group), group, inline=self.inline)
        scores = [Score.from_value(grade) for grade in grades]
        if len(scores) != len(played):
            msg = f"grade_group must give one score an episode: got {len(scores)} for {len(played)}"
            raise ValueError(msg)
        return [
            (score.value - each.total_reward, score_metrics(score))
            for score, each in zip(scores, played, strict=True)
        ]

    def _make_env(self, member: int, attempt: int) -> CookbookEnv[ObservationT, ActionT]:
        seed, item_id = cast("int", self.seed), cast("str", self.item_id)
        return CookbookEnv(
            partial(self.make_env, snapshot(self.item)),
            self.renderer,
            tools=self.tools,
            tokenizer=self.tokenizer,
            seed=member_seed(seed, item_id, member, attempt),
            options=self.options,
            max_steps=self.max_steps,
            member=member,
            attempt=attempt,
            inline=self.inline,
        )


class CookbookDataset(Generic[ItemT]):
    """A dataset of ours, as tinker-cookbook trains on it: its `RLDataset`.

    Args:
        dataset: Has the items, in the order in which they are played, and makes their environments.
        renderer: One of tinker-cookbook's, or a `ChatTemplateRenderer`.
        batch_size: How many items a batch has; the last may have fewer.
        num_rollouts: How many episodes of an item are played.
        seed: Fixes the seeds of all episodes, as for `collect`; drawn by default.
        others: Further arguments of each `CookbookGroupBuilder`.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: `batch_size`, `num_rollouts` or `max_steps` is less than 1.
    """

    def __init__(
        self,
        dataset: RLDataset[ItemT, Any],
        renderer: Renderer,
        *,
        batch_size: int,
        num_rollouts: int,
        seed: int | None = None,
        **others: Any,
    ) -> None:
        if not isinstance(cast("object", dataset), RLDataset):
            msg = f"dataset must be an RLDataset, which makes environments, got {dataset!r}"
            raise TypeError(msg)
        check_count("batch_size", batch_size)
        self.dataset = dataset
        self.batch_size = batch_size
        self.seed: int = secrets.randbits(SEED_BITS) if seed is None else seed
        self._builder = partial(
            CookbookGroupBuilder[ItemT, Any, Any],
            make_env=dataset.make_env,
            renderer=renderer,
            num_rollouts=num_rollouts,
            **others,
        )
        if len(dataset):
            self._build(0)  # which refuses what could not be played

    def get_batch(self, index: int) -> list[CookbookGroupBuilder[ItemT, Any, Any]]:
        """Return what builds the groups of a batch.

        Raises:
            IndexError: There is no such batch.
        """
        if not 0 <= index < len(self):
            msg = f"batch {index!r} is out of range for {len(self)} batches"
            raise IndexError(msg)
        first = index * self.batch_size
        last = min(first + self.batch_size, len(self.dataset))
        return [self._build(position) for position in range(first, last)]

    def __len__(self) -> int:
        return math.ceil(len(self.dataset) / self.batch_size)

    def _build(self, position: int) -> CookbookGroupBuilder[ItemT, Any, Any]:
        return self._builder(
            self.dataset[position],
            item_id=self.dataset.item_id(position),
            seed=derive_seed(self.seed, position),
        )
