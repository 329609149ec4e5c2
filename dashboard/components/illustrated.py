"""What the illustrated pages share: the browser draws them, in the colours of all pages."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from dash import Input, html
from dash.development.base_component import Component

from dashboard.components.number_fields import NumberSlider
from dashboard.theme import METHOD_STYLE, PALETTE, template


def looks() -> dict[str, Any]:
    """Return every method's style, and palette and template in light and dark."""
    by_scheme: dict[str, Any] = {
        scheme: {"palette": asdict(palette), "template": template(scheme).to_plotly_json()}
        for scheme, palette in PALETTE.items()
    }
    methods = {name: asdict(METHOD_STYLE[name]) for name in ("eb", "ib", "isgd")}
    return {"methods": methods, **by_scheme}


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
