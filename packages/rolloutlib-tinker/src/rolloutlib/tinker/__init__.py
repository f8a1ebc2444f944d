"""Sampling from Tinker, and its training data from trajectories."""

from rolloutlib.tinker._datums import LossName, to_datums

__all__ = ["LossName", "to_datums"]
