"""A study's sweeps, and what can be done about each."""

from collections.abc import Sequence

import dash_mantine_components as dmc

from backend.schemas import SweepRead
from dashboard import ids as shared
from dashboard.catalog import get_catalog
from dashboard.components.elements import link, state_badge
from dashboard.components.progress import retriable, unfinished
from dashboard.components.times import local_time
from dashboard.figures.rate_ticks import rates_words
from dashboard.formats import counted
from dashboard.markup import Component, html
from dashboard.theme import METHOD_STYLE

MOST_LISTED = 4


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
    return [*(_sweep(sweep, own, engine) for sweep in shown), *more]


def _needs_somebody(sweep: SweepRead) -> bool:
    return unfinished(sweep.progress) > 0 or retriable(sweep.progress) > 0


def _sweep(sweep: SweepRead, own: bool, engine: str) -> Component:
    buttons = []
    if own and unfinished(sweep.progress) and not sweep.cancelled:
        buttons.append(_button("cancel", sweep.id, "Cancel", "red"))
    if own and retriable(sweep.progress):
        again = counted(retriable(sweep.progress), "trial")
        buttons.append(_button("retry", sweep.id, f"Retry {again}", "indigo"))
    if own and outdated(sweep, engine):
        buttons.append(_button("rerun", sweep.id, f"Run again with engine {engine}", "indigo"))
    return html.Div(
        [
            html.Div([html.B(f"Sweep {sweep.id}"), state_badge(sweep.state)], className="row"),
            html.Div(describe(sweep), className="history-meta"),
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


def describe(sweep: SweepRead) -> str:
    """Return a sweep's grid in a line."""
    spec = sweep.spec
    methods = [METHOD_STYLE[m].short if m in METHOD_STYLE else m for m in spec.get("methods", ())]
    clips = [clip for clip in spec.get("clips", ()) if clip is not None]
    parts = [
        str(spec.get("task", "")),
        ", ".join(methods),
        f"rates {rates_words(spec.get('learning_rates', ()))}",
        counted(len(spec.get("seeds", ())), "seed"),
        counted(sweep.total, "trial") + (f", {sweep.reused} reused" if sweep.reused else ""),
        f"clip {', '.join(f'{clip:g}' for clip in clips)}" if clips else "",
        f"{spec['profile']} profile" if spec.get("profile") else "",
        f"batch rule {spec['batch_rule']}" if spec.get("batch_rule") else "",
        f"engine {sweep.engine_version}" if sweep.engine_version else "",
    ]
    return " · ".join(part for part in parts if part)
