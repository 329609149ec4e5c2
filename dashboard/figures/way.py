"""A trial's way by step: loss, its layers' norms, and sharpness against 2/rate."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go
from plotly.colors import sample_colorscale

from backend.schemas import RecordingRead, TrialRead
from dashboard.formats import number
from dashboard.theme import PALETTE, Scheme, method_style, template

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
        loss=_decades(_within(one, one.losses, first, last) for one in recordings),
        layers=_decades(
            _within(one, layer, first, last)
            for one in recordings
            for layer in getattr(one, quantity)
        ),
        sharp=_decades(
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


def _decades(lists: Any) -> Range | None:
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
        meta={"label": _spoken(trial, recording)},
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


def _axis(axis: dict[str, Any], words: str, where: Range, shown: Range | None) -> dict[str, Any]:
    title = {"text": words, "font": {"size": 12}}
    return {**axis, "title": title, "domain": list(where), "range": list(shown or (-1, 1))}


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
        name = f"layer {place + 1}" + (", first to explode" if first else "")
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


def _spoken(trial: TrialRead, one: RecordingRead) -> str:
    """Return the picture in words, for who does not see it."""
    return f"{method_style(trial.method).short} step by step. {' '.join(one.story)}"
