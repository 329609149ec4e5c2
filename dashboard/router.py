"""From an address to a page, and what surrounds it: header, navigation, crumbs, who is logged in.

What is shown when a page cannot be stands here, too.
"""

import asyncio
import inspect
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote

import dash_mantine_components as dmc
from dash import Input, Output, State

from backend.client import ApiError
from dashboard import ids
from dashboard.api_client import Trouble, get_visitor
from dashboard.components import error_panel, icon, link, not_found
from dashboard.dash_blocks import Component, browser_callback, dcc, html
from dashboard.theme import FONT


@dataclass(frozen=True, slots=True)
class View:
    """A page as it is drawn for one address.

    Attributes:
        body: Its content.
        title: Of the browser's tab; None: the page's.
        crumbs: Where it hangs below the page's own crumb: (label, address) pairs.
    """

    body: Component
    title: str | None = None
    crumbs: tuple[tuple[str, str], ...] = ()


Layout = Callable[..., Awaitable[View | Component] | View | Component]


@dataclass(frozen=True, slots=True)
class Page:
    """One kind of page.

    Attributes:
        path: Its address; `<name>` stands for a part that `layout` gets as an argument.
        title: Of the tab and the last breadcrumb.
        layout: Called with the path's parts and the query's, all text.
        navigation: Its name in the navigation, which is all there is above it; None: not listed.
        parent: The crumb before it, if it is not listed or shown for something: (label, address).
    """

    path: str
    title: str
    layout: Layout
    navigation: str | None = None
    parent: tuple[str, str] | None = field(default=("History", "/history"))

    def match(self, pathname: str) -> dict[str, str] | None:
        """Return the variable parts of an address that is this page's, else None."""
        pattern = re.sub(r"<(\w+)>", r"(?P<\1>[^/]+)", self.path)
        found = re.fullmatch(f"{pattern}/?" if self.path != "/" else "/?", pathname)
        return None if found is None else {k: unquote(v) for k, v in found.groupdict().items()}


def query_of(search: str | None) -> dict[str, str]:
    """Return a query's parameters; one given several times is joined by commas."""
    found = parse_qs((search or "").removeprefix("?"), keep_blank_values=True)
    return {name: ",".join(values) for name, values in found.items() if name.isidentifier()}


async def render(
    pages: Sequence[Page], pathname: str, search: str | None
) -> tuple[View, Page | None]:
    """Return what an address shows; every trouble becomes a page that says so."""
    for page in pages:
        variables = page.match(pathname)
        if variables is not None:
            return await _drawn(page, {**query_of(search), **variables}), page
    body = not_found(f"There is no page at {pathname}.")
    return View(body, title="Not found"), None


async def _drawn(page: Page, arguments: dict[str, str]) -> View:
    try:
        drawn = page.layout(**arguments)
        result = await drawn if inspect.isawaitable(drawn) else drawn
    except ApiError as error:
        if error.status == 404:
            return View(not_found(error.message), title="Not found")
        return View(error_panel(error), title="Trouble")
    except Trouble as error:
        return View(error_panel(error), title="No answer")
    return result if isinstance(result, View) else View(result)


def crumbs_of(view: View, page: Page | None) -> tuple[tuple[str, str], ...]:
    """Return the way to a view."""
    if page is None:
        return (("History", "/history"), ("Not found", ""))
    own = view.crumbs or ((page.title, ""),)
    hangs = page.parent is not None and (page.navigation is None or len(own) > 1)
    return (page.parent, *own) if hangs and page.parent else own


def route(app: Any, pages: Sequence[Page]) -> None:
    """Let the address decide what an app shows."""

    async def show(pathname: str | None, _recoveries: Any, search: str | None) -> tuple[Any, ...]:
        (view, page), links = await asyncio.gather(
            render(pages, pathname or "/", search), account_links(pathname or "/")
        )
        title = view.title or (page.title if page else "Etascope")
        return (
            view.body,
            f"{title} · Etascope",
            breadcrumbs(crumbs_of(view, page)),
            [*navigation(pages, current=page), *links],
        )

    app.callback(
        Output(ids.PAGE, "children"),
        Output(ids.TITLE, "data"),
        Output(ids.BREADCRUMBS, "children"),
        Output(ids.NAVIGATION, "children"),
        Input(ids.LOCATION, "pathname"),
        Input(ids.RECOVERIES, "data"),
        State(ids.LOCATION, "search"),
    )(show)


# --- What surrounds every page: header, navigation, who is logged in, notices, the browser's side


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


def page_shell(pages: Sequence[Page]) -> Component:
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
                    html.Main(skeleton(), id=ids.PAGE, tabIndex=-1, disable_n_clicks=True),
                ],
                id="content",
                # A press on anything in it would be told to all components of the page.
                disable_n_clicks=True,
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


def _header(pages: Sequence[Page]) -> Component:
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


def navigation(pages: Sequence[Page], current: Page | None) -> list[Component]:
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
    out = html.Button("Log out", id=ids.LOGOUT, className=LINK_LOOK, n_clicks=0)
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
    Output(ids.LOGOUT, "title"),
    Input(ids.LOGOUT, "n_clicks"),
    prevent_initial_call=True,
)
