"""Reading what arguments a function takes, once a function."""

from __future__ import annotations

import functools
import inspect
import json
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MethodType
from typing import TYPE_CHECKING, Any, NotRequired, Required, cast, get_type_hints

import pydantic
import pydantic_core
from typing_extensions import TypedDict

from rolloutlib.tools._docstrings import split_docstring

if TYPE_CHECKING:
    from pydantic import TypeAdapter


@dataclass(frozen=True, slots=True)
class Signature:
    """What a function takes by name, and what its docstring says.

    Attributes:
        description: The docstring without what it says of single parameters.
        schema: The JSON schema of the arguments.
        adapter: Reads arguments from JSON.
    """

    description: str
    schema: Mapping[str, Any]
    adapter: TypeAdapter[dict[str, Any]]


# Building a validator takes a millisecond, and each episode may have a tool of the same method.
_OF_FUNCTIONS: weakref.WeakKeyDictionary[Any, Signature] = weakref.WeakKeyDictionary()
_OF_METHODS: weakref.WeakKeyDictionary[Any, Signature] = weakref.WeakKeyDictionary()


def read_signature(function: Callable[..., Any], place: str) -> Signature:
    """Read the signature of a function.

    Args:
        function: The function; the signature of a method is kept for all instances.
        place: What to call it in error messages.

    Raises:
        TypeError: A parameter has no annotation, one that cannot be evaluated or that pydantic does
            not know, or cannot be given by name.
    """
    is_method = isinstance(function, MethodType)  # the function of which has a parameter more
    cache, key = (_OF_METHODS, function.__func__) if is_method else (_OF_FUNCTIONS, function)
    try:
        known = cache.get(key)
    except TypeError:  # it cannot be hashed, or not referred to weakly
        return _read(function, place)
    if known is None:
        known = cache[key] = _read(function, place)
    return known


def _read(function: Callable[..., Any], place: str) -> Signature:
    try:
        parameters = inspect.signature(function, eval_str=True).parameters
        hints = _hints(function)
    except NameError as error:
        msg = (
            f"an annotation of {place} cannot be evaluated ({error}): define what it names at the "
            "top of a module, outside functions and TYPE_CHECKING"
        )
        raise TypeError(msg) from error
    except ValueError as error:
        msg = f"{place} has no signature that can be read: wrap it in a function with annotations"
        raise TypeError(msg) from error
    description, texts = split_docstring(inspect.getdoc(_documented(function)))
    fields = {
        name: _field(parameter.replace(annotation=hints.get(name, parameter.annotation)), place)
        for name, parameter in parameters.items()
    }
    arguments = cast("Any", TypedDict)("Arguments", fields)
    arguments.__pydantic_config__ = pydantic.ConfigDict(extra="forbid")
    try:
        adapter: TypeAdapter[dict[str, Any]] = pydantic.TypeAdapter(arguments)
        schema = adapter.json_schema(schema_generator=_generator())
    except pydantic.PydanticUserError as error:
        msg = f"an annotation of {place} has no JSON schema: {error.message}"
        raise TypeError(msg) from error
    del schema["title"]
    # Arguments may have other names than parameters, by an alias, but have their order.
    for name, entry in zip(parameters, schema["properties"].values(), strict=False):
        if name in texts:
            entry.setdefault("description", texts[name])
        if parameters[name].default is not inspect.Parameter.empty:
            _add_default(entry, parameters[name].default)
    if not _is_json([description, schema]):
        msg = (
            f"what {place} says of itself cannot be told in JSON: its docstring or a Field has NaN, "
            "an infinity or half of a character"
        )
        raise TypeError(msg)
    return Signature(description, schema, adapter)


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Return annotations in which names are resolved where they stand within others, as in `list["Item"]`.

    Raises:
        NameError: A name is not known.
    """
    documented = _documented(function)
    target = documented.__init__ if inspect.isclass(documented) else documented
    return get_type_hints(target, include_extras=True) if hasattr(target, "__annotations__") else {}


def _documented(function: Callable[..., Any]) -> Any:
    """Return whose docstring tells what calling does: that of a partial is about partials."""
    while isinstance(function, functools.partial):
        function = cast("functools.partial[Any]", function).func
    if inspect.isroutine(function) or inspect.isclass(function):
        return function
    wrapped = inspect.unwrap(function)
    return type(function).__call__ if wrapped is function else wrapped


def _field(parameter: inspect.Parameter, place: str) -> Any:
    if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
        msg = f"{place} takes {str(parameter)!r}, but a model gives all arguments by name"
        raise TypeError(msg)
    if parameter.annotation is parameter.empty:
        remedy = "make the tool of the method of an instance" if parameter.name == "self" else ""
        msg = f"parameter {parameter.name!r} of {place} has no annotation: {remedy or 'add one'}"
        raise TypeError(msg)
    if isinstance(parameter.default, type(pydantic.Field())):
        msg = (
            f"the default of parameter {parameter.name!r} of {place} is a Field, which the function "
            "would be given: write Annotated[..., Field(...)] = default"
        )
        raise TypeError(msg)
    # The function knows its own defaults, so they are not filled in.
    kind: Any = Required if parameter.default is parameter.empty else NotRequired
    return kind[parameter.annotation]


def _add_default(entry: dict[str, Any], default: object) -> None:
    try:
        plain = pydantic_core.to_jsonable_python(default)
    except ValueError:
        return
    if _is_json(plain):
        entry.setdefault("default", plain)


def _is_json(value: object) -> bool:
    """Tell whether plain values have a form in JSON: an infinity has none.

    Of a default that has none, a model is told only that there is one.
    """
    try:
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except ValueError:
        return False
    return True


@functools.cache
def _generator() -> Any:
    """Return pydantic's generator without the titles that repeat the names of parameters."""
    from pydantic.json_schema import GenerateJsonSchema  # noqa: PLC0415 - slow to import

    class Generator(GenerateJsonSchema):
        ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012

        def field_title_should_be_set(self, schema: Any) -> bool:
            return False

        def encode_default(self, dft: Any) -> Any:
            plain = super().encode_default(dft)
            if not _is_json(plain):
                msg = f"{dft!r} has no form in JSON"
                raise pydantic_core.PydanticSerializationError(msg)
            return plain

    return Generator
