"""The history: filtered and paged by the API, with a way back from everything."""

from dash import no_update

from dashboard.ids import History as ids
from dashboard.pages import history
from dashboard.pages.history import filters
from tests.coroutines import run
from tests.dashboard.dispatch import text_of, trigger

NOTHING = ("", "", None, None, False, "-updated_at", None)


def filtered(*values):
    return run(history.filter_studies(*(values or NOTHING), None))


def test_filters_go_to_the_api(api):
    filtered(" digits ", "first", "digits_mlp", "running", True, "name", "ada")
    (asked,) = [call.parameters for call in api.sent if call.path == "/api/studies"]
    wanted = {"q": "digits", "tag": "first", "task": "digits_mlp", "state": "running"}
    wanted |= {"owner": "ada"}
    assert asked == wanted | {"archived": "true", "sort": "name", "spark": "true", "limit": 50}


def test_a_row_names_study_task_tags_methods_and_state(api):
    table, *_ = filtered()
    words = text_of(table)
    for part in ("Digits 1: EB against IB", "digits_mlp", "EB", "IB", "completed", "54 trials"):
        assert part in words


def test_running_studies_are_followed_and_finished_ones_are_not(api):
    assert filtered()[2] is True
    api.running = True
    api.studies[1] = api._study(1)
    table, _, paused = filtered()
    assert paused is False
    assert "20 of 54 trials ended" in text_of(table)


def test_rows_are_brought_up_to_date_in_place(api):
    api.running = True
    api.studies[1] = api._study(1)
    shown = [{"key": 1}, {"key": 77}]
    states, sparks, paused = run(history.follow(1, shown, *NOTHING))
    assert "20 of 54 trials ended" in text_of(states[0])
    assert states[1] is sparks[1] is no_update
    assert paused is False


def test_an_empty_history_offers_the_first_study(api):
    api.studies.clear()
    words = text_of(filtered()[0])
    assert "No studies yet" in words
    assert "Start the first study" in words


def test_no_match_is_not_an_empty_history(api):
    words = text_of(filtered("zebra", *NOTHING[1:])[0])
    assert "No study matches." in words
    assert "Start the first study" not in words


def test_the_next_page_is_added_below(api, dash_app, monkeypatch):
    monkeypatch.setattr(filters, "PAGE_SIZE", 1)
    _, more, _ = filtered()
    button = more.children.id
    answer = trigger(
        dash_app, f"{ids.ROWS}.children", (button, "n_clicks", 1), **{ids.SORT: "name"}
    )
    patch = answer["response"][ids.ROWS]["children"]
    assert "Digits 2" in str(patch)
    assert answer["response"][ids.MORE]["children"] is None


def test_archiving_offers_to_undo_and_undoing_restores(api, dash_app):
    def press(kind):
        button = {"key": 1, "kind": f"history-{kind}"}
        return trigger(dash_app, f"{ids.CHANGES}.data", (button, "n_clicks", 1))["response"]

    answer = press("archive")
    assert api.studies[1].archived is True
    assert "Undo" in str(answer[ids.UNDO]["children"])
    press("undo")
    assert api.studies[1].archived is False


def test_comparing_needs_two_studies():
    assert run(history.count_selected([True, False])) == (True, "Compare selected")
    assert run(history.count_selected([True, True])) == (False, "Compare 2 studies")
    chosen = [{"key": 4}, {"key": 5}, {"key": 6}]
    assert run(history.compare(1, [True, False, True], chosen)) == "/compare?studies=4,6"
