"""The paper's claims, its UCI tables and its run times, beside ours."""

from typing import Any

from backend.schemas import ClaimRead, JudgementRead, PaperRead, ProfileRead
from dashboard.components.elements import explained
from dashboard.markup import Component, html
from dashboard.pages.paper.experiments import verdict_badge


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
