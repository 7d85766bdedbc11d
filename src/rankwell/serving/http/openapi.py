"""The OpenAPI description of a server, from the table of its calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from rankwell.serving.http.messages import ErrorAnswer
from rankwell.version import __version__

_REASONS = {
    204: "Done.",
    400: "The body is not JSON.",
    401: "The token is missing or wrong.",
    404: "There is no such thing.",
    413: "The body is too large.",
    415: "The body is not application/json.",
    422: "A parameter is not allowed.",
    503: "Too many requests, or the deadline passed; Retry-After says when to try again.",
    507: "The log or the file of votes cannot be written, so that what was sent is not kept.",
}


@dataclass(frozen=True)
class Call:
    """One call of the API.

    parameters : the struct of its query string; body, answer : of JSON; errors : the statuses that it can have
    """

    method: str
    path: str
    summary: str
    parameters: type | None = None
    body: type | None = None
    answer: Any = None
    errors: tuple[int, ...] = ()
    needs_token: bool = False
    media_type: str = "application/json"


def describe(calls: Sequence[Call]) -> dict[str, Any]:
    """The description as a dictionary of JSON values."""
    types = {one for call in calls for one in (call.parameters, call.body) if one is not None}
    answers = [call.answer for call in calls if call.answer is not None]
    listed = [*types, ErrorAnswer, *answers]
    schemas, components = msgspec.json.schema_components(listed, ref_template="#/components/schemas/{name}")
    schema_of = {id(one): schema for one, schema in zip(listed, schemas, strict=True)}
    paths: dict[str, dict[str, Any]] = {}
    for call in calls:
        paths.setdefault(call.path, {})[call.method.lower()] = _operation(call, schema_of, components)
    parameters = {call.parameters.__name__ for call in calls if call.parameters is not None}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Rankwell", "version": __version__, "description": "Ranked search over one index."},
        "paths": paths,
        "components": {
            "schemas": {name: schema for name, schema in components.items() if name not in parameters},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(call: Call, schema_of: dict[int, Any], components: dict[str, Any]) -> dict[str, Any]:
    responses: dict[str, Any] = {}
    if call.answer is None and call.media_type == "application/json":
        responses["204"] = {"description": _REASONS[204]}
    else:
        schema = {"type": "string"} if call.answer is None else schema_of[id(call.answer)]
        responses["200"] = {"description": "The answer.", "content": {call.media_type: {"schema": schema}}}
    errors = call.errors + ((401,) if call.needs_token else ())
    for status in sorted(errors):
        content = {"application/json": {"schema": schema_of[id(ErrorAnswer)]}}
        responses[str(status)] = {"description": _REASONS[status], "content": content}
    operation: dict[str, Any] = {"summary": call.summary, "responses": responses}
    operation["parameters"] = _path_parameters(call.path) + _query_parameters(call.parameters, components)
    if call.body is not None:
        content = {"application/json": {"schema": schema_of[id(call.body)]}}
        operation["requestBody"] = {"required": True, "content": content}
    if call.needs_token:
        operation["security"] = [{"token": []}]
    return operation


def _path_parameters(path: str) -> list[dict[str, Any]]:
    names = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    return [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names]


def _query_parameters(parameters: type | None, components: dict[str, Any]) -> list[dict[str, Any]]:
    if parameters is None:
        return []
    struct = components[parameters.__name__]
    required = struct.get("required", [])
    return [
        {"name": name, "in": "query", "required": name in required, "schema": _without_null(schema)}
        for name, schema in struct["properties"].items()
    ]


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """A query string cannot hold a null: a parameter is there or it is not."""
    choices = [choice for choice in schema.get("anyOf", ()) if choice.get("type") != "null"]
    return choices[0] if len(choices) == 1 else schema
