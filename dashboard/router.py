"""From an address to a page: matching, titles, and what is shown when a page cannot be."""

import asyncio
import inspect
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote

from dash import Input, Output, State

from backend.client import ApiError
from dashboard import ids
from dashboard.api_client import Trouble
from dashboard.components import account_links, breadcrumbs, error_panel, navigation, not_found
from dashboard.markup import Component


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
