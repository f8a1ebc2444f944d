"""Datasets: sources of the items that rollouts are about."""

from rolloutlib.datasets._dataset import Dataset, RLDataset

__all__ = ["Dataset", "RLDataset"]
