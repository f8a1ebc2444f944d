"""What a grade depends on, as text: the grader, what it judges by, and its input."""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import inspect
import json
import sys
from collections.abc import Callable
from typing import Any, cast

from pydantic import BaseModel

from rolloutlib.graders._criteria import Criterion
from rolloutlib.rollouts import UnstorableError
from rolloutlib.rollouts._codec import Encode, Encoder
from rolloutlib.rollouts._forms import Record


def fingerprint_of(
    grader: Callable[..., object], fingerprint: str | None, version: str | None
) -> str:
    """Return a text that tells a grader from all others, and from other versions of itself.

    Args:
        grader: The grader; its attribute `fingerprint` may be the text.
        fingerprint: The text, in place of that.
        version: Is added to it. Of a function that can be imported, the name is enough then.

    Raises:
        TypeError: There is no such text.
    """
    for name, value in (("fingerprint", fingerprint), ("version", version)):
        if value is not None and not (isinstance(cast("object", value), str) and value):
            msg = f"{name} must be a text, got {value!r}"
            raise TypeError(msg)
    stated: object = getattr(grader, "fingerprint", None) if fingerprint is None else fingerprint
    if isinstance(stated, str) and stated:
        return stated if version is None else f"{stated}/{version}"
    name = _import_name(grader)
    if name is not None and version is not None:
        return f"{name}/{version}"
    missing = "a `fingerprint`" if name is None else "a `version`"
    msg = (
        f"{grader!r} needs {missing}: a text that you change whenever it would grade otherwise, as "
        "when its prompt or its model changes"
    )
    raise TypeError(msg)


class KeyMaker:
    """Makes the keys of a grader's grades.

    Args:
        fingerprint: The grader's.
        encode: For values of types that trajectories cannot store.
    """

    def __init__(self, fingerprint: str, encode: Encode | None) -> None:
        self._fingerprint = fingerprint
        self._encode = encode
        self._encoder = Encoder(self._foreign)

    def key(self, input: object, rubric: object) -> str:
        """Return the SHA-256 of the grader's fingerprint, what it judges by, and its input.

        Raises:
            UnstorableError: One of the two has no form that could be compared; the message says where.
        """
        if isinstance(rubric, Criterion):  # its weight and its gate are not its grader's business
            rubric = rubric.model_copy(update={"weight": 1.0, "gate": None})
        parts = [self._fingerprint, self._form(rubric, "rubric"), self._form(input, "input")]
        text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def _form(self, value: object, name: str) -> Any:
        try:
            return self._encoder.write(value)
        except UnstorableError as error:
            error.path.append(name)
            raise

    def _foreign(self, value: Any) -> Any:
        """Return the contents of a value, with a name of their kind where the encoder adds none."""
        if self._encode is not None:
            try:
                return self._encode(value)
            except TypeError:
                if not isinstance(value, (Record, BaseModel, enum.Enum)) and not _is_data(value):
                    raise
        if isinstance(value, Record):
            return value.to_dict(encode=self._foreign)
        if isinstance(
            value, BaseModel
        ):  # not its dump, which hides fields, and the kinds of models
            names = type(value).model_fields
            fields = {name: item for name, item in vars(value).items() if name in names}
            return {**fields, **(value.model_extra or {})}
        if isinstance(value, enum.Enum):
            return value.name
        if _is_data(value):
            return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        msg = "give `encode`"
        raise TypeError(msg)


def _import_name(grader: Callable[..., object]) -> str | None:
    """Return the name by which any process can import a function, or None."""
    if not inspect.isfunction(grader) or grader.__module__ == "__main__":
        return None
    found: object = sys.modules.get(grader.__module__)
    for name in grader.__qualname__.split("."):
        found = getattr(found, name, None)
    # What a decorator returns may have the name of another function.
    return f"{grader.__module__}.{grader.__qualname__}" if found is grader else None


def _is_data(value: object) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)
