"""Claims judged three times over, UCI's tables and pictures, run times."""

import asyncio
from typing import Any

from dash import Input, Output

from backend.client import calls
from backend.schemas import ClaimRead, JudgementRead, PaperRead, UciAccuracyRead
from dashboard import ids as shared
from dashboard.api_client import ask
from dashboard.components import card
from dashboard.dash_blocks import Component, callback, dcc, html
from dashboard.figures import NOTHING_YET, accuracy_figure, agreement_figure
from dashboard.ids import Paper as ids
from dashboard.pages.paper.detail import run_button
from dashboard.pages.paper.matrix import verdict_badge
from dashboard.theme import graph_config, scheme_of

SOURCES = {"recorded": "Recorded runs", "authors": "Ours, as the authors", "text": "Ours, text"}
#: What the paper prints of test accuracy: a difference, no table.
PRINTED_POINTS = "0.13"


def _table(head: tuple[str, ...], rows: list[list[Any]], kind: str = "") -> Component:
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


def claims_table(paper: PaperRead) -> Component:
    """Return every claim as published, by the recorded runs, and by ours in both profiles."""
    return _table(
        ("As published", "Recorded runs", "Ours, text", "Ours, as the authors"),
        [_claim(claim) for claim in paper.claims],
        "claims",
    )


def _claim(claim: ClaimRead) -> list[Any]:
    found = (claim.recorded, claim.ours, claim.authors)
    rule = html.Details(
        [html.Summary(f"{claim.place} · rule"), html.P(claim.rule)], className="folded"
    )
    return [[html.Div(claim.text), rule], *map(_judgement, found)]


def _judgement(found: JudgementRead) -> list[Component]:
    return [
        html.Details(
            [html.Summary(verdict_badge(found.verdict)), html.P(found.reason)], className="folded"
        )
    ]


def uci_section(paper: PaperRead, ranks: Component | None, *, may_run: bool) -> Component:
    """Return UCI: verdicts, agreement table by table, accuracies of EB and IB, ranks."""
    parts = [
        _uci_verdict(paper, "authors", paper.rules["uci"], may_run),
        _uci_verdict(paper, "text", paper.rules["uci_text"], may_run),
        html.P(paper.uci.note, className="history-meta"),
    ]
    if paper.uci_cells:
        parts.append(_cells_by_rate(paper))
    if paper.uci_accuracies:
        parts.append(_accuracies(paper))
    return html.Div(
        [*parts, *([ranks] if ranks else []), *([_pictures(paper)] if paper.uci_tables else [])]
    )


def _uci_verdict(paper: PaperRead, profile: str, rule: str, may_run: bool) -> Component:
    found = paper.uci.authors if profile == "authors" else paper.uci.text
    run = [run_button(paper.uci, profile, found, started=found.trials > 0)] if may_run else []
    return html.Div(
        [
            html.P(
                [
                    html.B("Authors profile: " if profile == "authors" else "Text profile: "),
                    verdict_badge(found.verdict),
                    f" {found.reason} ",
                    *run,
                ]
            ),
            html.Details([html.Summary("Rule"), html.P(rule)], className="folded"),
        ]
    )


def _cells_by_rate(paper: PaperRead) -> Component:
    head = ("Learning rate", *(f"{row.lr:g}" for row in paper.uci_cells))
    counts = ["Losses met", *(f"{row.agreeing} of {row.cells}" for row in paper.uci_cells)]
    return _table(head, [counts])


def _accuracies(paper: PaperRead) -> Component:
    rows = [
        [
            SOURCES[found.source],
            str(len(found.tables)),
            f"{found.eb:.2f} %",
            f"{found.ib:.2f} %",
            _points(found),
        ]
        for found in paper.uci_accuracies
    ]
    return html.Div(
        [
            html.P(
                "Mean test accuracy over tables, each method at the rate with the lowest training "
                f"loss. The paper says IB is {PRINTED_POINTS} points better and prints no table; "
                "an interval that holds 0 cannot tell.",
                className="page-lead",
            ),
            _table(("Runs", "Tables", "EB", "IB", "IB minus EB, points"), rows),
        ]
    )


def _points(found: UciAccuracyRead) -> str:
    value = f"{found.difference:+.2f}"
    if found.low is None or found.high is None:
        return value
    return f"{value} ({found.low:+.2f} to {found.high:+.2f})"


def _pictures(paper: PaperRead) -> Component:
    """Return where the two pictures are drawn: accuracies, and every printed cell."""
    met = sum(row.agreeing for row in paper.uci_cells)
    return html.Div(
        [
            card(_graph(ids.ACCURACIES, "etascope-uci-accuracy"), className="figure-card"),
            card(
                html.P(
                    [
                        "Every printed training loss, a row a table, as the authors ran it: ",
                        html.B("blue is met", className="met"),
                        " to .01 or 1 %, ",
                        html.B("orange is not", className="missed"),
                        f". {met:,} of {sum(row.cells for row in paper.uci_cells):,} are: above "
                        "rate 1 training is chaotic, and rounding alone moves a loss by more.",
                    ],
                    className="picture-words",
                ),
                html.Div(
                    _graph(ids.AGREEMENT, "etascope-uci-agreement"),
                    className="tall-picture",
                    tabIndex=0,
                    role="region",
                    **{"aria-label": "Agreement with the printed losses, table by table"},
                ),
                className="figure-card",
            ),
        ],
        className="uci-pictures",
    )


def _graph(id_: str, name: str) -> Component:
    return dcc.Graph(id=id_, figure=NOTHING_YET, config=graph_config(name), responsive=True)


@callback(
    Output(ids.ACCURACIES, "figure"),
    Output(ids.ACCURACIES, "style"),
    Output(ids.AGREEMENT, "figure"),
    Output(ids.AGREEMENT, "style"),
    Input(shared.SCHEME, "data"),
    Input(shared.NARROW, "data"),
)
async def draw_tables(scheme: Any, narrow: Any) -> tuple[Any, ...]:
    """Draw UCI's accuracies and its printed cells."""
    paper = await ask(calls.paper())
    by_source = {found.source: found for found in paper.uci_accuracies}
    shown = by_source.get("text") or by_source.get("authors") or by_source["recorded"]
    look = scheme_of(scheme)
    figures = await asyncio.gather(
        asyncio.to_thread(accuracy_figure, shown, look, narrow=bool(narrow)),
        asyncio.to_thread(agreement_figure, paper, look, narrow=bool(narrow)),
    )
    one, two = ((figure, {"height": f"{figure.layout.height}px"}) for figure in figures)
    return *one, *two


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
