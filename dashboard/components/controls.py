"""Labelled controls; their values live in the address, each mirrors the other.

Among them those of pictures with many series: colours, panels, what is shown, the rate scrubber.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import dash_mantine_components as dmc
from dash import Input, Output

from dashboard import ids
from dashboard.dash_blocks import Component, browser_callback, dcc, html
from dashboard.figures import AUTO, EPOCH, NONE, AnyLine, Family, Setting, say, token, varied

Kind = Literal["text", "number", "flag", "list"]
#: A value, and the words for it.
Choice = tuple[str, str]

#: Digits of an id: above, a reader of JSON would not hold it exactly.
LONGEST_ID = 16
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
        said_by: Id of an element whose `data-fallback` is the page's own fallback, if it has one.
    """

    name: str
    id: str
    fallback: Any = None
    kind: Kind = "text"
    property: str = "value"
    choices: tuple[str, ...] = ()
    quiet: bool = False
    said_by: str = ""

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


def identifier(text: str) -> int | None:
    """Return an id as an address writes it; None for what is none, or too long to be one."""
    return int(text) if text.isdecimal() and len(text) <= LONGEST_ID else None


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
            "said_by": control.said_by,
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


# --- Controls of pictures with many series: colours, panels, what is shown, and the rate scrubber


#: With fewer series there is nothing to arrange.
LEAST_SERIES = 2
CELLS: tuple[Choice, ...] = (("loss", "Value"), ("broken", "Share broken"))
SMOOTHINGS: tuple[Choice, ...] = (("1", "None"), ("5", "5"), ("20", "20"))
#: In which pictures a control does something.
USED_IN = {
    "colour": "curves box against best_of",
    "panel": "curves best_of",
    "rail": "curves method clip engine",
    "over": "map against",
    "cell": "map",
    "smooth": "learning",
}


class FamilyIds(Protocol):
    """The ids of a page that has these controls."""

    VIEW: str
    COLOUR: str
    PANEL: str
    ONLY: str
    RAIL: str
    OVER: str
    CELL: str
    SMOOTH: str
    RATE: str
    CHOICES: str
    FAMILY: str
    SCRUBBER: str
    GRAPH: str


def family_controls(ids: type[FamilyIds]) -> tuple[Control, ...]:
    """Return what of them the address holds, in the order of `family_of`."""
    return (
        Control("colour", ids.COLOUR, AUTO),
        Control("panel", ids.PANEL, AUTO),
        Control("only", ids.ONLY, [], kind="list"),
        Control("rail", ids.RAIL, False, kind="flag", property="checked"),
        Control("over", ids.OVER, AUTO),
        Control("cell", ids.CELL, "loss", choices=values_of(CELLS)),
        Control("smooth", ids.SMOOTH, "1", choices=values_of(SMOOTHINGS)),
        Control("lr", ids.RATE, "", property="data", quiet=True),
    )


def family_of(values: Sequence[Any], view: str) -> Family:
    """Return what the controls say, without what means nothing to a picture.

    Args:
        values: Of the controls, in their order.
        view: The picture.
    """
    colour, panel, only, rail, over, cell, smooth, rate = values
    used = {name for name, views in USED_IN.items() if view in views.split()}
    return Family(
        colour=(colour or AUTO) if "colour" in used else AUTO,
        panel=(panel or AUTO) if "panel" in used else AUTO,
        only=tuple(only or ()),
        rail="open" if rail and "rail" in used else "auto",
        over=(over or AUTO) if "over" in used else AUTO,
        cell="broken" if cell == "broken" and "cell" in used else "loss",
        rate=_rate(rate) if view in ("box", "steps", "coordinates") else None,
        smooth=int(smooth or 1) if "smooth" in used else 1,
    )


def _rate(text: Any) -> float | None:
    try:
        rate = float(text)
    except (TypeError, ValueError):
        return None
    return rate if 0 < rate < float("inf") else None


def choices_of(lines: Sequence[AnyLine]) -> dict[str, Any]:
    """Return what can be chosen for some series, as the browser fills it into the controls."""
    found = varied(lines)
    each = [{"value": one.name, "label": _words(one.name)} for one in found]
    return {
        "colour": [{"value": AUTO, "label": "auto"}, *each],
        "panel": [{"value": AUTO, "label": "auto"}, {"value": NONE, "label": "none"}, *each],
        "over": [
            {"value": AUTO, "label": "auto"},
            *each,
            {"value": EPOCH, "label": "epoch (map)"},
        ],
        "only": [{"group": _words(one.name), "items": _values(one)} for one in found],
        "many": len(lines) > LEAST_SERIES,
    }


def _words(name: str) -> str:
    return name.replace("_", " ")


def _values(one: Setting) -> list[dict[str, str]]:
    return [{"value": token(one.name, v), "label": say(one.name, v)} for v in one.values]


def family_panel(ids: type[FamilyIds], values: Mapping[str, Any]) -> Component:
    """Return the controls, set to an address's values; the browser fills in the choices."""
    return html.Fieldset(
        [
            html.Legend("Series"),
            _select("Colour by", ids.COLOUR, values["colour"], "colour"),
            _select("Panel by", ids.PANEL, values["panel"], "panel"),
            _select("Against", ids.OVER, values["over"], "over"),
            _used("cell", segmented("Cells", ids.CELL, CELLS, values["cell"])),
            _used("smooth", segmented("Smoothing", ids.SMOOTH, SMOOTHINGS, values["smooth"])),
            _used("rail", switch("Open rail", ids.RAIL, values["rail"])),
            html.Div(
                [
                    html.Span("Show only", id=f"{ids.ONLY}-label"),
                    dmc.MultiSelect(
                        id=ids.ONLY,
                        data=[{"value": one, "label": one} for one in values["only"]],
                        value=values["only"],
                        placeholder="all",
                        searchable=True,
                        clearable=True,
                        size="xs",
                        **{"aria-labelledby": f"{ids.ONLY}-label"},
                    ),
                ],
                className="control",
            ),
            dcc.Store(id=ids.CHOICES),
            dcc.Store(id=ids.RATE, data=values["lr"]),
        ],
        id=ids.FAMILY,
        className=f"control-group family view-{values['view']}",
    )


def _used(name: str, control: Component) -> Component:
    control.className = " ".join(["control", *(f"in-{view}" for view in USED_IN[name].split())])
    control.className += " sometimes"
    return control


def _select(label: str, id: str, value: str, name: str) -> Component:
    known = [AUTO, *([value] if value != AUTO else [])]
    return _used(
        name,
        html.Div(
            [
                html.Span(label, id=f"{id}-label"),
                dmc.Select(
                    id=id,
                    data=[{"value": one, "label": _words(one)} for one in known],
                    value=value,
                    allowDeselect=False,
                    size="xs",
                    **{"aria-labelledby": f"{id}-label"},
                ),
            ]
        ),
    )


def scrubber(ids: type[FamilyIds]) -> Component:
    """Return the slider of rates; the browser shows it under pictures that follow it."""
    return html.Div(
        [
            html.Span("Learning rate", className="scrub-label", id=f"{ids.SCRUBBER}-label"),
            dcc.Input(
                id=f"{ids.SCRUBBER}-slider",
                type="range",
                min=0,
                max=1,
                step=1,
                value=0,
                className="scrub-slider",
            ),
            html.Output("", className="scrub-words"),
            html.A("its step", href="/updates", className="scrub-link"),
        ],
        id=ids.SCRUBBER,
        className="scrubber",
        hidden=True,
        **{"data-graph": ids.GRAPH, "data-store": ids.RATE, "data-rail": ids.RAIL},
    )


def arrange_from(ids: type[FamilyIds]) -> None:
    """Let the browser fill in what can be chosen, and show what the picture uses."""
    browser_callback(
        "function(found) { const nothing = window.dash_clientside.no_update;"
        " if (!found) { return [nothing, nothing, nothing, nothing, nothing]; }"
        " return [found.colour, found.panel, found.over, found.only,"
        " found.many ? {} : {display: 'none'}]; }",
        Output(ids.COLOUR, "data"),
        Output(ids.PANEL, "data"),
        Output(ids.OVER, "data"),
        Output(ids.ONLY, "data"),
        Output(ids.FAMILY, "style"),
        Input(ids.CHOICES, "data"),
    )
    browser_callback(
        "function(view) { return 'control-group family view-' + view; }",
        Output(ids.FAMILY, "className"),
        Input(ids.VIEW, "value"),
    )
    # A new figure needs no callback of its own: `draw_from` tells the scrubber.
    browser_callback(
        f"function() {{ window.etascope.scrubTo({json.dumps(ids.GRAPH)}); }}",
        Input(ids.RATE, "data"),
    )
