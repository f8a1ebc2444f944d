"""Validates JSON by a JSON Schema, inside a worker process."""

from __future__ import annotations

import functools
import importlib
import json
from typing import Any


def _import() -> tuple[Any, Any]:
    return importlib.import_module("jsonschema"), importlib.import_module("referencing")


_jsonschema, _referencing = _import()
_SAMPLES: tuple[Any, ...] = (None, True, 0, "", [], {})


def handle(job: dict[str, Any]) -> dict[str, Any]:
    """Validate a document.

    Args:
        job: "schemas" and "document", all texts. Without a document only the schemas are read.

    Returns:
        "unusable": the place of a schema that is none, and why; else "matched": the place of the
        first that the document follows, and "reason": what is wrong by the first, if it is.
    """
    validators: list[Any] = []
    for place, schema in enumerate(job["schemas"]):
        validator, problem = _validator(schema)
        if validator is None:
            return {"unusable": place, "reason": problem}
        validators.append(validator)
    if job["document"] is None:
        return {}
    document = json.loads(job["document"])
    first = None
    for place, validator in enumerate(validators):
        try:
            error = next(validator.iter_errors(document), None)
        except (MemoryError, RecursionError):
            raise
        except Exception as failure:  # a reference or a pattern that is reached only now
            return {"unusable": place, "reason": f"{type(failure).__name__}: {failure}"}
        if error is None:
            return {"matched": place}
        first = first or f"{error.json_path}: {error.message:.300}"
    return {"matched": None, "reason": first}


@functools.lru_cache(maxsize=256)
def _validator(text: str) -> tuple[Any, str | None]:
    """Return what validates by a schema, or why it cannot be used. Nothing is fetched."""
    try:
        schema = json.loads(text)
        if not isinstance(schema, dict):
            return None, "it is no JSON object"
        kind = _jsonschema.validators.validator_for(schema, _jsonschema.Draft202012Validator)
        kind.check_schema(schema)
        validator = kind(schema, registry=_referencing.Registry())
        for sample in _SAMPLES:  # a reference that leads nowhere, or to itself
            validator.is_valid(sample)
    except Exception as error:
        return None, f"{type(error).__name__}: {str(error).splitlines()[0]:.300}"
    return validator, None
