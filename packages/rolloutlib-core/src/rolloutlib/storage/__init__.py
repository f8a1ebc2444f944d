"""Storage: groups of trajectories in files that outlive the process."""

from rolloutlib.storage._lines import TornLineWarning
from rolloutlib.storage._reading import read_groups, read_settings
from rolloutlib.storage._store import GroupStore
from rolloutlib.storage._writing import GroupWriter

__all__ = [
    "GroupStore",
    "GroupWriter",
    "TornLineWarning",
    "read_groups",
    "read_settings",
]
