"""Functions from answers of the API to pictures; whoever draws imports from here.

| module | what it has |
| --- | --- |
| `sensitivity` | the picture this product exists for: a value against the learning rate |
| `difference` | two curves seed by seed: the first minus the second |
| `divergence` | what diverged or left the scale: rails above and below |
| `ranks` | the critical-difference diagram |
| `across` | many tasks: ranks, performance profiles, chances, the middle half |
| `curve` | a trial's losses by step; its norms and sharpness where they were recorded |
| `paper` | the Paper page's own: clipped minus unclipped, the UCI tables |
| `learning` | losses over training, one rate lit; App. C's average, against steps |
| `thumbnails` | small pictures: curves in a table cell, brackets; the start page's charts |
| `scale` | the y axis: for the runs that learn, logarithmic, or for all |
| `panels` | how rail, curves and strip share a figure's height |
| `traces` | traces as plain data: a curve's band, mean and seeds, and lines to compare it with |
| `families` | many series: what tells them apart, which are wanted, colours and panels |
| `facets` | the same curves as small multiples; the expected best of k rates, against k |
| `maps` | heat maps: rate and a setting, rate and epoch |
| `against` | the scorecard's numbers against a setting; the coordinate check |
| `boxes` | the seeds at one rate; recorded steps: sharpness against 2/rate, layers' norms |
| `wording` | titles, axis names, hover texts, and the same for who does not see it |

Those of many series are drawn by name, by `view_figure`, which stands here.

Colours, dashes and markers are `dashboard.theme`'s; those who draw elsewhere find them here, too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import plotly.graph_objects as go

from backend.schemas import LearningSeriesRead, MovementRead, ScorecardRow, SeriesRead
from dashboard.figures.across import across_figure
from dashboard.figures.against import against_figure, check_rates, coordinate_figure
from dashboard.figures.boxes import Ways, box_figure, steps_figure
from dashboard.figures.curve import TrialCurve, curve_figure, shared_ranges, way_figure
from dashboard.figures.difference import difference_figure
from dashboard.figures.facets import best_of_figure
from dashboard.figures.families import (
    AUTO,
    NONE,
    AnyLine,
    Family,
    Setting,
    light_twins,
    say,
    shown_only,
    token,
    varied,
)
from dashboard.figures.learning import learning_figure, theorem_figure, theorem_words
from dashboard.figures.maps import EPOCH, map_figure
from dashboard.figures.paper import (
    accuracy_figure,
    agreement_figure,
    clip_figure,
    edge_lines,
    sparks,
)
from dashboard.figures.ranks import rank_words
from dashboard.figures.scale import ScaleName
from dashboard.figures.sensitivity import Picture, sensitivity_figure
from dashboard.figures.thumbnails import (
    bracket_bars,
    bracket_words,
    curve_chart,
    race_picture,
    rate_ticks,
    rates_words,
    spark_words,
    sparkline,
)
from dashboard.figures.traces import MOST_OPENED, NOTHING_YET
from dashboard.figures.wording import (
    QUANTITY,
    best_rate_moves,
    pair_names,
    series_name,
    told_apart,
    with_titles,
)
from dashboard.theme import METHOD_STYLE, PALETTE, Scheme, template

__all__ = [
    "AUTO",
    "COORDINATES",
    "EPOCH",
    "FAMILY_VIEWS",
    "METHOD_STYLE",
    "MOST_OPENED",
    "NONE",
    "NOTHING_YET",
    "PALETTE",
    "QUANTITY",
    "STEPS",
    "Answers",
    "AnyLine",
    "Family",
    "Picture",
    "ScaleName",
    "Scheme",
    "Setting",
    "TrialCurve",
    "Ways",
    "accuracy_figure",
    "across_figure",
    "agreement_figure",
    "best_of_figure",
    "best_rate_moves",
    "bracket_bars",
    "bracket_words",
    "check_rates",
    "clip_figure",
    "curve_chart",
    "curve_figure",
    "difference_figure",
    "edge_lines",
    "light_twins",
    "needs_learning",
    "needs_rows",
    "pair_names",
    "race_picture",
    "rank_words",
    "rate_ticks",
    "rates_words",
    "say",
    "sensitivity_figure",
    "series_name",
    "shared_ranges",
    "shown_only",
    "spark_words",
    "sparkline",
    "sparks",
    "template",
    "theorem_figure",
    "theorem_words",
    "token",
    "told_apart",
    "varied",
    "view_figure",
    "way_figure",
    "with_titles",
]


# --- The pictures of many series by name: which answers each needs, and who draws it


ViewName = Literal["curves", "map", "against", "learning", "box"]
#: Those that are drawn from series, rows and curves alone, on the Study and Compare pages alike.
FAMILY_VIEWS: tuple[ViewName, ...] = ("curves", "map", "against", "learning", "box")
#: Drawn like them, of one study whose trials were recorded.
STEPS, COORDINATES = "steps", "coordinates"
NO_STEPS = "Nothing was recorded by step here. A sweep with “Record”, or a trial’s Replay, does it."
NO_OUTPUTS = "This needs trials of several widths at one rate, of a sweep that records activations."


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
        recorded: What was recorded by step, by series' id and learning rate.
    """

    series: Sequence[SeriesRead]
    rows: Sequence[ScorecardRow] = ()
    learning: Mapping[str, LearningSeriesRead] = field(default_factory=dict)
    threshold: float | None = None
    initial: float | None = None
    moves: Sequence[MovementRead] = ()
    recorded: Mapping[str, Ways] = field(default_factory=dict)


def needs_rows(view: str) -> bool:
    """Whether a view is drawn from the scorecard, too."""
    return view in ("map", "against")


def needs_learning(view: str, picture: Picture) -> bool:
    """Whether a view is drawn from losses over training."""
    return view == "learning" or (view == "map" and picture.family.over == EPOCH)


def view_figure(view: str, answers: Answers, picture: Picture) -> go.Figure | str:
    """Return a picture, or why there is none.

    Args:
        view: One of `FAMILY_VIEWS`, `STEPS` or `COORDINATES`.
        answers: What it is drawn from.
        picture: How to draw it.
    """
    series, initial = answers.series, answers.initial
    picture = picture.of(series)
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
    if view in (STEPS, COORDINATES):
        return _recorded(view, answers, picture)
    if view == "box":
        return box_figure(series, picture)
    return sensitivity_figure(series, picture, threshold=answers.threshold, initial=initial)


def _recorded(view: str, answers: Answers, picture: Picture) -> go.Figure | str:
    if view == COORDINATES:
        return coordinate_figure(answers.series, answers.recorded, picture) or NO_OUTPUTS
    return steps_figure(answers.series, answers.recorded, picture) if answers.recorded else NO_STEPS
