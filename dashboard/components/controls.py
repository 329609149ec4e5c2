"""Labelled controls, grouped."""

from collections.abc import Sequence
from typing import Any

import dash_mantine_components as dmc

from dashboard.markup import Component, html

Choice = tuple[str, str]


def group(title: str, *controls: Component) -> Component:
    """Return controls under a common heading."""
    return html.Fieldset([html.Legend(title), *controls], className="control-group")


def segmented(label: str, id: str, choices: Sequence[Choice], value: Any) -> Component:
    """Return a choice of a few, each visible."""
    return html.Div(
        [
            html.Span(label, id=f"{id}-label"),
            dmc.SegmentedControl(
                id=id,
                data=[{"value": value, "label": words} for value, words in choices],
                value=value,
                size="xs",
                **{"aria-labelledby": f"{id}-label"},
            ),
        ],
        className="control",
    )


def switch(label: str, id: str, checked: bool) -> Component:
    """Return something that is on or off."""
    return html.Div(
        [
            html.Span(label, id=f"{id}-label"),
            dmc.Switch(id=id, checked=checked, size="sm", **{"aria-labelledby": f"{id}-label"}),
        ],
        className="control",
    )


QUANTITIES: tuple[Choice, ...] = (("loss", "Loss"), ("accuracy", "Accuracy"), ("seconds", "Time"))
SPLITS: tuple[Choice, ...] = (("train", "Training"), ("test", "Test"))
REDUCERS: tuple[Choice, ...] = (("final", "Last"), ("best", "Best"))
BANDS: tuple[Choice, ...] = (("std", "Std"), ("se", "Std error"), ("quantile", "10–90 %"))
SCALES: tuple[Choice, ...] = (("focus", "Focus"), ("log", "Log"), ("full", "Full"))
VIEWS: tuple[Choice, ...] = (
    ("curves", "Curves"),
    ("method", "Minus EB"),
    ("clip", "Clipping"),
    ("engine", "Engines"),
)
CLIPPINGS: tuple[Choice, ...] = (("all", "Both"), ("off", "Without"), ("on", "With"))


def values(choices: Sequence[Choice]) -> tuple[str, ...]:
    """Return what a control may be set to."""
    return tuple(value for value, _ in choices)
