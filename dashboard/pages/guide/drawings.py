"""The pictures that explain the scorecard's numbers, each drawn from the guide's example."""

from collections.abc import Callable

from dashboard.pages.guide.material import (
    ACROSS,
    EPOCHS,
    INITIAL,
    METHODS,
    RATES,
    UP,
    Sketch,
    curves_sketch,
    example,
)
from dashboard.theme import Scheme, number

#: Share of what there is to gain that a good rate may give up.
TOLERANCE = 0.1


def edges(scheme: Scheme) -> Sketch:
    """Return the share of broken seeds by rate, with both edges."""
    found = example()
    sketch = Sketch(scheme, ACROSS, (0.0, 1.0), names=("learning rate", "seeds that broke"))
    sketch.level(0.5, "half of them", sketch.palette.muted)
    for method, height in zip(METHODS, (0.56, 0.44), strict=True):
        ink = sketch.ink(method)
        for lr in RATES:
            sketch.dot((lr, found.broken(method, lr)), ink, filled=method == "ib")
        sketch.reach(*found.ends(method, "edge"), height, ink)
        edge = found.value(method, "edge")
        anchor = "end" if method == "eb" else "start"
        sketch.upright(edge, f"{method.upper()}'s edge {number(edge, 2)}", ink, anchor=anchor)
    return sketch


def headroom(scheme: Scheme) -> Sketch:
    """Return the same with the factor between both edges."""
    found, sketch = example(), edges(scheme)
    eb, ib = (found.value(method, "edge") for method in METHODS)
    text = sketch.palette.text
    sketch.reach(eb, ib, 0.8, text)
    middle = (eb * ib) ** 0.5
    sketch.word((middle, 0.8), f"× {number(ib / eb, 2)}", text, shift=-9)
    return sketch


def good_range(scheme: Scheme) -> Sketch:
    """Return which rates are good."""
    found, sketch = example(), curves_sketch(scheme, "ib")
    lowest = min(found.mean(method, lr) for method in METHODS for lr in RATES)
    bar = lowest + TOLERANCE * (INITIAL - lowest)
    sketch.level(bar, "good: below this line", sketch.palette.muted, right=True)
    run = found.score.strips["ib"].run
    sketch.reach(run[0], run[-1], 0.12, sketch.palette.good)
    sketch.word((run[0], 0.12), "good range", sketch.palette.good, anchor="end", shift=4)
    return sketch


def start_at(scheme: Scheme) -> Sketch:
    """Return the rate to start at, and what it keeps away from."""
    found, sketch = example(), curves_sketch(scheme, "ib")
    low, high = found.ends("ib", "edge")
    muted = sketch.palette.muted
    sketch.reach(low, high, 1.3, sketch.ink("ib"))
    sketch.word(((low * high) ** 0.5, 1.3), "edge", sketch.ink("ib"), shift=-10)
    sketch.line([(low / 2, 0.0), (low / 2, 1.3)], muted, width=1, dash="dash")
    sketch.word((low / 2, 0.0), "half of its lower end", muted, anchor="start", shift=-4)
    start = found.value("ib", "start_at")
    sketch.upright(start, f"start at {number(start)}", sketch.palette.good)
    return sketch


def best_rate(scheme: Scheme) -> Sketch:
    """Return the lowest point."""
    found, sketch = example(), curves_sketch(scheme, "ib")
    rate = found.value("ib", "best_rate")
    sketch.dot((rate, found.mean("ib", rate)), sketch.palette.text, size=9, filled=False)
    sketch.upright(rate, f"best rate {number(rate)}", sketch.palette.text)
    return sketch


def best_mean(scheme: Scheme) -> Sketch:
    """Return the height of the lowest point."""
    found, sketch = example(), curves_sketch(scheme, "ib")
    rate, mean = (found.value("ib", name) for name in ("best_rate", "best_mean"))
    sketch.dot((rate, mean), sketch.palette.text, size=9, filled=False)
    sketch.level(mean, f"best mean loss {number(mean)}", sketch.palette.text, right=True)
    return sketch


def price(scheme: Scheme) -> Sketch:
    """Return both lowest losses, closer."""
    found, own = example(), Sketch(scheme, ACROSS, (0.2, 0.7))
    for method in METHODS:
        ink = own.ink(method)
        points = [point for point in found.means(method) if point[1] < 0.7]
        own.line(points, ink, width=2.2, dash="dot" if method == "eb" else "solid")
        best = found.value(method, "best_mean")
        own.level(best, f"{method.upper()}'s best {number(best)}", ink, right=True)
    price = found.value("ib", "price")
    words = f"IB pays {number(100 * price, 2)} %"
    own.word(
        (0.012, found.value("ib", "best_mean")), words, own.ink("ib"), anchor="start", shift=-6
    )
    return own


def _area(scheme: Scheme, lowest: Callable[[str], float]) -> Sketch:
    found = example()
    sketch = curves_sketch(scheme, "ib")
    floor = lowest("ib")
    top = found.means("ib")
    ends = [(RATES[-1], floor), (RATES[0], floor)]
    sketch.area([*top, *ends], sketch.ink("ib"))
    sketch.level(floor, f"l* {number(floor)}", sketch.palette.text, right=True)
    sketch.level(INITIAL, "initial loss", sketch.palette.muted)
    return sketch


def sensitivity(scheme: Scheme) -> Sketch:
    """Return the area above the lowest mean of all."""
    found = example()
    return _area(scheme, lambda _: min(found.value(method, "best_mean") for method in METHODS))


def flatness(scheme: Scheme) -> Sketch:
    """Return the area above the method's own lowest mean."""
    return _area(scheme, lambda method: example().value(method, "best_mean"))


def best_of(k: int) -> Callable[[Scheme], Sketch]:
    """Return what draws the expected best by the number of rates tried, marked at k."""

    def draw(scheme: Scheme) -> Sketch:
        found = example()
        names = ("rates tried at random", "expected best loss")
        sketch = Sketch(scheme, (0.0, 20.5), (0.2, 1.4), log=False, names=names)
        for method in METHODS:
            numbers = found.score.best_of[method]
            ink = sketch.ink(method)
            lows = [(i, one.low or 0.0) for i, one in enumerate(numbers, 1)]
            highs = [(i, one.high or 0.0) for i, one in enumerate(numbers, 1)]
            sketch.area([*lows, *reversed(highs)], ink, 0.14)
            line = [(i, one.value or 0.0) for i, one in enumerate(numbers, 1)]
            sketch.line(line, ink, width=2.2, dash="dot" if method == "eb" else "solid")
            sketch.dot(line[k - 1], ink, size=5)
            above = line[k - 1][1] > found.value("ib" if method == "eb" else "eb", f"best_of_{k}")
            words = f"{method.upper()} {number(line[k - 1][1])}"
            shift = -12 if above else 20
            sketch.word(line[k - 1], words, ink, anchor="start", shift=shift)
        return sketch

    return draw


def chance(scheme: Scheme) -> Sketch:
    """Return a square for each rate and seed: who ended lower there."""
    found = example()
    sketch = Sketch(scheme, ACROSS, (0.5, 5.5), names=("learning rate", "seed"))
    for lr in RATES:
        pairs = zip(found.capped("ib", lr), found.capped("eb", lr), strict=True)
        for seed, (ib, eb) in enumerate(pairs, 1):
            ends = (lr / 1.5, lr * 1.5, seed - 0.4, seed + 0.4)
            better = "ib" if ib < eb else "eb"
            sketch.box(ends, sketch.palette.grid if ib == eb else sketch.ink(better))
    sketch.word((0.012, 5.5), "IB lower", sketch.ink("ib"), shift=-8)
    sketch.word((0.1, 5.5), "EB lower", sketch.ink("eb"), shift=-8)
    sketch.word((1.0, 5.5), "grey: both broke", sketch.palette.muted, shift=-8)
    return sketch


def difference(scheme: Scheme) -> Sketch:
    """Return differences by rate, with their mean."""
    found = example()
    sketch = Sketch(scheme, ACROSS, (-2.2, 0.8), names=("learning rate", "IB minus EB"))
    sketch.line([(ACROSS[0], 0.0), (ACROSS[1], 0.0)], sketch.palette.axis, width=1)
    for lr in RATES:
        pairs = zip(found.capped("ib", lr), found.capped("eb", lr), strict=True)
        for ib, eb in pairs:
            sketch.dot((lr, ib - eb), sketch.ink("ib"), size=2.5, filled=False)
    mean = found.value("ib", "mean_difference")
    low, high = found.ends("ib", "mean_difference")
    corners = [(ACROSS[0], low), (ACROSS[1], low), (ACROSS[1], high), (ACROSS[0], high)]
    sketch.area(corners, sketch.palette.accent, 0.15)
    sketch.level(mean, f"mean {number(mean)}", sketch.palette.accent)
    return sketch


def time_to_target(scheme: Scheme) -> Sketch:
    """Return losses over training, the target, and when each seed gets there."""
    found = example()
    table = found.score.table
    assert table is not None
    target = float(table.target[0])
    names = ("epochs at the best rate", "training loss")
    sketch = Sketch(scheme, (0.0, EPOCHS), (0.0, UP[1]), log=False, names=names)
    sketch.level(target, f"target {number(target, 2)}", sketch.palette.muted, right=True)
    for method, height in zip(METHODS, (2.3, 2.05), strict=True):
        ink = sketch.ink(method)
        for one in found.training[method]:
            points = list(zip(one.epochs.tolist(), one.losses.tolist(), strict=True))
            sketch.line(points, ink, width=1)
            sketch.dot(next(point for point in points if point[1] <= target), ink, size=3)
        median = found.value(method, "time_to_target")
        low, high = found.ends(method, "time_to_target")
        sketch.reach(low, high, height, ink)
        words = f"{method.upper()} {number(median)} epochs"
        sketch.word((high + 0.3, height), words, ink, anchor="start", shift=4)
    return sketch


def step_cost(scheme: Scheme) -> Sketch:
    """Return the times of a step as bars."""
    found = example()
    names = ("", "time of a step over EB's")
    sketch = Sketch(scheme, (21.0, 24.0), (0.0, 1.6), log=False, names=names)
    for place, method in ((22.0, "eb"), (23.0, "ib")):
        cost = 1.0 if method == "eb" else found.value("ib", "step_cost")
        sketch.box((place - 0.25, place + 0.25, 0.0, cost), sketch.ink(method))
        words = f"{method.upper()} {number(cost)}"
        sketch.word((place, cost), words, sketch.palette.text, shift=-8)
    return sketch


def threshold(scheme: Scheme) -> Sketch:
    """Return how the paper's line comes about."""
    found, sketch = example(), _with_explosions(scheme)
    muted = sketch.palette.muted
    sketch.level(found.value("eb", "best_mean"), "EB's lowest mean", muted)
    sketch.level(1.5 * INITIAL, "EB's highest finite mean", muted)
    half = found.value("eb", "paper_threshold")
    sketch.level(half, f"threshold {number(half)}", sketch.palette.bad)
    return sketch


def _with_explosions(scheme: Scheme) -> Sketch:
    """Return the plain means, as the paper draws them."""
    found = example()
    sketch = Sketch(scheme, ACROSS, (0.0, 3.8))
    for method in METHODS:
        points = [(point.lr, point.mean or UP[1]) for point in found.curves[method].points]
        ink = sketch.ink(method)
        sketch.line(points, ink, width=2.2, dash="dot" if method == "eb" else "solid")
        for point in points:
            sketch.dot(point, ink)
    return sketch


def divergence_rate(scheme: Scheme) -> Sketch:
    """Return where means first exceed the paper's line."""
    found, sketch = example(), _with_explosions(scheme)
    half = found.value("eb", "paper_threshold")
    sketch.level(half, "threshold", sketch.palette.bad)
    for method in METHODS:
        rate = found.value(method, "paper_divergence_rate")
        sketch.upright(rate, f"{method.upper()}: {number(rate)}", sketch.ink(method))
    return sketch


def paper_headroom(scheme: Scheme) -> Sketch:
    """Return the same with the factor between both."""
    found, sketch = example(), divergence_rate(scheme)
    eb, ib = (found.value(method, "paper_divergence_rate") for method in METHODS)
    text = sketch.palette.text
    sketch.reach(eb, ib, 3.0, text)
    ratio = found.value("ib", "paper_headroom")
    sketch.word(((eb * ib) ** 0.5, 3.0), f"× {number(ratio)}", text, shift=-9)
    return sketch
