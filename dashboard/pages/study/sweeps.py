"""A study's sweeps: what tells them apart; cancel, retry, run again; each as a command."""

import json
import shlex
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

import dash
import dash_mantine_components as dmc
from dash import ALL, Input, Output, State, no_update

from backend.client import calls
from backend.schemas import SearchRead, SweepCreate, SweepRead
from dashboard import ids as shared
from dashboard.api_client import api_address, ask, get_catalog
from dashboard.components import (
    link,
    local_time,
    retriable,
    state_badge,
    unfinished,
)
from dashboard.dash_blocks import Component, browser_callback, callback, html, say
from dashboard.figures import bracket_bars, bracket_words, rates_words
from dashboard.ids import Study as ids
from dashboard.theme import METHOD_STYLE, counted, number
from ib_core.sweep.request import body_of, command_line

#: Of a study, in one answer of the API.
MOST_SWEEPS = 100
MOST_LISTED = 4
QUESTIONS = {
    "cancel": "Cancel sweep {id}? Trials that have not ended stop within seconds; those that "
    "have stay. You can retry the rest later.",
    "rerun": "Train sweep {id} again with the present engine? Its trials stay as they are, and the "
    "picture “Engines” will show what changed.",
    "retry": "Run the failed and cancelled trials of sweep {id} again? Nothing else is repeated.",
}
DONE = {"cancel": "is being cancelled", "retry": "runs again", "rerun": "has been submitted"}


async def sweep_list(sweeps: Sequence[SweepRead], *, own: bool = True) -> list[Component]:
    """Return the study's sweeps, the newest first, with what their owner can do about them.

    Of very many, only those that are the newest or that something can be done about.
    """
    engine = (await get_catalog()).engine_version
    newest = list(reversed(sweeps))
    open_ends = [one for one in newest[MOST_LISTED:] if _needs_somebody(one)][:MOST_LISTED]
    shown = [*newest[:MOST_LISTED], *open_ends]
    rest = len(newest) - len(shown)
    more = [html.P(f"and {counted(rest, 'earlier sweep')}", className="muted")] if rest else []
    apart = told_apart(sweeps)
    return [*(_sweep(sweep, own, engine, apart[sweep.id]) for sweep in shown), *more]


def _needs_somebody(sweep: SweepRead) -> bool:
    return _may_stop(sweep) or retriable(sweep.progress) > 0


def _may_stop(sweep: SweepRead) -> bool:
    """Return whether there is anything to cancel: trials, replays, rounds that would follow."""
    further = sweep.search is not None and not sweep.search.done
    return unfinished(sweep.progress) > 0 or sweep.replays > 0 or further


def found_so_far(search: SearchRead) -> str:
    """Return a text that changes whenever a search's picture would."""
    return f"{search.trials} {search.done} {[one.text for one in search.series]} " + str(
        [(seed.low, seed.high) for one in search.series for seed in one.seeds]
    )


def searched(search: SearchRead) -> Component:
    """Return a search's brackets as bars, and how far it is in words."""
    rounds = counted(len(search.rounds), "round")
    used = f"{rounds}, {search.trials} of at most {counted(search.most, 'trial')}"
    fewer = search.grid_trials / max(1, search.trials)
    words = f"{used}; a grid as fine takes {search.grid_trials}, {number(fewer)} times as many"
    rough = [
        html.Div(f"{one.label}: breaking is not monotone, so its edge is a rough one.")
        for one in search.series
        if not one.monotone
    ]
    return html.Div(
        [
            # Half a page is narrow, too.
            html.Img(
                src=bracket_bars(search, narrow=True),
                alt=bracket_words(search),
                className="brackets",
            ),
            html.Div(words if search.done else used, className="history-meta"),
            *rough,
        ],
        className="search history-meta",
    )


def _sweep(sweep: SweepRead, own: bool, engine: str, apart: str) -> Component:
    buttons = []
    if own and _may_stop(sweep) and not sweep.cancelled:
        buttons.append(_button("cancel", sweep.id, "Cancel", "red"))
    if own and retriable(sweep.progress):
        again = counted(retriable(sweep.progress), "trial")
        buttons.append(_button("retry", sweep.id, f"Retry {again}", "indigo"))
    elif own and sweep.cancelled and _may_stop(sweep):
        buttons.append(_button("retry", sweep.id, "Search on", "indigo"))
    if own and outdated(sweep, engine):
        buttons.append(_button("rerun", sweep.id, f"Run again with engine {engine}", "indigo"))
    return html.Div(
        [
            html.Div([html.B(title(sweep, apart)), state_badge(sweep.state)], className="row"),
            html.Div(describe(sweep), className="history-meta"),
            *([searched(sweep.search)] if sweep.search else []),
            html.Div(["submitted ", local_time(sweep.created_at)], className="history-meta"),
            *([html.Div(sweep.note, className="history-meta")] if sweep.note else []),
            html.Div(
                [*buttons, *_ways_to_repeat(sweep)],
                className="row",
                style={"marginTop": "6px"},
            ),
        ],
        style={"marginBottom": "16px"},
    )


def outdated(sweep: SweepRead, engine: str) -> bool:
    """Return whether another version of the engine than the present one trained a sweep."""
    return sweep.engine_version not in (None, engine) and not unfinished(sweep.progress)


def _ways_to_repeat(sweep: SweepRead) -> list[Component]:
    """Return how to ask for the sweep again; what was imported cannot be run here."""
    if not sweep.spec.get("profile"):
        return []
    return [
        _button("copy", sweep.id, "Copy as…", "gray"),
        link("Change and run again", f"/new?sweep={sweep.id}", size="sm"),
    ]


def _button(kind: str, sweep_id: int, label: str, colour: str) -> Component:
    return dmc.Button(
        label,
        id=shared.part(f"sweep-{kind}", sweep_id),
        size="compact-sm",
        variant="light",
        color=colour,
        n_clicks=0,
    )


def title(sweep: SweepRead, apart: str) -> str:
    """Return a sweep's number, and what tells it from the study's others."""
    return f"Sweep {sweep.id}: {apart}" if apart else f"Sweep {sweep.id}"


def told_apart(sweeps: Sequence[SweepRead]) -> dict[int, str]:
    """Return for each sweep, by id, the settings in which the study's sweeps differ."""
    names = differing(sweeps)
    found = {sweep.id: settings_of(sweep) for sweep in sweeps}
    return {
        id: " · ".join(filter(None, (_say(name, own.get(name)) for name in names)))
        for id, own in found.items()
    }


def differing(sweeps: Sequence[SweepRead]) -> list[str]:
    """Return the names of the settings in which sweeps differ, in the order they are told."""
    found = [settings_of(sweep) for sweep in sweeps]
    names = dict.fromkeys([*SAID, *(name for own in found for name in own)])
    return [name for name in names if len({repr(own.get(name)) for own in found}) > 1]


def settings_of(sweep: SweepRead) -> dict[str, Any]:
    """Return what a sweep was asked for, options like any other setting; nothing unset."""
    spec = {**sweep.spec, **(sweep.spec.get("options") or {}), "engine": sweep.engine_version}
    clips = [clip for clip in spec.get("clips", ()) if clip is not None]
    spec["clips"] = clips and spec["clips"]
    return {
        name: value
        for name, value in spec.items()
        if name not in UNTOLD and value not in (None, False, 0, [], ())
    }


def describe(sweep: SweepRead) -> str:
    """Return a sweep's grid in a line."""
    settings = settings_of(sweep)
    parts = [_say(name, settings.get(name)) for name in dict.fromkeys([*SAID, *settings])]
    trials = counted(sweep.total, "trial") + (f", {sweep.reused} reused" if sweep.reused else "")
    parts.insert(4, trials)
    return " · ".join(part for part in parts if part)


def _say(name: str, value: Any) -> str:
    """Return a setting in words; nothing for one that is not set."""
    if value in (None, [], ()):
        return ""
    say = SAID.get(name)
    if say:
        return say(value)
    told = ", ".join(map(str, value)) if isinstance(value, list | tuple) else value
    return f"{name.replace('_', ' ')} {told}"


def _methods(names: Sequence[str]) -> str:
    return ", ".join(METHOD_STYLE[m].short if m in METHOD_STYLE else m for m in names)


def _clips(clips: Sequence[float | None]) -> str:
    return "clip " + ", ".join("none" if clip is None else number(clip) for clip in clips)


#: Parts of a spec that say nothing about what is trained.
UNTOLD = ("options", "device", "size", "needs")
#: What a sweep is told by, in this order; other settings come after them by their names.
SAID: dict[str, Callable[[Any], str]] = {
    "task": str,
    "methods": _methods,
    "search": lambda search: f"the {search['find']} within {number(search['within'])}",
    "learning_rates": lambda rates: f"rates {rates_words(rates)}",
    "seeds": lambda seeds: counted(len(seeds), "seed"),
    "width": lambda width: f"width {width}",
    "depth": lambda depth: f"depth {depth}",
    "clips": _clips,
    "epochs": lambda epochs: counted(epochs, "epoch"),
    "batch_size": lambda size: f"batch {size}",
    "activation": str,
    "mu": lambda mu: f"mu {number(mu)}",
    "profile": lambda profile: f"{profile} profile",
    "batch_rule": lambda rule: f"batch rule {rule}",
    "engine": lambda engine: f"engine {engine}",
    "code": lambda code: f"version {code[:8]}",
}


def dialogs() -> list[Component]:
    """Return the confirmation and the copy dialog."""
    return [
        dmc.Modal(
            [
                html.P(id=ids.CONFIRM_WORDS),
                dmc.Group(
                    [
                        dmc.Button("No", id=ids.CONFIRM_NO, variant="default", n_clicks=0),
                        dmc.Button("Yes", id=ids.CONFIRM_YES, n_clicks=0),
                    ],
                    justify="end",
                ),
            ],
            id=ids.CONFIRM,
            title="Are you sure?",
            closeButtonProps={"aria-label": "Close"},
        ),
        dmc.Modal(
            html.Div(id=ids.COPY_BODY),
            id=ids.COPY_MODAL,
            title="The sweep as a command",
            size="xl",
            closeButtonProps={"aria-label": "Close"},
        ),
    ]


# In the browser, because the list of sweeps is redrawn while it runs: a click that has to be
# answered by the server can be overtaken by a redraw of the button, and its answer thrown away.
browser_callback(
    f"function() {{ return window.etascope.askFirst({json.dumps(QUESTIONS)}); }}",
    Output(ids.CONFIRM, "opened"),
    Output(ids.CONFIRM_WORDS, "children"),
    Output(ids.PENDING, "data"),
    Input(shared.part("sweep-cancel", ALL), "n_clicks"),
    Input(shared.part("sweep-retry", ALL), "n_clicks"),
    Input(shared.part("sweep-rerun", ALL), "n_clicks"),
    prevent_initial_call=True,
)


@callback(
    Output(ids.CONFIRM, "opened", allow_duplicate=True),
    Output(ids.PENDING, "data", allow_duplicate=True),
    Output(ids.DONE, "data"),
    Input(ids.CONFIRM_YES, "n_clicks"),
    Input(ids.CONFIRM_NO, "n_clicks"),
    State(ids.PENDING, "data"),
    prevent_initial_call=True,
)
async def act(yes: int, _no: int, pending: dict[str, Any] | None) -> tuple[Any, ...]:
    """Do what was confirmed."""
    if dash.ctx.triggered_id != ids.CONFIRM_YES or not pending:
        return False, None, no_update
    if pending["do"] == "rerun":
        sweep = await _rerun(pending["sweep"])
    else:
        call = calls.cancel if pending["do"] == "cancel" else calls.retry
        sweep = await ask(call(pending["sweep"]))
    say(f"Sweep {sweep.id} {DONE[pending['do']]}.")
    return False, None, yes


async def _rerun(sweep_id: int) -> SweepRead:
    """Submit a sweep's grid once more; its trials have other fingerprints by now."""
    old = await ask(calls.sweep(sweep_id))
    return await ask(calls.submit(old.study_id, SweepCreate.model_validate(body_of(old.spec))))


@callback(
    Output(ids.COPY_MODAL, "opened"),
    Output(ids.COPY_BODY, "children"),
    Input(shared.part("sweep-copy", ALL), "n_clicks"),
    State(shared.LOCATION, "href"),
    prevent_initial_call=True,
)
async def copy(_clicks: list[int], href: str) -> tuple[Any, Any]:
    """Show a sweep as curl, Python and command line."""
    pressed = dash.ctx.triggered_id
    if not pressed or not dash.ctx.triggered[0]["value"]:
        return no_update, no_update
    sweep = await ask(calls.sweep(pressed["key"]))
    return True, copy_tabs(sweep, href)


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
