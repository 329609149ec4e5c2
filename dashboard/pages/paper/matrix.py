"""The 17 experiments and UCI by profile: curves, verdicts, what is left to run; ranks beyond."""

import asyncio
import uuid
from typing import Any

import dash
import dash_mantine_components as dmc
from dash import ALL, Input, Output, State, no_update

from backend.client import calls
from backend.schemas import (
    ExperimentRead,
    PaperRead,
    ProfileRead,
    RanksRead,
    StudyCreate,
    StudyRead,
    SweepCreate,
)
from dashboard import ids as shared
from dashboard.api_client import Trouble, ask, get_catalog, get_visitor, may_change, sentence
from dashboard.components import link
from dashboard.dash_blocks import Component, callback, dcc, html
from dashboard.figures import spark_words, sparkline, sparks
from dashboard.ids import Paper as ids
from dashboard.theme import METHOD_STYLE
from ib_core.methods import place

#: How an experiment was run, and what is asked of it.
ASKED = {
    "As the authors ran it": "do our losses match theirs?",
    "As the text describes it": "does what the paper says hold?",
}
HEAD = ("Experiment", *(f"{how}: {asked}" for how, asked in ASKED.items()))
#: The study beyond the paper that ranks methods over all UCI tables, by its tag.
UCI_METHODS = "uci_methods"
#: Where on the page UCI's tables stand.
TABLES = "#paper-part-uci"
#: Of an experiment's preset.
PREFIX = "paper/"
KINDS = {"reproduced": "completed", "differs": "diverged", "cannot tell": "open"}


def verdict_badge(verdict: str, word: str = "") -> Component:
    """Return a verdict: a spot of colour, and the word it is called by."""
    return html.Span(word or verdict, className=f"state state-{KINDS.get(verdict, 'untested')}")


def address(experiment: str, profile: str = "text") -> str:
    """Return where an experiment's detail is."""
    return f"/paper?experiment={experiment}" + ("&profile=authors" if profile != "text" else "")


def matrix(paper: PaperRead) -> Component:
    """Return one row an experiment, UCI last."""
    return html.Table(
        [
            html.Thead(html.Tr([html.Th(name, scope="col") for name in HEAD])),
            html.Tbody([_row(one) for one in (*paper.experiments, paper.uci)]),
        ],
        className="table responsive history paper-table experiments",
    )


def rules(paper: PaperRead) -> Component:
    """Return by which rules verdicts are found."""
    return html.Details(
        [
            html.Summary("By which rules"),
            html.P([html.B("Authors profile. "), paper.rules["recorded"]]),
            html.P([html.B("Text profile. "), paper.rules["text"]]),
            html.P(
                "Recorded curves (grey, fainter where they are small) are means and standard "
                f"deviations of {paper.source}; a recorded run counts as broken "
                "if it ends above the loss our same network and seed starts from."
            ),
        ],
        className="folded",
    )


def _row(one: ExperimentRead) -> Component:
    missing = [html.Span("no data here", className="state state-missing")]
    name = link(one.title, address(one.id), fw=600)
    if one.id == "uci":  # the browser's own link: it goes to a place on this page
        name = html.A(html.B(one.title), href=TABLES, style={"textDecoration": "none"})
    return html.Tr(
        [
            html.Td(
                [
                    html.Div([name, *([] if one.present else missing)]),
                    html.Div(one.claim, className="history-meta"),
                ]
            ),
            *(
                html.Td(_cell(one, profile), **{"data-label": label})
                for profile, label in zip(("authors", "text"), ASKED, strict=True)
            ),
        ],
        id=f"experiment-{one.id}",
    )


def _cell(one: ExperimentRead, profile: str) -> Component:
    found: ProfileRead = getattr(one, profile)
    words = [
        verdict_badge(found.verdict, found.word),
        html.Div(_short(found), className="history-meta"),
    ]
    return html.Div([*_curve(one, profile, found), html.Div(words)], className="matrix-cell")


def _short(found: ProfileRead) -> str:
    """Return what decides, in a line; the whole of it stands in the detail."""
    if found.cells:
        run = found.coverage.partition(";")[0]
        only = f", {found.in_range} of these only by the seeds’ range" if found.in_range else ""
        return f"{found.agreeing:,} of {found.cells:,} agree{only}; run: {run}"
    return found.reason.partition(";")[0].rstrip(".") if found.trials else found.coverage


def _curve(one: ExperimentRead, profile: str, found: ProfileRead) -> list[Any]:
    series = [*found.series, *(one.recorded if profile == "authors" else [])]
    source = sparkline(sparks(series))
    if source is None:
        return []
    image = html.Img(src=source, alt=spark_words(sparks(series)), className="spark")
    return [link(image, address(one.id, profile))]


# --- What is left to run


def run_button(
    one: ExperimentRead, profile: str, found: ProfileRead, *, started: bool
) -> Component:
    """Return the one click that runs what is left of an experiment."""
    return dmc.Button(
        "Run the rest" if started else "Run",
        id=shared.part(ids.RUN, f"{profile}|{one.id}"),
        size="compact-sm",
        variant="default",
        disabled=found.trials >= found.of_here,
        n_clicks=0,
        **{"aria-label": f"Run {one.title}, {profile} profile"},
    )


def messages() -> Component:
    """Return where it is said why an experiment cannot be run."""
    return html.Div(id=ids.ERROR, role="alert")


@callback(
    Output(shared.LOCATION, "href", allow_duplicate=True),
    Output(ids.ERROR, "children"),
    Input(shared.part(ids.RUN, ALL), "n_clicks"),
    prevent_initial_call=True,
)
async def run(clicks: list[int | None]) -> tuple[Any, Any]:
    """Submit the experiment whose button was pressed, and go to its study."""
    pressed = dash.ctx.triggered_id
    if not any(clicks) or not isinstance(pressed, dict):
        return no_update, no_update
    profile, _, experiment = str(pressed["key"]).partition("|")
    try:
        study_id = await _submit(experiment, profile)
    except Trouble as error:
        return no_update, dmc.Alert(sentence(error), color="red", mb=12)
    return f"/studies/{study_id}", None


async def _submit(experiment: str, profile: str) -> int:
    """Put the experiment's sweeps into its study, a new one unless there is one to go on with."""
    page, visitor = await asyncio.gather(
        ask(calls.studies(tag=experiment, limit=20)), get_visitor()
    )
    own = [
        study
        for study in page.items
        if ("authors" in study.tags) == (profile == "authors") and may_change(visitor, study)
    ]
    body = SweepCreate.model_validate({"preset": PREFIX + experiment, "profile": profile})
    key = f"paper-{uuid.uuid4()}"
    if own:
        call = calls.submit(own[0].id, body, idempotency_key=key)
    else:
        presets = {one.name: one.title for one in (await get_catalog()).presets}
        name = f"{presets.get(PREFIX + experiment, experiment)} ({profile} profile)"
        made = StudyCreate(name=name, tags=["paper", profile, experiment])
        call = calls.submit_into(made, body, idempotency_key=key)
    return (await ask(call)).study_id


# --- Beyond the paper: ranks over all of UCI's tables


def paper_table(head: tuple[str, ...], rows: list[list[Any]], kind: str = "") -> Component:
    """Return a table whose cells name their column where there is no room for a head."""
    return html.Table(
        [
            html.Thead(html.Tr([html.Th(name, scope="col") for name in head])),
            html.Tbody(
                [
                    html.Tr(
                        [
                            html.Td(value, **({"data-label": name} if number else {}))
                            for number, (name, value) in enumerate(zip(head, row, strict=True))
                        ]
                    )
                    for row in rows
                ]
            ),
        ],
        className=f"table responsive history paper-table {kind}".rstrip(),
    )


def ranks_section(study: StudyRead | None) -> Component | None:
    """Return the way to the study that ranks methods over all tables; None without it."""
    if study is None:
        return None
    return html.Div(
        [
            dcc.Store(id=ids.RANKS_STUDY, data=study.id),
            html.P(
                [
                    "Beyond the paper, more methods on every table, at rates up to 1000: ",
                    link(study.name, f"/studies/{study.id}", underline="always"),
                    ". A first start brings one seed of each, ",
                    html.Code("etascope import-bundle seeds"),
                    " further ones. ",
                    dmc.Button(
                        "Show mean ranks",
                        id=ids.RANKS,
                        size="compact-sm",
                        variant="default",
                        n_clicks=0,
                    ),
                ]
            ),
            html.Div(id=ids.RANKS_WORDS, role="status"),
        ]
    )


@callback(
    Output(ids.RANKS_WORDS, "children"),
    Input(ids.RANKS, "n_clicks"),
    State(ids.RANKS_STUDY, "data"),
    prevent_initial_call=True,
)
async def show_ranks(clicks: int, study_id: int) -> Any:
    """Rank the methods over all tables: asked for, because it scores 120 of them."""
    if not clicks:
        return no_update
    across = (await ask(calls.scorecard(study_id))).across
    return ranks_words(across.ranks if across else [])


def ranks_words(found: list[RanksRead]) -> Component:
    """Return mean ranks as a table, a row a number, and what cannot be told apart."""
    if not found:
        return html.P("There is nothing to rank: it takes several methods on several tables.")
    names = sorted(found[0].mean_ranks, key=lambda name: place(name))
    head = ("Mean rank, 1 the best", *(METHOD_STYLE[name].short for name in names), "Tables")
    rows = [
        [one.title, *(f"{one.mean_ranks[name]:.2f}" for name in names), str(one.tasks)]
        for one in found
    ]
    apart = "; ".join(f"{one.title}: {one.critical_difference:.2f}" for one in found)
    return html.Div(
        [
            paper_table(head, rows),
            html.P(
                f"Ranks closer than the critical difference cannot be told apart at 5 % ({apart}).",
                className="history-meta",
            ),
        ]
    )
