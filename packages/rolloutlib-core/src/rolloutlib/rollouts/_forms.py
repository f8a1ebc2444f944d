"""The dictionary forms of records: versioned, in the types that JSON has, and without loss."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import FrozenInstanceError, dataclass
from typing import Any, ClassVar, Self, cast

import numpy as np

from rolloutlib._values import same
from rolloutlib.rollouts._array_forms import load_array, to_base64
from rolloutlib.rollouts._arrays import Logprobs, NumberArray, TokenIds
from rolloutlib.rollouts._codec import Decode, Decoder, Encode, Encoder, UnstorableError
from rolloutlib.scores import Score


@dataclass(frozen=True, slots=True)
class Part:
    """How a field that is no plain value is written and read.

    Attributes:
        write: Takes the field's value, the encoder and the record; returns the form.
        read: Takes the form, the decoder and the fields of the record that were read before.
    """

    write: Callable[[Any, Encoder, Any], Any]
    read: Callable[[Any, Decoder, Mapping[str, Any]], Any]


class Schema:
    """The form of a kind of record: its fields by their names, and "schema", which tells the kind.

    Args:
        name: The kind of record and the version of its form.
        parts: The fields that are no plain values.
    """

    def __init__(self, name: str, **parts: Part) -> None:
        self._name = name
        self._parts = parts

    def write(self, record: Any, encoder: Encoder) -> dict[str, Any]:
        """Return the form of a record.

        Raises:
            UnstorableError: Something in it cannot be stored.
        """
        form: dict[str, Any] = {"schema": self._name}
        for name in _field_names(cast("type[Any]", type(record))):
            value = getattr(record, name)
            part = self._parts.get(name)
            try:
                form[name] = (
                    encoder.write(value) if part is None else part.write(value, encoder, record)
                )
            except UnstorableError as error:
                error.path.append(f".{name}")
                raise
        return form

    def read(self, kind: type[Any], form: Any, decoder: Decoder) -> Any:
        """Return the record of a form.

        Raises:
            ValueError: It is not such a form, or what it says is no such record.
        """
        if not isinstance(form, Mapping):
            msg = f"the form of a {kind.__name__} is a mapping, got {form!r}"
            raise ValueError(msg)  # noqa: TRY004 - of data that was read, not of an argument
        fields = cast("Mapping[str, Any]", form)
        if fields.get("schema") != self._name:
            msg = (
                f"the form of a {kind.__name__} has the schema {self._name!r}, got "
                f"{fields.get('schema')!r}: another version of rolloutlib may have written it"
            )
            raise ValueError(msg)
        names = _field_names(kind)
        if set(names) != fields.keys() - {"schema"}:
            wrong = sorted(set(names) ^ (fields.keys() - {"schema"}))
            msg = f"the form of a {kind.__name__} has the fields {list(names)}; missing or unknown: {wrong}"
            raise ValueError(msg)
        record: dict[str, Any] = {}
        try:
            for name in names:
                part = self._parts.get(name)
                record[name] = (
                    decoder.read(fields[name])
                    if part is None
                    else part.read(fields[name], decoder, record)
                )
            return kind(**record)
        except (TypeError, KeyError, AttributeError, ArithmeticError) as error:
            msg = f"not the form of a {kind.__name__}: {error!r}"
            raise ValueError(msg) from error


class Record:
    """A record that can be turned into a dictionary and back."""

    __slots__ = ()

    _schema: ClassVar[Schema]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        # What dataclass writes for a class that is frozen and has slots raises TypeError for a name that
        # is no field. On 3.11 and 3.12 so did `PolicyOutput[str](...)`, which sets `__orig_class__`.
        if "__setattr__" in vars(cls):
            type.__setattr__(cls, "__setattr__", _refuse)

    def to_dict(self, *, encode: Encode | None = None) -> dict[str, Any]:
        """Return a form of the record that JSON can hold, and that `from_dict` reads without loss.

        Args:
            encode: Turns a value of a type of your own into one that can be stored, and raises
                `TypeError` for any other. Without it, such values are refused.

        Raises:
            UnstorableError: Something in the record cannot be stored; the message tells its place.
        """
        return self._schema.write(self, Encoder(encode))

    @classmethod
    def from_dict(cls, value: Mapping[str, Any], *, decode: Decode | None = None) -> Self:
        """Read the form that `to_dict` writes.

        Args:
            value: The form.
            decode: Takes the name of a type of your own, "module.Class", and what `encode` returned
                for a value of it, and returns the value.

        Raises:
            ValueError: It is not such a form.
        """
        return cls._schema.read(cls, value, Decoder(decode))


def _refuse(record: Record, name: str, value: object) -> None:
    del value
    msg = f"cannot assign to field {name!r} of a {type(record).__name__}"
    raise FrozenInstanceError(msg)


def same_fields(record: Any, other: object) -> bool:
    """Compare two records of one dataclass by their fields, arrays in them included."""
    if type(record) is not type(other):
        return NotImplemented
    names = [field.name for field in dataclasses.fields(cast("Any", record))]
    return all(same(getattr(record, name), getattr(other, name)) for name in names)


def record(kind: type[Record]) -> Part:
    """Return how to write and read a record in a record, or None."""

    def write(value: Any, encoder: Encoder, _: Any) -> Any:
        return None if value is None else _write_record(value, kind, encoder)

    def read(form: Any, decoder: Decoder, _: Any) -> Any:
        return None if form is None else kind.from_dict(form, decode=decoder.decode)

    return Part(write, read)


def records(kind: type[Record]) -> Part:
    """Return how to write and read a sequence of records in a record."""

    def write(values: Sequence[Any], encoder: Encoder, _: Any) -> list[Any]:
        return in_turn(values, lambda value: _write_record(value, kind, encoder))

    def read(forms: Sequence[Any], decoder: Decoder, _: Any) -> tuple[Any, ...]:
        return tuple([kind.from_dict(form, decode=decoder.decode) for form in forms])

    return Part(write, read)


def in_turn(values: Sequence[Any], write: Callable[[Any], Any]) -> list[Any]:
    """Write values one after another; an error tells which."""
    forms: list[Any] = []
    try:
        for value in values:
            forms.append(write(value))  # noqa: PERF401 - its length tells the place
    except UnstorableError as error:
        error.path.append(f"[{len(forms)}]")
        raise
    return forms


def write_facts(facts: Mapping[str, Any], encoder: Encoder) -> Any:
    """Return the form of facts, which any kind of mapping may hold."""
    return encoder.write(dict(facts))


def read_facts(form: Any, decoder: Decoder) -> dict[str, Any]:
    """Return the facts of a form.

    Raises:
        ValueError: It is not that of a mapping.
    """
    facts = decoder.read(form)
    if not isinstance(facts, dict):
        msg = f"facts are a mapping, got {facts!r}"
        raise ValueError(msg)  # noqa: TRY004 - of data that was read, not of an argument
    return cast("dict[str, Any]", facts)


def write_numbers(numbers: NumberArray[Any]) -> dict[str, Any]:
    """Return the form of token ids or log probabilities."""
    values = numbers.numbers
    kind = values.dtype.newbyteorder("<")
    return {"dtype": kind.str, "base64": to_base64(np.ascontiguousarray(values, kind))}


def read_numbers(kind: type[NumberArray[Any]], form: Mapping[str, Any]) -> NumberArray[Any]:
    """Return the token ids or log probabilities of a form."""
    dtype = np.dtype(form["dtype"])
    size = len(form["base64"]) * 3 // 4 - form["base64"].count("=", -2)
    values = load_array(form["base64"], form["dtype"], [size // max(1, dtype.itemsize)])
    return kind.of(values, kind.__name__)


@functools.cache
def _field_names(kind: type[Any]) -> tuple[str, ...]:
    return tuple([field.name for field in dataclasses.fields(kind)])


def _numbers(kind: type[NumberArray[Any]]) -> Part:
    return Part(
        lambda value, encoder, record: None if value is None else write_numbers(value),
        lambda form, decoder, record: None if form is None else read_numbers(kind, form),
    )


FACTS = Part(
    lambda value, encoder, record: write_facts(value, encoder),
    lambda form, decoder, record: read_facts(form, decoder),
)
TOKENS = _numbers(TokenIds)
LOGPROBS = _numbers(Logprobs)
SCORES = Part(
    lambda scores, encoder, record: in_turn(scores, lambda s: encoder.write(s.to_dict())),
    lambda forms, decoder, record: [Score.from_dict(decoder.read(form)) for form in forms],
)


def _write_record(value: Any, kind: type[Record], encoder: Encoder) -> dict[str, Any]:
    if type(value) is not kind:  # a subclass may have more fields, which reading would not know
        msg = (
            f"is no {kind.__name__}, but {type(value).__qualname__}, which is not stored in records"
        )
        raise UnstorableError(msg)
    return value.to_dict(encode=encoder.encode)
