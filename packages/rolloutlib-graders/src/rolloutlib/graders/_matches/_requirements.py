"""What graders need beside their package, and what bounds them."""

from __future__ import annotations

import importlib.util
import math
import os
from numbers import Real
from typing import cast

from rolloutlib._calls import check_count

_MAX_WORKERS = 4


def require(*modules: str, extra: str, user: str) -> None:
    """Refuse to go on without the packages of an extra.

    Raises:
        ImportError: One is not installed.
    """
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        msg = f'{user} needs {" and ".join(missing)}: pip install "rolloutlib-graders[{extra}]"'
        raise ImportError(msg, name=missing[0])


def check_time_limit(value: float) -> float:
    """Return a number of seconds.

    Raises:
        TypeError: It is no number.
        ValueError: It is not finite and above 0.
    """
    if not isinstance(cast("object", value), Real) or isinstance(value, bool):
        msg = f"time_limit must be a number of seconds, got {value!r}"
        raise TypeError(msg)
    if not 0 < value < math.inf:
        msg = f"time_limit must be finite and above 0, got {value!r}"
        raise ValueError(msg)
    return float(value)


def check_num_workers(value: int | None) -> int:
    """Return a number of processes.

    Raises:
        TypeError: It is no integer.
        ValueError: It is less than 1.
    """
    if value is None:
        return min(os.cpu_count() or 1, _MAX_WORKERS)
    check_count("num_workers", value)
    return value
