"""The HTTP library that the installed SDK is built on: httpx2, or httpx before its version 3."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

import openai

if TYPE_CHECKING:
    import httpx2 as httpx
else:
    httpx = importlib.import_module(
        "httpx" if int(openai.__version__.split(".")[0]) < 3 else "httpx2"
    )

__all__ = ["httpx"]
