"""What stands where something could not be shown: the sentence, and what to do next."""

import dash_mantine_components as dmc

from dashboard.api_client import sentence
from dashboard.components.elements import button_link, with_code
from dashboard.markup import Component, html


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
