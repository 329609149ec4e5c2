"""The study page: what it asks for, what it draws, and what it refuses to do twice."""

import asyncio
from dataclasses import astuple, replace

import dash_mantine_components as dmc
import pytest
from dash import no_update

from backend.client import ApiError
from backend.schemas import TimingsRead
from dashboard.components import family_controls, read_controls
from dashboard.ids import Study as ids
from dashboard.pages import study
from dashboard.pages.study import answer, controls, curves, header, progress, sweeps, trials
from dashboard.pages.study.controls import StudyView, metric_of
from tests.coroutines import run
from tests.dashboard.answers import series
from tests.dashboard.dispatch import by_id, names, text_of, trigger
from tests.dashboard.fake_api import FakeApi
from tests.dashboard.scored_answers import answers_of, timing

CHOSEN = ("loss", "train", "final", "all", "curves", "std", True, "focus", "all")


#: What the controls of families say while nobody has touched them.
FAMILY = tuple(control.fallback for control in family_controls(ids))


def drawn(*chosen, kept=None, study_id=1, scheme="light", narrow=False):
    values = chosen or CHOSEN
    values = (*values, *FAMILY) if len(values) == len(CHOSEN) else values
    return run(curves.draw("v", *values, scheme, narrow, study_id, kept, None, None))[:3]


def test_the_picture_asks_for_what_the_controls_say(api):
    drawn("accuracy", "test", "best", "all", "curves", "se", True, "focus", "all")
    asked = next(call for call in api.sent if call.path.endswith("sensitivity"))
    assert asked.parameters == {"metric": "test_accuracy", "reducer": "best", "band": "se"}


def test_a_figure_that_the_browser_has_is_not_sent_again(api):
    first, _, mark = drawn()
    assert first is not no_update
    again, _, same = drawn(kept=["older", mark])
    assert again is no_update
    assert same == mark


def test_another_control_sends_another_figure(api):
    *_, mark = drawn()
    other, *_ = drawn(*CHOSEN[:-2], "log", "all", kept=[mark])
    assert other is not no_update


def test_the_initial_loss_is_drawn_for_the_training_loss_only(api):
    def words(*chosen):
        return " ".join(one.text for one in drawn(*chosen)[0].layout.annotations)

    assert "initial loss 2.31" in words()
    assert "initial loss" not in words("loss", "test", *CHOSEN[2:])


def test_differences_are_drawn_for_training_and_test(api):
    figure, caption, _ = drawn(*CHOSEN[:4], "method", *CHOSEN[5:])
    asked = [call.parameters["metric"] for call in api.sent if call.path.endswith("differences")]
    assert asked == ["train_loss", "test_loss"]
    assert figure.layout.yaxis2.title.text == "difference of test loss"
    assert "First minus second." in text_of(caption)


def test_nothing_to_compare_is_said(api):
    figure, caption, _ = drawn(*CHOSEN[:4], "clip", *CHOSEN[5:])
    assert figure.layout.annotations[0].text == "Nothing to compare."
    assert "clipped and unclipped" in text_of(caption)


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ({"unfinished": 3}, "No trial has ended yet. Curves appear with the first that do."),
        ({"failed": 3}, "Every trial failed or was cancelled."),
        ({}, "No trial here has recorded its training loss."),
    ],
)
def test_a_study_without_a_curve_says_why(api, counts, words):
    answer = api._sensitivity
    nothing = {"points": [], "unfinished": 0, "failed": 0, **counts}
    api._sensitivity = lambda *asked: answer(*asked).model_copy(
        update={"series": [line.model_copy(update=nothing) for line in answer(*asked).series]}
    )
    figure, *_ = drawn()
    assert figure.layout.annotations[0].text == words


def test_dark_figures_have_the_dark_template(api):
    figure, *_ = drawn(scheme="dark")
    assert figure.layout.template.layout.paper_bgcolor == "#17191C"


def test_clipping_can_be_left_out_or_alone():
    plain, clipped = series("eb"), series("eb", clip=1.0)
    views = {name: StudyView(*CHOSEN[:3], name, *CHOSEN[4:]) for name in ("all", "off", "on")}
    assert [views["off"].shows(line) for line in (plain, clipped)] == [True, False]
    assert [views["on"].shows(line) for line in (plain, clipped)] == [False, True]
    assert all(views["all"].shows(line) for line in (plain, clipped))


def test_time_is_one_metric_and_is_scored_by_its_loss():
    assert metric_of("seconds", "test") == "seconds"
    view = StudyView("seconds", *CHOSEN[1:])
    assert view.scored == "train_loss"
    assert view.both_splits == ("train_loss", "test_loss")
    assert replace(view, view="method").picture == "curves"
    assert replace(view, quantity="loss", view="method").picture == "method"


def scores(api, study_id=1):
    return run(answer.score(["v", "train_loss", "final", None], None, study_id))


def test_the_scorecard_shows_the_advice_and_the_answer_stands_on_top(api):
    table, words, strip, _ = scores(api)
    assert "Start at" in text_of(table)
    assert text_of(words).strip() == answers_of("digits_mlp")[0].answer
    assert "EB" in text_of(strip)


def test_measured_steps_are_asked_for_anew(api):
    scores(api)
    asked = len(api.sent)
    run(answer.score(["v", "train_loss", "final", None], "now", 1))
    assert len(api.sent) == asked + 1


def test_a_gap_is_offered_with_what_it_takes(api):
    *_, gaps = scores(api)
    assert [gap["name"] for gap in gaps] == ["EB"]
    words = text_of(run(answer.offer(gaps, 1)))
    assert "EB :" in words
    assert "Test the gap" in words
    assert "54 trials, about 12 s" in words
    sent = [call.json for call in api.sent if call.path == "/api/forecast"]
    assert [body["methods"] for body in sent] == [["eb"]]


@pytest.mark.parametrize("reason", ["viewer", "running", "imported", "engine", "refused"])
def test_a_gap_that_cannot_be_tested_says_why(api, reason):
    *_, gaps = scores(api)
    if reason == "viewer":
        api.log_in("eve", "viewer")
    elif reason == "running":
        api.running, api.studies[1] = True, FakeApi(running=True).studies[1]
    elif reason == "refused":
        api.refused_forecast = ApiError(422, "invalid", "That cannot be run.")
    else:
        gaps[0] |= {"sweep": None, "imported": reason == "imported"}
    offered = run(answer.offer(gaps, 1))
    buttons = [one for one in names(offered) if isinstance(one, dmc.Button)]
    assert [one.disabled for one in buttons] == [True, True]
    words = {
        "viewer": "Only its owner",
        "running": "is running",
        "imported": "made elsewhere",
        "engine": "another version of the engine",
        "refused": "That cannot be run.",
    }
    assert words[reason] in text_of(offered)


def test_pressing_twice_submits_once(api):
    *_, gaps = scores(api)
    study, wish = api.studies[1], gaps[0]["sweep"]
    assert answer.gap_key(study, wish) == answer.gap_key(study, wish)
    later = study.model_copy(update={"sweep_ids": [1, 9]})
    assert answer.gap_key(later, wish) != answer.gap_key(study, wish)
    assert answer.gap_key(study, gaps[0]["narrow"]) != answer.gap_key(study, wish)


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("queued", "Waiting for a worker."),
        ("running", "A worker measures"),
        ("done", "Measured on cpu."),
        ("failed", "It could not be measured: no memory"),
    ],
)
def test_measuring_says_how_far_it_is(state, words):
    found = TimingsRead(study_id=1, items=[timing(state, "no memory")])
    line = answer.measure_line(found, own=True)
    assert words in text_of(line)
    assert by_id(line, ids.MEASURE).disabled is (state in ("queued", "running"))
    assert by_id(answer.measure_line(found, own=False), ids.MEASURE).disabled is True


def test_pictures_of_searches_and_of_tasks_are_drawn_from_the_scorecard(api):
    figure, _, _ = drawn(*CHOSEN[:4], "best_of", *CHOSEN[5:])
    assert [one.meta for one in figure.data].count("best of k") == 2
    nothing, _, _ = drawn(*CHOSEN[:4], "across", *CHOSEN[5:])
    assert "three tasks or more" in nothing.layout.annotations[0].text


def test_a_running_study_ticks_and_a_finished_one_does_not(api):
    status, state, _, mark, version, paused = run(progress.follow(1, None, 1, None))
    assert text_of(state) == "completed"
    assert "54 of 54 trials ended" in text_of(status)  # nothing jumps from under a pointer
    assert paused is True
    api.running = True
    api.studies[1] = api._study(1)
    status, state, sweeps, changed, other, paused = run(progress.follow(2, None, 1, mark))
    assert text_of(state) == "running"
    assert paused is False
    assert other != version
    assert "20 of 54 trials ended" in text_of(status)
    assert "about 12 s left" in text_of(status)
    assert "waiting for a gpu worker" in text_of(status)
    assert "Notify me when it ends" in text_of(status)
    assert "Cancel" in text_of(sweeps)
    _, _, sweeps, *_ = run(progress.follow(3, None, 1, changed))
    assert sweeps is no_update  # no button is replaced under a finger


def test_only_what_was_confirmed_is_cancelled(api, dash_app):
    pending = {"do": "cancel", "sweep": 1}
    done = f"{ids.CONFIRM}.opened@"
    no = trigger(dash_app, done, (ids.CONFIRM_NO, "n_clicks", 1), **{ids.PENDING: pending})
    assert no["response"][ids.CONFIRM]["opened"] is False
    assert not [call for call in api.sent if call.method == "POST"]
    trigger(dash_app, done, (ids.CONFIRM_YES, "n_clicks", 1), **{ids.PENDING: pending})
    assert [call.path for call in api.sent if call.method == "POST"] == ["/api/sweeps/1/cancel"]


def test_archiving_and_restoring_are_one_button(api, dash_app):
    for wanted in (True, False):
        trigger(dash_app, f"{ids.HEAD}.children@", (ids.ARCHIVE, "n_clicks", 1), **{ids.ID: 1})
        assert api.studies[1].archived is wanted


def test_notes_are_text_and_fetch_nothing(api):
    study = api.studies[1].model_copy(update={"notes": "![x](http://evil.example/x.png) <b>hi</b>"})
    markdown = header.notes(study)
    assert markdown.dangerously_allow_html is False
    assert "![" not in markdown.children


def test_an_edit_is_stored_and_shown(api):
    head, shown, opened, error = run(header.save(1, "New name", ["a"], "text", 1))
    assert api.studies[1].name == "New name"
    assert "New name" in text_of(head)
    assert opened is False
    assert error is None
    assert shown.children == "text"


@pytest.mark.parametrize("name", ["", "\x00"])
def test_an_edit_the_api_would_refuse_stays_in_the_dialog(api, name):
    _, _, opened, error = run(header.save(1, name, [], "", 1))
    assert opened is True
    assert "name" in text_of(error)


def test_the_drawer_shows_the_trials_behind_a_point(api):
    body = run(trials.show("1,2,3", "light"))
    assert "EB 1" in text_of(body)
    hrefs = [getattr(one, "href", None) for one in names(body)]
    assert "/trials/2" in hrefs


def test_the_drawer_of_one_trial_shows_its_record(api):
    body = run(trials.show("27", "light"))
    assert "abc123" in text_of(body)
    assert "at step 40" in text_of(body)


def test_a_trial_that_is_gone_is_said_in_the_drawer(api):
    body = run(trials.show("9999", "light"))
    assert "There is no trial 9999." in text_of(body)
    assert run(trials.show("", "light")) is no_update


def request(start: int) -> dict[str, int]:
    return {"startRow": start, "endRow": start + trials.PAGE}


def test_the_table_pages_by_the_api_s_cursors(api, monkeypatch):
    monkeypatch.setattr(trials, "PAGE", 20)
    cursors: dict[str, str] = {}
    rows = []
    for start in (0, 20, 40):
        answer, left = run(trials.fetch(request(start), "1", None, None, cursors))
        cursors = cursors if left is no_update else left
        rows += answer["rowData"]
    assert answer["rowCount"] == 54
    assert len(rows) == 54
    assert len({row["id"] for row in rows}) == 54


def test_a_page_whose_cursor_is_not_known_ends_the_table(api):
    answer, _ = run(trials.fetch(request(400), "1", None, None, {}))
    assert answer == {"rowData": [], "rowCount": 400}


def test_a_row_links_to_its_trial_and_writes_numbers_for_people(api):
    answer, _ = run(trials.fetch(request(0), "1", None, None, {}))
    row = answer["rowData"][0]
    assert row["id"] == "[1](/trials/1)"
    assert row["seconds"] == "420 ms"
    lost = next(one for one in answer["rowData"] if one["state"] == "diverged")
    assert lost["diverged"] == "step 40"


def test_exports_link_to_the_api(api):
    page = run(study.layout("1"))
    hrefs = [getattr(one, "href", None) for one in names(page.body)]
    for kind in ("csv", "json", "parquet"):
        assert f"/api/studies/1/export?format={kind}" in hrefs
    assert by_id(page.body, ids.GRAPH).config["showSendToCloud"] is False


def test_a_sweep_of_an_older_engine_can_be_run_again(api, dash_app):
    assert "engine" not in " ".join(buttons(api))
    api.engine = "0"
    assert "Run again with engine 1" in buttons(api)
    pending = {"do": "rerun", "sweep": 1}
    done = f"{ids.CONFIRM}.opened@"
    trigger(dash_app, done, (ids.CONFIRM_YES, "n_clicks", 1), **{ids.PENDING: pending})
    (sent,) = [call for call in api.sent if call.method == "POST"]
    assert sent.path == "/api/studies/1/sweeps"
    assert sent.json["methods"] == ["eb", "ib"]


def buttons(api):
    listed = run(sweeps.sweep_list([api.sweep(1)]))
    return [one.children for one in names(listed) if isinstance(one, dmc.Button)]


def test_only_pictures_that_would_show_something_are_offered(api):
    def offered(*sweeps, tasks=("digits_mlp",)):
        values = {"view": "curves"} | dict.fromkeys(("quantity", "split", "reducer"), "x")
        values |= dict.fromkeys(("clipping", "band", "seeds", "y", "task"), "x")
        values |= read_controls(family_controls(ids), {})
        panel = controls.control_panel(values, sweeps, tasks)
        return [one["value"] for one in by_id(panel, ids.VIEW).data]

    new = api.sweep(1)
    old = new.model_copy(update={"engine_version": "0"})
    clipped = new.model_copy(update={"spec": {**new.spec, "clips": [None, 1.0]}})
    always = ["curves", "map", "against", "learning", "box", "best_of", "method"]
    assert offered(new) == always
    assert offered(new, clipped) == [*always, "clip"]
    assert offered(new, old) == [*always, "engine"]
    assert set(offered(new, tasks=("a", "b", "c"))) == {*always, "across"}


def test_a_large_study_is_drawn_ahead_one_control_away():
    view = StudyView(*CHOSEN)
    others = list(curves.one_control_away(view))
    assert {
        sum(a != b for a, b in zip(astuple(view), astuple(one), strict=True)) for one in others
    } == {1}
    assert {(one.metric, one.reducer) for one in others} == {
        ("train_loss", "final"),
        ("test_loss", "final"),
        ("train_accuracy", "final"),
        ("train_loss", "best"),
    }


def test_only_large_studies_at_rest_are_drawn_ahead(api, monkeypatch):
    monkeypatch.setattr(curves, "PAUSE_SECONDS", 0.0)
    drawn, original = [], curves.drawn

    async def noted(study, view, picture):
        drawn.append(view)
        return await original(study, view, picture)

    monkeypatch.setattr(curves, "drawn", noted)
    at_rest = api.studies[1]

    async def visit(**changes):
        api.studies[1] = at_rest.model_copy(update=changes)
        await curves.draw("v", *CHOSEN, *FAMILY, "light", False, 1, None, None, None)
        await asyncio.gather(*curves._running)
        new, drawn[:] = list(drawn), []
        return new

    looked_at = StudyView(*CHOSEN)
    assert run(visit(total=54)) == [looked_at]
    assert run(visit(total=10_000, progress={"running": 3})) == [looked_at]
    first = run(visit(total=10_000))
    assert first == [looked_at, *curves.one_control_away(looked_at)]
    assert len(set(first)) == 10
    scored = [call.path for call in api.sent if call.path.endswith("scorecard")]
    assert len(scored) == 4  # a scorecard a metric and reducer
    assert run(visit(total=10_000)) == []  # nothing is drawn twice
    assert len([call for call in api.sent if call.path.endswith("scorecard")]) == 4
