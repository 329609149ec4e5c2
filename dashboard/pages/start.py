"""The start page: an experiment to turn, a study that runs, and where to go from there."""

import asyncio
import math
from collections.abc import Sequence
from typing import Any

import dash_mantine_components as dmc
from dash import Input, Output, State, no_update

from backend.client import calls
from backend.schemas import PaperRead, RaceRead, StudyRead, SweepRead
from dashboard.api_client import Trouble, ask, get_visitor, may_write
from dashboard.components import (
    Control,
    answering,
    bundle_offer,
    button_link,
    card,
    ended,
    keep_in_url,
    link,
    progress_bar,
    read_controls,
    tick_from,
    tick_stores,
    unfinished,
)
from dashboard.dash_blocks import Component, browser_callback, callback, dcc, html, report
from dashboard.figures import curve_chart, race_picture
from dashboard.ids import Bundle
from dashboard.ids import Start as ids
from dashboard.router import Page
from dashboard.theme import about, counted
from ib_core.written import NumberKind, Unreadable, read_number

LIVE_MS = 1000
#: `up` loads the paper's bundle when the first study has ended: so long it is looked for.
LOOK_MS, MOST_LOOKS = 4000, 45
MOST_LATEST = 4
#: Whether the first study, if it was due, is there; or nobody knows, since no answer came.
SETTLED, UNKNOWN = "settled", "unknown"
#: Where the slider stands at first: everything learns, and the next notch up breaks one.
FIRST_RATE = 0.5
#: What one experiment, and what several do, by verdict.
VERDICTS = {
    "reproduced": ("holds", "hold"),
    "differs": ("differs", "differ"),
    "cannot tell": ("stays open", "stay open"),
    "not tested": ("was not run", "were not run"),
}
CONTROLS = (Control("lr", ids.RATE, FIRST_RATE, "number", property="data"),)

keep_in_url("^/$", CONTROLS)
browser_callback(
    "function(race, lr) { return window.etascope.showRace(race, lr); }",
    Output(ids.PICTURE, "title"),  # never written: without an output it would not be called
    Input(ids.RACE, "data"),
    Input(ids.RATE, "data"),
)
browser_callback(
    "function(chart) { window.etascope.showCurve(chart); }",
    Input(ids.CURVE, "data"),
    prevent_initial_call=True,
)
tick_from(ids.INTERVAL, ids.TICK)


async def layout(**query: str) -> Component:
    """Return the page; `lr` is where the slider stands."""
    race = await ask(calls.race())
    return html.Div(
        [
            dcc.Store(id=ids.RACE, data=race_picture(race, FIRST_RATE)),
            dcc.Store(id=ids.RATE, data=read_controls(CONTROLS, query)["lr"]),
            dcc.Store(id=ids.CURVE),
            *tick_stores(ids.TICK),
            dcc.Store(id=ids.BEGUN),
            dcc.Store(id=Bundle.LOADED),
            dcc.Store(id=ids.JUDGED),
            dcc.Interval(id=ids.LOOK, interval=LOOK_MS, max_intervals=MOST_LOOKS),
            dcc.Interval(id=ids.INTERVAL, interval=LIVE_MS),
            html.Div(
                [
                    html.H1("How far can the learning rate be turned before training breaks?"),
                    html.P(
                        "Etascope trains the same network with explicit steps (ordinary gradient "
                        "descent) and with implicit ones, at many rates, and shows where each "
                        "breaks.",
                        className="page-lead",
                    ),
                ],
                className="start-head",
            ),
            html.Div([_race(race, query.get("lr")), _study()], className="start-main"),
            html.Div(_cards(), className="start-cards"),
        ]
    )


def _race(race: RaceRead, asked: str | None) -> Component:
    rates = [rate.lr for rate in race.rates]
    return card(
        html.Div(
            [
                html.Div(
                    [_mark(lr, index, len(rates)) for index, lr in enumerate(rates) if _whole(lr)],
                    id="start-track",
                    className="rate-track",
                ),
                html.Div(
                    [html.Span("Learning rate"), html.B(id="start-number")],
                    className="rate-number",
                    **{"aria-hidden": "true"},  # the slider says it
                ),
            ],
            className="rate-control",
        ),
        html.P(not_shown(rates, asked), id=ids.ASKED, className="rate-asked", role="status"),
        html.Div(
            [
                html.P(id="start-words", className="start-words"),
                html.P(id="start-ahead", className="start-ahead"),
            ],
            className="race-words",
            role="status",
        ),
        html.Div(id=ids.PICTURE, className="chart"),
        html.P(
            f"EB takes explicit steps, IB implicit ones, IB+ also in the output layer. "
            f"Handwritten digits, {counted(race.seeds, 'run')} each (thin) and their median; "
            f"{counted(race.trials, 'stored trial')}.",
            className="history-meta",
            style={"margin": "4px 0 0"},
        ),
        title="Turn the rate",
        className="start-race",
    )


def not_shown(rates: Sequence[float], asked: str | None) -> str:
    """Return why the rate an address asks for is not the one that is shown; nothing if it is."""
    if asked is None:
        return ""
    kind = NumberKind("Learning rate", min(rates), max(rates), needed=True)
    try:
        lr = read_number(asked, kind)
    except Unreadable as error:
        return f"{error}"
    known = any(math.isclose(lr or 0, rate, rel_tol=1e-9) for rate in rates)
    return "" if known else f"Nothing was trained at {asked}: this is the nearest rate that was."


def _whole(lr: float) -> bool:
    return math.isclose(math.log10(lr), round(math.log10(lr)), abs_tol=1e-9)


def _mark(lr: float, index: int, count: int) -> Component:
    """Return a decade below the slider; its ends are half a thumb inside the track's."""
    share = index / (count - 1)
    left = f"calc(15px + (100% - 30px) * {share:.4f})"
    return html.Span(
        f"{lr:g}", className="rate-mark", style={"left": left}, **{"aria-hidden": "true"}
    )


def _study() -> Component:
    return card(
        html.Div([dmc.Skeleton(h=24, w="70%", mb=8), dmc.Skeleton(h=12)], id=ids.STUDY),
        html.Div("The curve appears with the first runs.", id=ids.CHART, className="chart muted"),
        className="start-study",
    )


def _cards() -> list[Component]:
    return [
        card(
            html.P(
                "Your model, your data, your optimizer: see at which rates each of them breaks."
            ),
            html.Div(button_link("Your model", "/your-model"), className="card-foot"),
            title="Run it on your task",
        ),
        card(
            html.Div(dmc.Skeleton(h=64), id=ids.VERDICTS),
            title="The paper, reproduced",
        ),
        card(
            html.P(
                "One number, one valley: explicit steps jump over its bottom, implicit ones never "
                "do. See why."
            ),
            html.Div(button_link("Open the toy", "/toy", primary=False), className="card-foot"),
            title="Play with the toy",
        ),
        card(html.Div(dmc.Skeleton(h=64), id=ids.LATEST), title="Your latest studies"),
    ]


@callback(Output(ids.BEGUN, "data"), Input(ids.BEGUN, "storage_type"))
async def begin(_arrival: Any) -> str:
    """On arrival, give an empty history its first study; it takes seconds on a busy machine.

    By itself: the page that follows meanwhile must neither end nor overtake it.
    """
    try:
        if may_write(await get_visitor()):
            await ask(calls.begin_first_study())
    except Trouble as error:
        report(error)
        return UNKNOWN
    return SETTLED


@callback(
    Output(ids.STUDY, "children"),
    Output(ids.CURVE, "data"),
    Output(ids.LATEST, "children"),
    Output(ids.INTERVAL, "disabled"),
    Input(ids.TICK, "data"),
    # No input: Dash would let whoever has studies wait until the first one is settled.
    State(ids.BEGUN, "data"),
    running=answering(ids.TICK),
)
async def follow(_tick: int | None, begun: str | None) -> tuple[Any, ...]:
    """Show the study that changed last, and go on while one runs or the first may still come."""
    page = await ask(calls.studies(bundle="false", spark="true", limit=MOST_LATEST))
    studies = page.items
    if not studies:
        if begun is None:
            return no_update, no_update, no_update, False
        writer = may_write(await get_visitor())
        return _no_study(writer=writer), None, _no_latest(), begun == SETTLED
    shown = next((one for one in studies if unfinished(one.progress)), studies[0])
    sweep = None
    if shown.sweep_ids:
        sweep = await ask(calls.sweep(shown.sweep_ids[-1]))
    return (
        _told(shown, sweep),
        curve_chart(shown, sweep),
        _latest(studies),
        not any(unfinished(one.progress) for one in studies),
    )


def _told(study: StudyRead, sweep: SweepRead | None) -> list[Component]:
    """Return a study's name and how far it is."""
    running = unfinished(study.progress) > 0
    return [
        html.Div("Running now" if running else "Your last study", className="history-meta"),
        html.H2(link(study.name, f"/studies/{study.id}")),
        progress_bar(study.progress, study.total, size="sm") if study.total else None,
        html.Div(_how_far(study, sweep), className="history-meta"),
    ]


def _how_far(study: StudyRead, sweep: SweepRead | None) -> str:
    if not study.total:
        return "It has no sweep yet."
    runs, broken = counted(study.total, "training run"), study.progress.get("diverged", 0)
    if not unfinished(study.progress):
        return f"{runs}, {broken} of them broke."
    left = sweep.eta_seconds if sweep else None
    soon = "" if left is None else f", {about(left)} left"
    return f"{ended(study.progress)} of {runs} done{soon}."


def _no_study(*, writer: bool) -> Component:
    return html.Div(
        [
            html.H2("No study yet"),
            html.P(
                "A study trains one network at many learning rates.",
                className="history-meta",
            ),
            button_link("Start the first study", "/new?preset=first/digits") if writer else None,
        ]
    )


def _no_latest() -> Component:
    return html.P("Studies of your own are listed here, newest first.")


def _latest(studies: Sequence[StudyRead]) -> Component:
    listed = [html.Li(link(one.name, f"/studies/{one.id}")) for one in studies]
    return html.Div([html.Ul(listed), link("All of the history", "/history", size="sm")])


@callback(
    Output(ids.VERDICTS, "children"),
    Output(ids.JUDGED, "data"),
    Output(ids.LOOK, "disabled"),
    Input(Bundle.LOADED, "data"),
    Input(ids.LOOK, "n_intervals"),
    State(ids.JUDGED, "data"),
)
async def judge(_loaded: Any, _looks: int | None, judged: str | None) -> tuple[Any, ...]:
    """Say what became of the paper's experiments, or offer to load them.

    By itself, after the page is there: judging ten thousand trials takes a moment. What is shown
    is replaced only when it changed, not under somebody's finger.
    """
    bundle, visitor = await asyncio.gather(ask(calls.bundle()), get_visitor())
    mark = f"{bundle.state} {bundle.studies}"
    if mark == judged:
        return no_update, no_update, no_update
    if bundle.state == "loaded":
        paper = await ask(calls.paper())
        return [html.P(_verdicts(paper)), link("See each of them", "/paper")], mark, True
    offer = [
        html.P("Its experiments, trained again and judged, come with Etascope."),
        bundle_offer(bundle) if may_write(visitor) else None,
    ]
    return offer, mark, False


def _verdicts(paper: PaperRead) -> str:
    """Return the verdicts in a line or two; the card of a start page holds no more."""
    same = paper.authors_counts.get("reproduced", 0)
    told = [
        f"{paper.counts[verdict]} {one if paper.counts[verdict] == 1 else more}"
        for verdict, (one, more) in VERDICTS.items()
        if paper.counts.get(verdict)
    ]
    all_of_them = counted(sum(paper.counts.values()), "experiment")
    return (
        f"Run as the authors ran them, losses of {same} of {all_of_them} match theirs. "
        f"As the text describes them, {', '.join(told)}."
    )


PAGE = Page("/", "Start", layout, navigation="Start", parent=None)
