"""The paper's experiments: what each is, one click to run it, and what came out here."""

import asyncio
from typing import Any

from backend.client import calls
from backend.schemas import MetricRead, PresetRead, ScorecardRow, StudyRead
from dashboard.api_client import Trouble, ask
from dashboard.catalog import get_catalog
from dashboard.components.elements import button_link, explained, guide_link, link, state_badge
from dashboard.components.progress import progress_bar, unfinished
from dashboard.figures.rate_ticks import rates_words
from dashboard.formats import counted, number
from dashboard.markup import Component, html
from dashboard.router import Page
from dashboard.theme import METHOD_STYLE

PREFIX = "paper/"
MOST_STUDIES = 200
#: Scorecards are asked for together; more at a time would only queue up.
TOGETHER = 6
HEAD = ("Experiment", "Rates and seeds", "Here", "Divergence rate", "Headroom of IB", "")


async def layout(**_: str) -> Component:
    """Return the table of experiments."""
    catalog, page = await asyncio.gather(
        get_catalog(fresh=True), ask(calls.studies(tag="paper", limit=MOST_STUDIES))
    )
    presets = [preset for preset in catalog.presets if preset.name.startswith(PREFIX)]
    studies = newest_by_preset(page.items)
    scores = await _scorecards(list(studies.values()))
    rows = [
        _row(preset, studies.get(short(preset)), scores.get(short(preset), []))
        for preset in presets
    ]
    return html.Div(
        [
            html.Div(
                html.Div(
                    [
                        html.H1("The paper's experiments"),
                        html.P(
                            [
                                "Robust Implicit Backpropagation (Fagan & Iyengar 2018): each "
                                "experiment as a preset, and what this installation found. ",
                                guide_link("paper", "How the numbers are defined"),
                            ],
                            className="page-lead",
                        ),
                    ]
                ),
                className="page-head",
            ),
            html.Table(
                [
                    html.Thead(html.Tr([html.Th(name, scope="col") for name in HEAD])),
                    html.Tbody(rows),
                ],
                className="table responsive history",
            ),
        ]
    )


def short(preset: PresetRead) -> str:
    """Return the part of a preset's name that is also its studies' tag."""
    return preset.name.removeprefix(PREFIX)


def newest_by_preset(studies: list[StudyRead]) -> dict[str, StudyRead]:
    """Return the study that changed last for each preset's tag; the API lists newest first."""
    found: dict[str, StudyRead] = {}
    for study in studies:
        for tag in study.tags:
            found.setdefault(tag, study)
    return found


async def _scorecards(studies: list[StudyRead]) -> dict[str, list[ScorecardRow]]:
    """Return the robustness numbers of the studies, by their preset's tag."""
    gate = asyncio.Semaphore(TOGETHER)

    async def fetch(study: StudyRead) -> list[ScorecardRow]:
        async with gate:
            try:
                return (await ask(calls.scorecard(study.id))).rows
            except Trouble:  # one study's numbers are not worth the page
                return []

    unique = {study.id: study for study in studies}
    rows = dict(zip(unique, await asyncio.gather(*map(fetch, unique.values())), strict=True))
    return {tag: rows[study.id] for study in unique.values() for tag in study.tags}


def _row(preset: PresetRead, study: StudyRead | None, rows: list[ScorecardRow]) -> Component:
    data = [] if preset.present else [html.Span("no data yet", className="state state-missing")]
    cells: list[tuple[str, Any]] = [
        (
            "",
            [
                html.Div([html.B(preset.title), *data]),
                html.Div(preset.summary, className="history-meta"),
            ],
        ),
        ("Grid", html.Div(_grids(preset), className="history-meta")),
        ("Here", _here(study)),
        ("Divergence rate", _rates(rows)),
        ("Headroom of IB", _headroom(rows)),
        ("", button_link("Run", f"/new?preset={preset.name}", primary=study is None)),
    ]
    return html.Tr(
        [html.Td(value, **({"data-label": name} if name else {})) for name, value in cells]
    )


def _grids(preset: PresetRead) -> list[Component]:
    """Return rates and seeds; a preset with many sweeps says how many."""
    if len(preset.sweeps) > 3:
        return [
            html.Div(f"{counted(len(preset.sweeps), 'sweep')}, {counted(preset.trials, 'trial')}")
        ]
    return [html.Div(_grid(sweep)) for sweep in preset.sweeps]


def _grid(sweep: dict[str, Any]) -> str:
    methods = [METHOD_STYLE[m].short if m in METHOD_STYLE else m for m in sweep.get("methods", ())]
    rates, seeds = sweep.get("learning_rates"), sweep.get("seeds")
    words = rates_words(rates) if isinstance(rates, list) else "the task's own rates"
    amount = seeds if isinstance(seeds, int) else len(seeds or ())
    return f"{', '.join(methods)}: {words}" + (f"; {counted(amount, 'seed')}" if amount else "")


def _here(study: StudyRead | None) -> Component:
    if study is None:
        return html.Span("not run yet", className="history-meta")
    bar = (
        [progress_bar(study.progress, study.total, size="xs")] if unfinished(study.progress) else []
    )
    return html.Div(
        [link(f"Study {study.id}", f"/studies/{study.id}"), " ", state_badge(study.state), *bar]
    )


def _rates(rows: list[ScorecardRow]) -> Any:
    shown = [
        (row, row.metrics["divergence_rate"]) for row in rows if "divergence_rate" in row.metrics
    ]
    if not shown:
        return html.Span("–", className="history-meta")
    return [
        html.Div(
            [
                f"{METHOD_STYLE[row.method].short if row.method in METHOD_STYLE else row.method}: ",
                _value(metric),
            ]
        )
        for row, metric in shown
    ]


def _headroom(rows: list[ScorecardRow]) -> Any:
    found = [
        row.metrics["headroom"] for row in rows if row.method == "ib" and "headroom" in row.metrics
    ]
    return _value(found[0]) if found else html.Span("–", className="history-meta")


def _value(metric: MetricRead) -> Component:
    bound = {"above": "at least ", "below": "at most ", "none": ""}[metric.censored]
    text = f"{bound}{number(metric.value)}" if metric.value is not None else "–"
    return explained(text, f"{metric.definition} {metric.note}".strip())


PAGE = Page("/paper", "The paper", layout, navigation="Paper")
