"""Drawing values by a JSON schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rolloutlib.spaces.text import DEFAULT_ALPHABET

_SPAN = 10
_WIDEST = 2**62  # of ranges that NumPy draws from
_LONGEST = 100  # of texts and lists that may be longer


def draw(schema: Mapping[str, Any], rng: np.random.Generator) -> Any:
    """Draw a value of a schema that pydantic made; not all that it may say is looked at."""
    return _draw(schema, rng, schema.get("$defs", {}))


def _draw(schema: Mapping[str, Any], rng: np.random.Generator, defs: Mapping[str, Any]) -> Any:
    if "$ref" in schema:
        return _draw(defs[schema["$ref"].rpartition("/")[2]], rng, defs)
    if "const" in schema:
        return schema["const"]
    for key in ("enum", "anyOf", "oneOf"):
        if key in schema:
            chosen = schema[key][rng.integers(len(schema[key]))]
            return chosen if key == "enum" else _draw(chosen, rng, defs)
    match schema.get("type"):
        case "object":
            properties: Mapping[str, Any] = schema.get("properties", {})
            wanted = [name for name in properties if _wanted(name, schema, rng)]
            return {name: _draw(properties[name], rng, defs) for name in wanted}
        case "array":
            if "prefixItems" in schema:
                return [_draw(item, rng, defs) for item in schema["prefixItems"]]
            least, most = _bounds(schema, "minItems", "maxItems", 3)
            items = schema.get("items", {})
            return [_draw(items, rng, defs) for _ in range(rng.integers(least, most + 1))]
        case "string":
            least, most = _bounds(schema, "minLength", "maxLength", _SPAN)
            size = rng.integers(least, most + 1)
            indices = rng.integers(len(DEFAULT_ALPHABET), size=size)
            return "".join(DEFAULT_ALPHABET[index] for index in indices)
        case "integer":
            low, high = map(int, _range(schema))
            return low + int(rng.integers(min(high - low, _WIDEST) + 1))
        case "number":
            low, high = _range(schema)
            return float(rng.uniform(low, min(high, low + _WIDEST)))
        case "boolean":
            return bool(rng.integers(2))
        case _:
            return None


def _wanted(name: str, schema: Mapping[str, Any], rng: np.random.Generator) -> bool:
    return name in schema.get("required", ()) or bool(rng.integers(2))


def _bounds(schema: Mapping[str, Any], low: str, high: str, span: int) -> tuple[int, int]:
    least = schema.get(low, 0)
    return least, min(schema.get(high, least + span), least + _LONGEST)


def _range(schema: Mapping[str, Any]) -> tuple[float, float]:
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high = schema.get("maximum", schema.get("exclusiveMaximum"))
    if low is None:
        low = -_SPAN if high is None else high - 2 * _SPAN
    return low, low + 2 * _SPAN if high is None else high
