"""Loss and theta against the step, for the paths of `toy`."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import plotly.graph_objects as go

from backend.schemas import PathRead, QuadraticRead
from dashboard.figures.toy import NAME_OF, RAIL_SHARE, exit_arrows, style_of, with_gaps
from dashboard.figures.traces import Trace, scatter
from dashboard.figures.window import Point, Window, visible_path
from dashboard.theme import PALETTE, Scheme, template

Quantity = Literal["loss", "theta"]

#: A logarithmic axis reaches this far from the first loss, both ways.
LOG_REACH = 1e9


@dataclass(frozen=True, slots=True)
class _Scale:
    """What an axis shows, in the units its range is given in.

    Attributes:
        low: Its lower end.
        high: Its upper end.
        place: From a value to its place on the axis.
        value: Back.
    """

    low: float
    high: float
    place: Callable[[float], float]
    value: Callable[[float], float]


def history_figure(
    view: QuadraticRead, quantity: Quantity, scheme: Scheme = "light", *, log: bool = False
) -> go.Figure:
    """Draw the loss or theta against the step, both methods in one picture.

    Args:
        view: The numbers.
        quantity: Which of the two.
        scheme: Of the page.
        log: Whether the axis is logarithmic; for the loss only.
    """
    log = log and quantity == "loss"
    scale = _log_scale(view) if log else _linear_scale(view, quantity)
    rail = RAIL_SHARE * (scale.high - scale.low)
    traces = [trace for path in view.paths for trace in _traces(view, path, quantity, scale)]
    layout = {
        "template": template(scheme),
        "margin": {"l": 56, "r": 12, "t": 34, "b": 44},
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        "hovermode": "x",
        "shapes": [_rail_shape(scale, rail, scheme, log=log)],
        "xaxis": {
            "title": "step",
            "range": [-0.04 * view.steps, 1.04 * view.steps],
            "tickformat": "d",
            "dtick": 1 if view.steps <= 12 else None,
            "zeroline": False,
        },
        "yaxis": {
            "title": "loss f(θ)" if quantity == "loss" else "θ",
            "type": "log" if log else "linear",
            "range": [scale.low, scale.high + rail],
            "zeroline": False,
            "exponentformat": "power",
        },
    }
    return go.Figure([*traces, _rail_text(view, quantity, scale, rail, scheme)], layout)


def _linear_scale(view: QuadraticRead, quantity: Quantity) -> _Scale:
    """The axis of the path pictures, so that a height means the same in both."""
    window = Window.around(view.function.x, view.function.y)
    ends = (window.bottom, window.top) if quantity == "loss" else (window.left, window.right)
    return _Scale(*ends, float, float)


def _log_scale(view: QuadraticRead) -> _Scale:
    losses = [loss for path in view.paths for loss in path.loss if loss is not None and loss > 0]
    first = losses[0] if losses else 1.0
    lowest = max(min(losses, default=first), first / LOG_REACH)
    highest = min(max(losses, default=first), first * LOG_REACH)
    low, high = math.log10(lowest), math.log10(highest)
    room = 0.06 * (high - low) or 0.5

    def place(loss: float) -> float:
        # At the minimum the loss may be exactly 0; it is shown at the foot of the axis.
        return max(math.log10(loss), low) if loss > 0 else low

    return _Scale(low - room, high + room, place, lambda height: 10.0**height)


def _places(path: PathRead, quantity: Quantity, scale: _Scale) -> list[float | None]:
    values = path.loss if quantity == "loss" else path.theta
    return [None if value is None else scale.place(value) for value in values]


def _traces(view: QuadraticRead, path: PathRead, quantity: Quantity, scale: _Scale) -> list[Trace]:
    style = style_of(path.method)
    visible = visible_path(
        Window(0, view.steps, scale.low, scale.high),
        list(range(len(path.theta))),
        _places(path, quantity, scale),
    )
    xs, ys, steps = with_gaps(
        [(step, _up(a, scale), _up(b, scale)) for step, a, b in visible.lines]
    )
    line = scatter(
        x=xs,
        y=ys,
        customdata=steps,
        mode="lines",
        line={"color": style.colour, "width": 2, "dash": style.dash},
        hoverinfo="skip",
        showlegend=False,
        name="line",
        meta={"grows": True},
    )
    values = path.loss if quantity == "loss" else path.theta
    dots = scatter(
        x=[at[0] for _, at in visible.dots],
        y=[scale.value(at[1]) for _, at in visible.dots],
        customdata=[step for step, _ in visible.dots],
        text=[_exactly(values[step]) for step, _ in visible.dots],
        mode="markers",
        marker={"symbol": style.marker, "color": style.colour, "size": 8},
        cliponaxis=False,
        hovertemplate=f"{NAME_OF[path.method]}: %{{text}}<extra></extra>",
        name=NAME_OF[path.method],
        meta={"grows": True},
    )
    exits = [(step, _up(a, scale), _up(b, scale)) for step, a, b in visible.exits]
    return [line, exit_arrows(exits, style), dots]


def _up(point: Point, scale: _Scale) -> Point:
    return point[0], scale.value(point[1])


def _exactly(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _rail_shape(scale: _Scale, rail: float, scheme: Scheme, *, log: bool) -> dict[str, Any]:
    # On a logarithmic axis plotly takes a shape's height as a value.
    low, high = scale.high, scale.high + rail
    return {
        "type": "rect",
        "xref": "paper",
        "yref": "y",
        "x0": 0,
        "x1": 1,
        "y0": scale.value(low) if log else low,
        "y1": scale.value(high) if log else high,
        "fillcolor": PALETTE[scheme].rail,
        "line": {"width": 0},
        "layer": "below",
    }


def _rail_text(
    view: QuadraticRead, quantity: Quantity, scale: _Scale, rail: float, scheme: Scheme
) -> Trace:
    """A mark on the rail above every step that is out of the picture."""
    marks = [
        (step, path.method)
        for path in view.paths
        for step, place in enumerate(_places(path, quantity, scale))
        if place is None or not scale.low <= place <= scale.high
    ]
    return scatter(
        x=[step for step, _ in marks],
        y=[scale.value(scale.high + rail / 2)] * len(marks),
        customdata=[step for step, _ in marks],
        mode="markers",
        marker={
            "symbol": "triangle-up",
            "size": 8,
            "color": [style_of(method).ink(scheme) for _, method in marks],
        },
        text=[NAME_OF[method] for _, method in marks],
        hovertemplate="%{text}: out of the picture<extra></extra>",
        showlegend=False,
        cliponaxis=False,
        name="rail",
        meta={"grows": True},
    )
