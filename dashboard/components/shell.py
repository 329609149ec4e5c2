"""What surrounds every page: header, navigation, notices, and the browser's side of things."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import dash_mantine_components as dmc
from dash import Input, Output

from dashboard import ids
from dashboard.callbacks import browser_callback
from dashboard.components.elements import icon, link
from dashboard.markup import Component, dcc, html
from dashboard.theme import FONT

if TYPE_CHECKING:  # the router draws the shell's parts, the shell lists the router's pages
    from dashboard.router import Page

THEME = {
    "primaryColor": "indigo",
    "primaryShade": 8,  # white on it is readable in both schemes
    "fontFamily": FONT,
    "defaultRadius": "sm",
    "autoContrast": True,
    "respectReducedMotion": True,
}


def shell(pages: "Sequence[Page]") -> Component:
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
            className="navigation-link" + (" current" if page is current else ""),
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
