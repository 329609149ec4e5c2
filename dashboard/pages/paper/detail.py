"""One experiment: curves with edges, test loss, clipping, numbers, notes, and what is left to run.

The recorded runs lie under the authors profile's curves.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

import dash_mantine_components as dmc
from dash import Input, Output, State

from backend.client import calls
from backend.schemas import (
    ExperimentRead,
    MethodNumbersRead,
    PaperRead,
    ProfileRead,
    SeriesRead,
    StudyRead,
)
from dashboard import ids as shared
from dashboard.api_client import (
    ask,
    get_visitor,
    may_write,
)
from dashboard.components import (
    Control,
    button_link,
    card,
    keep_in_url,
    link,
    progress_bar,
    read_controls,
    segmented,
    state_badge,
    unfinished,
    values_of,
    with_code,
)
from dashboard.dash_blocks import Component, browser_callback, callback, dcc, html
from dashboard.figures import (
    NOTHING_YET,
    Picture,
    clip_figure,
    edge_lines,
    sensitivity_figure,
    theorem_figure,
    theorem_words,
)
from dashboard.ids import Paper as ids
from dashboard.pages.paper.matrix import run_button, verdict_badge
from dashboard.theme import METHOD_STYLE, graph_config, scheme_of

FIRST = "05_jsb_chorales"
PROFILES = (("text", "Text"), ("authors", "Authors and recorded"))
LOSSES = (("train_loss", "Training"), ("test_loss", "Test"))
NOT_RUN = (
    "Nothing of it was run here yet. The button below does; `etascope import-bundle` brings in the "
    "trials that came with Etascope."
)
CONTROLS = (
    Control("experiment", ids.EXPERIMENT, FIRST),
    Control("profile", ids.PROFILE, "text", choices=values_of(PROFILES)),
    Control("loss", ids.LOSS, "train_loss", choices=values_of(LOSSES)),
)
HIDDEN = {"display": "none"}

keep_in_url("^/paper/?$", CONTROLS)
# A link of the matrix chooses what is drawn below it.
browser_callback(
    f"function() {{ document.getElementById('{ids.PICTURE}').scrollIntoView(); }}",
    Input(ids.EXPERIMENT, "value"),
    prevent_initial_call=True,
)


def detail_card(paper: PaperRead, query: Mapping[str, str]) -> Component:
    """Return the detail of the experiment an address names, with its controls."""
    known = {one.id: one.title for one in paper.experiments}
    values = read_controls(CONTROLS, query)
    wanted = values["experiment"]
    return card(
        html.Div(
            [
                dmc.Select(
                    label="Experiment",
                    id=ids.EXPERIMENT,
                    data=[{"value": id, "label": title} for id, title in known.items()],
                    value=wanted if wanted in known else FIRST,
                    allowDeselect=False,
                    searchable=True,
                    w=280,
                ),
                segmented("Profile", ids.PROFILE, PROFILES, values["profile"]),
                segmented("Loss", ids.LOSS, LOSSES, values["loss"]),
            ],
            className="picture-controls",
        ),
        html.Div(id=ids.VERDICT, className="picture-words"),
        _graph(ids.GRAPH, "etascope-paper"),
        _graph(ids.CLIPPING, "etascope-paper-clipping"),
        html.Div(id=ids.MESSAGE, className="picture-words"),
        className="figure-card",
        id=ids.PICTURE,
    )


def _graph(id_: str, name: str) -> Component:
    return dcc.Graph(
        id=id_, figure=NOTHING_YET, config=graph_config(name), responsive=True, style=HIDDEN
    )


@callback(
    Output(ids.VERDICT, "children"),
    Output(ids.GRAPH, "figure"),
    Output(ids.GRAPH, "style"),
    Output(ids.CLIPPING, "figure"),
    Output(ids.CLIPPING, "style"),
    Output(ids.MESSAGE, "children"),
    Input(ids.EXPERIMENT, "value"),
    Input(ids.PROFILE, "value"),
    Input(ids.LOSS, "value"),
    Input(shared.SCHEME, "data"),
    Input(shared.NARROW, "data"),
)
async def draw(
    experiment: str, profile: str, loss: str, scheme: Any, narrow: Any
) -> tuple[Any, ...]:
    """Draw an experiment's curves and say what there is to say of it."""
    paper, page, visitor = await asyncio.gather(
        ask(calls.paper()), ask(calls.studies(tag=experiment, limit=20)), get_visitor()
    )
    one = next((found for found in paper.experiments if found.id == experiment), None)
    if one is None:
        return "", NOTHING_YET, HIDDEN, NOTHING_YET, HIDDEN, with_code(NOT_RUN)
    found = one.text if profile == "text" else one.authors
    series = curves_of(one, profile, loss)
    look = Picture(
        title=f"{one.title}, {profile} profile",
        metric="test_loss" if loss == "test_loss" else "train_loss",
        scheme=scheme_of(scheme),
        narrow=bool(narrow),
        revision=f"{experiment} {profile} {loss}",
    )
    curve, clipping = await asyncio.gather(
        asyncio.to_thread(_curve_figure, series, found, look),
        asyncio.to_thread(_clip_figure, one, found, look),
    )
    study = _study_of(page.items, profile)
    return (
        verdict_words(one, found, profile),
        *curve,
        *clipping,
        _below(one, found, profile, study, may_run=may_write(visitor)),
    )


def curves_of(one: ExperimentRead, profile: str, loss: str = "train_loss") -> list[SeriesRead]:
    """Return a profile's curves; the recorded runs lie under the authors profile's."""
    on_test = loss == "test_loss"
    found = one.text if profile == "text" else one.authors
    own = found.test_series if on_test else found.series
    if profile == "text":
        return own
    return [*(one.recorded_test if on_test else one.recorded), *own]


def _curve_figure(series: list[SeriesRead], found: ProfileRead, look: Picture) -> tuple[Any, Any]:
    if not series:
        return NOTHING_YET, HIDDEN
    on_test = look.metric == "test_loss"
    figure = sensitivity_figure(series, look, threshold=None if on_test else found.threshold)
    for line in edge_lines(found.methods):
        figure.add_shape(line)
    return figure, {"height": f"{figure.layout.height}px"}


def _clip_figure(one: ExperimentRead, found: ProfileRead, look: Picture) -> tuple[Any, Any]:
    if not found.clipping:
        return NOTHING_YET, HIDDEN
    title = f"{one.title}: clipped minus unclipped"
    figure = clip_figure(found.clipping, title, look.scheme, narrow=look.narrow)
    return figure, {"height": f"{figure.layout.height}px"}


def verdict_words(one: ExperimentRead, found: ProfileRead, profile: str) -> list[Component]:
    """Return what the paper says of an experiment, and what the runs say of that."""
    who = "Run as the text describes it" if profile == "text" else "Run as the authors ran it"
    return [
        html.P([html.B("The paper says: "), one.claim]),
        html.P([html.B(f"{who}: "), verdict_badge(found.verdict, found.word), " ", found.reason]),
        html.P(f"Run: {found.coverage}.", className="history-meta"),
    ]


def _below(
    one: ExperimentRead, found: ProfileRead, profile: str, study: StudyRead | None, *, may_run: bool
) -> list[Component]:
    """Return what stands below the pictures: numbers, notes, data, what to run."""
    parts = [] if found.series else [html.P(with_code(NOT_RUN))]
    parts += _missed(one) if profile == "authors" else []
    if found.methods:
        parts.append(_numbers("Ours", found.methods))
    if profile == "authors" and one.recorded_methods:
        parts.append(_numbers("Recorded runs", one.recorded_methods))
    parts.append(_folded("Text against published runs", one.note))
    if found.clipping:
        parts.append(_folded("How clipped and unclipped runs are paired", PAIRED))
    if not one.present:
        parts.append(html.P(with_code(one.how_to_get), className="history-meta"))
    run = [run_button(one, profile, found, started=study is not None)] if may_run else []
    parts.append(html.Div([*_study(study), *run], className="row"))
    return [*parts, *_bar(study)]


PAIRED = (
    "By content: task, profile, method, rate and seed are the same, everything but the clipping, "
    "whichever study holds them (appendix E of the paper). Training losses are capped at the "
    "initial loss, so that a run that exploded counts as one that learned nothing; of test losses "
    "those that are not finite are left out and counted in the hover text. Below 0 clipping helps."
)


def _missed(one: ExperimentRead) -> list[Component]:
    """Return the cells that do not agree with the recorded runs."""
    missed = [cell for cell in one.cells if not cell.agrees]
    if not missed:
        return []
    words = "; ".join(
        f"{METHOD_STYLE[cell.method].short} at {cell.lr:g}: ours {_loss(cell.ours)}, "
        f"recorded {_loss(cell.theirs)}"
        for cell in missed
    )
    return [html.P([html.B("Cells that do not agree: "), words, "."], className="history-meta")]


def _loss(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.4g}"


def _folded(title: str, words: str) -> Component:
    return html.Details([html.Summary(title), html.P(words)], className="folded")


COLUMNS = {
    "edge": "Edge",
    "headroom": "Edge over EB's",
    "best_mean": "Best mean loss",
    "best_rate": "at rate",
    "mean_difference": "Capped loss minus EB's",
    "paper_divergence_rate": "Diverges at (paper's rule)",
    "paper_headroom": "over EB's",
}


def _numbers(title: str, rows: list[MethodNumbersRead]) -> Component:
    head = html.Tr([html.Th(name, scope="col") for name in (title, *COLUMNS.values())])
    body = [
        html.Tr(
            [
                # Whose numbers they are, where there is no room for a head.
                html.Td(html.B(METHOD_STYLE[row.method].short), **{"data-title": title}),
                *(
                    html.Td(getattr(row, name), **{"data-label": label})
                    for name, label in COLUMNS.items()
                ),
            ]
        )
        for row in rows
    ]
    return html.Table(
        [html.Thead(head), html.Tbody(body)], className="table responsive paper-numbers"
    )


def _study_of(studies: list[StudyRead], profile: str) -> StudyRead | None:
    """Return the study of a profile that changed last; the API lists newest first."""
    own = (one for one in studies if ("authors" in one.tags) == (profile == "authors"))
    return next(own, None)


def _study(study: StudyRead | None) -> list[Component]:
    if study is None:
        return []
    state = [] if study.state == "completed" else [state_badge(study.state)]
    return [link(f"Study {study.id}", f"/studies/{study.id}"), *state]


def _bar(study: StudyRead | None) -> list[Component]:
    if study is None or not unfinished(study.progress):
        return []
    return [progress_bar(study.progress, study.total, size="xs")]


# --- Appendix C: the theorem's average, drawn from trials that restart


#: How the study is found: by the tag that its import gives it, and anybody may.
TAG = "level_set"
PRESET = "theory/level_set"


def theory_section(study: StudyRead | None, *, may_run: bool) -> Component:
    """Return the section: the picture of the newest study of the preset, or how to get one."""
    words = html.P(
        "The theorem needs decaying rates, a ridge, and a return to zero whenever the weights "
        "leave the level set. It says that the sum of rate × |gradient|² over the sum of rates "
        "tends to 0, with the gradient of all the data. Drawn is the same sum with g, what each "
        "step multiplied by its rate; a batch’s noise stays in it. Stronger lines: higher rates.",
        className="page-lead",
    )
    if study is None:
        run = [button_link("Run it", f"/new?preset={PRESET}")] if may_run else []
        return html.Div([words, card(html.P("Nothing of it was run here yet."), *run)])
    return html.Div(
        [
            words,
            dcc.Store(id=ids.THEOREM_STUDY, data=study.id),
            card(
                dcc.Graph(
                    id=ids.THEOREM,
                    figure=NOTHING_YET,
                    config=graph_config("etascope-theorem"),
                    responsive=True,
                ),
                html.P(id=ids.THEOREM_WORDS, className="history-meta"),
                html.P(link(study.name, f"/studies/{study.id}"), className="history-meta"),
                className="figure-card",
            ),
        ]
    )


@callback(
    Output(ids.THEOREM, "figure"),
    Output(ids.THEOREM, "style"),
    Output(ids.THEOREM_WORDS, "children"),
    Input(shared.SCHEME, "data"),
    State(ids.THEOREM_STUDY, "data"),
)
async def draw_theorem(scheme: str, study_id: int) -> tuple[Any, ...]:
    """Draw what was recorded."""
    found = await ask(calls.theorem(study_id))
    if not found.lines:
        return NOTHING_YET, {"display": "none"}, "No trial of it recorded what the theorem needs."
    figure = theorem_figure(found, scheme_of(scheme))
    return figure, {"height": f"{figure.layout.height}px"}, theorem_words(found)
