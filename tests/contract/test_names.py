"""The names, signatures and values of rolloutlib 0.2.0 are all there.

The file read here prints each public module of 0.2.0: one indented line a name, one more indented a
method or property. Not compared: annotations beyond the scalar members of a union (containers and
type variables may have become more general), defaults made at call time or by a private function,
and type aliases, of which only the name must exist.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest

CONTRACT = Path(__file__).parents[3] / "shared" / "contract" / "public-names-0.2.0.txt"
if not CONTRACT.is_file():
    pytest.skip(f"needs {CONTRACT.name}, which is not part of the project", allow_module_level=True)

SCALARS = {"None", "bool", "float", "int", "str"}
OPAQUE = "OPAQUE"  # stands for a default that is a factory or a private function
POSITIONAL = {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}


@dataclass
class Entry:
    """One line of the contract."""

    module: str
    name: str
    kind: str
    rest: str
    owner: str = ""

    def __str__(self) -> str:
        return ".".join(filter(None, (self.module, self.owner, self.name)))

    def resolve(self) -> Any:
        """What stands at this place today; methods as they lie in their class."""
        module = importlib.import_module(self.module)
        if self.owner:
            return inspect.getattr_static(getattr(module, self.owner), self.name)
        return getattr(module, self.name)


@dataclass
class Signature:
    """The parameters and the scalars of the return annotation that the contract prints."""

    parameters: dict[str, tuple[Any, str | None, set[str]]] = field(
        default_factory=dict[str, tuple[Any, str | None, set[str]]]
    )
    returns: set[str] | None = None


def read_contract() -> list[Entry]:
    entries: list[Entry] = []
    module = owner = ""
    for line in CONTRACT.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            module = line.removeprefix("## ")
            continue
        match = re.fullmatch(r"\s+(class |def |value |module |\.|)(\w+)(.*)", line)
        assert match, f"unknown line: {line!r}"
        kind, name, rest = match[1].strip(), match[2], match[3].strip()
        if kind == ".":
            kind = "property" if rest == "(property)" else "method"
            entries.append(Entry(module, name, kind, rest, owner))
        else:
            owner = name
            entries.append(Entry(module, name, kind or "name", rest))
    return entries


def scalars(annotation: str | None) -> set[str]:
    """The scalar types that an annotation names at its top level: 'int | list[str]' has int."""
    if annotation is None:
        return set()
    return {part.strip(" '\"") for part in annotation.split("|")} & SCALARS


def parse(text: str) -> Signature:
    """Read a signature as `inspect` prints it."""
    text = re.sub(r"<factory>|<function _\w+>", OPAQUE, text)
    text = re.sub(r"<function (\w+)>", r"\1", text)
    function = ast.parse(f"def f{text}: ...").body[0]
    assert isinstance(function, ast.FunctionDef)
    arguments, result = function.args, Signature()
    positional = arguments.posonlyargs + arguments.args
    padded = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)

    def add(argument: ast.arg, kind: Any, default: ast.expr | None) -> None:
        source = ast.unparse(argument.annotation) if argument.annotation else None
        printed = ast.unparse(default) if default else None
        result.parameters[argument.arg] = (kind, printed, scalars(source))

    for index, (argument, default) in enumerate(zip(positional, padded, strict=True)):
        only = index < len(arguments.posonlyargs)
        add(
            argument,
            inspect.Parameter.POSITIONAL_ONLY if only else inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default,
        )
    if arguments.vararg:
        add(arguments.vararg, inspect.Parameter.VAR_POSITIONAL, None)
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        add(argument, inspect.Parameter.KEYWORD_ONLY, default)
    if arguments.kwarg:
        add(arguments.kwarg, inspect.Parameter.VAR_KEYWORD, None)
    if function.returns:
        result.returns = scalars(ast.unparse(function.returns))
    return result


def same_default(printed: str, value: Any) -> bool:
    if printed == OPAQUE:
        return value is not inspect.Parameter.empty
    try:
        return repr(ast.literal_eval(printed)) == repr(value)
    except ValueError:
        return getattr(value, "__name__", None) == printed


def annotation_text(annotation: Any) -> str | None:
    if annotation is inspect.Parameter.empty:
        return None
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def check_signature(expected: Signature, actual: inspect.Signature) -> None:
    variadic = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
    assert [name for name in actual.parameters if name in expected.parameters] == list(
        expected.parameters
    ), "parameters are missing or in another order"
    positional = [name for name, p in actual.parameters.items() if p.kind in POSITIONAL]
    before = [name for name, (kind, _, _) in expected.parameters.items() if kind in POSITIONAL]
    assert positional[: len(before)] == before, "a new parameter stands before an old one"
    for name, parameter in actual.parameters.items():
        if name not in expected.parameters:
            assert parameter.default is not parameter.empty or parameter.kind in variadic, (
                f"the new parameter {name!r} is not optional"
            )
            continue
        kind, default, accepted = expected.parameters[name]
        assert parameter.kind == kind, f"{name!r} is {parameter.kind.description}"
        if default is not None:
            assert same_default(default, parameter.default), (
                f"{name!r} has the default {parameter.default!r}, not {default}"
            )
        text = annotation_text(parameter.annotation)
        assert accepted <= scalars(text) or text == "Any", f"{name!r} no longer takes {accepted}"
    text = annotation_text(actual.return_annotation)
    if expected.returns is not None:
        assert scalars(text) <= expected.returns, f"returns {text}, not {expected.returns}"


ENTRIES = read_contract()


def of_kind(*kinds: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("entry", [e for e in ENTRIES if e.kind in kinds], ids=str)


@of_kind("name", "module")
def test_name_exists(entry: Entry) -> None:
    found = entry.resolve()
    assert inspect.ismodule(found) == (entry.kind == "module")


@of_kind("class")
def test_class_is_constructed_as_before(entry: Entry) -> None:
    found = entry.resolve()
    assert inspect.isclass(found)
    if entry.rest:
        check_signature(parse(entry.rest), inspect.signature(found))


@of_kind("def")
def test_function_is_called_as_before(entry: Entry) -> None:
    found = entry.resolve()
    assert inspect.isfunction(found)
    check_signature(parse(entry.rest), inspect.signature(found))


@of_kind("method")
def test_method_is_called_as_before(entry: Entry) -> None:
    found = entry.resolve()
    assert isinstance(found, classmethod) == entry.rest.endswith(" classmethod")
    function: Any = inspect.unwrap(found)  # a class method's function, with its first parameter
    assert inspect.isfunction(function)
    check_signature(parse(entry.rest.removesuffix(" classmethod")), inspect.signature(function))


@of_kind("property")
def test_property_is_an_attribute(entry: Entry) -> None:
    owner = getattr(importlib.import_module(entry.module), entry.owner)
    fields = {name for base in owner.__mro__ for name in inspect.get_annotations(base)}
    found = inspect.getattr_static(owner, entry.name, None)
    assert entry.name in fields or inspect.isdatadescriptor(found) or hasattr(found, "__get__")
    assert not inspect.isroutine(found)


@of_kind("value")
def test_value_is_the_same(entry: Entry) -> None:
    found, printed = entry.resolve(), entry.rest.removeprefix("= ")
    if entry.name == "__version__":
        assert isinstance(found, str)
    elif printed.startswith("~"):
        assert isinstance(found, TypeVar)
        assert found.__name__ == printed[1:]
    elif functions := re.findall(r"('\w+'): <function (\w+)>", printed):
        names = {ast.literal_eval(key): name for key, name in functions}
        assert {key: function.__name__ for key, function in found.items()} == names
    else:
        try:
            expected = ast.literal_eval(printed)
        except (SyntaxError, ValueError):
            return  # a type alias; that it resolves is enough
        assert found == expected
