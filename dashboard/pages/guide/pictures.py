"""The guide's sections about pictures and numbers."""

from backend.schemas import CatalogRead
from dashboard.components import link
from dashboard.pages.guide.material import Section, Term, points, prose, terms
from ib_core.metrics import NUMBERS


def sections(catalog: CatalogRead) -> list[Section]:
    """Return how to read what is drawn."""
    return [
        _curve(),
        _many(),
        _scorecard(),
        _across(),
        _outcomes(),
        _broke(),
        _paper(),
        _toy(),
        _updates(catalog),
    ]


def _curve() -> Section:
    return Section(
        "curve",
        "How to read the curve",
        (
            prose(
                "The picture of a study shows the loss after training (up) against the learning "
                "rate (across, one tick a decade). One method has one colour, one dash and one "
                "marker on every page. Nothing is dropped: a run that left the scale or diverged "
                "is on the rail."
            ),
            terms(
                (
                    Term(
                        "line",
                        "Line",
                        "The mean over seeds, diverged ones included as in the paper. Where a "
                        "seed's loss is not finite there is no mean; the mean of the finite seeds "
                        "is then given beside it, with their number.",
                    ),
                    Term(
                        "band",
                        "Band",
                        "One standard deviation over the seeds; by a control the standard error or "
                        "the 10th to 90th percentile. It never reaches beyond the lowest or the "
                        "highest seed, as losses are heavy-tailed and mean minus deviation may be "
                        "negative.",
                    ),
                    Term(
                        "dots",
                        "Dots",
                        "The seeds themselves, small and open, so that one sees what the mean "
                        "hides. A click opens the run behind a dot.",
                    ),
                    Term(
                        "rail",
                        "Rail",
                        "The strip on top. `1/3` there means: of three seeds at this rate one "
                        "diverged. Seeds that are finite but above the scale have a marker of "
                        "their own.",
                    ),
                    Term(
                        "strip",
                        "Strip above the curve",
                        "What was tested, on the same axis of rates, one lane a method: good, not "
                        "good, broken for half its seeds or more, and hatched where nothing was "
                        "tried. Notches are the tested rates, the dark bar is the edge with its "
                        "interval, the triangle the rate to start at.",
                    ),
                    Term(
                        "gap",
                        "Test the gap",
                        "Between the last rate that held and the first that broke nothing was "
                        "tried, and somewhere in there the edge lies. The button adds a sweep of "
                        "rates in between with the same settings, and says beforehand how many "
                        "trials that takes.",
                    ),
                    Term(
                        "probability",
                        "P(div.)",
                        "The row below the curve: the share of seeds that diverged at each rate. "
                        "Off-scale seeds that did not diverge do not count.",
                    ),
                    Term(
                        "scale",
                        "Focus, log and full scale",
                        "Focus chooses the loss axis for the runs one can learn from: the initial "
                        "loss and the best losses decide it. Log and Full show everything.",
                    ),
                    Term(
                        "zoom",
                        "Zoom",
                        "Drag a box to look closer. The address holds what is shown, so a copied "
                        "link shows the same; a double click, or “Show all again”, ends the zoom.",
                    ),
                    Term(
                        "threshold",
                        "Threshold line",
                        "In the paper's studies only: half-way between EB's lowest and highest "
                        "finite mean. The paper calls a method diverged at the first rate above "
                        "its best one whose mean is above this line.",
                    ),
                    Term(
                        "clipping",
                        "Clipped minus unclipped",
                        "The difference clipping makes, paired by seed, as in the paper's "
                        "appendix. Clipped curves are thinner, with open markers.",
                    ),
                )
            ),
        ),
    )


def _many() -> Section:
    return Section(
        "families",
        "Many curves: widths, schedules, batch sizes",
        (
            prose(
                "Where a sweep gives a setting several values, every value has a curve of its own. "
                "Colour by and Panel by choose what tells the curves apart; Show only keeps some "
                "of them, and the others stay counted. All of it is in the address."
            ),
            terms(
                (
                    Term(
                        "map",
                        "Map",
                        "One cell a rate and value of a setting, or evaluation: the mean loss, or "
                        "the share of seeds that broke. Where half the seeds or more broke, the "
                        "cell has the colour of broken. The line with dots is the best rate, the "
                        "dotted one the edge; nothing is drawn where nothing was tried.",
                    ),
                    Term(
                        "against",
                        "Against a setting",
                        "Best rate, edge, best loss and sensitivity against a setting, each with "
                        "its interval: does the best rate move with the width? A flat line says "
                        "that it does not.",
                    ),
                    Term(
                        "learning",
                        "Learning curves",
                        "Losses over training, one line a rate. The slider below lights up one "
                        "rate in every panel; arrow keys turn it, and so does a drag in the "
                        "picture. Smoothing averages neighbouring evaluations of what is drawn, "
                        "never of what is stored.",
                    ),
                    Term(
                        "coordinates",
                        "Coordinate check",
                        "How far the first ten steps move the outputs of every layer, against the "
                        "width, at one rate: flat where a rate means the same at every width, as "
                        "under muP. It needs a sweep of several widths that records activations.",
                    ),
                    Term(
                        "box",
                        "Box plot",
                        "All seeds of every series at one rate: the middle half, the median, every "
                        "seed as a dot. What broke is counted beside the box, not left out.",
                    ),
                    Term(
                        "paper-figure",
                        "For a paper",
                        "Export, For a paper: the picture as it stands in the width of a column, "
                        "with letters of a size one can read in print and a caption that says how "
                        "many seeds and rates are behind it; as PDF or SVG with real letters.",
                    ),
                )
            ),
        ),
    )


def _broke() -> Section:
    return Section(
        "broke",
        "Why did it break?",
        (
            prose(
                "A trial's page tells in a few sentences what went first: which layer's weights "
                "or steps grew, from which step on, and where the sharpness stood against 2/rate. "
                "That needs a record of its steps. Replay trains the trial again alone, records "
                "every step around the break, and checks its losses against the stored ones: the "
                "page says if they are the same."
            ),
            points(
                "Beside shows another method's trial at the same rate and seed on the same axes.",
                "A sweep with `record` keeps norms, sharpness or activations of its trials while "
                "they train; nothing about their numbers changes.",
                "All rows of a recording are a CSV file behind the link under the story.",
            ),
        ),
    )


def _scorecard() -> Section:
    return Section(
        "scorecard",
        "The robustness numbers",
        (
            prose(
                "On top of a study stands the answer in words; the table has the numbers behind "
                "it. Below a number, in small type, stand its 95 % interval and how many seeds (n) "
                "are behind it. Point at a name for its definition, at a value for what to bear in "
                "mind. An arrow says whether higher or lower is better."
            ),
            prose(
                "In the definitions l0 is the loss before training and lc the capped loss: the "
                "loss, but never more than l0, so that an explosion costs what learning nothing "
                "costs."
            ),
            link("Every number, with a picture", "/guide/numbers"),
            terms(Term(kind.name, kind.title, kind.definition) for kind in NUMBERS),
        ),
    )


def _across() -> Section:
    return Section(
        "across",
        "Across tasks",
        (
            prose(
                "A study of three or more tasks, or a comparison of studies, can also be asked "
                "which method does best on the whole. The picture “Tasks” shows five answers."
            ),
            terms(
                (
                    Term(
                        "ranks",
                        "Mean ranks",
                        "On every task the methods are ranked, 1 the best; their mean ranks stand "
                        "on a line. Methods joined by a bar cannot be told apart: their ranks "
                        "differ by less than Nemenyi's critical difference at 5 %. p is Friedman's "
                        "test that all are alike.",
                    ),
                    Term(
                        "performance-profiles",
                        "Performance profiles",
                        "On which share of the tasks a method's best loss is within a factor of "
                        "the best method's. The higher a curve, the better; at factor 1 it says "
                        "how often the method is the best.",
                    ),
                    Term(
                        "time-to-target",
                        "Time to target",
                        "The same of the epochs that a method's best rate takes to the target, "
                        "the loss below which a rate counts as good: on which share of the tasks "
                        "they are within a factor of the fastest method's. A curve that stays "
                        "below 100 % never got there on the other tasks.",
                    ),
                    Term(
                        "chances",
                        "Chance to be better",
                        "Same task, same rate, same seed: how often the one ends lower than the "
                        "other. Every task counts alike.",
                    ),
                    Term(
                        "iqm",
                        "Middle half",
                        "The mean over the tasks without the lowest and the highest quarter, so "
                        "that single odd tasks do not decide it.",
                    ),
                )
            ),
        ),
    )


def _outcomes() -> Section:
    return Section(
        "outcomes",
        "Diverged is a finding, failed is a fault",
        (
            terms(
                (
                    Term("completed", "Completed", "The run trained to its end."),
                    Term(
                        "diverged",
                        "Diverged",
                        "A loss, weight or gradient left the finite numbers, or the loss exceeded "
                        "five times its initial value at an evaluation. A finite diverged run "
                        "trains on and keeps its losses; it counts in every mean.",
                    ),
                    Term(
                        "failed",
                        "Failed",
                        "The code or the machine broke. Such a run says nothing about the method: "
                        "it is shown as an error, never averaged, and can be retried.",
                    ),
                    Term(
                        "cancelled",
                        "Cancelled",
                        "Somebody stopped the sweep. What had ended stays; retry runs the rest.",
                    ),
                )
            ),
        ),
    )


def _paper() -> Section:
    return Section(
        "paper",
        "The paper page",
        (
            prose(
                "What the paper says, experiment by experiment and claim by claim, and what runs "
                "say of it: those its authors recorded, ours as they ran it, ours by the text."
            ),
            points(
                "As the authors ran it: a cell is one method at one rate, and agrees if our mean "
                "lies among the recorded seeds or within 10% of their mean.",
                "By the text: IB's loss minus EB's, capped at the initial loss, over rates and "
                "seeds with its interval; and the ratio of their edges, where half the seeds "
                "break.",
                "Cannot tell is a verdict: the interval beside it holds both answers. More seeds "
                "may settle it, and one click runs what is left.",
                "The paper's own divergence rate, the first rate whose mean loss exceeds the "
                "mid-point of EB's lowest and highest, stands beside the edges under its name.",
                "Clipped minus unclipped pairs runs that differ in nothing else, whichever study "
                "holds them.",
                "IB's extra time is compared with a bound on its flops, from above only.",
            ),
        ),
    )


def _toy() -> Section:
    return Section(
        "toy",
        "The toy page",
        (
            prose(
                "Two descents on one loss from one start. Dots are numbered by step. On the "
                "quadratic each explicit step multiplies θ by 1 − ηλ, so above η = 2/λ it runs "
                "away; each implicit step multiplies it by 1/(1 + ηλ), which is below 1 at every "
                "rate. An explicit path that leaves the picture is shown in one four times as "
                "wide; if it leaves that too, it is cut at the edge by an arrow with the step and "
                "its θ, and the strip on top says where it ends."
            ),
            link("Open the paper’s first figure", "/toy"),
        ),
    )


def _updates(catalog: CatalogRead) -> Section:
    exact = [a.name for a in catalog.activations if a.approximation_error is None]
    close = [a.name for a in catalog.activations if a.approximation_error is not None]
    return Section(
        "updates",
        "The updates page",
        (
            prose(
                "One node with pre-activation s = θᵀz and slope b of the loss at its output. EB "
                "moves s by η|z|²σ′(s)b. IB moves it by η|z|²α, where α minimises "
                "b·σ(s/(1+ημ) − αη|z|²) + η(1+ημ)|z|²α²/2, the loss where the step lands plus the "
                "length of the step (eq. 8)."
            ),
            points(
                "b > 0 on a relu: EB overshoots the hinge, IB stops at it. EB's step jumps at "
                "s = 0, IB's is continuous.",
                "b < 0 on a relu: left of the hinge EB cannot move; IB looks past the hinge from "
                "s = η|z|²b/2 on.",
                f"IB's step is exact for {', '.join(exact)}.",
                f"It is solved on a piecewise-cubic stand-in for {', '.join(close)}; the error is "
                "at most 0.001 in value and 0.01 in slope on the whole line.",
                "The gradient handed to the layer below is EB's: IB changes only the steps of "
                "weights and biases.",
            ),
            link("Open the paper’s relu figure", "/updates"),
        ),
    )
