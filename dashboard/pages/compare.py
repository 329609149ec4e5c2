"""Several studies on one axis."""

import asyncio
from collections import Counter
from typing import Any

import dash_mantine_components as dmc
from dash import Input, Output

from backend.client import calls
from backend.schemas import CompareRead, ScorecardRow, SeriesRead, StudyRead
from dashboard import ids as shared
from dashboard.api_client import Trouble, ask
from dashboard.callbacks import callback
from dashboard.catalog import task_title
from dashboard.components import controls
from dashboard.components.elements import card, link
from dashboard.components.error_panel import empty_state, error_panel
from dashboard.components.scorecard import advice, scorecard_table
from dashboard.components.url_state import Control, keep_in_url, read_controls
from dashboard.figures.blank import NOTHING_YET
from dashboard.figures.sensitivity import Picture, sensitivity_figure
from dashboard.formats import number
from dashboard.ids import Compare as ids
from dashboard.markup import Component, dcc, html
from dashboard.pages.study.view import metric_of
from dashboard.router import Page
from dashboard.theme import graph_config, scheme_of

MOST_STUDIES = 20
LISTED = 200
#: More than this nobody could tell apart, and no browser draws quickly.
MOST_CURVES = 30
#: Letters of a study's name in the legend, with room for it and on a phone.
LONGEST_NAME, LONGEST_NARROW = 28, 12
LOSSES = controls.QUANTITIES[:2]
CONTROLS = (
    Control("studies", ids.STUDIES, [], kind="list"),
    Control("quantity", ids.QUANTITY, "loss", choices=controls.values(LOSSES)),
    Control("split", ids.SPLIT, "train", choices=controls.values(controls.SPLITS)),
    Control("reducer", ids.REDUCER, "final", choices=controls.values(controls.REDUCERS)),
    Control("band", ids.BAND, "std", choices=controls.values(controls.BANDS)),
    Control("seeds", ids.SEEDS, False, kind="flag", property="checked"),
    Control("y", ids.SCALE, "focus", choices=controls.values(controls.SCALES)),
)

keep_in_url("^/compare/?$", CONTROLS)


async def layout(**query: str) -> Component:
    """Return the comparison of the studies an address names."""
    values = read_controls(CONTROLS, query)
    page = await ask(calls.studies(limit=LISTED, archived="any"))
    return html.Div(
        [
            html.Div(html.Div([html.H1("Compare studies")]), className="page-head"),
            html.Div(
                [
                    card(
                        dcc.Graph(
                            id=ids.GRAPH,
                            figure=NOTHING_YET,
                            config=graph_config("etascope-compare"),
                            responsive=True,
                        ),
                        html.Div(id=ids.MESSAGE),
                        className="figure-card",
                    ),
                    html.Div(
                        [
                            card(*_controls(values, page.items)),
                            card(html.Div(id=ids.ADVICE), title="Which rates to use"),
                        ],
                        className="stack",
                    ),
                ],
                className="two-thirds",
            ),
            card(html.Div(id=ids.TABLE), title="Scorecard", mt=16),
        ]
    )


def _controls(values: dict[str, Any], studies: list[StudyRead]) -> list[Component]:
    known = {str(study.id): study.name for study in studies}
    known |= {wanted: f"study {wanted}" for wanted in values["studies"] if wanted not in known}
    return [
        dmc.MultiSelect(
            label="Studies",
            id=ids.STUDIES,
            data=[{"value": id, "label": f"{name} ({id})"} for id, name in known.items()],
            value=values["studies"],
            searchable=True,
            maxValues=MOST_STUDIES,
            mb=16,
        ),
        controls.group(
            "Data",
            controls.segmented("Quantity", ids.QUANTITY, LOSSES, values["quantity"]),
            controls.segmented("Split", ids.SPLIT, controls.SPLITS, values["split"]),
            controls.segmented("Epoch", ids.REDUCER, controls.REDUCERS, values["reducer"]),
        ),
        controls.group(
            "View",
            controls.segmented("Band", ids.BAND, controls.BANDS, values["band"]),
            controls.switch("Seeds", ids.SEEDS, values["seeds"]),
        ),
        controls.group(
            "Axes", controls.segmented("y scale", ids.SCALE, controls.SCALES, values["y"])
        ),
    ]


@callback(
    Output(ids.GRAPH, "figure"),
    Output(ids.GRAPH, "style"),
    Output(ids.MESSAGE, "children"),
    Output(ids.ADVICE, "children"),
    Output(ids.TABLE, "children"),
    *[Input(control.id, control.property) for control in CONTROLS],
    Input(shared.SCHEME, "data"),
    Input(shared.NARROW, "data"),
)
async def draw(*values: Any) -> tuple[Any, ...]:
    """Overlay the studies."""
    chosen, quantity, split, reducer, band, seeds, scale, scheme, narrow = values
    wanted = [int(one) for one in chosen or () if str(one).isdecimal()]
    if not wanted:
        return NOTHING_YET, {"display": "none"}, _nothing(), None, None
    metric = metric_of(quantity, split)
    try:
        found = await ask(calls.compare(wanted, metric=metric, reducer=reducer, band=band))
    except Trouble as error:
        return NOTHING_YET, {"display": "none"}, error_panel(error), None, None
    series, rows = renamed(found, LONGEST_NARROW if narrow else LONGEST_NAME)
    if len(series) > MOST_CURVES:
        return NOTHING_YET, {"display": "none"}, _too_many(len(series)), None, None
    tasks = list(dict.fromkeys(line.task for line in series))
    picture = Picture(
        title=await task_title(tasks),
        metric=metric,
        reducer=reducer,
        band=band,
        scale=scale,
        seeds=seeds,
        scheme=scheme_of(scheme),
        narrow=bool(narrow),
        revision=f"{metric} {scale}",
    )
    figure = await asyncio.to_thread(sensitivity_figure, series, picture, threshold=found.threshold)
    style = {"height": f"{figure.layout.height}px"}
    return figure, style, _links(found), advice(rows), scorecard_table(rows, wide=True)


def renamed(
    found: CompareRead, longest: int = LONGEST_NAME
) -> tuple[list[SeriesRead], list[ScorecardRow]]:
    """Name curves by method and study; the API's longer labels only where that is not enough."""
    studies = {study.id: _shortened(study.name, longest) for study in found.studies}

    def name(line: SeriesRead | ScorecardRow) -> str:
        clip = "" if line.clip is None else f", clip {number(line.clip)}"
        return f"{line.method}, {studies[line.study_id]}{clip}"

    counts = Counter(name(line) for line in found.series)
    series = [
        line.model_copy(update={"label": name(line)}) if counts[name(line)] == 1 else line
        for line in found.series
    ]
    labels = {line.id: line.label for line in series}
    rows = [row.model_copy(update={"label": labels.get(row.id, row.label)}) for row in found.rows]
    return series, rows


def _shortened(name: str, longest: int) -> str:
    return name if len(name) <= longest else f"{name[: longest - 1].rstrip()}…"


def _nothing() -> Component:
    return empty_state(
        "Choose studies", "Pick two or more studies to lay their curves over each other."
    )


def _too_many(curves: int) -> Component:
    return empty_state(
        f"{curves} curves are too many",
        f"At most {MOST_CURVES} are drawn together. A study of many tasks can be looked at task by "
        "task on its own page.",
    )


def _links(found: CompareRead) -> Component:
    links = [link(study.name, f"/studies/{study.id}") for study in found.studies]
    return html.P(
        [part for one in links for part in (one, html.Span(" · "))][:-1], className="history-meta"
    )


PAGE = Page("/compare", "Compare", layout, navigation="Compare")
