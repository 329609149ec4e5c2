"""What the study says: answer, strip, scorecard; testing a gap of it, measuring its steps."""

import asyncio
import hashlib
import json
from collections.abc import Sequence
from typing import Any

import dash
import dash_mantine_components as dmc
from dash import ALL, Input, Output, State, no_update
from dash.exceptions import PreventUpdate

from backend.client import ApiError, calls
from backend.schemas import (
    DryRunRead,
    MeRead,
    Metric,
    Reducer,
    ScorecardRead,
    ScorecardRow,
    StudyRead,
    SweepCreate,
    TimingsRead,
)
from dashboard import ids as shared
from dashboard.api_client import (
    Cache,
    Trouble,
    ask,
    asked_client,
    get_visitor,
    may_change,
    sentence,
)
from dashboard.components import (
    MOST_LANES,
    advice,
    answer_words,
    fill_from,
    goes_on,
    lane_name,
    method_swatch,
    movement,
    scorecard_table,
    show_more_from,
    strip_lanes,
)
from dashboard.dash_blocks import Component, callback, dcc, html, say
from dashboard.ids import Study as ids
from dashboard.pages.study.controls import ANY, of_task, task_shown
from dashboard.theme import about, counted, number

#: Those of a large study take a megabyte each.
MOST_SCORES = 24
SCORES: Cache[ScorecardRead] = Cache(MOST_SCORES, owner=asked_client)
NOTHING = html.Span(className="nothing")
#: So many gaps are offered at once; on a phone each takes four lines before the picture.
FEW_GAPS = 3
#: The factor within which a gap is narrowed.
NARROW = 1.1

fill_from(ids.SCORES, ids.SCORECARD)
fill_from(ids.ANSWERS, ids.ANSWER)
fill_from(ids.LANES, ids.STRIP)
show_more_from(ids.MORE, ids.NUMBERS, ids.SCORECARD)


async def scores_of(
    study_id: int,
    version: str,
    metric: Metric,
    reducer: Reducer,
    alone: str | None = None,
    task: str | None = None,
) -> ScorecardRead:
    """Return a study's scorecard, asked for once a version.

    Args:
        study_id: Whose.
        version: Of it.
        metric: What is scored.
        reducer: Final or best.
        alone: The only task that is asked for; None: all of them.
        task: The one that is shown, and asked for alone where of all some series are left out.
    """
    call = calls.scorecard(study_id, metric=metric, reducer=reducer, task=alone)
    found = await SCORES.get((study_id, metric, reducer, alone), version, lambda: ask(call))
    if found.left_out and task and not alone:
        return await scores_of(study_id, version, metric, reducer, task)
    return found


@callback(
    Output(ids.SCORES, "data"),
    Output(ids.ANSWERS, "data"),
    Output(ids.LANES, "data"),
    Output(ids.GAPS, "data"),
    Input(ids.SCORED, "data"),
    Input(ids.MEASURED, "data"),
    State(ids.ID, "data"),
    prevent_initial_call=True,
)
async def score(scored: list[Any], measured: Any, study_id: int) -> tuple[Any, ...]:
    """Fetch the robustness numbers, after the picture: that is what one looks at first."""
    if not scored:
        raise PreventUpdate
    version, metric, reducer, task, *alone = scored
    known = f"{version} {measured}" if measured else version
    try:
        found = await scores_of(study_id, known, metric, reducer, alone[0] if alone else None, task)
    except ApiError as error:
        return html.P(error.message, className="muted"), NOTHING, NOTHING, []
    rows = of_task(found.rows, task)
    if not rows:
        what = " whose losses over training are known" if reducer == "best" else ""
        said = f"Numbers appear with the first finished trials{what}."
        words = html.P(said, className="muted")
        return words, NOTHING, NOTHING, []
    tasks = [one.task for one in found.answers]
    moves = movement(found.answers, rows)
    answers = answer_words(
        found.answers, task, found.across, lambda name: _choose(name, tasks), led=bool(moves)
    )
    table = [scorecard_table(rows), *advice(rows)]
    return table, [*moves, *answers], strip_lanes(rows, ids.GRAPH) or NOTHING, gaps_in(rows)


def _choose(task: str, tasks: Sequence[str]) -> dict[str, str]:
    """Return the attributes of a button that shows a task alone."""
    value = ANY if task_shown(ANY, tasks) == task else task
    return {"data-sets": ids.TASK, "data-value": value}


def gaps_in(rows: Sequence[ScorecardRow]) -> list[dict[str, Any]]:
    """Return the gaps in which series begin to break, each with the sweep that would test it."""
    return [
        {
            "id": row.id,
            "name": lane_name(row),
            "method": row.method,
            "imported": row.imported,
            "clipped": row.clip is not None,
            "low": row.strip.to_test[0],
            "high": row.strip.to_test[1],
            "sweep": row.gap,
            "narrow": narrowing(row.gap, *row.strip.to_test),
        }
        for row in rows
        if row.strip.to_test is not None
    ]


def narrowing(sweep: dict[str, Any] | None, low: float, high: float) -> dict[str, Any] | None:
    """Return the sweep that narrows a gap seed by seed; None for one that is narrow already."""
    if sweep is None or high <= low * NARROW:
        return None
    search = {"find": "edge", "from": low, "to": high, "within": NARROW}
    return {**sweep, "learning_rates": search}


def refusal(study: StudyRead, visitor: MeRead) -> str:
    """Return why nothing can be added to a study now; nothing if it can."""
    if not may_change(visitor, study):
        return "Only its owner can add to this study."
    if goes_on(study):
        return "The study is running; its gaps can be tested when it has ended."
    return ""


@callback(
    Output(ids.GAP_OFFERS, "children"),
    Input(ids.GAPS, "data"),
    State(ids.ID, "data"),
    prevent_initial_call=True,
)
async def offer(gaps: list[dict[str, Any]], study_id: int) -> list[Component]:
    """Offer to test the gaps, and say what each would take."""
    shown = gaps[:MOST_LANES]
    if not shown:
        return []
    study, visitor = await asyncio.gather(ask(calls.study(study_id)), get_visitor())
    reason = refusal(study, visitor)
    forecasts = await asyncio.gather(
        *(_forecast(None if reason else gap["sweep"]) for gap in shown)
    )
    found = [_offer(*pair, able=not reason) for pair in zip(shown, forecasts, strict=True)]
    rest = len(gaps) - len(shown)
    more = [html.P(f"and {counted(rest, 'more series', 'more series')} with a gap")] if rest else []
    told = [html.P(reason, className="muted gap-reason", role="status")] if reason else []
    if len(gaps) > FEW_GAPS + 1:
        folded = html.Div([*found[FEW_GAPS:], *more], className="gaps")
        fold = html.Details([html.Summary(f"Gaps of {len(gaps) - FEW_GAPS} more series"), folded])
        return [*found[:FEW_GAPS], fold, *told]
    return [*found, *told]


async def _forecast(sweep: dict[str, Any] | None) -> DryRunRead | str | None:
    """Return what testing a gap would take, or why it cannot be told."""
    if sweep is None:
        return None
    try:
        return await ask(calls.forecast(SweepCreate.model_validate(sweep)))
    except Trouble as error:
        return sentence(error)


def _offer(gap: dict[str, Any], forecast: DryRunRead | str | None, *, able: bool) -> Component:
    """Return one gap in words, the button that tests it, and what that takes."""
    between = f"{number(gap['low'])} to {number(gap['high'])} untried"
    swatch = method_swatch(gap["method"], imported=gap["imported"], clipped=gap["clipped"])
    reason = _why_not(gap, forecast)
    button = dmc.Button(
        "Test the gap",
        id=shared.part("gap", gap["id"]),
        size="compact-xs",
        variant="light",
        n_clicks=0,
        disabled=not able or bool(reason),
        **{"aria-label": f"Test the gap of {gap['name']}, {between}"},
    )
    words = html.Span(reason or _cost(forecast), className="muted")
    named = html.Span([html.B(gap["name"]), f": {between}"])
    narrow = [_narrow(gap, able=able and not reason)] if gap["narrow"] else []
    return html.Div([swatch, named, button, words, *narrow], className="gap")


def _narrow(gap: dict[str, Any], *, able: bool) -> Component:
    words = f"Narrow it to within {number(NARROW)}"
    return dmc.Button(
        words,
        id=shared.part("narrow", gap["id"]),
        size="compact-xs",
        variant="light",
        n_clicks=0,
        disabled=not able,
        **{"aria-label": f"{words}: every seed's edge of {gap['name']}"},
    )


def _why_not(gap: dict[str, Any], forecast: DryRunRead | str | None) -> str:
    if gap["imported"]:
        return "made elsewhere: it cannot be run here"
    if gap["sweep"] is None:
        return "trained by another version of the engine: run the sweep again first"
    return forecast if isinstance(forecast, str) else ""


def _cost(forecast: DryRunRead | str | None) -> str:
    if not isinstance(forecast, DryRunRead):
        return ""
    seconds = f", {about(forecast.cost_seconds)}" if forecast.shards else ", all known already"
    return f"{counted(forecast.trials, 'trial')}{seconds}"


@callback(
    Output(ids.DONE, "data", allow_duplicate=True),
    Input(shared.part("gap", ALL), "n_clicks"),
    Input(shared.part("narrow", ALL), "n_clicks"),
    State(ids.GAPS, "data"),
    State(ids.ID, "data"),
    prevent_initial_call=True,
)
async def try_gap(
    _tested: list[int], _narrowed: list[int], gaps: list[dict[str, Any]], study_id: int
) -> Any:
    """Submit the sweep that tests or narrows the gap whose button was pressed."""
    pressed = dash.ctx.triggered_id
    if not pressed or not dash.ctx.triggered[0]["value"]:
        return no_update
    gap = next(one for one in gaps if one["id"] == pressed["key"])
    narrow = pressed["kind"] == "narrow"
    wish = gap["narrow"] if narrow else gap["sweep"]
    study = await ask(calls.study(study_id))
    body = SweepCreate.model_validate(wish)
    sweep = await ask(calls.submit(study_id, body, idempotency_key=gap_key(study, wish)))
    say(f"Sweep {sweep.id} {'narrows' if narrow else 'tests'} the gap of {gap['name']}.")
    return f"gap {sweep.id}"


def gap_key(study: StudyRead, sweep: dict[str, Any]) -> str:
    """Return what tells one wish to test a gap from another: pressed twice, it is submitted once.

    A study that has got a sweep since is another question.
    """
    told = json.dumps([study.id, study.sweep_ids, sweep], sort_keys=True)
    return f"gap-{hashlib.sha256(told.encode()).hexdigest()[:32]}"


# --- What a step costs -------------------------------------------------------------------------

#: How often a page that waits for a measurement asks for it.
MEASURE_MS = 2000
WAITING = ("queued", "running")


def measure_line(timing: TimingsRead, *, own: bool) -> Component:
    """Return the button that has a step of every method measured, and how far that is."""
    waiting = any(one.state in WAITING for one in timing.items)
    return html.Div(
        [
            dcc.Store(id=ids.MEASURED),
            dcc.Interval(id=ids.MEASURE_TICK, interval=MEASURE_MS, disabled=not waiting),
            dmc.Button(
                "Measure the cost of a step",
                id=ids.MEASURE,
                variant="light",
                size="compact-sm",
                n_clicks=0,
                disabled=waiting or not own,
            ),
            html.Span(
                measure_words(timing) if own else NOT_OWN,
                id=ids.MEASURE_WORDS,
                className="muted",
                role="status",
            ),
        ],
        className="row measure",
    )


NOT_OWN = "Only the study's owner can have it measured."


def measure_words(timing: TimingsRead) -> str:
    """Return how far measuring is."""
    states = [one.state for one in timing.items]
    if "running" in states:
        return "A worker measures: the methods take steps in turn."
    if "queued" in states:
        return " ".join(timing.messages) or "Waiting for a worker."
    if failed := [one for one in timing.items if one.state == "failed"]:
        return f"It could not be measured: {failed[0].error}"
    devices = dict.fromkeys(one.measured_on for one in timing.items if one.state == "done")
    told = [f"Measured on {', '.join(devices)}."] if devices else []
    return " ".join([*told, *timing.messages])


@callback(
    Output(ids.MEASURE_WORDS, "children"),
    Output(ids.MEASURE, "disabled"),
    Output(ids.MEASURE_TICK, "disabled"),
    Output(ids.MEASURED, "data"),
    Input(ids.MEASURE, "n_clicks"),
    Input(ids.MEASURE_TICK, "n_intervals"),
    State(ids.ID, "data"),
    prevent_initial_call=True,
)
async def measure(_clicks: int, _ticks: int, study_id: int) -> tuple[Any, ...]:
    """Have steps measured, and follow that until their costs stand in the table."""
    pressed = dash.ctx.triggered_id == ids.MEASURE
    call = calls.measure_steps(study_id) if pressed else calls.step_timing(study_id)
    timing = await ask(call)
    waiting = any(one.state in WAITING for one in timing.items)
    ended = [str(one.finished_at) for one in timing.items if one.finished_at]
    return (
        measure_words(timing),
        waiting,
        not waiting,
        no_update if waiting else max(ended, default=no_update),
    )
