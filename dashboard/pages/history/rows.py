"""Studies as plain rows, which the browser draws by itself.

Every Dash component that appears makes all others look at the page's state once more. A table of
a hundred studies has thousands of them, and took six seconds to grow by a page; as data it takes
none. The browser writes texts as text, never as markup.
"""

from collections.abc import Sequence
from datetime import UTC
from typing import Any

import dash_mantine_components as dmc

from backend.schemas import MeRead, StudyRead
from dashboard import ids as shared
from dashboard.api_client import may_change
from dashboard.components import STATE_COLOUR, STATES, progress_words, unfinished
from dashboard.figures import spark_words, sparkline
from dashboard.formats import counted
from dashboard.markup import Component, html
from dashboard.theme import method_style

Row = dict[str, Any]


def study_rows(studies: Sequence[StudyRead], visitor: MeRead) -> list[Row]:
    """Return a row a study, as somebody sees it."""
    return [_row(study, own=may_change(visitor, study)) for study in studies]


def running(studies: Sequence[StudyRead]) -> bool:
    """Return whether any of them is still being worked on."""
    return any(unfinished(study.progress) for study in studies)


def _row(study: StudyRead, *, own: bool) -> Row:
    tasks = ", ".join(study.tasks[:3]) + (" …" if len(study.tasks) > 3 else "")
    changed = study.updated_at
    aware = changed if changed.tzinfo else changed.replace(tzinfo=UTC)
    return {
        "id": study.id,
        "query": f"?view={study.picture}" if study.picture else "",
        "name": study.name,
        "about": " · ".join(filter(None, [study.owner, tasks])),
        "tags": study.tags,
        "methods": [
            {"name": method_style(name).short, "colour": method_style(name).colour}
            for name in study.methods
        ],
        "changed": aware.isoformat(),
        "archive": ("Restore" if study.archived else "Archive") if own else None,
        **_so_far(study),
    }


def _so_far(study: StudyRead) -> Row:
    """Return what changes while a study runs: its curve, its state, its progress."""
    source = sparkline(study.spark)
    busy = unfinished(study.progress) > 0
    state = str(study.state) if study.state else "no sweep yet"
    told = progress_words(study.progress, study.total) if busy else counted(study.total, "trial")
    ended = [name for name in STATES[:-1] if study.progress.get(name)] if busy else []
    return {
        "spark": source and {"src": source, "alt": spark_words(study.spark)},
        "state": {"name": state, "kind": state if state in STATE_COLOUR else "queued"},
        "words": told if study.total else "",
        "bar": [
            {"state": name, "percent": 100 * study.progress[name] / study.total} for name in ended
        ],
    }


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
