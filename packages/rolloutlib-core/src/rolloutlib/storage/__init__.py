"""Storage: groups of trajectories in files that outlive the process."""

from rolloutlib.storage._lines import TornLineWarning
from rolloutlib.storage._parquet import from_arrow, read_parquet, to_arrow, write_parquet
from rolloutlib.storage._reading import read_groups, read_settings
from rolloutlib.storage._store import GroupStore
from rolloutlib.storage._writing import GroupWriter

__all__ = [
    "GroupStore",
    "GroupWriter",
    "TornLineWarning",
    "from_arrow",
    "read_groups",
    "read_parquet",
    "read_settings",
    "to_arrow",
    "write_parquet",
]
