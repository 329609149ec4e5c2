"""Explicit and implicit descent on a one-dimensional loss, as in the paper's first figure.

Traces that grow with the steps carry the step of each point as `customdata`; the browser plays a
path by hiding the points of later steps (`assets/illustrations.js`), asking for nothing new.
"""

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from backend.schemas import PathRead, QuadraticRead
from dashboard.figures.traces import Trace, scatter
from dashboard.figures.window import Point, VisiblePath, Window, visible_path
from dashboard.formats import number
from dashboard.theme import PALETTE, MethodStyle, Scheme, method_style, template

#: The toy's methods look like their namesakes on every other page.
STYLE_OF = {"esgd": "eb", "isgd": "isgd"}
NAME_OF = {"esgd": "ESGD", "isgd": "ISGD"}
TITLE_OF = {"esgd": "Explicit (ESGD)", "isgd": "Implicit (ISGD)"}

RAIL_SHARE = 0.1
LABEL_ROOM = 0.06


def style_of(method: str) -> MethodStyle:
    """Return how one of the toy's methods is drawn."""
    return method_style(STYLE_OF[method])


def path_of(view: QuadraticRead, method: str) -> PathRead:
    """Return one method's path."""
    return next(path for path in view.paths if path.method == method)


def path_figure(view: QuadraticRead, method: str, scheme: Scheme = "light") -> go.Figure:
    """Draw the loss and one method's path on it as connected, numbered dots.

    Args:
        view: The numbers.
        method: `esgd` or `isgd`.
        scheme: Of the page.
    """
    window = Window.around(view.function.x, view.function.y)
    path = path_of(view, method)
    visible = visible_path(window, path.theta, path.loss)
    style = style_of(method)
    traces = [
        _function(view, scheme),
        _lines(visible, style),
        exit_arrows(visible.exits, style),
        _dots(visible, path, style, window, view.minimum, scheme),
        _head(visible, style, scheme),
        _rail_text(window.left + window.width / 2, _rail_height(window), path, visible, scheme),
    ]
    layout = {
        "template": template(scheme),
        "showlegend": False,
        "margin": {"l": 56, "r": 12, "t": 12, "b": 44},
        "hovermode": "closest",
        "shapes": [_rail(window, scheme), _minimum(view, window, scheme)],
        "xaxis": {"title": "θ", "range": [window.left, window.right], "zeroline": False},
        "yaxis": {
            "title": "loss f(θ)",
            "range": [window.bottom, window.top + RAIL_SHARE * window.height],
            "zeroline": False,
        },
    }
    return go.Figure(traces, layout)


def _function(view: QuadraticRead, scheme: Scheme) -> Trace:
    return scatter(
        x=view.function.x,
        y=view.function.y,
        mode="lines",
        line={"color": PALETTE[scheme].axis, "width": 5, "simplify": False},
        hoverinfo="skip",
        name="f",
    )


def _lines(visible: VisiblePath, style: MethodStyle) -> Trace:
    xs, ys, steps = with_gaps(visible.lines)
    return scatter(
        x=xs,
        y=ys,
        customdata=steps,
        mode="lines",
        line={"color": style.colour, "width": 1.8, "dash": style.dash},
        hoverinfo="skip",
        name="path",
        meta={"grows": True},
    )


def exit_arrows(exits: Sequence[tuple[int, Point, Point]], style: MethodStyle) -> Trace:
    """Return arrow heads where a path leaves: markers turned away from the point before them."""
    xs, ys, steps = with_gaps(exits)
    return scatter(
        x=xs,
        y=ys,
        customdata=steps,
        mode="markers",
        marker={
            "symbol": "arrow",
            "angleref": "previous",
            "size": [0, 15, 0] * len(exits),
            "color": style.colour,
            "opacity": 1,
            "line": {"width": 0},
        },
        hoverinfo="skip",
        showlegend=False,
        cliponaxis=False,
        name="exit",
        meta={"grows": True},
    )


def with_gaps(
    lines: Sequence[tuple[int, Point, Point]],
) -> tuple[list[float | None], list[float | None], list[int]]:
    """Return separate lines as one trace wants them: start, end, nothing."""
    xs = [x for _, start, end in lines for x in (start[0], end[0], None)]
    ys = [y for _, start, end in lines for y in (start[1], end[1], None)]
    return xs, ys, [step for step, _, _ in lines for _ in range(3)]


def _dots(
    visible: VisiblePath,
    path: PathRead,
    style: MethodStyle,
    window: Window,
    minimum: float,
    scheme: Scheme,
) -> Trace:
    return scatter(
        x=[at[0] for _, at in visible.dots],
        y=[at[1] for _, at in visible.dots],
        customdata=[step for step, _ in visible.dots],
        text=_step_numbers(visible.dots, window),
        mode="markers+text",
        # Outside of the bowl, where no connection passes.
        textposition=[
            "middle right" if at[0] >= minimum else "middle left" for _, at in visible.dots
        ],
        textfont={"color": PALETTE[scheme].text, "size": 12},
        marker={
            "symbol": style.marker,
            "color": style.colour,
            "size": 9,
            "line": {"color": PALETTE[scheme].paper, "width": 1},
        },
        cliponaxis=False,
        hovertemplate=(
            f"{NAME_OF[path.method]}, step %{{customdata}}"
            "<br>θ = %{x:.4~g}<br>loss = %{y:.4~g}<extra></extra>"
        ),
        name="dots",
        meta={"grows": True},
    )


def _step_numbers(dots: Sequence[tuple[int, Point]], window: Window) -> list[str]:
    """Return each dot's number, or nothing where an earlier dot is in the way."""
    texts = []
    for index, (step, at) in enumerate(dots):
        crowded = any(window.near(at, other, LABEL_ROOM) for _, other in dots[:index])
        texts.append("" if crowded else f" {step} ")
    return texts


def _head(visible: VisiblePath, style: MethodStyle, scheme: Scheme) -> Trace:
    """A ring around the step the picture is at."""
    last = visible.dots[-1:]
    return scatter(
        x=[at[0] for _, at in last],
        y=[at[1] for _, at in last],
        mode="markers",
        marker={
            "symbol": "circle-open",
            "size": 18,
            "color": style.ink(scheme),
            "line": {"width": 2},
        },
        hoverinfo="skip",
        cliponaxis=False,
        name="head",
        meta={"head": True},
    )


def _rail_height(window: Window) -> float:
    return window.top + RAIL_SHARE * window.height / 2


def _rail(window: Window, scheme: Scheme) -> dict[str, Any]:
    """The strip on top where what left the picture is named."""
    return {
        "type": "rect",
        "xref": "paper",
        "yref": "y",
        "x0": 0,
        "x1": 1,
        "y0": window.top,
        "y1": window.top + RAIL_SHARE * window.height,
        "fillcolor": PALETTE[scheme].rail,
        "line": {"width": 0},
        "layer": "below",
    }


def _minimum(view: QuadraticRead, window: Window, scheme: Scheme) -> dict[str, Any]:
    return {
        "type": "line",
        "x0": view.minimum,
        "x1": view.minimum,
        "y0": window.bottom,
        "y1": window.top,
        "line": {"color": PALETTE[scheme].reference, "width": 1, "dash": "dot"},
        "layer": "below",
    }


def exit_sentence(path: PathRead, left_at: int, *, returns: bool) -> str:
    """Say when a path left the picture, and where it went."""
    if returns:
        return f"left the picture at step {left_at}, came back"
    theta = path.theta[left_at]
    where = f"θ = {number(theta)}" if theta is not None else "θ beyond all numbers"
    return f"left the picture at step {left_at} ({where})"


def _rail_text(x: float, y: float, path: PathRead, visible: VisiblePath, scheme: Scheme) -> Trace:
    left_at = visible.left_at
    gone = left_at is not None
    return scatter(
        x=[x] if gone else [],
        y=[y] if gone else [],
        customdata=[left_at] if gone else [],
        text=[f"▲ {exit_sentence(path, left_at, returns=visible.returns)}"]
        if left_at is not None
        else [],
        mode="text",
        textfont={"color": style_of(path.method).ink(scheme), "size": 12},
        hoverinfo="skip",
        cliponaxis=False,
        name="left",
        meta={"grows": True},
    )
