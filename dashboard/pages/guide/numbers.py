"""Every number of the scorecard, with a picture, for a reader without statistics.

`EXPLAINED` has an entry for each of `ib_core.metrics.NUMBERS`; one without would be an error.
"""

from collections.abc import Callable
from dataclasses import dataclass

from dashboard.dash_blocks import Component, html
from dashboard.pages.guide import drawings
from dashboard.pages.guide.material import (
    METHODS,
    RATES,
    SEEDS,
    Section,
    Sketch,
    Term,
    curves_sketch,
    example,
    picture,
    prose,
    terms,
)
from dashboard.theme import Scheme, counted
from ib_core.metrics import NUMBERS, NumberKind, advice, answer

BETTER = {"higher": "Higher is better.", "lower": "Lower is better.", "neither": ""}


@dataclass(frozen=True, slots=True)
class Explanation:
    """A number without its formula.

    Attributes:
        question: What it answers.
        words: How to read it.
        draw: The picture.
        shows: The picture in words.
    """

    question: str
    words: str
    draw: Callable[[Scheme], Sketch]
    shows: str


_CURVE = "IB's mean loss against the learning rate, falling, then breaking"
EXPLAINED: dict[str, Explanation] = {
    "edge": Explanation(
        "How high can the rate be turned before training breaks?",
        "At each rate, count the seeds that broke. The edge is where that count passes one half. "
        "It lies somewhere between the last rate that held and the first that broke; the bar "
        "shows where, and more rates or seeds in between make it shorter.",
        drawings.edges,
        "Share of broken seeds by rate for EB and IB, each with its edge and interval",
    ),
    "headroom": Explanation(
        "How many times higher may the rate be than with EB?",
        "One edge divided by the other. If its interval reaches below 1, these runs cannot tell "
        "which method holds longer.",
        drawings.headroom,
        "The distance between both edges as a factor",
    ),
    "good_range": Explanation(
        "Which rates work well?",
        "A rate is good if no seed broke there and its mean loss is within a tenth of what the "
        "best method of all gains. The range has only rates that were tested, neighbours of the "
        "best one.",
        drawings.good_range,
        f"{_CURVE}; the good rates lie below a line and are marked",
    ),
    "start_at": Explanation(
        "Which rate should I use first?",
        "The best good rate that keeps a distance from the edge: at most half of the lower end of "
        "its interval. If no good rate is that far away, it says “thin margin”.",
        drawings.start_at,
        f"{_CURVE}; a rate well below the edge is marked",
    ),
    "best_rate": Explanation(
        "At which rate is the loss lowest?",
        "Of the tested rates. It may lie close to the edge; “start at” is the safer one. Where a "
        "sweep held out a validation part of the training rows, the rate (and the epoch, if asked "
        "for the best one) is chosen on that, so that the test loss stays a fair one; elsewhere "
        "a choice by test losses says “chosen on test”.",
        drawings.best_rate,
        f"{_CURVE}; the lowest point is ringed",
    ),
    "best_mean": Explanation(
        "How low does the loss get?",
        "The mean over seeds at the best rate. A seed that broke counts as if it had learnt "
        "nothing, so one explosion cannot decide a mean.",
        drawings.best_mean,
        f"{_CURVE}; a level line at its lowest point",
    ),
    "price": Explanation(
        "What does robustness cost at the best rate?",
        "How much higher this method's best loss is than the best of all methods here. 0 % means "
        "that nothing is better at its best.",
        drawings.price,
        "The lowest loss of EB and of IB as two level lines",
    ),
    "lr_sensitivity": Explanation(
        "How much is lost if I pick a rate blindly?",
        "The shaded area as a share of the height up to the initial loss: 0 if every rate did as "
        "well as the best of all methods, 1 if none learnt anything. All methods are measured "
        "against one floor (l*) and over the rates that all of them tried.",
        drawings.sensitivity,
        f"{_CURVE}; shaded down to the lowest mean of all methods",
    ),
    "flatness": Explanation(
        "And compared with its own best?",
        "The same area down to the method's own lowest mean. A method whose best is poor can be "
        "flat; so read it beside the price.",
        drawings.flatness,
        f"{_CURVE}; shaded down to its own lowest mean",
    ),
    "best_of_3": Explanation(
        "If I try three rates at random, how low do I get?",
        "The more rates one tries, the lower the best of them. The height at 3 is what a short "
        "search can expect.",
        drawings.best_of(3),
        "Expected best loss against the number of rates tried; marked at three",
    ),
    "best_of_10": Explanation(
        "And if I try ten?",
        "The same for a longer search. Where the curves cross, patience decides which method wins.",
        drawings.best_of(10),
        "Expected best loss against the number of rates tried; marked at ten",
    ),
    "chance_better": Explanation(
        "Same rate, same seed: how often is it lower than EB?",
        "Each square is one rate and one seed that both methods trained. The chance is the share "
        "of squares in this method's colour; where both are equal each gets half.",
        drawings.chance,
        "A square for each rate and seed, coloured by who ended lower",
    ),
    "mean_difference": Explanation(
        "And by how much?",
        "The mean of all these differences, with its interval. An interval that reaches across "
        "zero means that the runs do not tell which is lower on the whole.",
        drawings.difference,
        "Differences of losses by rate, their mean and its interval",
    ),
    "time_to_target": Explanation(
        "How soon is it good?",
        "The target is the loss below which a rate counts as good. Each dot is the first "
        "evaluation of a seed at or below it; the number is the middle one, in epochs, because "
        "seconds depend on the machine: times the cost of a step it is time. A seed that never "
        "gets there is later than all others and leaves no mean; where half of them never do, "
        "the number is “at least” what was trained. From 5 seeds on its interval reaches from "
        "seed to seed.",
        drawings.time_to_target,
        "Losses over training of EB's and IB's seeds, with a dot where each first meets the target",
    ),
    "step_cost": Explanation(
        "How much longer does one step take?",
        "Measured on a worker, on this very network, EB's and the other's steps in turn. Until "
        "somebody presses “Measure” it is not known, and no other time is put in its place. Its "
        "small type has the middle half of the measurements.",
        drawings.step_cost,
        "Two bars: EB's step is 1, IB's a third longer",
    ),
    "paper_threshold": Explanation(
        "Where does the paper draw its line?",
        "Half-way between EB's lowest and highest finite mean. It follows how far EB exploded, so "
        "it is shown in the paper's studies only, and only where it is not above the initial loss.",
        drawings.threshold,
        "Plain means with explosions; the threshold lies half-way between lowest and highest",
    ),
    "paper_divergence_rate": Explanation(
        "From which rate on does the paper call a method diverged?",
        "The first tested rate above the best one whose mean is above that line.",
        drawings.divergence_rate,
        "The first rate above the threshold, for EB and IB",
    ),
    "paper_headroom": Explanation(
        "How does the paper compare two methods?",
        "IB's divergence rate divided by EB's. Read the headroom above it first: this one jumps "
        "from one tested rate to the next.",
        drawings.paper_headroom,
        "The distance between both divergence rates as a factor",
    ),
}


def sections() -> list[Section]:
    """Return what the numbers are made of, then each number with its picture."""
    return [_answer(), _words(), *(_section(kind) for kind in NUMBERS)]


def _answer() -> Section:
    found = example()
    said = answer(found.score)
    rates = counted(len(RATES), "rate")
    return Section(
        "example",
        "One example for all",
        (
            prose(
                f"All pictures on this page show one small study: explicit (EB) and implicit (IB) "
                f"training at {rates} with {counted(len(SEEDS), 'seed')} each. Its losses are made "
                "up, its numbers are computed as those of every study. A ring is a seed, a cross "
                "one that broke, the line their mean."
            ),
            picture(curves_sketch, "Loss against learning rate of EB and IB, five seeds each"),
            prose("This is what a study's page would say on top of it:"),
            html.Blockquote(said, className="said"),
            *(
                html.Blockquote(f"{method.upper()}: {_advice(method)}", className="said")
                for method in METHODS
            ),
        ),
    )


def _advice(method: str) -> str:
    found = example().score
    return advice(found.strips[method], found.rows[method])


def _words() -> Section:
    return Section(
        "words",
        "Five words first",
        (
            terms(
                (
                    Term(
                        "broken",
                        "Broken, sound",
                        "A seed is broken at a rate if it diverged, or if its training loss ended "
                        "above where it began. Every other seed is sound.",
                    ),
                    Term(
                        "capped",
                        "Capped loss",
                        "A loss counts as its initial value at most. What explodes a thousandfold "
                        "is as bad as what learnt nothing, but not a thousand times worse.",
                    ),
                    Term(
                        "common-range",
                        "Common range",
                        "The rates between the ends that all compared methods reached. Outside "
                        "it a comparison would reward whoever tried fewer rates.",
                    ),
                    Term(
                        "interval",
                        "Interval (small type)",
                        "With other seeds the number would come out differently. In 95 of 100 such "
                        "repetitions an interval made this way holds the true number. With "
                        "fewer than 3 seeds there is none; 10 are advised.",
                    ),
                    Term(
                        "censored",
                        "At least, at most",
                        "The grid of rates ends somewhere. A method that held at the highest rate "
                        "tried has its edge above it: at least that. Test higher to learn more.",
                    ),
                )
            ),
        ),
    )


def _section(kind: NumberKind) -> Section:
    told = EXPLAINED[kind.name]
    direction = f" {BETTER[kind.better]}" if kind.better != "neither" else ""
    return Section(
        kind.name,
        kind.title,
        (
            html.P(html.B(told.question)),
            picture(told.draw, told.shows),
            prose(f"{told.words}{direction}"),
            _in_the_example(kind),
            html.P(["Exactly: ", kind.definition], className="muted exactly"),
        ),
    )


def _in_the_example(kind: NumberKind) -> Component:
    """Return the number as the table would have it."""
    found = example().score
    rows = {method: found.rows[method][kind.name] for method in METHODS}
    words = [
        f"{method.upper()} {kind.write(one)}"
        for method, one in rows.items()
        if one.value is not None
    ]
    return html.P(f"In the example: {'; '.join(words)}.", className="number-words")
