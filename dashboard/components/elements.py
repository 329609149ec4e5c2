"""Small things every page is made of, down to what stands where something could not be shown."""

from datetime import UTC, datetime
from typing import Any

import dash_mantine_components as dmc

from dashboard.api_client import sentence
from dashboard.formats import NONE, duration
from dashboard.markup import Component, dcc, html
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


def local_time(moment: datetime | None) -> Component | str:
    """Return a moment; without JavaScript it stays in UTC and says so."""
    if moment is None:
        return NONE
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return html.Time(
        aware.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        dateTime=aware.isoformat(),
        className="local-time",
    )


def age(moment: datetime, now: datetime) -> str:
    """Return how long ago a moment was."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    seconds = max(0.0, (now - aware).total_seconds())
    return "just now" if seconds < 1 else f"{duration(round(seconds))} ago"


def markdown(text: str) -> Component:
    """Return markdown without HTML and pictures."""
    # An image would make every reader's browser ask some other host for it.
    inert = text.replace("![", r"!\[")
    return dcc.Markdown(
        inert, className="notes", link_target="_blank", dangerously_allow_html=False
    )


def error_panel(error: Exception) -> Component:
    """Say what went wrong in the API's words."""
    panel = dmc.Alert(
        with_code(sentence(error)),
        title="This cannot be shown right now",
        color="red",
        variant="light",
        my=32,
    )
    return html.Div(panel, role="alert")


def not_found(message: str) -> Component:
    """Say that there is nothing here, and where there is something."""
    return empty_state("Not found", message, button_link("Go to the history", "/history"))


def empty_state(title: str, message: str, *actions: Component) -> Component:
    """Return what fills an empty page: why it is empty and what to do next."""
    return dmc.Center(
        dmc.Stack(
            [
                dmc.Title(title, order=2),
                dmc.Text(with_code(message), c="dimmed", maw=520, ta="center"),
                dmc.Group(list(actions), justify="center"),
            ],
            align="center",
            gap=16,
        ),
        mih=320,
        className="empty-state",
    )


def code(text: str, label: str) -> Component:
    """Return lines to copy, with a button that does.

    Args:
        text: The lines.
        label: What they are, for those who do not see them.
    """
    return html.Div(
        [
            html.Pre(text, className="code", tabIndex=0, **{"aria-label": label}),
            dmc.CopyButton(
                value=text,
                children="Copy",
                copiedChildren="Copied",
                size="compact-xs",
                variant="default",
                className="copy",
                **{"aria-label": f"Copy: {label}"},
            ),
        ],
        className="copyable",
    )
