"""Several studies on one axis."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import dash
import dash_mantine_components as dmc
from dash import ALL, Input, Output, State, no_update

from backend.client import calls
from backend.schemas import (
    CompareRead,
    LearningSeriesRead,
    ScorecardRow,
    SeriesRead,
    StudyRead,
)
from dashboard import ids as shared
from dashboard.api_client import Trouble, ask, learning_of, task_names, task_title
from dashboard.components import (
    BANDS,
    QUANTITIES,
    REDUCERS,
    SCALES,
    SPLITS,
    Control,
    advice,
    answer_words,
    arrange_from,
    button_link,
    card,
    choices_of,
    control_group,
    draw_from,
    empty_state,
    error_panel,
    family_controls,
    family_of,
    family_panel,
    figure_dialog,
    figure_from,
    fill_from,
    identifier,
    keep_in_url,
    link,
    more_numbers,
    read_controls,
    scorecard_table,
    scrubber,
    segmented,
    show_more_from,
    strip_lanes,
    switch,
    values_of,
    view_control,
    zoom_out,
    zoom_out_from,
)
from dashboard.dash_blocks import Component, callback, dcc, html
from dashboard.figures import (
    FAMILY_VIEWS,
    NOTHING_YET,
    Answers,
    Picture,
    across_figure,
    best_of_figure,
    needs_learning,
    shown_only,
    told_apart,
    view_figure,
    with_titles,
)
from dashboard.ids import Compare as ids
from dashboard.pages.study import ALL_VIEWS, metric_of, without_common
from dashboard.router import Page
from dashboard.theme import graph_config, scheme_of

MOST_STUDIES = 20
LISTED = 200
#: So many studies are offered by a button each.
OFFERED = 8
#: More than this nobody could tell apart, and no browser draws quickly.
MOST_CURVES = 120
#: More series than this have no table here.
MOST_ROWS = 30
#: Letters of a study's name in the legend, with room for it and on a phone.
LONGEST_NAME, LONGEST_NARROW = 28, 16
LOSSES = QUANTITIES[:2]
VIEWS = tuple(one for one in ALL_VIEWS if one[0] in (*FAMILY_VIEWS, "best_of", "across"))
CONTROLS = (
    Control("studies", ids.STUDIES, [], kind="list"),
    Control("quantity", ids.QUANTITY, "loss", choices=values_of(LOSSES)),
    Control("split", ids.SPLIT, "train", choices=values_of(SPLITS)),
    Control("reducer", ids.REDUCER, "final", choices=values_of(REDUCERS)),
    Control("band", ids.BAND, "std", choices=values_of(BANDS)),
    Control("seeds", ids.SEEDS, False, kind="flag", property="checked"),
    Control("y", ids.SCALE, "focus", choices=values_of(SCALES)),
    Control("view", ids.VIEW, "curves", choices=values_of(VIEWS)),
    *family_controls(ids),
    Control("numbers", ids.NUMBERS, "short", property="data", choices=("short", "all")),
    Control("zoom", ids.ZOOM, "", property="data"),
)
#: Those that decide what is drawn.
DRAWN_BY = CONTROLS[:-2]

keep_in_url("^/compare/?$", CONTROLS)
arrange_from(ids)
figure_from("compare", ids.GRAPH, ids.FOR_PAPER)
show_more_from(ids.MORE, ids.NUMBERS, ids.TABLE)
fill_from(ids.LANES, ids.STRIP)
draw_from(ids.DRAWN, ids.GRAPH, ids.ZOOM)
zoom_out_from(ids)


async def layout(**query: str) -> Component:
    """Return the comparison of the studies an address names."""
    values = read_controls(CONTROLS, query)
    page = await ask(calls.studies(limit=LISTED, archived="any"))
    return html.Div(
        [
            html.Div(html.Div([html.H1("Compare studies")]), className="page-head"),
            _filled(ids.ANSWER, None, mb=16, classes="answer-card"),
            html.Div(
                [
                    # First for the keyboard, beside the picture for the eye.
                    html.Div(
                        [
                            card(*_controls(values, page.items)),
                            _filled(ids.ADVICE, "Which rates to use"),
                        ],
                        className="stack side",
                    ),
                    html.Div(_figure(values["zoom"]), className="picture"),
                ],
                className="two-thirds compare-grid",
            ),
            _filled(
                ids.TABLE,
                "Scorecard",
                more_numbers(values["numbers"], ids.MORE, ids.NUMBERS, ids.TABLE),
                mt=16,
            ),
        ]
    )


def _figure(zoom: str) -> Component:
    config = graph_config("etascope-compare", own_zoom=True)
    plot = dcc.Graph(id=ids.GRAPH, figure=NOTHING_YET, config=config, responsive=True)
    graph = html.Div(plot, id=ids.FIGURE, disable_n_clicks=True)
    stores = [dcc.Store(id=ids.DRAWN), dcc.Store(id=ids.ZOOM, data=zoom)]
    strip = html.Div([dcc.Store(id=ids.LANES), html.Div(id=ids.STRIP)])
    look = {"variant": "default", "size": "compact-sm", "m": 8}
    paper = dmc.Button("Figure for a paper", id=ids.FOR_PAPER, **look)
    below = [scrubber(ids), zoom_out(ids), html.Div(id=ids.MESSAGE), paper]
    return card(*stores, strip, graph, *below, figure_dialog("compare"), className="figure-card")


def _filled(
    place: str, title: str | None, *more: Component, classes: str = "", **properties: Any
) -> Component:
    """Return a card that is there as soon as there is something in it."""
    inside = html.Div(id=place, className="filled")
    return card(inside, *more, title=title, className=f"unless-empty {classes}", **properties)


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
        control_group(
            "Data",
            segmented("Quantity", ids.QUANTITY, LOSSES, values["quantity"]),
            segmented("Split", ids.SPLIT, SPLITS, values["split"]),
            segmented("Epoch", ids.REDUCER, REDUCERS, values["reducer"]),
        ),
        control_group(
            "View",
            view_control(ids.VIEW, VIEWS, values["view"]),
            segmented("Band", ids.BAND, BANDS, values["band"]),
            switch("Seeds", ids.SEEDS, values["seeds"]),
        ),
        family_panel(ids, values),
        control_group("Axes", segmented("y scale", ids.SCALE, SCALES, values["y"])),
    ]


@callback(
    Output(ids.DRAWN, "data"),
    Output(ids.FIGURE, "style"),
    Output(ids.FOR_PAPER, "style"),
    Output(ids.MESSAGE, "children"),
    Output(ids.ANSWER, "children"),
    Output(ids.LANES, "data"),
    Output(ids.ADVICE, "children"),
    Output(ids.TABLE, "children"),
    Output(ids.CHOICES, "data"),
    *[Input(control.id, control.property) for control in DRAWN_BY],
    Input(shared.SCHEME, "data"),
    Input(shared.NARROW, "data"),
)
async def draw(*values: Any) -> tuple[Any, ...]:
    """Overlay the studies."""
    chosen, quantity, split, reducer, band, seeds, scale, view, *arranged, scheme, narrow = values
    wanted = [study for one in chosen or () if (study := identifier(str(one)))]
    if not wanted:
        return _nothing_drawn(_nothing(await _others(wanted)))
    metric = metric_of(quantity, split)
    try:
        found = await ask(calls.compare(wanted, metric=metric, reducer=reducer, band=band))
    except Trouble as error:
        return _nothing_drawn(error_panel(error))
    family = family_of(arranged, view)
    words = answer_words(found.answers, None, found.across)
    kept = {name: shown_only(getattr(found, name), family.only) for name in ("series", "rows")}
    longest = LONGEST_NARROW if narrow else LONGEST_NAME
    series, rows = renamed(found.model_copy(update=kept), longest)
    titles = await task_names([one.task for one in found.series])
    series, rows = with_titles(series, titles), with_titles(rows, titles)
    if len(series) > MOST_CURVES and view != "across":
        return _nothing_drawn(_too_many(len(series), across=found.across is not None), words)
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
        revision=f"{metric} {scale} {view} {family}",
        family=family,
    )
    if view == "across" and found.across is None:
        few = "Comparing over tasks needs three or more that two methods have in common."
        return _nothing_drawn(empty_state("Too few tasks", few), words)
    drawn_over_time = needs_learning(view, picture)
    learning = await learning_of(series, metric, family.smooth) if drawn_over_time else {}
    figure = await asyncio.to_thread(_figure_of, view, found, series, rows, learning, picture)
    if isinstance(figure, str):
        return *_nothing_drawn(html.P(figure, className="muted"), words)[:-1], choices_of(
            found.series
        )
    below = [_links(found), *(_offer(await _others(wanted)) if len(wanted) == 1 else [])]
    choices = choices_of(found.series)
    if len(rows) > MOST_ROWS:
        return figure, {}, None, below, words, NOTHING, None, None, choices
    on_rates = view == "curves" and (figure.layout.meta or {}).get("rates") is not False
    lanes = strip_lanes(rows, ids.GRAPH) if on_rates else NOTHING
    table = scorecard_table(rows)
    return figure, {}, None, below, words, lanes or NOTHING, advice(rows), table, choices


NOTHING = html.Span(className="nothing")


def _nothing_drawn(message: Component, words: Sequence[Component] | None = None) -> tuple[Any, ...]:
    """Return what stands there without a picture."""
    hidden = {"display": "none"}
    return no_update, hidden, hidden, message, words, NOTHING, None, None, no_update


def _figure_of(
    view: str,
    found: CompareRead,
    series: Sequence[SeriesRead],
    rows: Sequence[ScorecardRow],
    learning: Mapping[str, LearningSeriesRead],
    picture: Picture,
) -> Any:
    if view == "across" and found.across is not None:
        return across_figure(found.across, replace(picture, title=""), found.rows)
    if view == "best_of":
        return best_of_figure(rows, picture)
    # The paper's line belongs to all curves of a picture or to none.
    papers = all(line.threshold is not None for line in series)
    threshold = found.threshold if papers else None
    moves = [move for one in found.answers for move in one.moves]
    return view_figure(view, Answers(series, rows, learning, threshold, moves=moves), picture)


async def _others(chosen: Sequence[int]) -> list[StudyRead]:
    """Return the latest studies to draw that are not chosen yet, people's own first."""
    page = await ask(calls.studies(limit=LISTED))
    left = [one for one in page.items if one.total and one.id not in chosen]
    return sorted(left, key=lambda one: one.bundle)[:OFFERED]


@callback(
    Output(ids.STUDIES, "value"),
    Input(shared.part("compare-pick", ALL), "n_clicks"),
    State(ids.STUDIES, "value"),
    prevent_initial_call=True,
)
async def pick(_clicks: list[int], chosen: list[str] | None) -> Any:
    """Add the studies whose button was pressed."""
    pressed = dash.ctx.triggered_id
    if not pressed or not dash.ctx.triggered[0]["value"]:
        return no_update
    return list(dict.fromkeys([*(chosen or []), *str(pressed["key"]).split(",")]))


def renamed(
    found: CompareRead, longest: int = LONGEST_NAME
) -> tuple[list[SeriesRead], list[ScorecardRow]]:
    """Name curves by method and study, and by what tells the curves of one study apart.

    Among their settings the study has the short name, too: panels and legends say it.
    """
    names = told_apart([study.name for study in found.studies], longest)
    alike = Counter(names)
    labels: dict[str, str] = {}
    short: dict[str, dict[str, str]] = {}
    for study, name in zip(found.studies, names, strict=True):
        name = name if alike[name] == 1 else f"{name} ({study.id})"
        own = [line for line in found.series if line.study_id == study.id]
        plain = [line.label.replace(f", {study.name}", "", 1) for line in own]
        for line, label in zip(own, without_common(plain), strict=True):
            method, comma, rest = label.partition(", ")
            labels[line.id] = f"{method}, {name}{comma}{rest}"
            short[line.id] = {"study": name} if "study" in line.settings else {}

    def told(line: SeriesRead | ScorecardRow) -> dict[str, Any]:
        settings = {**line.settings, **short.get(line.id, {})}
        return {"label": labels.get(line.id, line.label), "settings": settings}

    series = [line.model_copy(update=told(line)) for line in found.series]
    return series, [row.model_copy(update=told(row)) for row in found.rows]


def _nothing(studies: Sequence[StudyRead]) -> Component:
    if len(studies) < 2:
        return empty_state(
            "Nothing to compare yet",
            "Two or more studies are laid over each other here, on one axis and with one "
            "scorecard. Run a sweep into a study of its own first.",
            button_link("New sweep", "/new"),
        )
    both = ",".join(str(study.id) for study in studies[:2])
    return html.Div(
        [
            empty_state(
                "Choose studies",
                "Two or more studies are laid over each other here, on one axis and with one "
                "scorecard. Pick them below, or by name in the field “Studies”.",
                _pick("Compare the two latest", both, variant="filled"),
            ),
            *_offer(studies),
        ]
    )


def _offer(studies: Sequence[StudyRead]) -> list[Component]:
    """Return a button for every study that could be added."""
    if not studies:
        return []
    picks = html.Div([_pick(f"+ {study.name}", str(study.id)) for study in studies])
    words = html.P("The latest studies:", className="history-meta")
    return [html.Div([words, picks], className="picks")]


def _pick(label: str, key: str, variant: str = "default") -> Component:
    return dmc.Button(
        label,
        id=shared.part("compare-pick", key),
        variant=variant,
        size="sm" if variant == "filled" else "compact-sm",
        n_clicks=0,
    )


def _too_many(curves: int, *, across: bool) -> Component:
    tasks = " The picture “Tasks” compares the methods over all of them." if across else ""
    return empty_state(
        f"{curves} curves are too many",
        f"At most {MOST_CURVES} are drawn together. A study of many tasks can be looked at task by "
        f"task on its own page.{tasks}",
    )


def _links(found: CompareRead) -> Component:
    links = [link(study.name, f"/studies/{study.id}") for study in found.studies]
    parts = [part for one in links for part in (one, html.Span(" · "))]
    return html.P(parts[:-1], className="history-meta")


PAGE = Page("/compare", "Compare", layout, navigation="Compare")
