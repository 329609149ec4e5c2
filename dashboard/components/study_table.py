"""Studies as table rows; on a phone each row becomes a card."""

from collections.abc import Sequence
from typing import Any

import dash_mantine_components as dmc

from backend.schemas import MeRead, StudyRead
from dashboard import ids as shared
from dashboard.components.elements import link, method_swatch, state_badge
from dashboard.components.progress import progress_bar, unfinished, words
from dashboard.components.times import local_time
from dashboard.figures.sparkline import spark_words, sparkline
from dashboard.formats import counted
from dashboard.ids import History as ids
from dashboard.markup import Component, html
from dashboard.theme import method_style
from dashboard.visitor import may_change

HEAD = ("", "Study", "Methods", "Curve", "State", "Changed", "")


def study_table(studies: Sequence[StudyRead], visitor: MeRead) -> Component:
    """Return the table, as somebody sees it."""
    return html.Table(
        [
            html.Thead(html.Tr([html.Th(name, scope="col") for name in HEAD])),
            html.Tbody(study_rows(studies, visitor), id=ids.ROWS),
        ],
        className="table responsive history",
    )


def study_rows(studies: Sequence[StudyRead], visitor: MeRead) -> list[Component]:
    """Return a row a study."""
    return [_row(study, may_change(visitor, study)) for study in studies]


def running(studies: Sequence[StudyRead]) -> bool:
    """Return whether any of them is still being worked on."""
    return any(unfinished(study.progress) for study in studies)


def _row(study: StudyRead, own: bool) -> Component:
    return html.Tr(
        [
            html.Td(
                dmc.Checkbox(
                    id=shared.part("history-select", study.id),
                    checked=False,
                    **{"aria-label": f"Select {study.name} for comparing"},
                )
            ),
            html.Td(
                [
                    link(study.name, f"/studies/{study.id}", className="history-name"),
                    html.Div(_about(study), className="history-meta"),
                ]
            ),
            html.Td(_methods(study)),
            html.Td(spark_cell(study), id=shared.part("history-spark", study.id)),
            html.Td(state_cell(study), id=shared.part("history-state", study.id)),
            html.Td(local_time(study.updated_at), className="history-meta"),
            html.Td(_archive(study) if own else None),
        ]
    )


def _about(study: StudyRead) -> list[Any]:
    owner = [f"{study.owner} · "] if study.owner else []
    tasks = [", ".join(study.tasks[:3]) + (" …" if len(study.tasks) > 3 else "")]
    tags = [
        dmc.Badge(tag, size="xs", variant="outline", color="gray", tt="none", ml=6)
        for tag in study.tags
    ]
    return [*owner, *tasks, *tags]


def _methods(study: StudyRead) -> Component:
    return html.Div(
        [
            html.Span([method_swatch(name), method_style(name).short], className="method-name")
            for name in study.methods
        ],
        className="row",
    )


def spark_cell(study: StudyRead) -> Component:
    """Return a study's curve as a picture."""
    source = sparkline(study.spark)
    if source is None:
        return html.Span("no curve yet", className="history-meta")
    return html.Img(src=source, alt=spark_words(study.spark), className="spark")


def state_cell(study: StudyRead) -> Component:
    """Return a study's state, with its progress while there is any."""
    if not study.total:
        return state_badge(None)
    bar = (
        [progress_bar(study.progress, study.total, size="xs")] if unfinished(study.progress) else []
    )
    text = words(study.progress, study.total) if bar else counted(study.total, "trial")
    return html.Div([state_badge(study.state), *bar, html.Div(text, className="history-meta")])


def _archive(study: StudyRead) -> Component:
    return dmc.Button(
        "Restore" if study.archived else "Archive",
        id=shared.part("history-archive", study.id),
        size="compact-sm",
        variant="subtle",
        color="gray",
        n_clicks=0,
        **{"aria-label": f"{'Restore' if study.archived else 'Archive'} {study.name}"},
    )


def archived_bar(study: StudyRead) -> Component:
    """Say what happened to a study, with a button that undoes it."""
    what = "archived" if study.archived else "back in the history"
    return html.Div(
        [
            html.Span(f"“{study.name}” is {what}."),
            dmc.Button(
                "Undo",
                id=shared.part("history-undo", study.id),
                size="compact-sm",
                variant="default",
                n_clicks=0,
            ),
        ],
        className="row undo-bar",
    )
