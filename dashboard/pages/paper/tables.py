"""The paper's tables beside ours: experiments and a button that runs each, claims, run times."""

import asyncio
import uuid
from typing import Any

import dash
import dash_mantine_components as dmc
from dash import ALL, Input, Output, no_update

from backend.client import calls
from backend.schemas import (
    ClaimRead,
    ExperimentRead,
    JudgementRead,
    MethodNumbersRead,
    PaperRead,
    ProfileRead,
    StudyCreate,
    StudyRead,
    SweepCreate,
)
from dashboard import ids as shared
from dashboard.api_client import Trouble, ask, get_catalog, get_visitor, may_change, sentence
from dashboard.callbacks import callback
from dashboard.components import explained, link, progress_bar, state_badge, unfinished, with_code
from dashboard.ids import Paper as ids
from dashboard.markup import Component, html
from dashboard.pages.paper.curves import picture_address
from dashboard.theme import METHOD_STYLE

HEAD = ("Experiment", "The paper says", "Text profile", "Authors profile", "Divergence rates")
PROFILES = ("text", "authors")
#: Of an experiment's preset.
PREFIX = "paper/"


def experiments_table(paper: PaperRead, studies: dict[tuple[str, str], StudyRead]) -> Component:
    """Return one row an experiment, UCI last."""
    rows = [_row(one, studies) for one in (*paper.experiments, paper.uci)]
    return html.Table(
        [
            html.Thead(html.Tr([html.Th(name, scope="col") for name in HEAD])),
            html.Tbody(rows),
        ],
        className="table responsive history paper-table experiments",
    )


def verdict_badge(verdict: str) -> Component:
    """Return a verdict: a spot of colour and the word."""
    kinds = {"reproduced": "completed", "differs": "diverged"}
    return html.Span(verdict, className=f"state state-{kinds.get(verdict, 'untested')}")


def _row(one: ExperimentRead, studies: dict[tuple[str, str], StudyRead]) -> Component:
    data = [] if one.present else [html.Span("no data yet", className="state state-missing")]
    get = [html.Div(with_code(one.how_to_get), className="history-meta")] if not one.present else []
    shown = [link("Picture", picture_address(one), size="sm")] if one.id != "uci" else []
    cells: list[tuple[str, Any]] = [
        ("", [html.Div([html.B(one.title), *data]), *shown, *get]),
        (
            "The paper says",
            [
                html.Div(one.claim),
                html.Div(explained("text against runs", one.note), className="history-meta"),
            ],
        ),
        *(
            (
                f"{profile.capitalize()} profile",
                _profile(one, profile, getattr(one, profile), studies.get((profile, one.id))),
            )
            for profile in PROFILES
        ),
        ("Divergence rates", _rates(one)),
    ]
    return html.Tr(
        [html.Td(value, **({"data-label": name} if name else {})) for name, value in cells],
        id=f"experiment-{one.id}",
    )


def _profile(
    one: ExperimentRead, profile: str, found: ProfileRead, study: StudyRead | None
) -> list[Component]:
    return [
        verdict_badge(found.verdict),
        *([html.Div(found.reason)] if found.trials else []),
        html.Div(found.coverage, className="history-meta"),
        html.Div([*_study(study), _run_button(one, profile, found, study)], className="row"),
        *_bar(study),
    ]


def _run_button(
    one: ExperimentRead, profile: str, found: ProfileRead, study: StudyRead | None
) -> Component:
    return dmc.Button(
        "Run" if study is None else "Run the rest",
        id=shared.part(ids.RUN, f"{profile}|{one.id}"),
        size="compact-sm",
        variant="filled" if not found.trials and profile == "text" else "default",
        disabled=not one.present or (found.of > 0 and found.trials >= found.of),
        n_clicks=0,
        **{"aria-label": f"Run {one.title}, {profile} profile"},
    )


def _study(study: StudyRead | None) -> list[Component]:
    if study is None:
        return []
    state = [] if study.state == "completed" else [state_badge(study.state)]
    return [link(f"Study {study.id}", f"/studies/{study.id}"), *state]


def _bar(study: StudyRead | None) -> list[Component]:
    if study is None or not unfinished(study.progress):
        return []
    return [progress_bar(study.progress, study.total, size="xs")]


def _rates(one: ExperimentRead) -> list[Component]:
    """Return where EB and IB diverge: recorded, and here in both profiles."""
    parts = (
        ("recorded", one.recorded_methods),
        ("text", one.text.methods),
        ("authors", one.authors.methods),
    )
    lines = [
        html.Div([html.Span(f"{name}: ", className="history-meta"), _words(rows)])
        for name, rows in parts
        if rows
    ]
    return lines or [html.Span("–", className="history-meta")]


def _words(rows: list[MethodNumbersRead]) -> str:
    known = [row for row in rows if row.method in ("eb", "ib")]
    rates = ", ".join(f"{METHOD_STYLE[row.method].short} {row.divergence_rate}" for row in known)
    ratio = next((row.headroom for row in known if row.method == "ib"), "–")
    return rates if ratio == "–" else f"{rates} ({ratio} times)"


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


def _table(head: tuple[str, ...], rows: list[list[Any]]) -> Component:
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
        className="table responsive history paper-table",
    )


def claims_table(paper: PaperRead) -> Component:
    """Return every claim as published, recomputed from the recorded runs, and ours."""
    return _table(
        ("As published", "Recorded runs", "Here, text profile"),
        [_claim(claim) for claim in paper.claims],
    )


def _claim(claim: ClaimRead) -> list[Any]:
    ours = _judgement(claim.ours)
    if claim.authors.verdict != "not tested":
        found = claim.authors
        words = f"Authors profile, at the rates run: {found.verdict}. {found.reason}"
        ours.append(html.Div(words, className="history-meta"))
    return [
        [
            html.Div(claim.text),
            html.Div(
                [f"{claim.place} · ", explained("rule", claim.rule)], className="history-meta"
            ),
        ],
        _judgement(claim.recorded),
        ours,
    ]


def _judgement(found: JudgementRead) -> list[Component]:
    return [verdict_badge(found.verdict), html.Div(found.reason)]


def uci_table(paper: PaperRead) -> Component:
    """Return how many of the printed losses we meet, rate by rate."""
    words = [
        *_uci_verdict("Text profile", paper.uci.text, paper.rules["uci_text"]),
        *_uci_verdict("Authors profile", paper.uci.authors, paper.rules["uci"]),
    ]
    if not paper.uci_cells:
        return html.Div(words)
    head = ("Learning rate", *(f"{row.lr:g}" for row in paper.uci_cells))
    cells = ["Cells that agree", *(f"{row.agreeing}/{row.cells}" for row in paper.uci_cells)]
    return html.Div([*words, _table(head, [cells])])


def _uci_verdict(profile: str, found: ProfileRead, rule: str) -> list[Component]:
    return [
        html.P([verdict_badge(found.verdict), f" {profile}: ", found.reason]),
        html.P(rule, className="history-meta"),
    ]


def run_times_table(paper: PaperRead) -> Component:
    """Return IB's extra time: bound, printed, recorded and here."""
    head = (
        "Data",
        "Bound",
        "Bound, paper",
        "Measured, paper",
        "Timing runs",
        "Result runs",
        "Here",
    )
    return html.Div(
        [
            html.P(
                "How much longer an epoch of IB takes than one of EB. Timing runs are the recorded "
                "ones that hold only a time, made with the solver behind the printed numbers; the "
                "recorded result runs had an older, slower one. Here: training steps of both in "
                "turns on one core, as measured for the bundle that comes with Etascope.",
                className="page-lead",
            ),
            _table(
                head,
                [
                    [
                        row.dataset,
                        *map(
                            _percent,
                            (
                                *(row.bound, row.printed_bound, row.printed),
                                *(row.recorded, row.recorded_results, row.here),
                            ),
                        ),
                    ]
                    for row in paper.run_times
                ],
            ),
        ]
    )


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:+.1f}%"
