"""A trial's losses by step, or those of several trials."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import plotly.graph_objects as go

from backend.schemas import CurveRead, TrialRead
from dashboard.formats import number
from dashboard.theme import PALETTE, Scheme, method_style, template

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
