"""From an address to a page."""

import pytest
from dash import html

from backend.client import ApiError, ServerAway
from dashboard import pages
from dashboard.router import Page, View, breadcrumbs, crumbs_of, query_of, render
from tests.coroutines import run
from tests.dashboard.dispatch import text_of

PLAIN = Page("/plain", "Plain", lambda **_: html.Div("here"))
ITEM = Page("/items/<item_id>", "Item", lambda item_id, **query: html.Div(f"{item_id} {query}"))


def shown(page: Page, path: str, search: str = "") -> str:
    view, _ = run(render([page], path, search))
    return text_of(view.body)


def test_a_path_s_parts_and_the_query_reach_the_layout():
    assert shown(ITEM, "/items/7", "?y=log") == "7 {'y': 'log'}"


def test_a_repeated_parameter_is_a_list_and_strange_names_are_dropped():
    assert query_of("?study=1&study=2&__class__[x]=1") == {"study": "1,2"}


def test_a_path_part_cannot_be_overwritten_by_the_query():
    assert shown(ITEM, "/items/7", "?item_id=8").startswith("7")


@pytest.mark.parametrize("path", ["/nowhere", "/items", "/items/7/more", "/plainer"])
def test_an_unknown_address_says_so_and_shows_the_way(path):
    view, page = run(render([PLAIN, ITEM], path, ""))
    assert page is None
    assert f"There is no page at {path}." in text_of(view.body)
    assert "Go to the history" in text_of(view.body)


def failing(error: Exception) -> Page:
    async def layout(**_: str) -> View:
        raise error

    return Page("/", "Fails", layout)


def test_an_unknown_id_gives_the_api_s_sentence_as_a_page():
    words = shown(failing(ApiError(404, "not_found", "There is no study 9.")), "/")
    assert "There is no study 9." in words


def test_other_troubles_say_what_and_what_to_do():
    assert "Log in first." in shown(failing(ApiError(401, "x", "No.", hint="Log in first.")), "/")
    assert "does not answer" in shown(failing(ServerAway("refused")), "/")


def test_breadcrumbs_lead_from_the_history_to_here():
    assert crumbs_of(View(html.Div()), PLAIN) == (("History", "/history"), ("Plain", ""))
    named = View(html.Div(), crumbs=(("A study", ""),))
    assert crumbs_of(named, ITEM)[-1] == ("A study", "")


def test_a_page_of_the_navigation_hangs_below_no_other():
    listed = Page("/toy", "Toy", lambda **_: html.Div(), navigation="Toy")
    assert crumbs_of(View(html.Div()), listed) == (("Toy", ""),)
    into = View(html.Div(), crumbs=(("A study", "/studies/1"), ("New sweep", "")))
    assert crumbs_of(into, listed)[:2] == (("History", "/history"), ("A study", "/studies/1"))
    for page in pages.PAGES:
        if page.navigation or page.path in ("/account", "/admin"):
            assert breadcrumbs(crumbs_of(View(html.Div()), page)) is None


def test_no_two_pages_share_an_address():
    paths = [page.path for page in pages.PAGES]
    assert len(set(paths)) == len(paths)


def test_a_page_that_is_listed_has_no_variable_part():
    assert all("<" not in page.path for page in pages.PAGES if page.navigation)
