"""Sweeps of one study, told apart in its list and in its table of trials."""

from typing import Any

import pytest

from backend.schemas import SearchRead, SeedEdgeRead, SeriesFoundRead, SweepRead, WayRead
from dashboard import ids
from dashboard.components import goes_on
from dashboard.pages.study import answer, progress, trials
from dashboard.pages.study.sweeps import describe, sweep_list, told_apart
from tests.coroutines import run
from tests.dashboard import answers
from tests.dashboard.dispatch import text_of, trigger


def sweeps(api: Any, *changes: dict[str, Any]) -> list[SweepRead]:
    first = api.sweep(1)
    return [
        first.model_copy(update={"id": 1 + number, "spec": {**first.spec, **one}})
        for number, one in enumerate(changes)
    ]


def width(number: int | None) -> dict[str, Any]:
    return {"options": {"width": number, "restart": False}}


def test_sweeps_that_differ_in_width_or_clip_are_told_apart(api):
    found = sweeps(api, width(128), {**width(8), "clips": [None, 1.0]}, width(None))
    assert list(told_apart(found).values()) == ["width 128", "width 8 · clip none, 1", ""]
    listed = text_of(run(sweep_list(found)))
    assert "Sweep 1: width 128" in listed
    assert "Sweep 2: width 8 · clip none, 1" in listed


def test_sweeps_that_are_alike_need_no_words(api):
    assert set(told_apart(sweeps(api, {}, {})).values()) == {""}


def test_any_setting_is_told_also_one_nobody_has_words_for(api):
    found = sweeps(api, {"epochs": 1}, {"batch_size": 20, "options": {"dropout": 0.5}})
    assert list(told_apart(found).values()) == [
        "1 epoch · batch 100",
        "5 epochs · batch 20 · dropout 0.5",
    ]


def test_a_sweep_says_all_it_was_asked_for_and_nothing_that_is_unset(api):
    (one,) = sweeps(api, {**width(32), "mu": 0.1, "activation": "relu"})
    words = describe(one)
    assert all(f"· {part}" in words for part in ("width 32", "relu", "mu 0.1", "5 epochs"))
    assert "restart" not in words
    assert "clip" not in words


def test_a_setting_of_several_words_is_told_as_people_write_it(api):
    (one,) = sweeps(api, {"record": ["norms", "sharpness"]})
    assert describe(one).endswith("· record norms, sharpness")


def test_the_table_has_a_column_for_whatever_varies(api):
    def headers(*changes: dict[str, Any]) -> list[str]:
        return [column["headerName"] for column in trials.columns(sweeps(api, *changes))]

    plain = headers({})
    assert "Clip" not in plain
    assert headers({}, {}) == plain
    varied = headers({**width(8), "clips": [1.0]}, {**width(32), "batch_size": 20})
    assert varied[4:7] == ["Clip", "Width", "Batch size"]


def test_a_study_of_two_tasks_has_no_column_that_says_the_same_in_every_row(api):
    found = sweeps(api, {"task": "uci/segment"}, {"task": "uci/iris"})
    assert [column["field"] for column in trials.columns(found) if column["field"] == "task"] == []
    assert list(told_apart(found).values()) == ["uci/segment", "uci/iris"]


def test_every_column_is_in_view_on_a_desk_beside_width_and_clip(api):
    found = sweeps(api, {**width(8), "clips": [None, 1.0]}, width(32))
    room = 772  # of the card, in a window 1280 wide
    assert sum(column["minWidth"] for column in trials.columns(found)) <= room


def test_a_row_has_a_cell_for_every_column_there_can_be(api):
    trial = answers.trial(1).model_copy(update={"options": {"width": 32, "restart": False}})
    row = trials.row_of(trial)
    assert (row["width"], row["restart"], row["epochs"]) == ("32", "–", "5")
    names = {column["field"] for column in trials.columns(sweeps(api, width(8), {"mu": 0.1}))}
    assert names <= set(row)


def searching(low: float, high: float, *, done: bool = False) -> SearchRead:
    seed = SeedEdgeRead(
        seed=1, low=low, high=high, where="open", monotone=False, sound=[], broken=[], last=[low]
    )
    series = SeriesFoundRead(
        method="eb", label="eb", where="open", monotone=False, text="1.5 (1 to 2)", seeds=[seed]
    )
    return SearchRead(
        find="edge", low=0.01, high=100, within=1.1, most=80, trials=20, grid_trials=200,
        rounds=[18, 2], done=done, series=[series],
    )  # fmt: skip


def test_a_search_is_drawn_and_drawn_again_when_a_bracket_narrows(api):
    first = api.sweep(1)
    wide, narrow, done = (
        first.model_copy(update={"search": found})
        for found in (searching(1, 4), searching(2, 4), searching(2, 4, done=True))
    )
    words = text_of(run(sweep_list([wide])))
    assert "2 rounds, 20 of at most 80 trials" in words
    assert "not monotone" in words
    assert "10 times as many" in text_of(run(sweep_list([done])))
    marks = [progress.sweeps_mark([one]) for one in (first, wide, narrow, done)]
    assert len(set(marks)) == 4
    assert progress.sweeps_mark([wide]) == marks[1]


def test_between_two_rounds_a_search_can_be_cancelled_and_is_followed(api):
    sweep = api.sweep(1).model_copy(update={"progress": {"completed": 18}, "total": 18})
    assert "Cancel" not in text_of(run(sweep_list([sweep])))
    between = sweep.model_copy(update={"search": searching(1, 4)})
    assert "Cancel" in text_of(run(sweep_list([between])))
    stopped = between.model_copy(update={"cancelled": True})
    assert "Search on" in text_of(run(sweep_list([stopped])))
    study = api.studies[1]
    assert not goes_on(study)
    assert goes_on(study.model_copy(update={"state": "running"}))


def test_the_page_says_for_every_series_how_it_was_trained_and_why(api):
    study = api.studies[1]
    assert progress.trained_how(study.ways) == []
    ways = [
        WayRead(label="eb", task="my.py:task", way="stacked", why="1.9 times faster", trials=12),
        WayRead(label="lion", task="my.py:task", way="one by one", why="uses .item()", trials=1),
    ]
    mine = study.model_copy(update={"ways": ways})
    *_, fold = run(progress.sweeps_of(mine, [api.sweep(1)], own=True))
    short, lines = fold.children
    assert text_of(short) == "How they were trained: stacked, 12 trials, one by one, 1 trial"
    assert [" ".join(text_of(line).split()) for line in lines.children] == [
        "eb: stacked, 12 trials, because: 1.9 times faster",
        "lion: one by one, 1 trial, because: uses .item()",
    ]


def test_a_gap_can_be_narrowed_with_the_same_settings(api):
    *_, (gap,) = run(answer.score(["v", "train_loss", "final", None], None, 1))
    search = gap["narrow"]["learning_rates"]
    assert search == {"find": "edge", "from": gap["low"], "to": gap["high"], "within": 1.1}
    same = {name: value for name, value in gap["sweep"].items() if name != "learning_rates"}
    assert {**same, "learning_rates": search} == gap["narrow"]
    assert "Narrow it to within 1.1" in text_of(run(answer.offer([gap], 1)))
    assert answer.narrowing(gap["sweep"], 1.0, 1.1) is None
    assert answer.narrowing(None, 1.0, 3.0) is None


@pytest.mark.parametrize(
    ("kind", "wish", "words"),
    [("gap", "sweep", "tests the gap of EB"), ("narrow", "narrow", "narrows the gap of EB")],
)
def test_each_button_of_a_gap_submits_what_it_says(api, dash_app, kind, wish, words):
    *_, (gap,) = run(answer.score(["v", "train_loss", "final", None], None, 1))
    known = {ids.Study.GAPS: [gap], ids.Study.ID: 1}
    output = next(
        one["output"] for one in dash_app._callback_list if '"narrow"' in str(one["inputs"])
    )
    said = trigger(dash_app, output, (ids.part(kind, gap["id"]), "n_clicks", 1), **known)
    (sent,) = [call for call in api.sent if call.method == "POST"]
    assert sent.path == "/api/studies/1/sweeps"
    assert sent.json["learning_rates"] == gap[wish]["learning_rates"]
    assert words in str(said)
