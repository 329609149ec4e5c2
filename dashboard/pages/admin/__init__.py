"""Accounts, and what everybody did; for admins."""

import asyncio

from backend.client import calls
from dashboard.api_client import ask
from dashboard.components.elements import card
from dashboard.components.error_panel import not_found
from dashboard.ids_team import Admin as ids
from dashboard.markup import Component, dcc, html
from dashboard.pages.admin import activity, people
from dashboard.router import Page
from dashboard.visitor import get_visitor

__all__ = ["PAGE", "layout"]


async def layout(**_: str) -> Component:
    """Return the page; who is no admin gets the API's refusal instead."""
    visitor = await get_visitor()
    if not visitor.auth:
        return not_found("This installation has no accounts; there is one owner.")
    users, past = await asyncio.gather(
        ask(calls.users()), ask(calls.audit(limit=activity.PAGE_SIZE))
    )
    return html.Div(
        [
            html.Div(
                html.Div(
                    [
                        html.H1("Admin"),
                        html.P("Who may come in, and what they did.", className="page-lead"),
                    ]
                ),
                className="page-head",
            ),
            dcc.Store(id=ids.PENDING),
            dcc.Store(id=ids.KNOWN, data=people.mark(users.items)),
            dcc.Interval(id=ids.INTERVAL, interval=people.LOOK_MS),
            html.Div(
                [
                    card(
                        *people.create_form(),
                        html.Div(people.table(users.items, visitor.username), id=ids.USERS),
                        title="Accounts",
                    ),
                    card(*activity.panel(past), title="Activity"),
                ],
                className="two-thirds",
            ),
            people.confirmation(),
        ]
    )


PAGE = Page("/admin", "Admin", layout)
