"""Checks for the tests of environments, policies and graders."""

from rolloutlib.testing._check import FaultReport, check_faults
from rolloutlib.testing._faults import FaultKind, InjectedError
from rolloutlib.testing._grader_check import GraderReport, check_grader
from rolloutlib.testing._grader_passes import GraderProperty
from rolloutlib.testing._grader_texts import GraderAttack

__all__ = [
    "FaultKind",
    "FaultReport",
    "GraderAttack",
    "GraderProperty",
    "GraderReport",
    "InjectedError",
    "check_faults",
    "check_grader",
]
