"""The paper, trained again: what the evidence supports, each experiment, each claim, UCI.

The page's layout and its tables of claims, UCI and run times stand here; its other parts are

| module | what it has |
| --- | --- |
| `matrix` | experiments by profile: small curves, verdicts, one click to run the rest; ranks |
| `detail` | one experiment: curves, clipping, numbers, notes; App. C: its theorem's average |
"""

import asyncio
from collections import Counter
from typing import Any

from dash import Input, Output

from backend.client import calls
from backend.schemas import (
    BundleRead,
    ClaimRead,
    JudgementRead,
    PaperRead,
    ProfileRead,
    StudyRead,
    UciAccuracyRead,
)
from dashboard import ids as shared
from dashboard.api_client import ask, get_visitor, may_write
from dashboard.components import bundle_offer, card, guide_link
from dashboard.dash_blocks import Component, browser_callback, callback, dcc, html
from dashboard.figures import NOTHING_YET, accuracy_figure, agreement_figure
from dashboard.ids import Bundle
from dashboard.ids import Paper as ids
from dashboard.pages.paper.detail import TAG, detail_card, theory_section
from dashboard.pages.paper.matrix import (
    TABLES,
    UCI_METHODS,
    matrix,
    messages,
    paper_table,
    ranks_section,
    rules,
    run_button,
    verdict_badge,
)
from dashboard.router import Page
from dashboard.theme import graph_config, scheme_of

__all__ = ["PAGE", "layout", "newest_studies"]

MOST_STUDIES = 200
VERDICTS = ("reproduced", "differs", "cannot tell", "not tested")


OF_CLAIMS = (
    "Each claim by one rule, with 95% intervals, on three sets of runs: those the authors "
    "recorded, and ours by the text and as the authors ran it."
)


async def layout(**query: str) -> Component:
    """Return the page; `experiment` and `profile` choose its detail."""
    paper, page, theory, bundle, visitor = await asyncio.gather(
        ask(calls.paper()),
        ask(calls.studies(tag="paper", limit=MOST_STUDIES)),
        ask(calls.studies(tag=TAG, limit=MOST_STUDIES)),
        ask(calls.bundle()),
        get_visitor(),
    )
    studies, may_run = newest_studies(page.items), may_write(visitor)
    ranks = ranks_section(studies.get(("text", UCI_METHODS)))
    claims = [html.P(OF_CLAIMS, className="page-lead"), claims_table(paper)]
    return html.Div(
        [
            dcc.Store(id=Bundle.LOADED),
            _head(paper),
            html.Div(_offer(bundle) if may_run else None, id=ids.OFFER),
            _part("17 experiments, run both ways", rules(paper), matrix(paper), messages()),
            detail_card(paper, query),
            _part("What the paper claims", *claims),
            _part("UCI: 120 tables", uci_section(paper, ranks, may_run=may_run)),
            _part(
                "Appendix C: the theorem’s average",
                theory_section(newest_to_show(theory.items), may_run=may_run),
            ),
            _part("Run times", run_times_table(paper)),
        ],
        className="paper-page",
    )


#: Parts of the page, by heading: on a phone, where all together are twenty screens, each is folded
#: until somebody opens it.
PARTS = {
    "17 experiments, run both ways": "paper-part-experiments",
    "What the paper claims": "paper-part-claims",
    "UCI: 120 tables": TABLES.removeprefix("#"),
    "Appendix C: the theorem’s average": "paper-part-theorem",
    "Run times": "paper-part-times",
}
browser_callback(
    f"function(narrow) {{ return Array({len(PARTS)}).fill(!narrow); }}",
    *(Output(id_, "open") for id_ in PARTS.values()),
    Input(shared.NARROW, "data"),
)


def _part(title: str, *inside: Any) -> Component:
    heading = html.Summary(html.H2(title, className="section-title"))
    return html.Details([heading, *inside], id=PARTS[title], open=True, className="part")


def _offer(bundle: BundleRead) -> Component | None:
    """Return the one click that brings in all trials of the reproduction, while they are not."""
    if bundle.state == "loaded":
        return None
    words = "Its experiments, trained again, come with Etascope: load them to judge every claim."
    return card(html.P(words, style={"marginTop": 0}), bundle_offer(bundle), mb=16)


# Everything on the page follows from the trials that have come.
browser_callback(
    "function(loaded) { if (loaded) { window.location.reload(); } "
    "return window.dash_clientside.no_update; }",
    Output(ids.OFFER, "title"),  # never written: without it other pages' offers would call this
    Input(Bundle.LOADED, "data"),
    prevent_initial_call=True,
)


def _head(paper: PaperRead) -> Component:
    return html.Div(
        html.Div(
            [
                html.H1("The paper, trained again"),
                html.P(
                    [
                        "Robust Implicit Backpropagation (Fagan & Iyengar 2018). EB is explicit "
                        "backpropagation, as everybody trains; IB is the paper’s implicit one. ",
                        guide_link("paper", "How the numbers are defined"),
                    ],
                    className="page-lead",
                ),
                html.Ul([html.Li(sentence) for sentence in paper.headline], className="headline"),
                _counts("Authors profile", [one.authors for one in paper.experiments]),
                _counts("Text profile", [one.text for one in paper.experiments]),
            ]
        ),
        className="page-head",
    )


def _counts(name: str, found: list[ProfileRead]) -> Component:
    counts = Counter((one.verdict, one.word) for one in found)
    return html.P(
        [
            html.B(name),
            *(
                html.Span([verdict_badge(verdict, word), f" {count} of {len(found)}"])
                for (verdict, word), count in sorted(
                    counts.items(), key=lambda item: VERDICTS.index(item[0][0])
                )
            ),
        ],
        className="verdict-counts",
    )


def newest_studies(studies: list[StudyRead]) -> dict[tuple[str, str], StudyRead]:
    """Return the study that changed last, by profile and experiment; the API lists newest first."""
    found: dict[tuple[str, str], StudyRead] = {}
    for study in studies:
        profile = "authors" if "authors" in study.tags else "text"
        for tag in study.tags:
            found.setdefault((profile, tag), study)
    return found


def newest_to_show(studies: list[StudyRead]) -> StudyRead | None:
    """Return the newest study that has ended, else the newest; the API lists newest first."""
    ended = [study for study in studies if study.state == "completed"]
    return next(iter([*ended, *studies]), None)


# --- Claims judged three times over, UCI's tables and pictures, run times


#: What the paper prints of test accuracy: a difference, no table.
PRINTED_POINTS = "0.13"


def claims_table(paper: PaperRead) -> Component:
    """Return every claim as published, by the recorded runs, and by ours in both profiles."""
    return paper_table(
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
    beside = [html.Div(found.beside, className="history-meta")] if found.beside else []
    return [
        html.Details(
            [html.Summary(verdict_badge(found.verdict)), html.P(found.reason)], className="folded"
        ),
        *beside,
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
                    verdict_badge(found.verdict, found.word),
                    f" {found.reason} ",
                    *run,
                ]
            ),
            html.Details([html.Summary("Rule"), html.P(rule)], className="folded"),
        ]
    )


def _cells_by_rate(paper: PaperRead) -> Component:
    head = ("Learning rate", *(f"{row.lr:g}" for row in paper.uci_cells))
    counts = [
        "Losses met at that rate",
        *(f"{row.agreeing} of {row.cells}" for row in paper.uci_cells),
    ]
    return paper_table(head, [counts])


def _accuracies(paper: PaperRead) -> Component:
    rows = [
        [
            found.label,
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
                f"loss. The paper says IB is {PRINTED_POINTS} points better over its 121 tables, "
                "and prints no table of it; an interval that holds 0 cannot tell. Recorded runs "
                "and ours stand side by side on the tables that both have.",
                className="page-lead",
            ),
            paper_table(("Runs", "Tables", "EB", "IB", "IB minus EB, points"), rows),
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
    by_source = {found.source: found for found in paper.uci_accuracies if not found.of_all}
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
            html.Details(
                [html.Summary("How the bounds are counted"), html.P(paper.rules["bounds"])],
                className="folded",
            ),
            paper_table(
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


PAGE = Page("/paper", "The paper", layout, navigation="Paper")
