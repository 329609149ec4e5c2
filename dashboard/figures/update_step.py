"""One node's explicit and implicit step, drawn on its activation, as in the paper's relu figure."""

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from backend.schemas import NodeStep, StepSweep, UpdateRead
from dashboard.figures.traces import Trace, scatter
from dashboard.figures.update_sweep import WORDS_WIDTH, jump_words, shown_range, sweep_traces
from dashboard.figures.window import Point, Window
from dashboard.formats import number, signed
from dashboard.theme import PALETTE, Scheme, faint, method_style, template

#: EB's arrow runs above the activation and IB's below it, by this share of the picture's height.
LANE_SHARE = {"eb": 0.07, "ib": -0.07}
#: And its words further out.
WORDS_SHARE = 0.14


def update_figure(view: UpdateRead, sign: int, scheme: Scheme = "light") -> go.Figure:
    """Draw both methods' steps for one sign of b; below, step and loss against s.

    Args:
        view: The numbers.
        sign: +1 for b > 0, -1 for b < 0.
        scheme: Of the page.
    """
    steps = sorted((step for step in view.steps if step.b * sign > 0), key=_method)
    sweeps = sorted((sweep for sweep in view.sweeps if sweep.b * sign > 0), key=_method)
    window = Window.around(view.function.x, view.function.y, room=0.3)
    traces = [
        _activation(view, scheme),
        *_steps(view, steps, window, scheme),
        _start(steps, scheme),
        *sweep_traces(view, steps, sweeps, "step"),
        *sweep_traces(view, steps, sweeps, "loss"),
    ]
    return go.Figure(traces, _layout(view, steps, sweeps, window, scheme))


def _method(drawn: NodeStep | StepSweep) -> str:
    return drawn.method


def _activation(view: UpdateRead, scheme: Scheme) -> Trace:
    return scatter(
        x=view.function.x,
        y=view.function.y,
        mode="lines",
        line={"color": PALETTE[scheme].axis, "width": 7, "simplify": False},
        hovertemplate=f"{view.activation}(%{{x:.3~g}}) = %{{y:.3~g}}<extra></extra>",
        showlegend=False,
        name="activation",
    )


def _start(steps: Sequence[NodeStep], scheme: Scheme) -> Trace:
    here = steps[0]
    return scatter(
        x=[here.s],
        y=[here.origin],
        mode="markers",
        marker={
            "size": 15,
            "color": PALETTE[scheme].text,
            "line": {"color": PALETTE[scheme].paper, "width": 2},
        },
        hovertemplate="before the step: s = %{x:.3~g}<extra></extra>",
        showlegend=False,
        name="start",
    )


def _steps(
    view: UpdateRead, steps: Sequence[NodeStep], window: Window, scheme: Scheme
) -> list[Trace]:
    """Every method's arrow along the activation, the dot it ends in, and what it did."""
    traces = []
    for step in steps:
        end = _end(view, step, window)
        traces += [
            _arrow(view, step, end, window),
            _landing(step, end, scheme),
            _words(view, step, end, window, scheme),
        ]
    return traces


def _arrow(view: UpdateRead, step: NodeStep, end: Point, window: Window) -> Trace:
    style = method_style(step.method)
    lane = LANE_SHARE[step.method] * window.height
    way = _way(view, step, end)
    return scatter(
        x=[x for x, _ in way],
        y=[y + lane for _, y in way],
        mode="lines+markers",
        line={"color": style.colour, "width": 2.5, "dash": style.dash},
        marker={
            "symbol": "arrow",
            "angleref": "previous",
            "size": [0] * (len(way) - 1) + [16],
            "color": style.colour,
            "opacity": 1,
            "line": {"width": 0},
        },
        hoverinfo="skip",
        showlegend=False,
        name=f"{step.method} arrow",
    )


def _landing(step: NodeStep, end: Point, scheme: Scheme) -> Trace:
    style = method_style(step.method)
    return scatter(
        x=[end[0]],
        y=[end[1]],
        mode="markers",
        marker={
            "symbol": style.marker,
            "size": 13,
            "color": style.colour,
            "line": {"color": PALETTE[scheme].paper, "width": 1.5},
        },
        cliponaxis=False,
        hovertemplate=(
            f"{style.short} lands at s′ = {number(step.landing)}"
            f"<br>loss change {signed(step.change)}<extra></extra>"
        ),
        showlegend=False,
        name=f"{step.method} landing",
    )


def _words(view: UpdateRead, step: NodeStep, end: Point, window: Window, scheme: Scheme) -> Trace:
    side = _words_side(step.method, end[0], window)
    return scatter(
        x=[end[0]],
        y=[_words_height(view, step.method, end, side, window)],
        mode="text",
        text=[landing_text(step, window)],
        textposition=f"middle {side}",
        textfont={"color": method_style(step.method).ink(scheme), "size": 13},
        cliponaxis=False,
        hoverinfo="skip",
        showlegend=False,
        name=f"{step.method} words",
    )


def _words_side(method: str, x: float, window: Window) -> str:
    """Activations rise to the right: EB's words go above and left, IB's below and right."""
    room = WORDS_WIDTH * window.width
    if method == "eb":
        return "left" if x - room > window.left else "right"
    return "right" if x + room < window.right else "left"


def _words_height(view: UpdateRead, method: str, end: Point, side: str, window: Window) -> float:
    """Clear of the activation for as far as the words reach."""
    room = WORDS_WIDTH * window.width
    low, high = (end[0] - room, end[0]) if side == "left" else (end[0], end[0] + room)
    beside = [
        y
        for x, y in zip(view.function.x, view.function.y, strict=True)
        if y is not None and low <= x <= high
    ]
    with_the_arrow = side == ("right" if method == "eb" else "left")
    distance = WORDS_SHARE * window.height * (1.5 if with_the_arrow else 1)
    if method == "eb":
        return min(max([end[1], *beside]) + distance, window.top - distance / 3)
    return max(min([end[1], *beside]) - distance, window.bottom + distance / 3)


def landing_text(step: NodeStep, window: Window) -> str:
    """Say what a step did to the loss, and where it went if it left the picture."""
    short = method_style(step.method).short
    if step.landing is None:
        return f"{short} goes beyond all numbers"
    if step.landing == step.s:
        return f"{short} stays"
    text = f"{short}: loss {signed(step.change)}"
    inside = window.left <= step.landing <= window.right
    return text if inside else f"{text}<br>out, at s′ = {number(step.landing)}"


def _end(view: UpdateRead, step: NodeStep, window: Window) -> Point:
    """Where the dot goes: on the activation, at the picture's edge if the step leaves it."""
    curve = view.function
    if step.landing is None or step.value is None:
        return window.left if step.b > 0 else window.right, curve.y[0 if step.b > 0 else -1] or 0.0
    if step.landing < window.left:
        return window.left, curve.y[0] or 0.0
    if step.landing > window.right:
        return window.right, curve.y[-1] or 0.0
    return step.landing, step.value


def _way(view: UpdateRead, step: NodeStep, end: Point) -> list[Point]:
    """The activation from s to the end of the step; nothing if it does not move."""
    start = (step.s, step.origin or 0.0)
    low, high = sorted((start[0], end[0]))
    between = [
        (x, y)
        for x, y in zip(view.function.x, view.function.y, strict=True)
        if y is not None and low < x < high
    ]
    ordered = between if start[0] < end[0] else between[::-1]
    return [start, *ordered, end] if low < high else []


def _layout(
    view: UpdateRead,
    steps: Sequence[NodeStep],
    sweeps: Sequence[StepSweep],
    window: Window,
    scheme: Scheme,
) -> dict[str, Any]:
    """Three pictures on one axis of s."""
    way = "left" if steps[0].b > 0 else "right"
    across = {"range": [window.left, window.right], "zeroline": False}
    above = {**across, "matches": "x3", "showticklabels": False}
    legend = {"orientation": "h", "x": 0, "y": 1.01, "yanchor": "bottom", "traceorder": "reversed"}
    return {
        "template": template(scheme),
        "margin": {"l": 60, "r": 12, "t": 36, "b": 44},
        "legend": legend,
        "hovermode": "closest",
        "shapes": _guides(view, steps, scheme),
        "annotations": jump_words(view, sweeps, scheme),
        "xaxis": {**above, "anchor": "y"},
        "xaxis2": {**above, "anchor": "y2"},
        "xaxis3": {**across, "anchor": "y3", "title": "s = θᵀz before the step"},
        "yaxis": _up(f"{view.activation}(s)", [window.bottom, window.top], [0.54, 1.0]),
        "yaxis2": _up(f"step to the {way}", shown_range(sweeps, "step"), [0.27, 0.48]),
        "yaxis3": _up("loss b·σ(s′)", shown_range(sweeps, "loss"), [0.0, 0.21]),
    }


def _up(title: str, shown: list[float], domain: list[float]) -> dict[str, Any]:
    return {"title": title, "range": shown, "domain": domain, "zeroline": False}


def _guides(view: UpdateRead, steps: Sequence[NodeStep], scheme: Scheme) -> list[dict[str, Any]]:
    """A line through all three pictures at the present s, and one where IB's rule switches."""
    palette = PALETTE[scheme]
    lines = [(steps[0].s, palette.text, 1.0, "solid")]
    if view.jump is not None and steps[0].b < 0:
        lines.append((view.jump, method_style("ib").colour, 1.2, "dot"))
    return [
        {
            "type": "line",
            "xref": "x3",
            "yref": "paper",
            "x0": s,
            "x1": s,
            "y0": 0,
            "y1": 1,
            "line": {"color": faint(colour, 0.6), "width": width, "dash": dash},
            "layer": "below",
        }
        for s, colour, width, dash in lines
    ]
