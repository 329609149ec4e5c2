"""A trial's losses by step, and its norms and sharpness where they were recorded."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import plotly.graph_objects as go
from plotly.colors import sample_colorscale

from backend.schemas import CurveRead, RecordingRead, TrialRead
from dashboard.theme import PALETTE, Scheme, method_style, number, template

Splits = Literal["both", "train"]
#: Losses that span more than this factor are drawn on a logarithmic axis: one that explodes
#: would flatten the others, and cut off it would be no picture at all.
LINEAR_SPAN = 50.0


@dataclass(frozen=True, slots=True)
class TrialCurve:
    """A trial with its curve."""

    trial: TrialRead
    curve: CurveRead

    @property
    def name(self) -> str:
        """What the legend calls it."""
        style = method_style(self.trial.method, imported=self.trial.imported)
        return f"{style.short}, rate {number(self.trial.lr)}, seed {self.trial.seed}"


def curve_figure(
    curves: Sequence[TrialCurve],
    *,
    scheme: Scheme = "light",
    log: bool | None = None,
    height: int = 360,
    test: bool = True,
) -> go.Figure:
    """Return training (solid) and test loss (dashed) against the epoch.

    Args:
        curves: The trials, in the order of the legend.
        scheme: Of the page.
        log: Whether the losses are on a logarithmic axis; None: if a linear one would hide some.
        height: In pixels.
        test: Whether test losses are drawn.
    """
    log = _spans_decades(curves) if log is None else log
    figure = go.Figure(layout={"template": template(scheme)})
    for index, one in enumerate(curves):
        figure.add_traces(list(_lines(one, index, len(curves), test=test)))
        figure.add_traces(list(_break(one, scheme)))
    figure.update_layout(
        height=height,
        margin={"l": 64, "r": 16, "t": 16, "b": 48},
        xaxis={"title": {"text": "epoch"}, "rangemode": "tozero"},
        yaxis={
            "title": {"text": "loss (log scale)" if log else "loss"},
            "type": "log" if log else "linear",
            "tickformat": "~g" if log else "",
            "dtick": ("D2" if _decades(curves) < 1.5 else 1) if log else None,
            "rangemode": "normal" if log else "tozero",
        },
        legend={"orientation": "h", "y": -0.22, "x": 0, "yanchor": "top"},
        hovermode="closest",
        meta={"label": f"Loss by epoch of {'; '.join(map(_spoken, curves))}."},
        uirevision=f"curve {log}",
        showlegend=len(curves) > 1 or test,
    )
    return figure


def _spoken(one: TrialCurve) -> str:
    """Return a curve in words, for who does not see it."""
    losses = [p.train_loss for p in one.curve.points if p.train_loss is not None]
    if not losses:
        return f"{one.name}, no finite loss"
    broken = ", then not finite" if any(p.train_loss is None for p in one.curve.points) else ""
    ends = f"training loss from {number(losses[0])} to {number(losses[-1])}"
    return f"{one.name}, {ends}{broken}"


def _lines(one: TrialCurve, index: int, several: int, *, test: bool) -> Iterator[Any]:
    style = method_style(one.trial.method, imported=one.trial.imported)
    opacity = 1.0 if several == 1 else max(0.45, 1 - 0.12 * index)
    for split, dash in (("train", "solid"), ("test", "dash")):
        if split == "test" and not test:
            continue
        losses = [getattr(point, f"{split}_loss") for point in one.curve.points]
        if all(loss is None for loss in losses):
            continue
        words = "training loss" if split == "train" else "test loss"
        yield go.Scatter(
            x=[point.epoch for point in one.curve.points],
            y=losses,
            mode="lines+markers",
            name=words if several == 1 else f"{one.name}{', test' if split == 'test' else ''}",
            line={"color": style.colour, "dash": dash, "width": 2},
            marker={"size": 5, "color": style.colour},
            opacity=opacity,
            hovertext=[
                f"{one.name}<br>epoch {number(point.epoch)}, step {point.step}<br>"
                f"{words} {number(loss)}"
                for point, loss in zip(one.curve.points, losses, strict=True)
            ],
            hoverinfo="text",
            legendgroup=str(one.trial.id),
            meta=split,
        )


def _break(one: TrialCurve, scheme: Scheme) -> Iterator[Any]:
    """Mark where a curve leaves the finite numbers."""
    lost = [point for point in one.curve.points if point.train_loss is None]
    if not lost:
        return
    known = [p.train_loss for p in one.curve.points if p.train_loss is not None]
    yield go.Scatter(
        x=[lost[0].epoch],
        y=[known[-1] if known else 0],
        mode="markers+text",
        marker={"symbol": "x", "size": 11, "color": PALETTE[scheme].bad},
        text=["not finite from here"],
        textposition="top left",
        textfont={"color": PALETTE[scheme].bad, "size": 12},
        hoverinfo="skip",
        showlegend=False,
        cliponaxis=False,
        meta="break",
    )


def _decades(curves: Sequence[TrialCurve]) -> float:
    """Return how many powers of ten the losses span."""
    losses = [
        loss
        for one in curves
        for point in one.curve.points
        for loss in (point.train_loss, point.test_loss)
        if loss is not None and loss > 0
    ]
    return math.log10(max(losses) / min(losses)) if losses else 0.0


def _spans_decades(curves: Sequence[TrialCurve]) -> bool:
    return _decades(curves) > math.log10(LINEAR_SPAN)


#: What is drawn of the layers, and the words for it.
WORDS: dict[str, str] = {
    "weights": "norm of weights",
    "gradients": "norm of gradient",
    "moves": "norm of step",
    "damping": "damping",
}
#: More names than this are no legend any more; the layers tell their own when hovered over.
MOST_NAMED = 10
#: Steps shown around a break, of a trial that has many more: the rest is a zoom away.
SHOWN_BEFORE, SHOWN_BEHIND = 40, 30
#: Where each panel lies, from the bottom.
PANELS = {"sharp": (0.0, 0.26), "layers": (0.34, 0.66), "loss": (0.74, 1.0)}
Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Ways:
    """Ranges that pictures side by side share, as powers of ten (steps: plain)."""

    steps: Range
    loss: Range | None
    layers: Range | None
    sharp: Range | None


def shared_ranges(recordings: Sequence[RecordingRead], quantity: str) -> Ways:
    """Return axes on which these recordings can be compared."""
    inside = [(one, _shown(one)) for one in recordings]
    first = min(low for _, (low, _) in inside)
    last = max(high for _, (_, high) in inside)
    return Ways(
        steps=(first, last),
        loss=_log_range(_within(one, one.losses, first, last) for one in recordings),
        layers=_log_range(
            _within(one, layer, first, last)
            for one in recordings
            for layer in getattr(one, quantity)
        ),
        sharp=_log_range(
            [*one.sharpness, *(2 / rate for rate in one.rates if rate)] for one in recordings
        ),
    )


def _shown(one: RecordingRead) -> Range:
    last = one.steps[-1] if one.steps else 1
    if one.broke_at is None or last <= 3 * (SHOWN_BEFORE + SHOWN_BEHIND):
        return 0.0, float(last)
    return max(0.0, one.broke_at - SHOWN_BEFORE), float(min(last, one.broke_at + SHOWN_BEHIND))


def _within(one: RecordingRead, values: Sequence[Any], first: float, last: float) -> list[Any]:
    return [v for step, v in zip(one.steps, values, strict=True) if first <= step <= last]


def _log_range(lists: Any) -> Range | None:
    known = [value for values in lists for value in values if value is not None and value > 0]
    if not known:
        return None
    low, high = math.log10(min(known)), math.log10(max(known))
    room = max(0.08 * (high - low), 0.1)
    return low - room, high + room


def way_figure(
    trial: TrialRead,
    recording: RecordingRead,
    ranges: Ways,
    *,
    quantity: str = "weights",
    scheme: Scheme = "light",
) -> go.Figure:
    """Return three panels over the steps; the break is a line through all of them."""
    palette, named = PALETTE[scheme], len(recording.layers) <= MOST_NAMED
    figure = go.Figure(layout={"template": template(scheme)})
    figure.add_traces([*_loss(trial, recording), *_layers(recording, quantity, scheme)])
    figure.add_traces(list(_sharp(trial, recording, scheme)))
    axis: dict[str, Any] = {"type": "log", "tickformat": "~g", "nticks": 5}
    figure.update_layout(
        height=640,
        margin={"l": 64, "r": 12, "t": 50, "b": 96 if named else 56},
        title={
            "text": method_style(trial.method).short,
            "x": 0,
            "xref": "paper",
            "y": 0.985,
            "yanchor": "top",
            "font": {"size": 14},
        },
        xaxis={"title": {"text": "step"}, "range": list(ranges.steps), "anchor": "y"},
        yaxis=_axis(axis, "sharpness", PANELS["sharp"], ranges.sharp),
        yaxis2=_axis(axis, WORDS[quantity], PANELS["layers"], ranges.layers),
        yaxis3=_axis(axis, "batch loss", PANELS["loss"], ranges.loss),
        legend={"orientation": "h", "y": -0.12, "x": 0, "yanchor": "top", "font": {"size": 11}},
        hovermode="closest",
        uirevision=f"way {trial.id} {quantity}",
        showlegend=named,
        meta={"label": _told(trial, recording)},
    )
    if recording.broke_at is not None:
        figure.add_shape(
            type="line",
            x0=recording.broke_at,
            x1=recording.broke_at,
            y0=0,
            y1=1,
            xref="x",
            yref="paper",
            line={"color": palette.bad, "dash": "dot", "width": 1.5},
        )
        figure.add_annotation(
            x=recording.broke_at,
            y=1,
            xref="x",
            yref="paper",
            xanchor="left",
            yanchor="bottom",
            text=f"breaks at step {recording.broke_at}",
            showarrow=False,
            font={"color": palette.bad, "size": 12},
        )
    return figure


#: Below so many decades a logarithmic axis has ticks at 1, 2 and 5.
SHORT_DECADES = 1.5


def _axis(axis: dict[str, Any], words: str, where: Range, shown: Range | None) -> dict[str, Any]:
    title = {"text": words, "font": {"size": 12}}
    low, high = shown or (-1, 1)
    # Left to itself plotly names all nine of a decade, one over the other.
    ticks = {"dtick": "D2"} if high - low < SHORT_DECADES else {}
    return {**axis, **ticks, "title": title, "domain": list(where), "range": [low, high]}


def _loss(trial: TrialRead, one: RecordingRead) -> Iterator[Any]:
    yield go.Scatter(
        x=one.steps,
        y=one.losses,
        yaxis="y3",
        mode="lines+markers",
        line={"color": method_style(trial.method).colour, "width": 2},
        marker={"size": 4},
        name="loss",
        showlegend=False,
        hovertext=_hover(one.steps, one.losses, "loss"),
        hoverinfo="text",
        meta="loss",
    )


def _layers(one: RecordingRead, quantity: str, scheme: Scheme) -> Iterator[Any]:
    count = len(one.layers)
    low, high = (0.0, 0.8) if scheme == "light" else (0.35, 1.0)
    places = [low + (high - low) * place / max(1, count - 1) for place in range(count)]
    colours = sample_colorscale("Viridis", places) if count else []
    for place, (layer, values) in enumerate(zip(one.layers, getattr(one, quantity), strict=True)):
        first = one.broke_at is not None and place == one.first_layer
        how = "grew most" if any("slowly" in told for told in one.story) else "first to explode"
        name = f"layer {place + 1}" + (f", {how}" if first else "")
        yield go.Scatter(
            x=one.steps,
            y=values,
            yaxis="y2",
            mode="lines",
            line={
                "color": PALETTE[scheme].bad if first else colours[place],
                "width": 3.5 if first else 1.6,
            },
            name=name,
            hovertext=_hover(one.steps, values, WORDS[quantity], f"{name} ({layer})<br>"),
            hoverinfo="text",
            meta="layer",
        )


def _sharp(trial: TrialRead, one: RecordingRead, scheme: Scheme) -> Iterator[Any]:
    palette = PALETTE[scheme]
    edges = [None if not rate else 2 / rate for rate in one.rates]
    if any(edges):  # a method that does not step plainly has none
        yield go.Scatter(
            x=one.steps,
            y=edges,
            yaxis="y",
            mode="lines",
            line={"color": palette.reference, "dash": "dash", "width": 1.5},
            name="2/rate",
            hovertext=_hover(one.steps, edges, "2/rate"),
            hoverinfo="text",
            meta="edge",
        )
    if not one.sharpness:
        return
    yield go.Scatter(
        x=one.sharp_steps,
        y=one.sharpness,
        yaxis="y",
        mode="lines+markers",
        line={"color": method_style(trial.method).colour, "width": 2},
        marker={"size": 6},
        name="sharpness",
        hovertext=_hover(one.sharp_steps, one.sharpness, "sharpness"),
        hoverinfo="text",
        meta="sharpness",
    )


def _hover(steps: Sequence[int], values: Sequence[Any], what: str, head: str = "") -> list[str]:
    pairs = zip(steps, values, strict=True)
    return [f"{head}step {step}<br>{what} {number(value)}" for step, value in pairs]


def _told(trial: TrialRead, one: RecordingRead) -> str:
    """Return the picture in words, for who does not see it."""
    return f"{method_style(trial.method).short} step by step. {' '.join(one.story)}"
