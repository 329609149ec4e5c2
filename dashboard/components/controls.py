"""Labelled controls; their values live in the address, each mirrors the other."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import dash_mantine_components as dmc
from dash import Input, Output

from dashboard import ids
from dashboard.callbacks import browser_callback
from dashboard.markup import Component, html

Kind = Literal["text", "number", "flag", "list"]
#: A value, and the words for it.
Choice = tuple[str, str]

#: More choices than this do not fit beside each other.
MOST_BESIDE = 4
QUANTITIES: tuple[Choice, ...] = (("loss", "Loss"), ("accuracy", "Accuracy"), ("seconds", "Time"))
SPLITS: tuple[Choice, ...] = (("train", "Training"), ("test", "Test"))
#: What may be held out of the training rows.
VALIDATION: Choice = ("validation", "Validation")
REDUCERS: tuple[Choice, ...] = (("final", "Last"), ("best", "Best"))
BANDS: tuple[Choice, ...] = (("std", "Std"), ("se", "Std error"), ("quantile", "10–90 %"))
SCALES: tuple[Choice, ...] = (("focus", "Focus"), ("log", "Log"), ("full", "Full"))


def control_group(title: str, *controls: Component) -> Component:
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


def view_control(id: str, views: Sequence[Choice], value: str) -> Component:
    """Return the choice of a picture: all visible if they fit, else one below the other."""
    if len(views) <= MOST_BESIDE:
        return segmented("Picture", id, views, value)
    return html.Div(
        [
            html.Span("Picture", id=f"{id}-label"),
            dmc.Select(
                id=id,
                data=[{"value": name, "label": words} for name, words in views],
                value=value,
                allowDeselect=False,
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


def values_of(choices: Sequence[Choice]) -> tuple[str, ...]:
    """Return what a control may be set to."""
    return tuple(value for value, _ in choices)


@dataclass(frozen=True, slots=True)
class Control:
    """A control whose value is part of the address.

    Attributes:
        name: Of the query parameter.
        id: Of the component.
        fallback: Its value when the address does not say; such a value is not written either.
        kind: How it is written.
        property: Which of the component's properties holds it.
        choices: What it may be; anything else in an address is ignored.
        quiet: Whether a change of it alone is no step for the browser's "back".
    """

    name: str
    id: str
    fallback: Any = None
    kind: Kind = "text"
    property: str = "value"
    choices: tuple[str, ...] = ()
    quiet: bool = False

    def read(self, query: Mapping[str, str]) -> Any:
        """Return the control's value for an address."""
        text = query.get(self.name)
        if text is None or (self.choices and text not in self.choices):
            return self.fallback
        if self.kind == "flag":
            return text == "1"
        if self.kind == "list":
            return [part for part in text.split(",") if part]
        return _number(text, self.fallback) if self.kind == "number" else text


def _number(text: str, fallback: Any) -> Any:
    try:
        value = float(text)
    except ValueError:
        return fallback
    return int(value) if value.is_integer() else value


def read_controls(controls: Sequence[Control], query: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of all controls for an address, by parameter."""
    return {control.name: control.read(query) for control in controls}


def keep_in_url(path: str, controls: Sequence[Control]) -> None:
    """Let the address follow the controls and, on "back" or a new link, the controls it.

    Args:
        path: A regular expression of the addresses the controls belong to.
        controls: All of the page's.
    """
    known = [
        {
            "name": control.name,
            "id": control.id,
            "property": control.property,
            "kind": control.kind,
            "fallback": control.fallback,
            "quiet": control.quiet,
        }
        for control in controls
    ]
    browser_callback(
        "function(search, ...values) { window.etascope.syncUrl("
        f"{json.dumps(path)}, {json.dumps(known)}, search, values); "
        "return window.dash_clientside.no_update; }",
        # Never written: an output on the page keeps the callback quiet while the page is not there.
        Output(controls[0].id, "className", allow_duplicate=True),
        Input(ids.LOCATION, "search"),
        *[Input(control.id, control.property) for control in controls],
        prevent_initial_call=True,
    )
