"""A sweep as a command one can run again: curl, Python, command line."""

import json
import shlex
from typing import Any
from urllib.parse import urlsplit

import dash_mantine_components as dmc

from backend.schemas import SweepRead
from dashboard.api_client import api_address
from dashboard.markup import Component, html

#: What a sweep's spec calls differently than a request's body does.
RENAMED = {"clips": "clip"}
#: What the service decides or repeats; a request does not send it.
LEFT_OUT = ("size",)
#: How `etascope submit` says what a body says.
FLAGS = {
    "methods": "--methods",
    "learning_rates": "--lrs",
    "seeds": "--seeds",
    "epochs": "--epochs",
    "batch_size": "--batch-size",
    "clip": "--clip",
    "mu": "--mu",
    "batch_rule": "--batch-rule",
    "profile": "--profile",
    "activation": "--activation",
    "width": "--width",
    "depth": "--depth",
    "device": "--device",
}


def body_of(spec: dict[str, Any]) -> dict[str, Any]:
    """Return the request body that asks for a sweep's grid again."""
    body = {
        RENAMED.get(name, name): value
        for name, value in spec.items()
        if name not in LEFT_OUT and value not in (None, {}, [])
    }
    if body.get("clip") == [None]:
        del body["clip"]
    options = body.get("options")
    if isinstance(options, dict):
        given = {name: value for name, value in options.items() if value not in (None, False)}
        body = {**body, "options": given} if given else _without(body, "options")
    return body


def _without(body: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key != name}


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
    """Return the `etascope submit` line, or the sentence that there is none."""
    body = body_of(spec)
    options = dict(body.get("options", {}))
    asked = {**body, **{name: options.pop(name, None) for name in ("width", "depth")}}
    if options:
        return f"# The command line cannot say {', '.join(sorted(options))}: use curl or Python."
    words = ["etascope", "submit", str(body["task"])]
    for name, flag in FLAGS.items():
        if asked.get(name):
            words += [flag, _seeds(asked[name]) if name == "seeds" else _plain(asked[name])]
    return " ".join(shlex.quote(word) for word in [*words, "--server", origin])


def _seeds(seeds: Any) -> str:
    """Return seeds as the command line reads them: a number alone would mean 1 to that number."""
    return f"{_plain(seeds)}," if isinstance(seeds, list) and len(seeds) == 1 else _plain(seeds)


def _plain(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ",".join("none" if part is None else _plain(part) for part in value)
    return f"{value:g}" if isinstance(value, float) and value == float(f"{value:g}") else str(value)


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
