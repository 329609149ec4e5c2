"""The 17 experiments and UCI by profile: small curves and verdicts, each opening its detail."""

from typing import Any

from backend.schemas import ExperimentRead, PaperRead, ProfileRead
from dashboard.components import link
from dashboard.dash_blocks import Component, html
from dashboard.figures import spark_words, sparkline, sparks

HEAD = ("Experiment", "As the authors ran it", "As the text describes it")
KINDS = {"reproduced": "completed", "differs": "diverged", "cannot tell": "open"}


def verdict_badge(verdict: str) -> Component:
    """Return a verdict: a spot of colour and the word."""
    return html.Span(verdict, className=f"state state-{KINDS.get(verdict, 'untested')}")


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


def _row(one: ExperimentRead) -> Component:
    missing = [html.Span("no data here", className="state state-missing")]
    name = html.B(one.title) if one.id == "uci" else link(one.title, address(one.id), fw=600)
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
                for profile, label in zip(("authors", "text"), HEAD[1:], strict=True)
            ),
        ],
        id=f"experiment-{one.id}",
    )


def _cell(one: ExperimentRead, profile: str) -> Component:
    found: ProfileRead = getattr(one, profile)
    words = [verdict_badge(found.verdict), html.Div(_short(found), className="history-meta")]
    return html.Div([*_curve(one, profile, found), html.Div(words)], className="matrix-cell")


def _short(found: ProfileRead) -> str:
    """Return what decides, in a line; the whole of it stands in the detail."""
    if found.cells:
        run = found.coverage.partition(";")[0]
        return f"{found.agreeing:,} of {found.cells:,} agree; run: {run}"
    return found.reason.partition(";")[0].rstrip(".") if found.trials else found.coverage


def _curve(one: ExperimentRead, profile: str, found: ProfileRead) -> list[Any]:
    series = [*found.series, *(one.recorded if profile == "authors" else [])]
    source = sparkline(sparks(series))
    if source is None:
        return []
    image = html.Img(src=source, alt=spark_words(sparks(series)), className="spark")
    return [link(image, address(one.id, profile))]
