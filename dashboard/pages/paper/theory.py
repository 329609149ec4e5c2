"""Appendix C: the average that the theorem bounds, drawn from trials that restart."""

from typing import Any

from dash import Input, Output, State

from backend.client import calls
from backend.schemas import StudyRead
from dashboard import ids as shared
from dashboard.api_client import ask
from dashboard.components import button_link, card, link
from dashboard.dash_blocks import Component, callback, dcc, html
from dashboard.figures import NOTHING_YET, theorem_figure, theorem_words
from dashboard.ids import Paper as ids
from dashboard.theme import graph_config, scheme_of

#: How the study is found: by the tag that its import gives it, and anybody may.
TAG = "level_set"
PRESET = "theory/level_set"


def theory_section(study: StudyRead | None, *, may_run: bool) -> Component:
    """Return the section: the picture of the newest study of the preset, or how to get one."""
    words = html.P(
        "The theorem needs decaying rates, a ridge, and a return to zero whenever the weights "
        "leave the level set. It bounds the sum of rate × |g|² over the sum of rates; stronger "
        "lines are higher rates.",
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
