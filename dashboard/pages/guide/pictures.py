"""The guide's sections about pictures and numbers."""

from backend.schemas import CatalogRead
from dashboard.components import link
from dashboard.pages.guide.prose import Section, Term, points, prose, terms


def sections(catalog: CatalogRead) -> list[Section]:
    """Return how to read what is drawn."""
    return [_curve(), _scorecard(catalog), _outcomes(), _paper(), _toy(), _updates(catalog)]


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
                        "Strip",
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
                        "The paper's divergence threshold, half-way between EB's lowest and "
                        "highest finite mean. A method has diverged at the first rate above its "
                        "best one whose mean is above this line.",
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


def _scorecard(catalog: CatalogRead) -> Section:
    return Section(
        "scorecard",
        "The robustness numbers",
        (
            prose(
                "Below a number, in small type, stands its 95 % interval, from resampling the "
                "seeds (bootstrap). There is none where one seed was run or where all resamples "
                "agree. The definitions below are the API's own (`/api/catalog`)."
            ),
            terms(
                Term(metric.name, metric.title, metric.definition, metric.citation)
                for metric in catalog.metrics
            ),
            terms(
                (
                    Term(
                        "censored",
                        "At least, at most",
                        "The grid of rates ends somewhere. If a method has not diverged at its "
                        "last rate, its divergence rate is above the grid and its headroom is at "
                        "least what the grid shows. Widen the grid to learn more.",
                    ),
                    Term(
                        "recommendation",
                        "Use ... to ...",
                        "The robust range in words: rates in it lose at most a tenth of what the "
                        "best rate gains over the initial loss.",
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
                "The paper's experiments, each a preset that one click fills in. Beside what the "
                "paper reports stands what all trials of that preset found here."
            ),
            points(
                "The divergence rate of a method is its first rate above its best one whose mean "
                "loss exceeds the threshold; headroom is IB's divided by EB's.",
                "A preset uses the profile text; the profile authors reproduces the recorded runs.",
                "Better than EB means: the mean over the grid of the mean losses is lower, which "
                "is how the paper counts 15 of 17.",
                "IB's extra time is compared with a bound on its flops; see the bound's "
                "definition among the robustness numbers.",
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
