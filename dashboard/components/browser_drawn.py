"""What the browser draws: fields for numbers, graphs that keep their zoom, illustrated pages.

And what it makes of a graph: the dialog that gets a picture ready for a paper.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import dash_mantine_components as dmc
from dash import Input, Output, State
from dash.development import base_component

from dashboard.components.controls import Choice, segmented, switch
from dashboard.dash_blocks import Component, browser_callback, html
from dashboard.theme import number
from ib_core.written import NumberKind, Unreadable, read_number, written


class NumberField(base_component.Component):  # type: ignore[misc]  # Dash's classes are untyped
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
            `error` or `understood`. `answers` is the text that any `error` is about.
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
            *(["number-slider-log"] if self.log else []),
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


def draw_from(store: str, graph: str, zoom: str | None = None) -> None:
    """Let a graph show the figure that a store holds, and keep its viewer's zoom and choice.

    Plotly's `uirevision` alone does not: Dash writes a zoom back into the figure, whereupon
    plotly forgets that it came from a person. Callbacks of a graph also wait for the plotting
    library to load, those of a store do not.

    Args:
        store: Holds the figure.
        graph: Shows it.
        zoom: A store of the zoom as text, from and to along each axis, which the address may
            hold; None: the zoom is the graph's own affair.
    """
    name = json.dumps(graph)
    if zoom is None:
        browser_callback(
            f"function(figure) {{ return window.etascope.keepView({name}, figure).slice(0, 2); }}",
            Output(graph, "figure"),
            Output(graph, "style"),
            Input(store, "data"),
            prevent_initial_call=True,
        )
        return
    browser_callback(
        f"function(figure, zoom) {{ return window.etascope.keepView({name}, figure, zoom); }}",
        Output(graph, "figure"),
        Output(graph, "style"),
        Output(zoom, "data", allow_duplicate=True),
        Input(store, "data"),
        State(zoom, "data"),
        prevent_initial_call=True,
    )
    zoom_from(graph, zoom)


def zoom_from(graph: str, zoom: str) -> None:
    """Let a graph and a store of its zoom follow each other."""
    name = json.dumps(graph)
    browser_callback(
        f"function(change, zoom) {{ return window.etascope.readZoom({name}, zoom); }}",
        Output(zoom, "data", allow_duplicate=True),
        Input(graph, "relayoutData"),
        State(zoom, "data"),
        prevent_initial_call=True,
    )
    browser_callback(
        f"function(zoom) {{ window.etascope.showZoom({name}, zoom); }}",
        Input(zoom, "data"),
        prevent_initial_call=True,
    )


def sliders_for_browser(sliders: Mapping[str, NumberSlider]) -> list[dict[str, Any]]:
    """Return what the browser must know of sliders to read them, by the name of their number."""
    return [
        {
            "name": name,
            "id": slider.id,
            "low": slider.low,
            "high": slider.high,
            "log": slider.log,
            "whole": slider.whole,
        }
        for name, slider in sliders.items()
    ]


def slider_inputs(sliders: Mapping[str, NumberSlider]) -> list[Input]:
    """Return the numbers of sliders, then their places, which come first while one is dragged."""
    return [
        *(Input(slider.id, "value") for slider in sliders.values()),
        *(Input(slider.slider_id, "value") for slider in sliders.values()),
    ]


def drawing_place(id: str, label: str, words: str, size: str) -> Component:
    """Return the place of a picture the browser draws.

    Args:
        id: Of it.
        label: What it shows, for those who do not see it.
        words: Id of what says the same in words.
        size: The class that gives it its height.
    """
    named = {"aria-label": label, "aria-describedby": words}
    return html.Div(id=id, className=f"drawn {size}", role="img", **named)


# --- The dialog that makes a picture ready for a paper: size, letters, legend, title, caption


LEGENDS: tuple[Choice, ...] = (
    ("shown", "As shown"),
    ("below", "Below"),
    ("right", "Right"),
    ("none", "None"),
)
KINDS = {"pdf": "PDF", "svg": "SVG", "png": "PNG"}
#: One column of most papers, and the size of its captions.
WIDTH_CM, FONT_PT = 8.5, 8.0
WIDTHS = NumberKind("The width in cm", 4, 40, needed=True)
FONTS = NumberKind("The font size in points", 5, 24, needed=True)


def figure_dialog(page: str) -> Component:
    """Return the dialog of a page; `figure_from` says whose picture it takes.

    Args:
        page: What its ids begin with.
    """
    return dmc.Modal(
        [
            html.Div(
                [
                    number_field(
                        f"{page}-paper-width", WIDTHS, text=f"{WIDTH_CM:g}", label="Width (cm)"
                    ),
                    number_field(
                        f"{page}-paper-font", FONTS, text=f"{FONT_PT:g}", label="Font size (pt)"
                    ),
                ],
                className="pair",
            ),
            segmented("Legend", f"{page}-paper-legend", LEGENDS, "shown"),
            switch("Title", f"{page}-paper-title", False),
            dmc.Textarea(
                label="Caption", id=f"{page}-paper-caption", value="", autosize=True, minRows=3,
                description="States the setting; it is not in the picture, but yours to copy.",
                mt=8,
            ),
            dmc.Group(
                [
                    dmc.Button(
                        words, id=f"{page}-paper-{kind}", n_clicks=0,
                        variant="filled" if kind == "pdf" else "default",
                    )
                    for kind, words in KINDS.items()
                ],
                justify="end",
                mt=16,
            ),
        ],
        id=f"{page}-paper",
        title="Figure for a paper",
        closeButtonProps={"aria-label": "Close"},
    )  # fmt: skip


def figure_from(page: str, graph: str, button: str) -> None:
    """Let a button open a page's dialog, and the dialog take a graph's picture along.

    Args:
        page: What the dialog's ids begin with.
        graph: Whose picture it is.
        button: Opens the dialog.
    """
    name = json.dumps(graph)
    browser_callback(
        f"function(clicks) {{ return [Boolean(clicks), window.etascope.captionOf({name})]; }}",
        Output(f"{page}-paper", "opened"),
        Output(f"{page}-paper-caption", "value"),
        Input(button, "n_clicks"),
        prevent_initial_call=True,
    )
    # The texts count: the last right number would be exported while another text is shown.
    read = f"window.etascope.readAll({json.dumps([WIDTHS.as_props(), FONTS.as_props()])}, "
    browser_callback(
        f"function(...texts) {{ return Array({len(KINDS)}).fill(!{read}texts)); }}",
        *(Output(f"{page}-paper-{kind}", "disabled") for kind in KINDS),
        *(Input(f"{page}-paper-{part}", "text") for part in ("width", "font")),
        prevent_initial_call=True,
    )
    for kind in KINDS:
        browser_callback(
            f"function(clicks, width, font, legend, title) {{ const found = {read}[width, font]); "
            "if (clicks && found) { "
            f"window.etascope.exportPicture({name}, '{kind}', 'etascope-figure', "
            "{width: found[0], font: found[1], legend, title}); } }",
            Input(f"{page}-paper-{kind}", "n_clicks"),
            *(State(f"{page}-paper-{part}", "text") for part in ("width", "font")),
            State(f"{page}-paper-legend", "value"),
            State(f"{page}-paper-title", "checked"),
            prevent_initial_call=True,
        )
