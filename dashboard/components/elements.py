"""Small things every page is made of."""

from typing import Any

import dash_mantine_components as dmc

from dashboard.markup import Component, html
from dashboard.theme import method_style

#: Colours of trial and sweep states; the words beside them say the same.
STATE_COLOUR = {
    "queued": "gray",
    "running": "indigo",
    "completed": "teal",
    "diverged": "orange",
    "failed": "red",
    "cancelled": "gray",
}


def icon(name: str) -> Component:
    """Return a pictogram of the stylesheet; it says nothing to a screen reader."""
    return html.Span(className=f"icon icon-{name}", **{"aria-hidden": "true"})


def link(label: Any, href: str, **properties: Any) -> Component:
    """Return a link to another page of ours."""
    return dmc.Anchor(label, href=href, refresh=False, **properties)


def button_link(label: str, href: str, *, primary: bool = True) -> Component:
    """Return a link that looks like a button."""
    look = "button-link primary" if primary else "button-link"
    return dmc.Anchor(label, href=href, refresh=False, unstyled=True, className=look)


def card(*children: Any, title: str | None = None, **properties: Any) -> Component:
    """Return a bordered box, under a heading if it has a title."""
    heading = [html.H2(title, className="card-title")] if title else []
    return dmc.Paper([*heading, *children], withBorder=True, p=16, radius="md", **properties)


def with_code(text: str) -> list[Component | str]:
    """Return a text with what stands between backticks set as code."""
    parts = text.split("`")
    return [html.Code(part) if index % 2 else part for index, part in enumerate(parts) if part]


def state_badge(state: str | None) -> Component:
    """Return a state: a spot of colour and the word."""
    name = str(state) if state else "no sweep yet"
    kind = name if name in STATE_COLOUR else "queued"
    return html.Span(name, className=f"state state-{kind}")


def method_swatch(method: str, *, imported: bool = False, clipped: bool = False) -> Component:
    """Return a spot of a method's colour; open for clipped runs, as their markers are."""
    style = method_style(method, imported=imported)
    look = {"border": f"3px solid {style.colour}"} if clipped else {"background": style.colour}
    return html.Span(className="swatch", style=look, **{"aria-hidden": "true"})


def explained(label: Any, explanation: str) -> Component:
    """Return a text whose meaning appears on hover, touch and keyboard focus.

    The browser does it: forty tooltip components would take part in every update of the page.
    """
    return html.Span(label, className="explained", tabIndex=0, **{"data-explanation": explanation})


def guide_link(anchor: str, label: str = "What does this mean?") -> Component:
    """Return a link into the guide."""
    return link(label, f"/guide#{anchor}", size="sm")
