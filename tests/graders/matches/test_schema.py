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


def test_a_pattern_that_only_some_documents_reach_is_checked_too() -> None:
    with pytest.raises(ValueError, match="no usable JSON Schema"):
        SchemaMatch().check_reference('{"properties": {"a": {"pattern": "("}}}')
    schema = '{"properties": {"a": {"$ref": "#/absent"}}}'
    with pytest.raises(ValueError, match="no usable JSON Schema"):
        SchemaMatch()('{"a": 1}', schema)


@settings(deadline=None, max_examples=100)
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
