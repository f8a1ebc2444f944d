"""Sampling from Tinker, and its training data from trajectories."""

__all__: list[str] = []
