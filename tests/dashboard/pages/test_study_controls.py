"""What the study page lets one choose: tasks, one at a time, and splits."""

import pytest

from dashboard.components import family_controls, read_controls
from dashboard.ids import Study as ids
from dashboard.pages.study import controls
from dashboard.pages.study.sweeps import MOST_LISTED, sweep_list
from tests.coroutines import run
from tests.dashboard.answers import series
from tests.dashboard.dispatch import by_id, text_of
from tests.dashboard.pages.test_study import CHOSEN, drawn

MANY = [f"uci/{name}" for name in ("abalone", "car", "letter", "wine", "yeast")]


def test_a_few_tasks_are_drawn_together_and_of_many_the_first():
    assert controls.task_shown("all", MANY[:4]) is None
    assert controls.task_shown("all", MANY) == "uci/abalone"
    assert controls.task_shown("uci/wine", MANY) == controls.task_shown("uci/wine", MANY[:4])
    assert controls.task_shown("uci/unknown", MANY) == "uci/abalone"


def test_the_control_offers_every_task_once():
    for found in (MANY, MANY[:2]):
        control = by_id(controls.task_control(found, "uci/car"), ids.TASK)
        offered = [one["label"] for one in control.data]
        assert control.value == "uci/car"
        assert len(set(offered)) == len(offered)
        assert set(found) <= set(offered)
    first = by_id(controls.task_control(MANY, MANY[0]), ids.TASK)
    assert first.value in [one["value"] for one in first.data]
    assert controls.task_control(MANY[:1], "all").style == {"display": "none"}


def test_a_task_s_curves_lose_the_words_they_share():
    lines = [
        series(method, label=f"{method}, uci/car, data 1{extra}").model_copy(
            update={"task": "uci/car"}
        )
        for method, extra in (("eb", ""), ("ib", ""), ("ib", ", clip 1"))
    ]
    found = controls.of_task([*lines, series("eb", label="eb, uci/wine, data 2")], "uci/car")
    assert [line.label for line in found] == ["eb", "ib", "ib, clip 1"]
    assert controls.of_task(lines, None) == lines


def test_the_picture_and_its_title_are_the_chosen_task_s(api):
    answer = api._sensitivity

    def both(*asked):
        found = answer(*asked)
        other = [
            line.model_copy(update={"task": "uci/car", "id": f"car {line.id}"})
            for line in found.series
        ]
        return found.model_copy(update={"series": [*found.series, *other[:1]]})

    api._sensitivity = both
    api.studies[1] = api.studies[1].model_copy(update={"tasks": ["digits_mlp", "uci/car"]})

    def means(task: str) -> int:
        figure, *_ = drawn(*CHOSEN[:-1], task)
        return sum(trace.meta == "mean" for trace in figure.data), figure.layout.title.text

    together, _ = means("all")
    alone, title = means("uci/car")
    assert (together, alone) == (3, 1)
    assert title.startswith("<b>uci/car</b>")


def test_of_very_many_sweeps_the_newest_and_the_unfinished_are_listed(api):
    done = [api.sweep(1).model_copy(update={"id": number}) for number in range(1, 41)]
    stuck = {"progress": {"failed": 2}, "state": "failed"}
    sweeps = [done[0].model_copy(update=stuck), *done[1:]]
    words = text_of(run(sweep_list(sweeps)))
    assert words.count("submitted") == MOST_LISTED + 1
    assert "Sweep 40" in words
    assert "Retry 2 trials" in words
    assert f"and {40 - MOST_LISTED - 1} earlier sweeps" in words


def test_validation_is_a_split_where_rows_may_have_been_held_out(api):
    def offered(*specs: dict, split: str = "train") -> list[str]:
        names = ("quantity", "reducer", "clipping", "band", "seeds", "y", "task")
        values = {"view": "curves", "split": split} | dict.fromkeys(names, "x")
        values |= read_controls(family_controls(ids), {})
        sweeps = [api.sweep(1).model_copy(update={"spec": spec}) for spec in specs]
        panel = controls.control_panel(values, sweeps, ("a",))
        return [one["value"] for one in by_id(panel, ids.SPLIT).data]

    plain, all_three = {"options": {"width": 4}}, ["train", "test", "validation"]
    assert offered(plain) == ["train", "test"]
    assert offered(plain, split="validation") == all_three
    for spec in ({"options": {"validation": 0.1}}, {"where": "agents"}, {"options": {"code": "a"}}):
        assert offered(plain, spec) == all_three


@pytest.mark.parametrize(
    ("kept", "offered"),
    [
        ([], set()),
        (["norms", "sharpness"], {"steps"}),
        (["activations"], {"coordinates"}),
        (["norms", "activations"], {"steps", "coordinates"}),
    ],
)
def test_pictures_of_what_was_recorded_are_offered_where_it_was(api, kept, offered):
    names = ("quantity", "split", "reducer", "clipping", "band", "seeds", "y", "task")
    values = {"view": "curves"} | dict.fromkeys(names, "x")
    values |= read_controls(family_controls(ids), {})
    sweeps = [api.sweep(1).model_copy(update={"spec": {"record": kept}})]
    panel = controls.control_panel(values, sweeps, ("a",))
    found = {one["value"] for one in by_id(panel, ids.VIEW).data}
    assert found & {"steps", "coordinates"} == offered
