"""Validates JSON by a JSON Schema, inside a worker process."""

from __future__ import annotations

import functools
import importlib
import json
import re
from typing import Any


def _import() -> tuple[Any, Any, Any]:
    drafts = importlib.import_module("jsonschema_specifications")
    return importlib.import_module("jsonschema"), importlib.import_module("referencing"), drafts


_jsonschema, _referencing, _drafts = _import()
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
        except (
            _referencing.exceptions.Unresolvable,
            re.error,
        ) as failure:  # where none was looked for
            return {"unusable": place, "reason": f"{type(failure).__name__}: {failure}"}
        except Exception as failure:  # an integer too large to be divided, for example
            first = first or f"{type(failure).__name__}: {failure!s:.300}"
            continue
        if error is None:
            return {"matched": place}
        first = first or f"{error.json_path:.300}: {error.message:.300}"
    return {"matched": None, "reason": first}


@functools.lru_cache(maxsize=256)
def _validator(text: str) -> tuple[Any, str | None]:
    """Return what validates by a schema, or why it cannot be used. Nothing is fetched."""
    try:
        schema = json.loads(text)
        if not isinstance(schema, dict):
            return None, "it is no JSON object"
        default = _jsonschema.Draft202012Validator
        kind = _jsonschema.validators.validator_for(
            schema, None if "$schema" in schema else default
        )
        if kind is None:
            return None, f'its "$schema", {schema["$schema"]!r:.100}, is no draft that is known'
        kind.check_schema(schema)
        draft = _referencing.jsonschema.specification_with(kind.META_SCHEMA["$schema"])
        resource = draft.create_resource(schema)
        _check_references(resource, _drafts.REGISTRY.resolver_with_root(resource))
        validator = kind(schema, registry=_referencing.Registry())
        for sample in _SAMPLES:  # a schema that applies itself
            validator.is_valid(sample)
    except Exception as error:
        return None, f"{type(error).__name__}: {str(error).splitlines()[0]:.300}"
    return validator, None


def _check_references(resource: Any, resolver: Any) -> None:
    """Follow the references in a schema and in those that it holds.

    Raises:
        Unresolvable: One leads nowhere.
        ValueError: One leads to itself.
    """
    for name in ("$ref", "$dynamicRef"):
        passed: list[Any] = []
        contents: Any = resource.contents
        where = resolver
        while type(contents) is dict and name in contents:
            if any(contents is other for other in passed):
                msg = f"{contents[name]!r} refers to itself"
                raise ValueError(msg)
            passed.append(contents)
            found = where.lookup(contents[name])
            contents, where = found.contents, found.resolver
    for inner in resource.subresources():
        _check_references(inner, resolver.in_subresource(inner))
