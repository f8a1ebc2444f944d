"""Sampling from Tinker, and its training data from trajectories."""

from rolloutlib.tinker._datums import LossName, read_logprobs, to_datums

__all__ = ["LossName", "read_logprobs", "to_datums"]
