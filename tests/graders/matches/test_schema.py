from __future__ import annotations

import json
from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import Field, TypeAdapter
from typing_extensions import TypedDict

from rolloutlib.graders import SchemaMatch

SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name"],
        "additionalProperties": False,
    }
)


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "Ada", "age": 36}',
        ' \n{"name": "Ada"}\n',
        '```json\n{"name": "Ada"}\n```',
        '```\n{"name": "Ada"}\n```',
        '~~~json\n{"name": "```"}\n~~~',
        'Here it is:\n\n```JSON\n{\n  "name": "Ada"\n}\n```\nI hope that helps.',
        '```python\nprint({})\n```\n```json\n{"name": "Ada"}\n```',
        'First:\n```json\n{"nam": 1}\n```\nNo:\n```json\n{"name": "Ada"}\n```',
        '<think>```json\n{}\n```</think>{"name": "Ada\u2019s"}',
        '{"name": "<!--"}',
        '```json\n{\n  "name": "<!--"\n}\n```\n',
        '```json\n{"name": "</s><|im_end|>"}\n```',
        '```json\n{"name": "Ada"}\n```\n<!--\n```json\n{"name": 1}\n```\n-->',
        '```json\n{"name": "Ada"}\n```\n<!--\n```json\n-->\n',
        '```text\n```~~~\n```json\n{}\n```\n```json\n{"name": "Ada"}\n```',
        '~~~ a`b\n```json\n{}\n```\n~~~\n~~~json\n{"name": "Ada"}\n~~~\n~~~ a`b\n```json\n{}\n```\n~~~',
        'I end it with `</s>`:\n```json\n{"name": "Ada"}\n```',
        '```json\n{"name": "The answer"}\n```\n\nQuestion: 2?\n```json\n{"name": 2}\n```',
    ],
)
def test_the_last_block_or_the_whole_text_is_read(text: str) -> None:
    score = SchemaMatch()(text, SCHEMA)
    assert score.value == 1.0
    start, end = score.metadata["span"]
    assert json.loads(text[start:end])["name"]


@pytest.mark.parametrize(
    ("text", "status", "reason"),
    [
        ('{"name": 1}', "found", "$.name: 1 is not of type 'string'"),
        ("{}", "found", "$: 'name' is a required property"),
        ('{"name": "Ada", "x": 1}', "found", "Additional properties are not allowed"),
        ('{"name": "Ada", "age": NaN}', "invalid", "NaN is no number of JSON"),
        ('{"name": "Ada", "age": -Infinity}', "invalid", "-Infinity is no number of JSON"),
        ('{"name": "Ada", "age": 1e999}', "invalid", "1e999 is no number of JSON"),
        ('{"name": "Ada", "name": "Bob"}', "invalid", "the key 'name' stands there more than once"),
        ('{"name": "Ada",}', "invalid", "it is no JSON"),
        ("{'name': 'Ada'}", "invalid", "it is no JSON"),
        ('Sure: {"name": "Ada"}', "invalid", "it is no JSON"),
        ('{"name": "Ada"} {"name": "Bob"}', "invalid", "it is no JSON"),
        ('{"name": "Ada", "age": ' + "9" * 5000 + "}", "invalid", "it is no JSON"),
        ("[" * 100_000, "invalid", "it is nested too deeply"),
        ('```json\n{"name": "Ada"}', "truncated", "the last code block does not end"),
        ("", "none", "the answer is empty"),
    ],
)
def test_what_is_wrong_is_told(text: str, status: str, reason: str) -> None:
    score = SchemaMatch()(text, SCHEMA)
    assert (score.value, score.metadata["status"]) == (0.0, status)
    assert reason in score.metadata["reason"]


class Person(TypedDict):
    name: str
    age: Annotated[int, Field(ge=0)]


def test_a_type_of_python_gives_a_schema() -> None:
    schema = json.dumps(TypeAdapter(list[Person]).json_schema())
    assert SchemaMatch()('[{"name": "Ada", "age": 36}]', schema).value == 1.0
    assert SchemaMatch()('[{"name": "Ada", "age": -1}]', schema).value == 0.0


def test_several_schemas_are_alternatives() -> None:
    references = ['{"type": "string"}', '{"type": "integer"}']
    assert SchemaMatch()("5", references).metadata["reference"] == 1
    score = SchemaMatch()("5.5", references)
    assert (score.value, score.metadata["reason"]) == (0.0, "$: 5.5 is not of type 'string'")


def test_the_draft_that_a_schema_names_is_used() -> None:
    items: dict[str, Any] = {"items": [{"type": "string"}]}
    old = {"$schema": "http://json-schema.org/draft-07/schema#", **items}
    assert SchemaMatch()("[1]", json.dumps(old)).value == 0.0
    with pytest.raises(ValueError, match="no usable JSON Schema"):
        SchemaMatch().check_reference(json.dumps(items))  # no schema of draft 2020-12


TREE = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "anyOf": [
                {"properties": {"kind": {"const": kind}, "next": {"$ref": "#/$defs/node"}},
                 "required": ["kind"]}
                for kind in range(3)
            ]
        }
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("document", "schema"),
    [
        ('{"next": ' * 25 + "1" + "}" * 25, TREE),
        (json.dumps("a" * 60 + "!"), {"pattern": "^(a|aa)+$"}),
        (json.dumps({"a" * 60 + "!": 1}), {"patternProperties": {"^(a|aa)+$": {}}}),
    ],
    ids=["references to itself", "a pattern", "a pattern for keys"],
)
def test_the_time_limit_holds(document: str, schema: Any) -> None:
    grader = SchemaMatch(time_limit=0.2)
    score = grader(document, json.dumps(schema))
    assert (score.value, score.metadata["status"]) == (0.0, "timeout")
    assert grader("{}", '{"type": "object"}').value == 1.0  # in a new process


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ('{"properties": {"a": {"pattern": "("}}}', "is not a 'regex'"),
        ('{"properties": {"a": {"$ref": "#/absent"}}}', "'/absent' does not exist"),
        ('{"properties": {"a": {"items": {"$ref": "http://127.0.0.1:9/x"}}}}', "Unresolvable"),
        ('{"$defs": {"b": {"$id": "c", "items": {"$dynamicRef": "#d"}}}}', "NoSuchAnchor"),
        ('{"properties": {"a": {"$ref": "#/properties/a"}}}', "'#/properties/a' refers to itself"),
        ('{"$ref": "#"}', "'#' refers to itself"),
        ('{"allOf": [{"$ref": "#"}]}', "RecursionError"),
        ('{"$schema": "draft-8"}', "'draft-8', is no draft that is known"),
        ('{"$schema": 7}', "no usable JSON Schema"),
        ('{"minimum": NaN}', "NaN is no number of JSON"),
        ('{"type": "string", "type": "array"}', "the key 'type' stands there more than once"),
        ("[]", "it is no JSON object"),
    ],
)
def test_an_unusable_schema_is_refused_before_any_text(schema: str, reason: str) -> None:
    with pytest.raises(ValueError, match="no usable JSON Schema") as caught:
        SchemaMatch().check_reference(["{}", schema])
    assert reason in str(caught.value)


def test_a_schema_may_refer_to_its_parts_and_to_a_draft() -> None:
    draft = "https://json-schema.org/draft/2020-12/schema"
    tree = {
        "$defs": {"n": {"$anchor": "node", "items": {"$ref": "#node"}}, "schema": {"$ref": draft}},
        "properties": {"tree": {"$ref": "#/$defs/n"}, "form": {"$ref": "#/$defs/schema"}},
    }
    assert (
        SchemaMatch()('{"tree": [[], []], "form": {"type": "array"}}', json.dumps(tree)).value
        == 1.0
    )
    assert SchemaMatch()('{"form": {"type": "tree"}}', json.dumps(tree)).value == 0.0


def test_no_document_makes_validation_raise() -> None:
    score = SchemaMatch()("9" * 400, '{"multipleOf": 0.01}')
    assert (score.value, score.metadata["status"]) == (0.0, "found")
    assert score.metadata["reason"] == "OverflowError: int too large to convert to float"
    score = SchemaMatch()(json.dumps({"k" * 10_000: 1}), '{"additionalProperties": false}')
    assert len(score.metadata["reason"]) < 1000


@settings(max_examples=100)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(st.characters(exclude_categories=["Cs"])),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
        max_leaves=20,
    )
)  # fmt: skip
def test_any_json_is_read(value: Any) -> None:
    text = json.dumps(value, ensure_ascii=False)
    assert SchemaMatch()(f"```json\n{text}\n```", json.dumps({"const": value})).value == 1.0
