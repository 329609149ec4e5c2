"""What surrounds every page: header, navigation, who is logged in, notices, the browser's side."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import dash_mantine_components as dmc
from dash import Input, Output

from dashboard import ids
from dashboard.api_client import Trouble, get_visitor
from dashboard.callbacks import browser_callback
from dashboard.components.elements import icon, link
from dashboard.ids import LOGOUT
from dashboard.markup import Component, dcc, html
from dashboard.theme import FONT

if TYPE_CHECKING:  # the router draws the shell's parts, the shell lists the router's pages
    from dashboard.router import Page

#: Of every link in the navigation.
LINK_LOOK = "navigation-link"
THEME = {
    "primaryColor": "indigo",
    "primaryShade": 8,  # white on it is readable in both schemes
    "fontFamily": FONT,
    "defaultRadius": "sm",
    "autoContrast": True,
    "respectReducedMotion": True,
}


def page_shell(pages: "Sequence[Page]") -> Component:
    """Return the layout into which pages are drawn."""
    return dmc.MantineProvider(
        [
            dcc.Location(id=ids.LOCATION, refresh="callback-nav"),
            dcc.Store(id=ids.TITLE),
            dcc.Store(id=ids.RECOVERIES, data=0),
            dcc.Store(id=ids.SCHEME),
            dcc.Store(id=ids.NARROW),
            html.A("Skip to the content", href="#content", className="skip-link"),
            _header(pages),
            html.Div(id="away", className="away-banner", role="status", hidden=True),
            html.Div(
                [
                    html.Nav(id=ids.BREADCRUMBS, **{"aria-label": "Breadcrumbs"}),
                    html.Main(skeleton(), id=ids.PAGE, tabIndex=-1),
                ],
                id="content",
                className="content",
            ),
            dmc.NotificationContainer(
                id=ids.NOTICES, position="bottom-right", transitionDuration=150
            ),
        ],
        id=ids.PROVIDER,
        theme=THEME,
        defaultColorScheme="auto",
    )


def _header(pages: "Sequence[Page]") -> Component:
    return html.Header(
        [
            link(
                [html.Span("η", className="brand-mark", **{"aria-hidden": "true"}), "Etascope"],
                "/",
                unstyled=True,
                className="brand",
            ),
            html.Button(
                icon("menu"),
                id=ids.MENU_BUTTON,
                className="menu-button",
                **{"aria-label": "Menu", "aria-expanded": "false", "aria-controls": ids.NAVIGATION},
            ),
            html.Nav(
                navigation(pages, current=None),
                id=ids.NAVIGATION,
                className="navigation",
                **{"aria-label": "Pages"},
            ),
            html.Button(
                [icon("moon"), icon("sun")],
                id=ids.SCHEME_BUTTON,
                className="scheme-button",
                **{"aria-label": "Switch between light and dark"},
            ),
        ],
        className="header",
    )


def navigation(pages: "Sequence[Page]", current: "Page | None") -> list[Component]:
    """Return the links to all listed pages."""
    return [
        link(
            page.navigation,
            page.path,
            unstyled=True,
            className=LINK_LOOK + (" current" if page is current else ""),
            **({"aria-current": "page"} if page is current else {}),
        )
        for page in pages
        if page.navigation
    ]


def breadcrumbs(crumbs: Sequence[tuple[str, str]]) -> Component | None:
    """Return the way here; nothing on the first page."""
    if len(crumbs) < 2:
        return None
    *way, (here, _) = crumbs
    items = [html.Li(link(label, href)) for label, href in way]
    return html.Ol([*items, html.Li(here, **{"aria-current": "page"})], className="breadcrumbs")


def skeleton() -> Component:
    """Return the shape of a page that is being fetched."""
    return html.Div(
        [
            dmc.Skeleton(h=36, w="40%", mb=24),
            dmc.Skeleton(h=420, mb=16),
            dmc.Skeleton(h=120),
        ],
        className="page-skeleton",
        **{"aria-busy": "true", "aria-label": "Loading"},
    )


browser_callback(
    "function(title) { return window.etascope.arrive(title); }",
    Output(ids.TITLE, "storage_type"),
    Input(ids.TITLE, "data"),
    prevent_initial_call=True,
)
browser_callback(
    "function(clicks) { return window.etascope.toggleMenu(clicks); }",
    Output(ids.MENU_BUTTON, "className"),
    Input(ids.MENU_BUTTON, "n_clicks"),
    Input(ids.LOCATION, "pathname"),
)
browser_callback(
    "function(clicks) { return window.etascope.chooseScheme(clicks); }",
    Output(ids.SCHEME, "data"),
    Output(ids.NARROW, "data"),
    Input(ids.SCHEME_BUTTON, "n_clicks"),
)


async def account_links(pathname: str) -> list[Component]:
    """Return the links to one's account and out of it; none where there are no accounts."""
    try:
        visitor = await get_visitor()
    except Trouble:  # the page itself says so
        return []
    if not visitor.auth:
        return []
    links = [_link(visitor.username, "/account", pathname, "Your account: ")]
    if visitor.role == "admin":
        links.append(_link("Admin", "/admin", pathname))
    out = html.Button("Log out", id=LOGOUT, className=LINK_LOOK, n_clicks=0)
    return [html.Span([*links, out], className="navigation-account")]


def _link(label: str, href: str, pathname: str, unseen: str = "") -> Component:
    here = pathname.rstrip("/") == href
    words = [html.Span(unseen, className="visually-hidden"), label] if unseen else label
    return link(
        words,
        href,
        unstyled=True,
        className=f"{LINK_LOOK} current" if here else LINK_LOOK,
        **({"aria-current": "page"} if here else {}),
    )


browser_callback(
    "function(clicks) { return window.etascope.logout(clicks); }",
    Output(LOGOUT, "title"),
    Input(LOGOUT, "n_clicks"),
    prevent_initial_call=True,
)
