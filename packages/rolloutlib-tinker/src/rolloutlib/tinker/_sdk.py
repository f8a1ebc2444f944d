"""Tinker's SDK, imported when it is first needed: that takes over a second."""

from __future__ import annotations

import contextvars
import functools
import re
from concurrent.futures import Future
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    import tinker


@functools.cache
def load() -> Any:
    """Return the module `tinker`.

    Raises:
        ImportError: It is not installed, or older than what this package supports.
    """
    try:
        import tinker  # noqa: PLC0415 - see above
    except ModuleNotFoundError as error:
        msg = (
            f"{_OLDEST} or newer is needed, and {error.name!r} is not installed: pip install tinker"
        )
        raise ImportError(msg, name=error.name) from error
    found = version("tinker")
    if [int(part) for part in re.findall(r"\d+", found)[:2]] < [0, 24]:
        msg = f"{_OLDEST} or newer is needed, and {found} is installed: pip install -U tinker"
        raise ImportError(msg, name="tinker")
    return tinker


def submit(
    sampler: tinker.SamplingClient,
    prompt: tinker.ModelInput,
    num_samples: int,
    params: tinker.SamplingParams,
) -> Future[tinker.SampleResponse]:
    """Begin to sample, and return what tells of the end; cancelling it lets the request go."""
    # In a context of its own: its HTTP library would take trio's for that of the SDK's own loop.
    return to_future(contextvars.Context().run(sampler.sample, prompt, num_samples, params))


def to_future(submitted: Any) -> Future[Any]:
    """Return the plain future of what the SDK returns: before 0.38 that itself, later a wrapper of it."""
    return submitted.future() if _has(submitted, "future") else submitted


def is_sampler(value: Any) -> bool:
    """Tell whether a value is a sampling client, or acts as one, as the SDK's futures of one do."""
    return _has(value, "sample")


def is_future(value: Any) -> bool:
    """Tell whether a value is a future, of a sampling client one hopes."""
    return _has(value, "future") or isinstance(value, Future)


def _has(value: Any, method: str) -> bool:
    """Tell whether there is a method; futures of clients warn when asked for what they lack."""
    return callable(getattr(cast("type[Any]", type(value)), method, None))


_OLDEST = "tinker 0.24"
