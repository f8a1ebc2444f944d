"""Training: exact tokens from rollouts to a trainer."""

from rolloutlib.training._sequences import TokenSequence, TokenSpan

__all__ = ["TokenSequence", "TokenSpan"]
