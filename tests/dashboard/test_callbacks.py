"""Callbacks can neither block the event loop nor fail in silence."""

import inspect

import pytest
from dash import Input, Output, no_update

import dashboard.dash_blocks
from backend.client import ApiError, ServerAway
from dashboard import ids, pages
from dashboard.dash_blocks import REGISTERED, callback, notice, report, say

assert pages.PAGES  # importing them declares their callbacks


def test_every_callback_is_async_or_runs_in_the_browser(dash_app):
    plain = [
        entry.function
        for entry in REGISTERED
        if not isinstance(entry.function, str) and not inspect.iscoroutinefunction(entry.function)
    ]
    assert plain == []
    on_the_server = [
        spec["callback"] for spec in dash_app.callback_map.values() if "callback" in spec
    ]
    assert on_the_server
    assert all(inspect.iscoroutinefunction(function) for function in on_the_server)


def test_a_synchronous_callback_is_refused_when_it_is_declared():
    with pytest.raises(TypeError, match="async def slow"):

        @callback(Output("a", "children"), Input("b", "value"))
        def slow(value):
            return value


def test_two_dashboards_in_one_process_both_have_all_callbacks(dash_app):
    from fastapi import FastAPI

    from dashboard.app import create_dash_app
    from tests.dashboard.fake_api import FakeApi

    again = create_dash_app(FastAPI(), FakeApi())
    assert set(again.callback_map) == set(dash_app.callback_map)


@pytest.fixture
def said(monkeypatch):
    shown = {}
    monkeypatch.setattr(
        dashboard.dash_blocks.dash, "set_props", lambda id, props: shown.update({id: props})
    )
    return shown


def words(said) -> str:
    return said[ids.NOTICES]["sendNotifications"][0]["message"]


def test_the_api_s_sentence_reaches_the_person(said):
    assert report(ApiError(404, "not_found", "There is no study 7.")) is no_update
    assert words(said) == "There is no study 7."


def test_a_silent_api_is_said_so(said):
    report(ServerAway("refused"))
    assert "does not answer" in words(said)


def test_a_fault_of_ours_is_logged_and_its_text_kept_from_the_page(said, caplog):
    report(ZeroDivisionError("secret detail"))
    assert "secret" not in words(said)
    assert "secret detail" in caplog.text


def test_a_notice_replaces_the_one_before_but_not_the_trouble():
    assert notice("a")["id"] == notice("b")["id"] != notice("c", bad=True)["id"]


def test_what_was_done_is_said(said):
    say("Sweep 1 is being cancelled.")
    assert words(said) == "Sweep 1 is being cancelled."
