"""The table of experiments: what the paper says, what was run here, and the verdict."""

from typing import Any

import dash_mantine_components as dmc

from backend.schemas import ExperimentRead, MethodNumbersRead, PaperRead, ProfileRead, StudyRead
from dashboard import ids
from dashboard.components.elements import explained, link, state_badge, with_code
from dashboard.components.progress import progress_bar, unfinished
from dashboard.ids import Paper
from dashboard.markup import Component, html
from dashboard.pages.paper.picture import picture_address
from dashboard.theme import METHOD_STYLE

HEAD = ("Experiment", "The paper says", "Text profile", "Authors profile", "Divergence rates")
PROFILES = ("text", "authors")


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
        id=ids.part(Paper.RUN, f"{profile}|{one.id}"),
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
