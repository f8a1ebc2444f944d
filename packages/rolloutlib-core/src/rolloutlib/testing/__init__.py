"""Checks for the tests of environments and policies: what becomes of a run when parts of it fail."""

from rolloutlib.testing._check import FaultReport, check_faults
from rolloutlib.testing._faults import FaultKind, InjectedError

__all__ = ["FaultKind", "FaultReport", "InjectedError", "check_faults"]
