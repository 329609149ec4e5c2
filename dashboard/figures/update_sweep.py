"""Step and loss against s: what one node's update would be from anywhere."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal

from backend.schemas import NodeStep, StepSweep, UpdateRead
from dashboard.figures.traces import Trace, scatter
from dashboard.figures.window import Maybe
from dashboard.formats import number
from dashboard.theme import Scheme, method_style

Quantity = Literal["step", "loss"]

#: In which of the figure's pictures a quantity is drawn.
AXES: dict[Quantity, dict[str, str]] = {
    "step": {"xaxis": "x2", "yaxis": "y2"},
    "loss": {"xaxis": "x3", "yaxis": "y3"},
}

#: Between two neighbouring samples a line may climb this share of its axis; beyond, it jumps.
JUMP_SHARE = 0.08
#: Next to a jump the line climbs less than this share of it.
ALONE_SHARE = 0.3
#: Differences below this are rounding.
NOISE = 1e-12
#: Words closer than this share of the picture's width lean away from each other.
WORDS_WIDTH = 0.28


def sweep_traces(
    view: UpdateRead, steps: Sequence[NodeStep], sweeps: Sequence[StepSweep], quantity: Quantity
) -> list[Trace]:
    """Return every method's line, and its marker at the present s.

    Where both agree the explicit line's dots stay visible on the implicit one, and the smaller
    implicit marker on the explicit one.
    """
    both = list(zip(sweeps, steps, strict=True))
    lines = [_line(view, sweep, quantity) for sweep, _ in reversed(both)]
    return [*lines, *(_marker(step, quantity) for _, step in both)]


def _line(view: UpdateRead, sweep: StepSweep, quantity: Quantity) -> Trace:
    style = method_style(sweep.method)
    xs, ys = with_breaks(view.s, _values(sweep, quantity))
    return scatter(
        x=xs,
        y=ys,
        mode="lines",
        line={"color": style.colour, "width": 2.5, "dash": style.dash},
        legendgroup=sweep.method,
        showlegend=quantity == "step",
        hovertemplate=f"{style.short} from s = %{{x:.3~g}}: %{{y:.3~g}}<extra></extra>",
        name=style.short,
        **AXES[quantity],
    )


def _marker(step: NodeStep, quantity: Quantity) -> Trace:
    style = method_style(step.method)
    here = step.loss if quantity == "loss" else _length(step)
    return scatter(
        x=[step.s],
        y=[here],
        mode="markers",
        marker={
            "symbol": style.marker,
            "size": 9 if step.method == "ib" else 14,
            "color": style.colour,
        },
        legendgroup=step.method,
        showlegend=False,
        hovertemplate=f"{style.short} here: {number(here)}<extra></extra>",
        name=f"{step.method} {quantity} here",
        **AXES[quantity],
    )


def _values(sweep: StepSweep, quantity: Quantity) -> list[Maybe]:
    """A sweep's losses, or its steps counted in the direction that lowers the loss."""
    if quantity == "loss":
        return sweep.loss
    return [None if step is None else step * _sign(sweep.b) for step in sweep.step]


def _length(step: NodeStep) -> Maybe:
    return None if step.landing is None else (step.s - step.landing) * _sign(step.b)


def _sign(b: float) -> int:
    return 1 if b > 0 else -1


def with_breaks(xs: Sequence[float], ys: Sequence[Maybe]) -> tuple[list[Maybe], list[Maybe]]:
    """Return a line with a hole wherever it jumps, so that no wall is drawn there."""
    holes = set(jumps(ys))
    broken_x: list[Maybe] = []
    broken_y: list[Maybe] = []
    for index, (x, y) in enumerate(zip(xs, ys, strict=True)):
        broken_x += [None, x] if index in holes else [x]
        broken_y += [None, y] if index in holes else [y]
    return broken_x, broken_y


def jumps(ys: Sequence[Maybe]) -> list[int]:
    """Return where a sampled line jumps: the samples far above or below the one before them.

    A line that is merely steep climbs in several samples; a jump is alone.
    """
    climbs = [_climb(before, after) for before, after in pairwise(ys)]
    finite = [y for y in ys if y is not None]
    most = JUMP_SHARE * (max(finite, default=0.0) - min(finite, default=0.0))
    around = zip([0.0, *climbs], climbs, [*climbs[1:], 0.0], strict=False)
    return [
        index
        for index, (left, climb, right) in enumerate(around, start=1)
        if climb > most > NOISE and max(left, right) < ALONE_SHARE * climb
    ]


def _climb(before: Maybe, after: Maybe) -> float:
    return 0.0 if before is None or after is None else abs(after - before)


def shown_range(sweeps: Sequence[StepSweep], quantity: Quantity) -> list[float]:
    """Return what the axis shows: all values; rounding noise around one value is not stretched."""
    values = [y for sweep in sweeps for y in _values(sweep, quantity) if y is not None]
    low, high = min(values, default=0.0), max(values, default=0.0)
    room = 0.12 * (high - low) if high - low > NOISE else 1.0
    return [low - room, high + room]


def jump_words(
    view: UpdateRead, sweeps: Sequence[StepSweep], scheme: Scheme
) -> list[dict[str, Any]]:
    """Name whose step jumps, above the picture of the steps."""
    found = sorted((view.s[index], sweep.method) for sweep in sweeps for index in jumps(sweep.step))
    anchors = _anchors([s for s, _ in found], WORDS_WIDTH * (view.s[-1] - view.s[0]))
    return [
        {
            "xref": "x2",
            "yref": "y2 domain",
            "x": s,
            "y": 1,
            "xanchor": anchor,
            "yanchor": "bottom",
            "text": f"{method_style(method).short} jumps",
            "font": {"size": 12, "color": method_style(method).ink(scheme)},
            "showarrow": False,
        }
        for (s, method), anchor in zip(found, anchors, strict=True)
    ]


def _anchors(places: Sequence[float], room: float) -> list[str]:
    """Let neighbouring words lean away from each other."""
    close = [after - before < room for before, after in pairwise(places)]
    leans = zip([False, *close], [*close, False], strict=True)
    return ["left" if left else "right" if right else "center" for left, right in leans][
        : len(places)
    ]
