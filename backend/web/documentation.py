"""The API's documentation as one self-contained page: no script, no outside request."""

import json
from collections.abc import Iterator
from html import escape
from typing import Any

Document = dict[str, Any]

STYLE = """
:root { color-scheme: light dark; --line: #8884; --accent: #0a6ebd; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { margin-top: 2.5rem; font-size: 1.2rem; text-transform: capitalize; }
details { border: 1px solid var(--line); border-radius: 6px; margin: .5rem 0; }
summary { padding: .5rem .75rem; cursor: pointer; }
summary b { display: inline-block; min-width: 4.5rem; color: var(--accent); }
summary code { font-weight: 600; overflow-wrap: anywhere; }
.body { padding: 0 .75rem .75rem; } h3 { font-size: 1rem; margin: 1rem 0 .25rem; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; vertical-align: top;
padding: .25rem .75rem .25rem 0; border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
pre { overflow-x: auto; padding: .75rem; border: 1px solid var(--line); border-radius: 6px; }
"""


def docs_page(document: Document) -> str:
    """Return an OpenAPI document as HTML.

    Args:
        document: From ``app.openapi()``.
    """
    info = document["info"]
    sections = "".join(_sections(document))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(info['title'])}</title><style>{STYLE}</style></head><body><main>"
        f"<h1>{escape(info['title'])} {escape(info['version'])}</h1>"
        f"{_paragraphs(info.get('description', ''))}"
        '<p>Machine-readable: <a href="openapi.json">openapi.json</a>.</p>'
        f"{sections}{_schemas(document)}</main></body></html>"
    )


def _sections(document: Document) -> Iterator[str]:
    by_tag: dict[str, list[str]] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            tag = (operation.get("tags") or ["other"])[0]
            by_tag.setdefault(tag, []).append(_operation(method, path, operation))
    for tag, operations in by_tag.items():
        yield f"<section><h2>{escape(tag)}</h2>{''.join(operations)}</section>"


def _operation(method: str, path: str, operation: Document) -> str:
    summary = operation.get("summary", "")
    body = [_paragraphs(operation.get("description", ""))]
    parameters = operation.get("parameters", [])
    if parameters:
        rows = (
            (
                f"{parameter['name']} ({parameter['in']})",
                _type(parameter["schema"]),
                parameter.get("description", "") or parameter["schema"].get("description", ""),
            )
            for parameter in parameters
        )
        body.append(f"<h3>Parameters</h3>{_table(rows)}")
    for kind, media in operation.get("requestBody", {}).get("content", {}).items():
        body.append(f"<h3>Body: {escape(kind)}</h3><p>{_type(media.get('schema', {}))}</p>")
    answers = (
        (status, _answer_type(answer), answer.get("description", ""))
        for status, answer in operation["responses"].items()
    )
    body.append(f"<h3>Answers</h3>{_table(answers)}")
    return (
        f"<details><summary><b>{escape(method.upper())}</b> <code>{escape(path)}</code> "
        f"{escape(summary)}</summary><div class=body>{''.join(body)}</div></details>"
    )


def _answer_type(answer: Document) -> str:
    kinds = (
        f"{escape(kind)} {_type(media.get('schema', {}))}"
        for kind, media in answer.get("content", {}).items()
    )
    return "<br>".join(kinds)


def _schemas(document: Document) -> str:
    parts = ["<section><h2>Types</h2>"]
    for name, schema in sorted(document.get("components", {}).get("schemas", {}).items()):
        rows = (
            (field, _type(value), value.get("description", ""))
            for field, value in schema.get("properties", {}).items()
        )
        examples = "".join(
            f"<pre>{escape(json.dumps(example, indent=2))}</pre>"
            for example in schema.get("examples", [])
        )
        parts.append(
            f'<details id="{escape(name)}"><summary><code>{escape(name)}</code> '
            f"{escape(schema.get('description', ''))}</summary>"
            f"<div class=body>{_table(rows)}{examples}</div></details>"
        )
    return "".join([*parts, "</section>"])


def _table(rows: Iterator[tuple[str, str, str]]) -> str:
    """Return rows of (plain name, HTML type, plain description)."""
    cells = "".join(
        f"<tr><td><code>{escape(name)}</code></td><td>{kind}</td><td>{escape(text)}</td></tr>"
        for name, kind, text in rows
    )
    return f"<table>{cells}</table>"


def _type(schema: Document) -> str:
    """Return a schema in a few words, with links to named types."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rsplit("/", 1)[-1])
        return f'<a href="#{name}">{name}</a>'
    for key in ("anyOf", "oneOf", "allOf"):
        if key in schema:
            return " or ".join(_type(member) for member in schema[key])
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        return ", ".join(f"<code>{escape(json.dumps(value))}</code>" for value in values)
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return escape(str(schema.get("type", "anything"))) + _bounds(schema)


def _bounds(schema: Document) -> str:
    words = {
        "minimum": "at least",
        "maximum": "at most",
        "exclusiveMinimum": "above",
        "exclusiveMaximum": "below",
        "default": "default",
    }
    found = [f"{word} {schema[key]!r}" for key, word in words.items() if key in schema]
    return escape(f" ({', '.join(found)})") if found else ""


def _paragraphs(text: str) -> str:
    return "".join(f"<p>{escape(part)}</p>" for part in text.split("\n\n") if part.strip())
