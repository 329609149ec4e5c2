"""What stands below a study's picture, and in its place where there is none."""

from collections.abc import Sequence

from backend.schemas import SensitivityRead
from dashboard.dash_blocks import Component, html
from dashboard.figures import QUANTITY
from dashboard.pages.study.controls import StudyView
from dashboard.theme import counted

#: Where only the ends of trials are known.
NO_WAYS = "No losses over training are known here, so no best epoch is."


def why_empty(found: SensitivityRead, view: StudyView) -> str:
    """Return why there is nothing to draw."""
    if any(line.points for line in found.series):
        return "No curve matches what was chosen."
    if any(line.unfinished for line in found.series):
        return "No trial has ended yet. Curves appear with the first that do."
    if any(line.failed for line in found.series):
        return "Every trial failed or was cancelled."
    if view.reducer == "best" and view.metric.endswith("loss"):
        return NO_WAYS  # an end has its losses, but not every task its accuracy
    return f"No trial here has recorded its {QUANTITY[view.metric]}."


def caption_of(found: SensitivityRead, view: str) -> Component:
    """Say what is drawn around the curves, and what is missing; other views have no band."""
    curves = view == "curves"
    failed = sum(line.failed for line in found.series)
    waiting = sum(line.unfinished for line in found.series)
    parts = [
        first_of(found.series, found.left_out),
        f"Band: {found.band_definition}" if found.band_definition and curves else "",
        f"{counted(waiting, 'trial')} to come." if waiting else "",
        f"{counted(failed, 'trial')} failed or cancelled, in no mean." if failed else "",
        "Click a point for its trials."
        if curves and any(line.points for line in found.series)
        else "",
    ]
    return html.P(" ".join(part for part in parts if part), className="history-meta")


def first_of(told: Sequence[object], left_out: int) -> str:
    """Say how many series were told, where some were left out."""
    shown = len(told)
    return f"The first {shown:,} of {shown + left_out:,} series." if left_out else ""
