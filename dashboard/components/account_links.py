"""Who is logged in, in the navigation; nothing where there are no accounts."""

from dash import Input, Output

from dashboard.api_client import Trouble
from dashboard.callbacks import browser_callback
from dashboard.components.elements import link
from dashboard.ids_team import LOGOUT
from dashboard.markup import Component, html
from dashboard.visitor import get_visitor

LOOK = "navigation-link"


async def account_links(pathname: str) -> list[Component]:
    """Return the links to one's account and out of it."""
    try:
        visitor = await get_visitor()
    except Trouble:  # the page itself says so
        return []
    if not visitor.auth:
        return []
    links = [_link(visitor.username, "/account", pathname, "Your account: ")]
    if visitor.role == "admin":
        links.append(_link("Admin", "/admin", pathname))
    out = html.Button("Log out", id=LOGOUT, className=LOOK, n_clicks=0)
    return [html.Span([*links, out], className="navigation-account")]


def _link(label: str, href: str, pathname: str, unseen: str = "") -> Component:
    here = pathname.rstrip("/") == href
    words = [html.Span(unseen, className="visually-hidden"), label] if unseen else label
    return link(
        words,
        href,
        unstyled=True,
        className=f"{LOOK} current" if here else LOOK,
        **({"aria-current": "page"} if here else {}),
    )


browser_callback(
    "function(clicks) { return window.etascope.logout(clicks); }",
    Output(LOGOUT, "title"),
    Input(LOGOUT, "n_clicks"),
    prevent_initial_call=True,
)
