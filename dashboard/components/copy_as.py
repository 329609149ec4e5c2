"""A sweep as a command one can run again: curl, Python, command line."""

import json
import shlex
from typing import Any
from urllib.parse import urlsplit

import dash_mantine_components as dmc

from backend.schemas import SweepRead
from dashboard.api_client import api_address
from dashboard.markup import Component, html
from ib_core.sweep.request import body_of, command_line


def as_curl(study_id: int, spec: dict[str, Any], origin: str) -> str:
    """Return a shell command."""
    lines = [f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in body_of(spec).items()]
    body = "{\n" + ",\n".join(lines) + "\n}"
    return (
        f"curl -X POST {shlex.quote(f'{origin}/api/studies/{study_id}/sweeps')} \\\n"
        f"  -H 'Content-Type: application/json' \\\n  -d {shlex.quote(body)}"
    )


def as_python(study_id: int, spec: dict[str, Any], origin: str) -> str:
    """Return a script."""
    lines = [f"    {name!r}: {value!r}," for name, value in body_of(spec).items()]
    return "\n".join(
        [
            "from backend.client import Client",
            "",
            "sweep = {",
            *lines,
            "}",
            f"with Client({origin!r}) as client:",
            f"    submitted = client.submit({study_id}, sweep)",
            "    client.wait(submitted.id)",
            f"    curves = client.sensitivity({study_id})",
        ]
    )


def as_command(spec: dict[str, Any], origin: str) -> str:
    """Return the `etascope submit` line."""
    return command_line("etascope submit", body_of(spec), "--server", origin)


def copy_tabs(sweep: SweepRead, href: str) -> Component:
    """Return the three forms, each with a button that copies it."""
    parts = urlsplit(href)
    origin = api_address() or f"{parts.scheme}://{parts.netloc}"
    texts = {
        "curl": as_curl(sweep.study_id, sweep.spec, origin),
        "Python": as_python(sweep.study_id, sweep.spec, origin),
        "Command line": as_command(sweep.spec, origin),
    }
    return dmc.Tabs(
        [
            dmc.TabsList([dmc.TabsTab(name, value=name) for name in texts]),
            *(dmc.TabsPanel(_code(text), value=name, pt=12) for name, text in texts.items()),
        ],
        value="curl",
    )


def _code(text: str) -> Component:
    return html.Div(
        [
            html.Pre(text, className="code", tabIndex=0),
            dmc.CopyButton(value=text, children="Copy", copiedChildren="Copied", size="sm"),
        ]
    )
