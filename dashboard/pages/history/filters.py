"""Which studies the history shows: the controls, and what they ask the API."""

from typing import Any

import dash_mantine_components as dmc

from backend.schemas import SweepState
from dashboard.components.url_state import Control
from dashboard.ids import History as ids
from dashboard.markup import Component, html

PAGE_SIZE = 50
SORTS = (
    ("-updated_at", "Last change"),
    ("-created_at", "Newest"),
    ("created_at", "Oldest"),
    ("name", "Name"),
)
CONTROLS = (
    Control("q", ids.TEXT, ""),
    Control("tag", ids.TAG, ""),
    Control("task", ids.TASK),
    Control("state", ids.STATE, choices=tuple(str(state) for state in SweepState)),
    Control("archived", ids.ARCHIVED, False, kind="flag", property="checked"),
    Control("sort", ids.SORT, "-updated_at", choices=tuple(name for name, _ in SORTS)),
    Control("owner", ids.OWNER),
)


def filter_bar(
    values: dict[str, Any], tasks: list[tuple[str, str]], people: list[str] | None
) -> Component:
    """Return the filters, set as the address says.

    Args:
        values: Of the controls.
        tasks: Names and titles to choose from.
        people: Whose studies one can look for; None: there are no accounts.
    """
    return html.Div(
        [
            dmc.TextInput(
                label="Search",
                id=ids.TEXT,
                value=values["q"],
                placeholder="name, notes or tag",
                debounce=250,
                w={"base": "100%", "sm": 240},
            ),
            dmc.TextInput(label="Tag", id=ids.TAG, value=values["tag"], debounce=250, w=140),
            dmc.Select(
                label="Task",
                id=ids.TASK,
                data=[{"value": name, "label": title} for name, title in tasks],
                value=values["task"],
                placeholder="any",
                searchable=True,
                clearable=True,
                w={"base": "100%", "sm": 220},
            ),
            dmc.Select(
                label="State",
                id=ids.STATE,
                data=[str(state) for state in SweepState],
                value=values["state"],
                placeholder="any",
                clearable=True,
                w=140,
            ),
            dmc.Select(
                label="Person",
                id=ids.OWNER,
                data=people or [],
                value=values["owner"],
                placeholder="anybody",
                searchable=True,
                clearable=True,
                w=150,
                display="none" if people is None else None,
            ),
            dmc.Select(
                label="Order",
                id=ids.SORT,
                data=[{"value": name, "label": words} for name, words in SORTS],
                value=values["sort"],
                allowDeselect=False,
                w=140,
            ),
            dmc.Switch(label="Archived", id=ids.ARCHIVED, checked=values["archived"], mb=8),
        ],
        className="row filters",
        role="search",
    )


def asked_of(values: tuple[Any, ...]) -> dict[str, Any]:
    """Return the API's filters for the controls' values."""
    text, tag, task, state, archived, sort, owner = values
    asked = {
        "q": (text or "").strip() or None,
        "tag": (tag or "").strip() or None,
        "task": task or None,
        "state": state or None,
        "owner": owner or None,
        "archived": "true" if archived else "false",
        "sort": sort,
        "spark": "true",
        "limit": PAGE_SIZE,
    }
    # Whoever looks for something finds it wherever it comes from.
    folded = not narrowed(asked) and not archived
    return {**asked, "bundle": "false" if folded else "any"}


def narrowed(asked: dict[str, Any]) -> bool:
    """Return whether somebody looks for particular studies."""
    return any(asked[name] for name in ("q", "tag", "task", "state", "owner"))


def is_folded(asked: dict[str, Any]) -> bool:
    """Return whether the studies of a bundle stay out of the list."""
    return bool(asked["bundle"] == "false")
