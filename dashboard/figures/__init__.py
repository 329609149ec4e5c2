"""Functions from answers of the API to pictures; whoever draws imports from here.

| module | what it has |
| --- | --- |
| `sensitivity` | the picture this product exists for: a value against the learning rate |
| `difference` | two curves seed by seed: the first minus the second |
| `divergence` | what diverged or left the scale: rails above and below, the strip |
| `ranks` | the critical-difference diagram; the expected best of k rates, against k |
| `across` | many tasks: ranks, performance profiles, chances, the middle half |
| `curve` | a trial's losses by step; its norms and sharpness where they were recorded |
| `paper` | the Paper page's own: clipped minus unclipped, the UCI tables |
| `learning` | losses over training, one rate lit; what App. C's theorem bounds, against steps |
| `thumbnails` | curves in a table cell, a grid's rates, a search's brackets: without any script |
| `scale` | the y axis: for the runs that learn, logarithmic, or for all |
| `references` | lines to compare with: EB's best, the threshold, the initial loss |
| `panels` | how rail, curves and strip share a figure's height |
| `series` | one curve: its band, its mean, its seeds |
| `traces` | traces as plain data |
| `families` | many series: what tells them apart, which are wanted, colours and panels |
| `facets` | the same curves as small multiples |
| `maps` | heat maps: rate and a setting, rate and epoch |
| `against` | the scorecard's numbers against a setting |
| `boxes` | the seeds at one rate |
| `wording` | titles, axis names, hover texts, and the same for who does not see it |
| `views` | these pictures by name, and what each needs |

Colours, dashes and markers are `dashboard.theme`'s; those who draw elsewhere find them here, too.
"""

from dashboard.figures.across import across_figure
from dashboard.figures.against import best_rate_moves
from dashboard.figures.curve import TrialCurve, curve_figure, shared_ranges, way_figure
from dashboard.figures.difference import difference_figure
from dashboard.figures.families import (
    AUTO,
    NONE,
    AnyLine,
    Family,
    Setting,
    say,
    shown_only,
    token,
    varied,
)
from dashboard.figures.learning import theorem_figure, theorem_words
from dashboard.figures.maps import EPOCH
from dashboard.figures.paper import (
    accuracy_figure,
    agreement_figure,
    clip_figure,
    edge_lines,
    sparks,
)
from dashboard.figures.ranks import best_of_figure, rank_words
from dashboard.figures.scale import ScaleName
from dashboard.figures.sensitivity import Picture, sensitivity_figure
from dashboard.figures.thumbnails import (
    SPARK_REACH,
    bracket_bars,
    bracket_words,
    rate_ticks,
    rates_words,
    spark_fades,
    spark_setting,
    spark_words,
    sparkline,
)
from dashboard.figures.traces import MOST_OPENED, NOTHING_YET
from dashboard.figures.views import FAMILY_VIEWS, Answers, needs_learning, needs_rows, view_figure
from dashboard.figures.wording import QUANTITY, series_name
from dashboard.theme import METHOD_STYLE, PALETTE, Scheme, template

__all__ = [
    "AUTO",
    "EPOCH",
    "FAMILY_VIEWS",
    "METHOD_STYLE",
    "MOST_OPENED",
    "NONE",
    "NOTHING_YET",
    "PALETTE",
    "QUANTITY",
    "SPARK_REACH",
    "Answers",
    "AnyLine",
    "Family",
    "Picture",
    "ScaleName",
    "Scheme",
    "Setting",
    "TrialCurve",
    "accuracy_figure",
    "across_figure",
    "agreement_figure",
    "best_of_figure",
    "best_rate_moves",
    "bracket_bars",
    "bracket_words",
    "clip_figure",
    "curve_figure",
    "difference_figure",
    "edge_lines",
    "needs_learning",
    "needs_rows",
    "rank_words",
    "rate_ticks",
    "rates_words",
    "say",
    "sensitivity_figure",
    "series_name",
    "shared_ranges",
    "shown_only",
    "spark_fades",
    "spark_setting",
    "spark_words",
    "sparkline",
    "sparks",
    "template",
    "theorem_figure",
    "theorem_words",
    "token",
    "varied",
    "view_figure",
    "way_figure",
]
