"""The paper, trained again: what the evidence supports, each experiment, each claim, UCI.

The page's layout stands here; its parts are

| module | what it has |
| --- | --- |
| `matrix` | experiments by profile: small curves and verdicts, each opening its detail |
| `detail` | one experiment: curves, clipping, numbers, notes, one click to run the rest |
| `theory` | App. C: the average that its theorem bounds |
| `tables` | claims, UCI's tables and pictures, run times |
"""

import asyncio

from dash import Input, Output

from backend.client import calls
from backend.schemas import BundleRead, PaperRead, StudyRead
from dashboard.api_client import ask, get_visitor, may_write
from dashboard.components import bundle_offer, card, guide_link, link
from dashboard.dash_blocks import Component, browser_callback, dcc, html
from dashboard.ids import Bundle
from dashboard.ids import Paper as ids
from dashboard.pages.paper.detail import detail_card, messages
from dashboard.pages.paper.matrix import matrix, verdict_badge
from dashboard.pages.paper.tables import claims_table, run_times_table, uci_section
from dashboard.pages.paper.theory import TAG, theory_section
from dashboard.router import Page

__all__ = ["PAGE", "layout", "newest_studies"]

MOST_STUDIES = 200
VERDICTS = ("reproduced", "differs", "cannot tell", "not tested")
#: The study beyond the paper that ranks methods over all UCI tables, by its tag.
UCI_METHODS = "uci_methods"


async def layout(**query: str) -> Component:
    """Return the page; `experiment` and `profile` choose its detail."""
    paper, page, bundle, visitor = await asyncio.gather(
        ask(calls.paper()),
        ask(calls.studies(tag="paper", limit=MOST_STUDIES)),
        ask(calls.bundle()),
        get_visitor(),
    )
    studies = newest_studies(page.items)
    return html.Div(
        [
            dcc.Store(id=Bundle.LOADED),
            _head(paper),
            html.Div(_offer(bundle) if may_write(visitor) else None, id=ids.OFFER),
            html.H2("17 experiments, run both ways", className="section-title"),
            _rules(paper),
            matrix(paper),
            messages(),
            detail_card(paper, query),
            html.H2("What the paper claims", className="section-title"),
            html.P(
                "Each claim by one rule, with 95% intervals, on three sets of runs: those the "
                "authors recorded, and ours by the text and as the authors ran it.",
                className="page-lead",
            ),
            claims_table(paper),
            html.H2("UCI: 120 tables", className="section-title"),
            uci_section(paper, _ranks(studies), may_run=may_write(visitor)),
            html.H2("Appendix C: the theorem’s average", className="section-title"),
            theory_section(studies.get(("text", TAG)), may_run=may_write(visitor)),
            html.H2("Run times", className="section-title"),
            run_times_table(paper),
        ],
        className="paper-page",
    )


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
                    ["Robust Implicit Backpropagation (Fagan & Iyengar 2018). ", _guide()],
                    className="page-lead",
                ),
                html.Ul([html.Li(sentence) for sentence in paper.headline], className="headline"),
                _counts("Authors profile", paper.authors_counts, len(paper.experiments)),
                _counts("Text profile", paper.counts, len(paper.experiments)),
            ]
        ),
        className="page-head",
    )


def _guide() -> Component:
    return guide_link("paper", "How the numbers are defined")


def _counts(name: str, counts: dict[str, int], of: int) -> Component:
    return html.P(
        [
            html.B(name),
            *(
                html.Span([verdict_badge(verdict), f" {counts[verdict]} of {of}"])
                for verdict in VERDICTS
                if verdict in counts
            ),
        ],
        className="verdict-counts",
    )


def _rules(paper: PaperRead) -> Component:
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


def _ranks(studies: dict[tuple[str, str], StudyRead]) -> Component | None:
    study = studies.get(("text", UCI_METHODS))
    if study is None:
        return None
    words = "Mean ranks of EB, IB, IB+, momentum and Adam over all tables"
    return html.P(link(f"{words}: study {study.id}", f"/studies/{study.id}"))


def newest_studies(studies: list[StudyRead]) -> dict[tuple[str, str], StudyRead]:
    """Return the study that changed last, by profile and experiment; the API lists newest first."""
    found: dict[tuple[str, str], StudyRead] = {}
    for study in studies:
        profile = "authors" if "authors" in study.tags else "text"
        for tag in study.tags:
            found.setdefault((profile, tag), study)
    return found


PAGE = Page("/paper", "The paper", layout, navigation="Paper")
