"""Public names: each public module lists its own in a sorted `__all__`, no more and no less."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
from types import ModuleType
from typing import TypeVar

import pytest

import rolloutlib


def public_modules() -> list[str]:
    found = pkgutil.walk_packages(rolloutlib.__path__, "rolloutlib.")
    return ["rolloutlib", *(module.name for module in found if "._" not in module.name)]


every_public_module = pytest.mark.parametrize("name", public_modules())


def belongs(module: ModuleType, value: object) -> bool:
    """Whether a public name bound in a module is its own, and not something it imported to use."""
    origin = getattr(value, "__module__", None) or ""
    if hasattr(module, "__path__"):
        return origin.partition(".")[0] not in sys.stdlib_module_names
    return origin == module.__name__ and not isinstance(value, TypeVar)


@every_public_module
def test_all_is_a_sorted_list_of_names_that_exist(name: str) -> None:
    module = importlib.import_module(name)
    names: list[str] = module.__all__
    assert type(names) is list
    assert names == sorted(set(names))
    assert [missing for missing in names if not hasattr(module, missing)] == []


@every_public_module
def test_all_is_complete(name: str) -> None:
    module = importlib.import_module(name)
    bound = {
        key
        for key, value in vars(module).items()
        if not key.startswith("_") and not inspect.ismodule(value) and belongs(module, value)
    }
    assert bound - set(module.__all__) == set()


@every_public_module
def test_a_star_import_works(name: str) -> None:
    namespace: dict[str, object] = {}
    exec(f"from {name} import *", namespace)  # noqa: S102 - the statement under test
    assert set(importlib.import_module(name).__all__) <= set(namespace)
