"""An environment of one turn: it asks, takes one answer, and grades it with a score of parts.

uv run examples/single_turn.py
"""

from __future__ import annotations

from typing import Any

from rolloutlib import Score, SingleTurnEnv, rollout, spaces

PROMPT = "Spell this word backwards: "
WORDS = (
    "anchor",
    "basket",
    "candle",
    "garden",
    "harbor",
    "meadow",
    "pencil",
    "window",
    "summer",
    "carpet",
    "velvet",
)


class BackwardsEnv(SingleTurnEnv[str, str]):
    """Asks for a word spelled backwards; each letter in its place earns a share."""

    observation_space = spaces.text.text(min_length=1, max_length=80)
    action_space = spaces.text.text(max_length=20)

    def initial_observation(
        self, *, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Draw a word; `np_random` follows the seed of the reset."""
        self.word = WORDS[self.np_random.integers(len(WORDS))]
        return PROMPT + self.word, {"word": self.word}

    def evaluate(self, action: str) -> Score:
        """Grade letters and length apart, and say what was wrong."""
        right = self.word[::-1]
        placed = sum(a == b for a, b in zip(action, right, strict=False)) / len(right)
        return Score(
            0.8 * placed + 0.2 * (len(action) == len(right)),
            {"letters": placed, "length": float(len(action) == len(right))},
            feedback=None if action == right else f"{action!r} should be {right!r}",
        )

    def terminal_observation(self, action: str) -> str:
        """Show the answer that ended the episode."""
        return action


def careful_policy(observation: str) -> str:
    """Spell the last word backwards."""
    return observation.removeprefix(PROMPT)[::-1]


def hasty_policy(observation: str) -> str:
    """Forget the last letter."""
    return careful_policy(observation)[:-1]


def main() -> None:
    """Roll out both policies on the same three episodes."""
    for policy in (careful_policy, hasty_policy):
        print(policy.__name__)
        for seed in (1, 2, 3):
            trajectory = rollout(BackwardsEnv(), policy, seed=seed)
            score = trajectory.score
            print(f"  seed {seed}: {trajectory.initial_info['word']} -> {trajectory.actions[0]}")
            parts = [f"{name} {value:.2f}" for name, value in score.component_values.items()]
            print(f"    reward {trajectory.total_reward:.2f} from {', '.join(parts)}")
            if score.feedback:
                print(f"    feedback: {score.feedback}")

    again = [rollout(BackwardsEnv(), careful_policy, seed=2) for _ in range(2)]
    print(f"seed 2 twice gives equal trajectories: {again[0] == again[1]}")


if __name__ == "__main__":
    main()
