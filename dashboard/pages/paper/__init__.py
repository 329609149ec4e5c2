"""The paper's experiments: published numbers, this installation's, verdicts, one click to run.

The page's layout stands here; its parts are

| module | what it has |
| --- | --- |
| `curves` | one experiment's picture: ours, and the authors' recorded runs over it |
| `tables` | experiments with a button that runs each, claims, UCI tables, run times |
"""

import asyncio

from dash import Input, Output

from backend.client import calls
from backend.schemas import BundleRead, PaperRead, StudyRead
from dashboard.api_client import ask, get_visitor, may_write
from dashboard.callbacks import browser_callback
from dashboard.components import bundle_offer, card, guide_link, with_code
from dashboard.ids import Bundle
from dashboard.ids import Paper as ids
from dashboard.markup import Component, dcc, html
from dashboard.pages.paper.curves import card_for
from dashboard.pages.paper.tables import (
    claims_table,
    experiments_table,
    messages,
    run_times_table,
    uci_table,
    verdict_badge,
)
from dashboard.router import Page

__all__ = ["PAGE", "layout", "newest_studies"]

MOST_STUDIES = 200


async def layout(**query: str) -> Component:
    """Return the page; `experiment` and `profile` choose its picture."""
    paper, page, bundle, visitor = await asyncio.gather(
        ask(calls.paper()),
        ask(calls.studies(tag="paper", limit=MOST_STUDIES)),
        ask(calls.bundle()),
        get_visitor(),
    )
    return html.Div(
        [
            dcc.Store(id=Bundle.LOADED),
            _head(paper),
            html.Div(_offer(bundle) if may_write(visitor) else None, id=ids.OFFER),
            card_for(paper, query),
            html.H2("Experiments", className="section-title"),
            html.P([html.B("Text profile. "), paper.rules["text"]], className="page-lead"),
            html.P([html.B("Authors profile. "), paper.rules["recorded"]], className="page-lead"),
            messages(),
            experiments_table(paper, newest_studies(page.items)),
            html.H2("Claims", className="section-title"),
            html.P(
                with_code(
                    "Each claim is judged on means over seeds, by the same rule on the authors' "
                    "recorded runs and on the trials here." + _without_recorded(paper)
                ),
                className="page-lead",
            ),
            claims_table(paper),
            html.H2("UCI tables", className="section-title"),
            uci_table(paper),
            html.H2("Run times", className="section-title"),
            run_times_table(paper),
        ]
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
    counts = [
        html.Span([verdict_badge(verdict), f" {count} of {len(paper.experiments)}"])
        for verdict, count in paper.counts.items()
    ]
    return html.Div(
        html.Div(
            [
                html.H1("The paper's experiments"),
                html.P(
                    [
                        "Robust Implicit Backpropagation (Fagan & Iyengar 2018): what it "
                        "reports, and what the trials of this installation say. Every verdict "
                        "is computed. ",
                        guide_link("paper", "How the numbers are defined"),
                    ],
                    className="page-lead",
                ),
                html.P(["Text profile: ", *counts], className="verdict-counts"),
            ]
        ),
        className="page-head",
    )


def _without_recorded(paper: PaperRead) -> str:
    if paper.has_recorded:
        return ""
    return (
        " The recorded runs are not here; import their CSV on the History page or with "
        "`etascope import`."
    )


def newest_studies(studies: list[StudyRead]) -> dict[tuple[str, str], StudyRead]:
    """Return the study that changed last, by profile and experiment; the API lists newest first."""
    found: dict[tuple[str, str], StudyRead] = {}
    for study in studies:
        profile = "authors" if "authors" in study.tags else "text"
        for tag in study.tags:
            found.setdefault((profile, tag), study)
    return found


PAGE = Page("/paper", "The paper", layout, navigation="Paper")
