"""The one field for numbers, which `assets/number_field.js` draws; and one with a slider below."""

import json
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import dash_mantine_components as dmc
from dash import Input, Output, State, html
from dash.development.base_component import Component

from dashboard.callbacks import browser_callback
from dashboard.formats import number
from ib_core.written import NumberKind, Unreadable, read_number, written


class NumberField(Component):  # type: ignore[misc]  # Dash's classes are untyped
    """A text field that says what number it understood, or why it understood none.

    Mantine's own drops what it does not like while one types: `1e-4` became 14.
    """

    _namespace = "etascope_fields"
    _type = "NumberField"
    _prop_names: ClassVar[list[str]] = [
        "id", "label", "text", "value", "kind", "placeholder", "small", "error", "understood",
        "answers",
    ]  # fmt: skip
    _children_props: ClassVar[list[str]] = []
    _base_nodes: ClassVar[list[str]] = []
    _valid_wildcard_attributes: ClassVar[list[str]] = []
    available_properties = _prop_names
    available_wildcard_properties: ClassVar[list[str]] = []


def number_field(
    id: str | dict[str, Any],
    kind: NumberKind | None,
    *,
    text: str,
    label: str = "",
    value: float | None = None,
    hint: str = "",
    small: bool = False,
) -> Component:
    """Return a field.

    Args:
        id: Its `text` is what was typed, right or wrong.
        kind: Which numbers it takes; None: a list, which the server reads and answers with
            `error` or `understood`; `answers` is the text that is about.
        text: What it shows at first.
        label: Above it; without one, a label elsewhere must name it.
        value: If given, its `value` is the last number that was right.
        hint: What stands in it while it is empty.
        small: As high as the other small controls.
    """
    given: dict[str, Any] = {
        "label": label or None,
        "value": value,
        "kind": kind.as_props() if kind else None,
        "placeholder": hint or None,
        "small": small or None,
    }
    set_ones = {name: one for name, one in given.items() if one is not None}
    return NumberField(id=id, text=text, **set_ones)


@dataclass(frozen=True, slots=True)
class NumberSlider:
    """A labelled number field above a slider; the field holds the value, the slider follows.

    Attributes:
        id: Of the number field; its `value` is what callbacks read: always a number, the last one
            that was right while the text is wrong.
        label: What it is called.
        low: Lowest value.
        high: Highest value.
        step: Between neighbouring places of the slider; on a logarithmic one, in decades.
        log: Whether the slider is logarithmic.
        marks: Values printed below the track.
        whole: Whether only whole numbers make sense.
    """

    id: str
    label: str
    low: float
    high: float
    step: float
    log: bool = False
    marks: tuple[float, ...] = ()
    whole: bool = False

    @property
    def slider_id(self) -> str:
        """The id of the slider."""
        return f"{self.id}-slider"

    @property
    def kind(self) -> NumberKind:
        """Which numbers the field takes."""
        return NumberKind(self.label, self.low, self.high, whole=self.whole, needed=True)

    def place(self, value: float) -> float:
        """Return where on the slider a value is."""
        inside = min(max(value, self.low), self.high)
        return math.log10(inside) if self.log else inside

    def percent(self, value: float) -> float:
        """Return how far along the track a value is, in percent."""
        low, high = self.place(self.low), self.place(self.high)
        return 100 * (self.place(value) - low) / (high - low)

    def accepts(self, value: object) -> bool:
        """Whether a value is one this control can hold."""
        return isinstance(value, int | float) and self.low <= value <= self.high

    def legal(self, value: object, fallback: float) -> float:
        """Return a value from an address as this control would show it."""
        if not isinstance(value, int | float) or not math.isfinite(value):
            return fallback
        inside = min(max(value, self.low), self.high)
        return round(inside) if self.whole else inside

    def unread(self, asked: str | None) -> str | None:
        """Return a text from an address if this control cannot hold what it says."""
        try:
            read_number(asked or "", self.kind)
        except Unreadable:
            return asked
        return None

    def draw(
        self, value: float, *, asked: str | None = None, above: Component | None = None
    ) -> Component:
        """Return the control, set to a value.

        Args:
            value: In the number's own units.
            asked: What the address says; what cannot be held stays in the field, which says why.
            above: Something to stand above the track, such as a mark.
        """
        unread = self.unread(asked)
        text = written(value) if unread is None else unread
        return html.Div(
            [
                html.Label(self.label, htmlFor=self.id, className="number-slider-label"),
                number_field(self.id, self.kind, text=text, value=value, small=True),
                html.Div(
                    [*([above] if above is not None else []), self._slider(value)],
                    className="number-slider-track",
                ),
            ],
            className=" ".join(self._classes(marked=above is not None)),
        )

    def _classes(self, *, marked: bool) -> list[str]:
        signed = self.low < 0 < self.high  # a bar from the left end would mean nothing
        return [
            "number-slider",
            *(["number-slider-marked"] if marked else []),
            *(["number-slider-signed"] if signed else []),
        ]

    def _slider(self, value: float) -> Component:
        return dmc.Slider(
            id=self.slider_id,
            value=self.place(value),
            min=self.place(self.low),
            max=self.place(self.high),
            step=self.step,
            precision=4,
            marks=[{"value": self.place(mark), "label": number(mark)} for mark in self.marks],
            scale={"function": "powerOfTen" if self.log else "unchanged"},
            label={"function": "threeDigits"},
            thumbLabel=self.label,
            # The scaled value would be announced against ends that are not scaled.
            attributes={"thumb": {"aria-valuemin": self.low, "aria-valuemax": self.high}}
            if self.log
            else {},
            updatemode="drag",
            size="sm",
            thumbSize=18,
        )

    def connect(self) -> None:
        """Let field and slider follow each other, in the browser."""
        field, log, whole, low, high = map(
            json.dumps, (self.id, self.log, self.whole, self.low, self.high)
        )
        browser_callback(
            f"function(place) {{ window.etascope.slid({field}, place, {log}, {whole}, "
            f"{low}, {high}); }}",
            Input(self.slider_id, "value"),
            prevent_initial_call=True,
        )
        browser_callback(
            f"function(value, place) {{ return window.etascope.typed({field}, value, {log}, "
            f"{low}, {high}, place); }}",
            Output(self.slider_id, "value"),
            Input(self.id, "value"),
            State(self.slider_id, "value"),
            prevent_initial_call=True,
        )
