"""Environments, rollouts and their records for reinforcement learning of language agents."""

import pkgutil

__path__ = pkgutil.extend_path(__path__, __name__)
