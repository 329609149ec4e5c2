"""One trial: its curve, its outcome, why it broke, and what proves it."""

import asyncio
from typing import Any

import dash
import dash_mantine_components as dmc
from dash import Input, Output, State, no_update

from backend.client import ApiError, calls
from backend.schemas import RecordingRead, TrialRead
from dashboard import ids as shared
from dashboard.api_client import ask, get_visitor, may_write
from dashboard.components import (
    Control,
    at_rate,
    button_link,
    card,
    draw_from,
    facts,
    identifier,
    keep_in_url,
    outcome_pairs,
    read_controls,
    record_facts,
    segmented,
    setting_pairs,
    state_badge,
)
from dashboard.dash_blocks import Component, callback, dcc, html
from dashboard.figures import NOTHING_YET, TrialCurve, curve_figure, shared_ranges, way_figure
from dashboard.ids import Trial as ids
from dashboard.router import Page, View
from dashboard.theme import graph_config, method_style, number, scheme_of

LIVE_MS = 1500
MOST_POINTS = 1000
SCALES = (("auto", "Auto"), ("linear", "Linear"), ("log", "Log"))
#: Whether the axis is logarithmic; None: if a linear one would hide something.
LOG: dict[str, bool | None] = {"auto": None, "linear": False, "log": True}
NORMS = (
    ("weights", "Weights"),
    ("gradients", "Gradients"),
    ("moves", "Steps"),
    ("damping", "Damping"),
)
#: The choice of no other trial beside this one.
ALONE = "alone"
CONTROLS = (
    Control("y", ids.SCALE, "auto", choices=tuple(LOG)),
    Control("layers", ids.LAYERS, "weights", choices=tuple(name for name, _ in NORMS)),
    Control("beside", ids.BESIDE, ALONE),
)
#: Rows of a recording that a screen shows.
MOST_ROWS = 300
WAITING = ("queued", "running")

draw_from(ids.DRAWN, ids.GRAPH)
draw_from(ids.WAY_DRAWN, ids.WAY_GRAPH)
draw_from(ids.OTHER_DRAWN, ids.OTHER_GRAPH)
keep_in_url(r"^/trials/\d+/?$", CONTROLS)


async def layout(trial_id: str = "0", **query: str) -> View:
    """Return the page of a trial."""
    if not (wanted := identifier(trial_id)):
        raise ApiError(404, "not_found", f"There is no trial {trial_id[:40]!r}.")
    trial, visitor = await asyncio.gather(ask(calls.trial(wanted)), get_visitor())
    values = read_controls(CONTROLS, query)
    name = f"{method_style(trial.method).short} at rate {number(trial.lr)}, seed {trial.seed}"
    body = html.Div(
        [
            dcc.Store(id=ids.ID, data=trial.id),
            dcc.Store(id=ids.DRAWN),
            dcc.Interval(id=ids.INTERVAL, interval=LIVE_MS, disabled=_ended(trial)),
            _head(trial, name),
            html.Div(
                [
                    _picture(trial, values["y"]),
                    card(html.Div(_outcome(trial), id=ids.FACTS), title="Outcome"),
                ],
                className="two-thirds",
            ),
            _why(trial, values, may=may_write(visitor)),
            html.Div(
                [_settings(trial), card(record_facts(trial), title="Reproducibility record")],
                className="two-thirds",
            ),
        ],
        className="stack",
    )
    return View(body, title=f"Trial {trial.id}", crumbs=((f"Trial {trial.id}", ""),))


def _picture(trial: TrialRead, scale: str) -> Component:
    graph = dcc.Graph(
        id=ids.GRAPH,
        figure=NOTHING_YET,
        config=graph_config(f"etascope-trial-{trial.id}"),
        responsive=True,
        style={"height": "420px"},
    )
    control = segmented("y scale", ids.SCALE, SCALES, scale)
    return card(html.Div(control, className="short-control"), graph, className="figure-card")


def _why(trial: TrialRead, values: dict[str, Any], *, may: bool) -> Component:
    """Return the place of the story and its pictures; `explain` fills it."""
    button = dmc.Button(
        "Replay", id=ids.REPLAY, size="xs", variant="default", disabled=not _replayable(trial, may)
    )
    return card(
        dcc.Interval(id=ids.REPLAY_TICK, interval=LIVE_MS, disabled=True),
        dcc.Store(id=ids.WAY_DRAWN),
        dcc.Store(id=ids.OTHER_DRAWN),
        html.Div(id=ids.STORY, role="status"),
        html.Div(
            [
                button,
                html.Div(
                    [
                        segmented("Layers", ids.LAYERS, NORMS, values["layers"]),
                        segmented(
                            "Beside", ids.BESIDE, ((ALONE, "Nothing"),), values["beside"] or ALONE
                        ),
                    ],
                    id=ids.WAY_VIEW,
                    className="row",
                    style=HIDDEN,
                ),
            ],
            className="row way-controls",
        ),
        html.Div(
            [
                html.Div(_way_graph(trial, ids.WAY_GRAPH), id=ids.WAY, style=HIDDEN),
                html.Div(_way_graph(trial, ids.OTHER_GRAPH), id=ids.OTHER, style=HIDDEN),
            ],
            className="side-by-side figure-card",
        ),
        title="Why did it break?" if trial.outcome == "diverged" else "Step by step",
    )


HIDDEN = {"display": "none"}


def _way_graph(trial: TrialRead, id: str) -> Component:
    return dcc.Graph(
        id=id,
        figure=NOTHING_YET,
        config=graph_config(f"etascope-trial-{trial.id}-way"),
        responsive=True,
        style={"height": "640px"},
    )


def _replayable(trial: TrialRead, may: bool) -> bool:
    return may and not trial.imported and trial.outcome in ("completed", "diverged")


def _settings(trial: TrialRead) -> Component:
    return card(facts(setting_pairs(trial)), title="Settings")


def _ended(trial: TrialRead) -> bool:
    return trial.outcome is not None or trial.state == "cancelled"


def _head(trial: TrialRead, name: str) -> Component:
    return html.Div(
        [
            html.Div([html.H1(name), html.P(trial.task, className="page-lead")]),
            html.Div(
                [
                    html.Span(state_badge(trial.state), id=ids.STATE),
                    button_link("See one update at this rate", at_rate(trial), primary=False),
                ],
                className="actions",
            ),
        ],
        className="page-head",
    )


def _outcome(trial: TrialRead) -> Component:
    failed = [dmc.Alert(trial.error, color="red", title="Failed", mb=12)] if trial.error else []
    return html.Div([*failed, facts(outcome_pairs(trial))])


@callback(
    Output(ids.DRAWN, "data"),
    Output(ids.FACTS, "children"),
    Output(ids.STATE, "children"),
    Output(ids.INTERVAL, "disabled"),
    Input(ids.INTERVAL, "n_intervals"),
    Input(ids.SCALE, "value"),
    Input(shared.SCHEME, "data"),
    State(ids.ID, "data"),
)
async def draw(_ticks: Any, scale: str, scheme: str | None, trial_id: int) -> tuple[Any, ...]:
    """Draw the trial as far as it is."""
    trial, curve = await asyncio.gather(
        ask(calls.trial(trial_id)), ask(calls.curve(trial_id, max_points=MOST_POINTS))
    )
    figure = curve_figure(
        [TrialCurve(trial, curve)], scheme=scheme_of(scheme), log=LOG.get(scale), height=420
    )
    return figure, _outcome(trial), state_badge(trial.state), _ended(trial)


@callback(
    Output(ids.STORY, "children"),
    Output(ids.WAY_DRAWN, "data"),
    Output(ids.WAY, "style"),
    Output(ids.WAY_VIEW, "style"),
    Output(ids.OTHER_DRAWN, "data"),
    Output(ids.OTHER, "style"),
    Output(ids.BESIDE, "data"),
    Output(ids.REPLAY, "children"),
    Output(ids.REPLAY, "loading"),
    Output(ids.REPLAY_TICK, "disabled"),
    Input(ids.REPLAY, "n_clicks"),
    Input(ids.REPLAY_TICK, "n_intervals"),
    Input(ids.LAYERS, "value"),
    Input(ids.BESIDE, "value"),
    Input(shared.SCHEME, "data"),
    State(ids.ID, "data"),
)
async def explain(
    _clicks: Any, _ticks: Any, layers: Any, beside: str | None, scheme: str | None, trial_id: int
) -> tuple[Any, ...]:
    """Tell why the trial broke, have it replayed, and follow that."""
    pressed = dash.ctx.triggered_id == ids.REPLAY
    return await explained(trial_id, layers, beside, scheme, replay=pressed)


async def explained(
    trial_id: int, layers: Any, beside: str | None, scheme: str | None, *, replay: bool = False
) -> tuple[Any, ...]:
    """Return the story, the pictures and the choices, after asking for a replay if wanted."""
    told: list[str] = []
    if replay:
        try:
            told = (await ask(calls.replay(trial_id))).messages
        except ApiError as error:
            told = [error.message]
    trial, own = await asyncio.gather(
        ask(calls.trial(trial_id)), ask(calls.recording(trial_id, rows=MOST_ROWS))
    )
    waiting = own.state in WAITING
    recorded = [one for one in own.beside if one.recorded]
    choices = [
        {"value": ALONE, "label": "Nothing"},
        *({"value": str(one.trial_id), "label": _short(one.method)} for one in recorded),
    ]
    shown = [(trial, own)]
    if beside in [str(one.trial_id) for one in recorded]:
        other = int(beside or 0)
        shown.append(
            await asyncio.gather(
                ask(calls.trial(other)), ask(calls.recording(other, rows=MOST_ROWS))
            )
        )
    drawn = _pictures(shown, layers, scheme) if own.steps else [no_update]
    other_drawn = drawn[1] if len(drawn) > 1 else no_update
    return (
        [*_story(trial, own, told), *(_beside_story(*one) for one in shown[1:])],
        drawn[0],
        {} if own.steps else HIDDEN,
        {} if own.steps else HIDDEN,  # they turn nothing else
        other_drawn,
        {} if len(drawn) > 1 else HIDDEN,
        choices,
        "Replay again" if own.steps else "Replay",
        waiting,
        not waiting,
    )


def _short(method: str) -> str:
    return method_style(method).short


def _pictures(shown: list[Any], layers: Any, scheme: str | None) -> list[Any]:
    quantity = layers if layers in dict(NORMS) else "weights"
    ranges = shared_ranges([recording for _, recording in shown], quantity)
    return [
        way_figure(trial, recording, ranges, quantity=quantity, scheme=scheme_of(scheme))
        for trial, recording in shown
    ]


def _story(trial: TrialRead, own: RecordingRead, told: list[str]) -> list[Component]:
    """Return what happened in words, how far a replay is, and what to look at next."""
    found = [*_replay_state(trial, own), *(html.P(sentence) for sentence in told)]
    if own.story:
        found.append(html.P(" ".join(own.story), className="story"))
    if own.steps:
        made = own.agreement or "Recorded while it was trained."
        export = html.A("All rows as CSV", href=f"/api/trials/{trial.id}/recording/export")
        found.append(html.P([f"{made} ", export, *_partners(own)], className="muted"))
    return found


def _replay_state(trial: TrialRead, own: RecordingRead) -> list[Component]:
    """Return how far a replay is."""
    if own.state == "running":
        share = f", {round(100 * own.progress)} % done" if own.progress else ""
        return [html.P(f"A worker trains it again and records it{share}.")]
    if own.state == "queued":
        return [html.P("The replay waits for a worker.")]
    if own.state == "failed":
        return [dmc.Alert(own.error, color="red", title="The replay failed", mb=8)]
    return [] if own.steps else [html.P(_invitation(trial), className="muted")]


def _partners(own: RecordingRead) -> list[Any]:
    """Return links to trials of other methods that were not recorded yet."""
    found: list[Any] = []
    for one in own.beside:
        if not one.recorded and one.state in ("completed", "diverged"):
            place = f"/trials/{one.trial_id}"
            found += [" · ", dcc.Link(f"Replay {_short(one.method)} to compare", href=place)]
    return found


def _invitation(trial: TrialRead) -> str:
    if trial.imported:
        return "It was trained elsewhere, so it cannot be trained again here."
    if not _ended(trial):
        return "Once it has ended, a replay can record what happens step by step."
    return (
        "Nothing was recorded of its steps. A replay trains it again alone, every step around the "
        "break recorded, and checks that the numbers are the same."
    )


def _beside_story(trial: TrialRead, other: RecordingRead) -> Component:
    name = dcc.Link(f"{_short(trial.method)}:", href=f"/trials/{trial.id}")
    return html.P([name, " ", " ".join(other.story)], className="story")


PAGE = Page("/trials/<trial_id>", "Trial", layout)
