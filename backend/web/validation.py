"""Turns pydantic's findings into one sentence that says what came and what would work."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel

LONGEST_INPUT = 80
#: Fields whose value is never repeated: answers end up in logs.
UNSPEAKABLE = frozenset({"password", "current", "new"})


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a request."""

    status: int
    code: str
    message: str
    field: str | None = None
    hint: str | None = None


def explain(error: RequestValidationError, route: Any = None) -> Problem:
    """Return the most telling of the findings.

    A value that fits no member of a union yields one finding per member; the one that got deepest
    into the value is about the member that was meant.
    """
    finding = max(error.errors(), key=lambda found: len(found["loc"]))
    kind, where = str(finding["type"]), tuple(finding["loc"])
    if kind == "json_invalid":
        reason = finding.get("ctx", {}).get("error", "")
        return Problem(
            400, "bad_request", f"The body is not JSON: {reason} at character {where[-1]}."
        )
    if where == ("body",):
        return _whole_body(kind, finding.get("input"))
    field = _path(where, error.body, named=kind in ("missing", "extra_forbidden"))
    if kind == "missing":
        return Problem(422, "invalid_input", f"{field} is needed.", field)
    if kind == "extra_forbidden":
        return _unknown_field(field, where, route)
    secret = str(where[-1]) in UNSPEAKABLE
    given = "" if secret else f"; got {_shown(finding.get('input'))}"
    message = f"{_sentence(field, str(finding['msg']))}{given}."
    return Problem(422, "invalid_input", message, field)


def _whole_body(kind: str, given: Any) -> Problem:
    if kind == "missing":
        return Problem(422, "invalid_input", "A JSON body is needed.", "body")
    hint = "Send it with the header Content-Type: application/json."
    return Problem(
        422,
        "invalid_input",
        f"The body must be a JSON object; got {_shown(given)}.",
        "body",
        hint if isinstance(given, bytes) else None,
    )


def _path(where: Sequence[Any], body: Any, *, named: bool) -> str:
    """Return the dotted path of a finding, without the union members pydantic puts into it."""
    source, *rest = where
    if source != "body":
        return ".".join(map(str, rest)) or str(source)
    parts: list[str] = []
    value = body
    for index, part in enumerate(rest):
        last = index == len(rest) - 1
        if (isinstance(value, dict) and part in value) or (
            isinstance(value, list) and isinstance(part, int) and part < len(value)
        ):
            value = value[part]
        elif not (named and last):
            continue
        parts.append(str(part))
    return ".".join(parts) or "body"


def _sentence(field: str, found: str) -> str:
    openings = {"Input should ": "should ", "String should ": "should ", "List should ": "should "}
    for opening, verb in (openings | {"Value error, ": "should be "}).items():
        if found.startswith(opening):
            return f"{field} {verb}{found.removeprefix(opening)}"
    return f"{field}: {found}"


def _unknown_field(field: str, where: Sequence[Any], route: Any) -> Problem:
    known = _known_fields(where, route)
    message = f"There is no field {field!r}."
    if known:
        message += f" Known: {', '.join(known)}."
    return Problem(422, "invalid_input", message, field)


def _known_fields(where: Sequence[Any], route: Any) -> list[str]:
    """Return what may stand at the top of the body or in the query."""
    if len(where) != 2 or not isinstance(route, APIRoute):
        return []
    fields = [route.body_field] if where[0] == "body" else route.dependant.query_params
    for field in fields:
        model = field.field_info.annotation if field else None
        if isinstance(model, type) and issubclass(model, BaseModel):
            return [info.alias or name for name, info in model.model_fields.items()]
    return []


def _shown(value: Any) -> str:
    if isinstance(value, bytes):
        return f"{len(value)} bytes that were not marked as JSON"
    if isinstance(value, float) and not math.isfinite(value):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[repr(value)]
    text = repr(value)
    return text if len(text) <= LONGEST_INPUT else f"{text[:LONGEST_INPUT]}..."
