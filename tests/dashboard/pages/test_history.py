"""The history: filtered and paged by the API, with a way back from everything."""

import re
from pathlib import Path

from dash import no_update

import dashboard
from backend.schemas import BundleRead
from dashboard.ids import History as ids
from dashboard.pages import history
from dashboard.pages.history import table
from tests.coroutines import run
from tests.dashboard.dispatch import by_id, text_of, trigger

NOTHING = ("", "", None, None, False, "-updated_at", None)


def filtered(*values):
    return run(history.filter_studies(*(values or NOTHING), None, None, False))


def test_filters_go_to_the_api(api):
    filtered(" digits ", "first", "digits_mlp", "running", True, "name", "ada")
    (asked,) = [call.parameters for call in api.sent if call.path == "/api/studies"]
    wanted = {"q": "digits", "tag": "first", "task": "digits_mlp", "state": "running"}
    wanted |= {"owner": "ada"}
    assert asked == wanted | {"archived": "true", "sort": "name", "spark": "true", "limit": 50} | {
        "bundle": "any"
    }


def test_a_row_names_study_task_tags_methods_and_state(api):
    row = filtered()[0]["studies"][0]
    assert row["name"].startswith("Digits ")
    assert row["about"] == "digits_mlp"
    assert row["tags"][0] == "digits"
    assert [method["name"] for method in row["methods"]] == ["EB", "IB"]
    assert (row["state"]["name"], row["words"], row["bar"]) == ("completed", "54 trials", [])
    assert row["spark"]["src"].startswith("data:image/svg+xml")
    assert row["archive"] == "Archive"


def test_running_studies_are_followed_and_finished_ones_are_not(api):
    assert filtered()[3] is True
    api.running = True
    api.studies[1] = api._study(1)
    rows, _, _, paused, _ = filtered()
    assert paused is False
    (row,) = [row for row in rows["studies"] if row["id"] == 1]
    assert row["words"].startswith("20 of 54 trials ended")
    assert {part["state"]: round(part["percent"]) for part in row["bar"]} == {
        "completed": 37,
        "running": 7,
    }


def test_rows_are_brought_up_to_date_in_place(api):
    api.running = True
    api.studies[1] = api._study(1)
    rows, paused = run(history.follow(1, *NOTHING))
    assert rows["how"] == "update"
    assert paused is False


def test_an_empty_history_offers_the_first_study(api):
    api.studies.clear()
    words = text_of(filtered()[1])
    assert "No studies of your own yet" in words
    assert "Start the first study" in words


def bundled(api, number: int) -> None:
    """Let one of the studies be the bundle's."""
    api.studies[number] = api.studies[number].model_copy(update={"bundle": True})
    api.bundle = BundleRead(state="loaded", studies=1)


def test_studies_of_the_bundle_are_one_row_that_opens(api):
    bundled(api, 2)
    rows, _, _, _, fold = filtered()
    assert [row["id"] for row in rows["studies"]] == [1]
    assert text_of(fold) == "The paper's reproduction and other shipped studies 1 study"
    closed = run(history.unfold(False, fold, *NOTHING))
    assert (closed["studies"], closed["opened"]) == ([], False)
    opened = run(history.unfold(True, fold, *NOTHING))
    assert [row["id"] for row in opened["studies"]] == [2]
    assert opened["opened"] is True


def test_whoever_searches_finds_studies_of_the_bundle_among_the_others(api):
    bundled(api, 2)
    rows, _, _, _, fold = filtered("Digits", *NOTHING[1:])
    assert [row["id"] for row in rows["studies"]] == [1, 2]
    assert fold is None


def test_a_history_without_a_bundle_has_no_row_for_it_and_offers_none_beside_studies(api):
    _, nothing, _, _, fold = filtered()
    assert (nothing, fold) == (None, None)


def test_an_empty_history_offers_the_bundle_to_who_may_write(api):
    api.studies.clear()
    assert "Load the reproduction" in text_of(filtered()[1])
    api.log_in("vera", "viewer")
    assert "Load the reproduction" not in text_of(filtered()[1])


def test_no_match_is_not_an_empty_history(api):
    words = text_of(filtered("zebra", *NOTHING[1:])[1])
    assert "No study matches." in words
    assert "Start the first study" not in words


def test_the_next_page_is_added_below(api, dash_app, monkeypatch):
    monkeypatch.setattr(table, "PAGE_SIZE", 1)
    _, _, more, *_ = filtered()
    button = more.children.id
    answer = trigger(
        dash_app, f"{ids.MORE}.children@", (button, "n_clicks", 1), **{ids.SORT: "name"}
    )
    added = answer["response"][ids.ROWS]["data"]
    assert added["how"] == "add"
    assert [row["name"] for row in added["studies"]] == ["Digits 2: EB against IB"]
    assert answer["response"][ids.MORE]["children"] is None


def test_archiving_offers_to_undo_and_undoing_restores(api, dash_app):
    def press(*pressed):
        return trigger(dash_app, f"{ids.CHANGES}.data", pressed)["response"]

    answer = press(ids.PRESSED, "data", {"study": 1})
    assert api.studies[1].archived is True
    assert "Undo" in str(answer[ids.UNDO]["children"])
    press({"key": 1, "kind": "history-undo"}, "n_clicks", 1)
    assert api.studies[1].archived is False


def test_comparing_needs_two_studies():
    assert run(history.compare(1, [4])) is no_update
    assert run(history.compare(1, [4, 6])) == "/compare?studies=4,6"


def test_nothing_narrows_the_shipped_studies_once_they_are_unfolded():
    alone = re.compile(r"(?:^|[},])\s*\.folded\s*\{([^}]*)\}")
    sheets = (Path(dashboard.__file__).parent / "assets").glob("*.css")
    rules = [rule for sheet in sheets for rule in alone.findall(sheet.read_text("utf-8"))]
    assert not any("width" in rule for rule in rules)


def test_a_search_is_no_longer_than_the_api_takes(api):
    page = run(history.layout())
    for id in (ids.TEXT, ids.TAG):
        assert by_id(page, id).attributes["input"]["maxLength"] == 200
