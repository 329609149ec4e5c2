"""Sweeps of one study, told apart in its list and in its table of trials."""

from typing import Any

from backend.schemas import SweepRead
from dashboard.pages.study import trials
from dashboard.pages.study.sweeps import describe, sweep_list, told_apart
from tests.coroutines import run
from tests.dashboard import answers
from tests.dashboard.dispatch import text_of


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
