"""What a check finds."""

from __future__ import annotations

import contextlib
import traceback
import warnings
from collections.abc import Callable, Generator
from dataclasses import dataclass, field

from rolloutlib.evals._command._errors import describe


@dataclass
class Findings:
    """What a check found: `passed` holds what was done, a line each.

    Args:
        is_debug: Whether the tracebacks of exceptions are written.
    """

    is_debug: bool = False
    passed: list[str] = field(default_factory=list[str])
    problems: list[str] = field(default_factory=list[str])

    @contextlib.contextmanager
    def about(self, what: str) -> Generator[Callable[[str], None]]:
        """Take note of what does not hold: of exceptions, and of warnings.

        The block calls what it gets with what was done, which is told if all holds.
        """
        done: list[str] = []
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                yield done.append
            except AssertionError as error:
                self.problems.append(f"{what}: {error}")
            except (Exception, SystemExit) as error:  # whatever a user's code raises
                if self.is_debug:
                    traceback.print_exception(error)
                self.problems.append(f"{what}: {describe(error)}")
        told = [str(each.message) for each in caught if each.category is UserWarning]
        self.problems += [f"{what}: {each}" for each in told]
        self.passed += [f"{what}: {each}" for each in done if not told]
