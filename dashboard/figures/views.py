"""The pictures of many series by name: which answers each needs, and who draws it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import plotly.graph_objects as go

from backend.schemas import LearningSeriesRead, MovementRead, ScorecardRow, SeriesRead
from dashboard.figures.against import against_figure
from dashboard.figures.boxes import box_figure
from dashboard.figures.learning import learning_figure
from dashboard.figures.maps import EPOCH, map_figure
from dashboard.figures.sensitivity import Picture, sensitivity_figure

ViewName = Literal["curves", "map", "against", "learning", "box"]
#: Those that are drawn from series, rows and curves alone, on the Study and Compare pages alike.
FAMILY_VIEWS: tuple[ViewName, ...] = ("curves", "map", "against", "learning", "box")


@dataclass(frozen=True, slots=True)
class Answers:
    """What the API said.

    Attributes:
        series: Values against the rate.
        rows: The scorecard of the same series, where a view needs it.
        learning: Losses over training by series' id, likewise.
        threshold: The paper's divergence threshold.
        initial: The loss before training.
        moves: Whether best rates move with a setting.
    """

    series: Sequence[SeriesRead]
    rows: Sequence[ScorecardRow] = ()
    learning: Mapping[str, LearningSeriesRead] = field(default_factory=dict)
    threshold: float | None = None
    initial: float | None = None
    moves: Sequence[MovementRead] = ()


def needs_rows(view: str) -> bool:
    """Whether a view is drawn from the scorecard, too."""
    return view in ("map", "against")


def needs_learning(view: str, picture: Picture) -> bool:
    """Whether a view is drawn from losses over training."""
    return view == "learning" or (view == "map" and picture.family.over == EPOCH)


def view_figure(view: str, answers: Answers, picture: Picture) -> go.Figure | str:
    """Return a picture, or why there is none.

    Args:
        view: One of `FAMILY_VIEWS`.
        answers: What it is drawn from.
        picture: How to draw it.
    """
    series, initial = answers.series, answers.initial
    if not any(line.points for line in series):
        return "No series matches what was chosen."
    if needs_learning(view, picture) and not answers.learning:
        return "These trials have recorded no losses over training."
    if view == "map":
        over_epochs = answers.learning if needs_learning(view, picture) else None
        return map_figure(series, answers.rows, picture, learning=over_epochs, initial=initial)
    if view == "against":
        drawn = against_figure(answers.rows, picture, answers.moves)
        return drawn or "One series has nothing to be drawn against."
    if view == "learning":
        return learning_figure(series, answers.learning, picture, initial=initial)
    if view == "box":
        return box_figure(series, picture)
    return sensitivity_figure(series, picture, threshold=answers.threshold, initial=initial)
