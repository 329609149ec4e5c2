"""What the guide's sections are made of: prose, small pictures, and one example.

A picture is an image's address: without any script, light and dark. The example is two methods,
seven rates, five seeds, scored by the functions all use. Its losses are made up; every number drawn
or written from them is not.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from itertools import product
from urllib.parse import quote

import numpy as np

from dashboard.components import with_code
from dashboard.dash_blocks import Component, html
from dashboard.theme import FONT, METHOD_STYLE, PALETTE, Palette, Scheme, number
from ib_core.metrics import (
    Number,
    RateCurve,
    SeedCurve,
    SeedResult,
    TaskScore,
    TaskTable,
    score_table,
)


@dataclass(frozen=True, slots=True)
class Section:
    """One heading of the guide.

    Attributes:
        anchor: What pages link to, `/guide#anchor`.
        title: Its heading.
        body: What stands below it.
    """

    anchor: str
    title: str
    body: tuple[Component, ...]


@dataclass(frozen=True, slots=True)
class Term:
    """A word and what it means.

    Attributes:
        anchor: What pages link to.
        word: The word as screens have it.
        meaning: One or two sentences; `code` between backticks.
        source: Where the definition comes from.
    """

    anchor: str
    word: str
    meaning: str
    source: str = ""


def prose(text: str) -> Component:
    """Return a paragraph."""
    return html.P(with_code(text))


def terms(found: Iterable[Term]) -> Component:
    """Return words with their meanings, each with an anchor of its own."""
    pairs = [
        (
            html.Dt(term.word, id=term.anchor, tabIndex=-1),
            html.Dd([*with_code(term.meaning), *_source(term)]),
        )
        for term in found
    ]
    return html.Dl([part for pair in pairs for part in pair], className="terms")


def _source(term: Term) -> list[Component]:
    return [html.Span(f" ({term.source})", className="muted")] if term.source else []


def points(*texts: str) -> Component:
    """Return a list of sentences."""
    return html.Ul([html.Li(with_code(text)) for text in texts])


# --- Small pictures, and the example they show


WIDTH, HEIGHT = 560, 230
LEFT, RIGHT, TOP, BOTTOM = 56, 14, 26, 40
DASHES = {"dot": "2 4", "dash": "6 4", "solid": ""}
Point = tuple[float, float]


class Sketch:
    """A picture with two axes that shapes are drawn into, by values and not by pixels.

    Args:
        scheme: Of the page.
        across: The ends of the x axis.
        up: The ends of the y axis.
        log: Whether the x axis is logarithmic.
        names: What stands at the axes: across, up.
    """

    def __init__(
        self,
        scheme: Scheme,
        across: tuple[float, float],
        up: tuple[float, float],
        *,
        log: bool = True,
        names: tuple[str, str] = ("learning rate", "training loss"),
    ) -> None:
        self.scheme: Scheme = scheme
        self.palette: Palette = PALETTE[scheme]
        self.across, self.up, self.log, self.names = across, up, log, names
        self.parts: list[str] = []

    def x(self, value: float) -> float:
        """Return where a value lies from the left, in pixels."""
        low, high = (math.log10(end) if self.log else end for end in self.across)
        place = math.log10(value) if self.log else value
        return LEFT + (WIDTH - LEFT - RIGHT) * (place - low) / (high - low)

    def y(self, value: float) -> float:
        """Return where a value lies from the top; what is above the axis lies on its end."""
        low, high = self.up
        share = (min(max(value, low), high) - low) / (high - low)
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share

    def ink(self, method: str) -> str:
        """Return a method's colour for lines and words."""
        return METHOD_STYLE[method].ink(self.scheme)

    def line(
        self, points: Sequence[Point], colour: str, *, width: float = 2, dash: str = "solid"
    ) -> None:
        """Join points."""
        steps = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in points)
        self.parts.append(
            f'<polyline points="{steps}" fill="none" stroke="{colour}" stroke-width="{width}" '
            f'stroke-linejoin="round" stroke-dasharray="{DASHES.get(dash, "")}"/>'
        )

    def area(self, points: Sequence[Point], colour: str, opacity: float = 0.2) -> None:
        """Fill what points surround."""
        steps = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in points)
        self.parts.append(f'<polygon points="{steps}" fill="{colour}" fill-opacity="{opacity}"/>')

    def dot(self, at: Point, colour: str, *, size: float = 4, filled: bool = True) -> None:
        """Mark a point."""
        fill = colour if filled else "none"
        self.parts.append(
            f'<circle cx="{self.x(at[0]):.1f}" cy="{self.y(at[1]):.1f}" r="{size}" fill="{fill}" '
            f'stroke="{colour}" stroke-width="1.5"/>'
        )

    def cross(self, at: Point, colour: str) -> None:
        """Mark a run that broke."""
        x, y = self.x(at[0]), self.y(at[1])
        self.parts.append(
            f'<path d="M{x - 4:.1f} {y - 4:.1f}l8 8m0 -8l-8 8" stroke="{colour}" '
            'stroke-width="1.6" fill="none"/>'
        )

    def word(
        self, at: Point, text: str, colour: str, *, anchor: str = "middle", shift: float = 0
    ) -> None:
        """Write beside a point, `shift` pixels below it."""
        self.parts.append(
            f'<text x="{self.x(at[0]):.1f}" y="{self.y(at[1]) + shift:.1f}" fill="{colour}" '
            f'text-anchor="{anchor}">{escape(text, quote=False)}</text>'
        )

    def level(self, value: float, text: str, colour: str, *, right: bool = False) -> None:
        """Draw a line across with a word on it."""
        low, high = self.across
        self.line([(low, value), (high, value)], colour, width=1, dash="dash")
        anchor = "end" if right else "start"
        self.word((high if right else low, value), text, colour, anchor=anchor, shift=-5)

    def upright(self, value: float, text: str, colour: str, *, anchor: str = "middle") -> None:
        """Draw a line upwards with a word above it."""
        self.line([(value, self.up[0]), (value, self.up[1])], colour, width=1.5, dash="dash")
        self.word((value, self.up[1]), text, colour, anchor=anchor, shift=-6)

    def reach(self, low: float, high: float, height: float, colour: str) -> None:
        """Draw an interval as a bar with ends."""
        self.line([(low, height), (high, height)], colour, width=2.5)
        for end in (low, high):
            x, y = self.x(end), self.y(height)
            self.parts.append(
                f'<path d="M{x:.1f} {y - 6:.1f}v12" stroke="{colour}" stroke-width="2.5"/>'
            )

    def box(self, ends: tuple[float, float, float, float], colour: str) -> None:
        """Fill a rectangle between two values across and two upwards."""
        left, right, low, high = ends
        x, y = self.x(left), self.y(high)
        self.parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{self.x(right) - x:.1f}" '
            f'height="{self.y(low) - y:.1f}" fill="{colour}"/>'
        )

    def svg(self) -> str:
        """Return the picture as an image's address."""
        shapes = "".join([*self._axes(), *self.parts])
        whole = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
            f"font-family='{FONT}' font-size=\"12\">{shapes}</svg>"
        )
        return f"data:image/svg+xml,{quote(whole)}"

    def _axes(self) -> list[str]:
        axis, muted = self.palette.axis, self.palette.muted
        bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
        found = [f'<path d="M{LEFT} {TOP}V{bottom}H{right}" stroke="{axis}" fill="none"/>']
        for tick in self._ticks():
            x = self.x(tick)
            found.append(f'<path d="M{x:.1f} {bottom}v5" stroke="{axis}"/>')
            found.append(
                f'<text x="{x:.1f}" y="{bottom + 17}" fill="{muted}" text-anchor="middle">'
                f"{number(tick)}</text>"
            )
        for tick in self._levels():
            found.append(
                f'<text x="{LEFT - 6}" y="{self.y(tick) + 4:.1f}" fill="{muted}" '
                f'text-anchor="end">{number(tick)}</text>'
            )
        across, up = self.names
        middle, centre = (LEFT + right) / 2, (TOP + bottom) / 2
        found.append(
            f'<text x="{middle}" y="{HEIGHT - 5}" fill="{muted}" text-anchor="middle">{across}'
            f'</text><text transform="translate(14 {centre}) rotate(-90)" fill="{muted}" '
            f'text-anchor="middle">{up}</text>'
        )
        return found

    def _ticks(self) -> list[float]:
        low, high = self.across
        if self.log:
            first, last = math.ceil(math.log10(low)), math.floor(math.log10(high))
            return [10.0**power for power in range(first, last + 1)]
        return [k for k in (1, 3, 5, 10, 15, 20) if low <= k <= high]

    def _levels(self) -> list[float]:
        low, high = self.up
        step = 10 ** math.floor(math.log10(high - low))
        step = step / 2 if (high - low) / step < 3 else step
        first = math.ceil(low / step)
        return [round(step * k, 9) for k in range(first, math.floor(high / step + 1e-9) + 1)]


def picture(draw: Callable[[Scheme], Sketch], words: str) -> Component:
    """Return a drawing for both colour schemes, of which the page shows one.

    Args:
        draw: Makes it.
        words: What it shows, for who does not see it.
    """
    schemes: tuple[Scheme, Scheme] = ("light", "dark")
    return html.Div(
        [
            html.Img(src=draw(scheme).svg(), alt=words, className=f"sketch only-{scheme}")
            for scheme in schemes
        ]
    )


RATES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
SEEDS = (1, 2, 3, 4, 5)
INITIAL = 2.3
#: Of the example's trainings.
EPOCHS = 12
METHODS = ("eb", "ib")
#: Measured steps of another network, to show what a cost looks like.
COST = Number(1.33, 1.31, 1.36, n=50)
ACROSS, UP = (0.006, 16.0), (0.0, 2.6)


@dataclass(frozen=True)
class Example:
    """What the pictures are drawn from.

    Attributes:
        curves: The losses, by method.
        score: Every number of them.
        training: Losses over training at the best rate, by method.
    """

    curves: dict[str, RateCurve]
    score: TaskScore
    training: dict[str, list[SeedCurve]]

    def number(self, method: str, name: str) -> Number:
        """Return one number of one method."""
        return self.score.rows[method][name]

    def value(self, method: str, name: str) -> float:
        """Return the value of a number that the example has."""
        found = self.number(method, name).value
        assert found is not None, f"the example has no {name} of {method}"
        return found

    def ends(self, method: str, name: str) -> tuple[float, float]:
        """Return the interval of a number that the example has."""
        found = self.number(method, name)
        assert found.low is not None
        assert found.high is not None
        return found.low, found.high

    def capped(self, method: str, lr: float) -> list[float]:
        """Return the capped losses at a rate, a seed each."""
        point = next(point for point in self.curves[method].points if point.lr == lr)
        return [result.capped_loss or INITIAL for result in point.results]

    def mean(self, method: str, lr: float) -> float:
        """Return the mean capped loss at a rate."""
        return sum(self.capped(method, lr)) / len(SEEDS)

    def means(self, method: str) -> list[tuple[float, float]]:
        """Return rates and mean capped losses."""
        return [(lr, self.mean(method, lr)) for lr in RATES]

    def broken(self, method: str, lr: float) -> float:
        """Return the share of seeds that broke at a rate."""
        cell = next(cell for cell in self.score.strips[method].cells if cell.lr == lr)
        return cell.broke / cell.n


def loss(method: str, lr: float, seed: int) -> float:
    """Return a loss: EB's seeds break one after the other around .5, IB's around 2."""
    best, edge = {"eb": (0.3, 0.5), "ib": (0.36, 2.0)}[method]
    limit = edge * 2 ** (0.35 * (seed - 3))
    if lr > limit:
        return 1.5 * INITIAL
    wobble = 0.05 * math.sin(9 * seed + 3 * math.log10(lr))
    flat = 0.25 if method == "eb" else 0.18
    return min(best + flat * math.log10(lr / (0.25 * edge)) ** 2 + wobble, 0.97 * INITIAL)


def training(method: str, lr: float, seed: int) -> SeedCurve:
    """Return losses over training that end at `loss`, some seeds' later than others'."""
    end, epochs = loss(method, lr, seed), np.arange(EPOCHS + 1.0)
    pace = {"eb": 1.1, "ib": 2.4}[method] * (1 + 0.12 * (seed - 3))
    return SeedCurve(epochs, epochs, end + (INITIAL - end) * np.exp(-epochs / pace))


@lru_cache
def example() -> Example:
    """Return the example, scored once a process."""
    curves = {
        method: RateCurve.from_results(
            (lr, SeedResult(seed, loss(method, lr, seed), INITIAL))
            for lr, seed in product(RATES, SEEDS)
        )
        for method in METHODS
    }
    table = TaskTable.of(curves)
    trained = {
        method: [training(method, lr, seed) for seed in SEEDS]
        for method, lr in table.best_rates.items()
    }
    score = score_table(table, curves, step_costs={"ib": COST}, training=trained, paper=True)
    return Example(curves, score, trained)


def curves_sketch(scheme: Scheme, *methods: str) -> Sketch:
    """Return the example's curves: means as lines, sound seeds as rings, broken ones as crosses."""
    found, sketch = example(), Sketch(scheme, ACROSS, UP)
    for method in methods or METHODS:
        ink = sketch.ink(method)
        dash = "dot" if method == "eb" else "solid"
        sketch.line(found.means(method), ink, width=2.2, dash=dash)
        for lr in RATES:
            point = next(one for one in found.curves[method].points if one.lr == lr)
            for result in point.results:
                if result.broken:
                    sketch.cross((lr, INITIAL), ink)
                else:
                    sketch.dot((lr, result.capped_loss or INITIAL), ink, size=2.5, filled=False)
            sketch.dot((lr, found.mean(method, lr)), ink)
        first = found.means(method)[0]
        shift = -10 if method == "ib" else 20
        sketch.word((0.012, first[1]), method.upper(), ink, anchor="start", shift=shift)
    return sketch
