"""Pictures of many series on the study page: each drawn from what the API says."""

import pytest

from dashboard.components import family_controls
from dashboard.ids import Study as ids
from dashboard.pages import study
from dashboard.pages.study import answer, controls, curves
from dashboard.pages.study.controls import StudyView, pairs_of_task
from dashboard.pages.study.words import NO_WAYS
from tests.coroutines import run
from tests.dashboard import fake_api
from tests.dashboard.answers import paired, recording
from tests.dashboard.dispatch import by_id, text_of
from tests.dashboard.pages.test_study import CHOSEN, FAMILY, drawn
from tests.dashboard.scored_answers import across


@pytest.mark.parametrize("view", ["curves", "map", "against", "learning", "box", "best_of"])
def test_every_picture_of_series_is_drawn_from_what_the_api_says(api, view):
    chosen = (*CHOSEN[:4], view, *CHOSEN[5:])
    only = {"only": ["method:ib"]}
    family = tuple(only.get(one.name, one.fallback) for one in family_controls(ids))
    figure, *_ = drawn(*chosen, *FAMILY)
    alone, *_ = drawn(*chosen, *family)
    assert len(figure.data) > 1
    assert "Methods: Explicit (EB), Implicit (IB)." in figure.layout.meta["caption"]
    if view != "against":  # which one series has nothing to be drawn for
        assert 0 < len(alone.data) < len(figure.data)


def test_a_picture_of_differences_has_the_caption_of_the_curves_it_compares(api):
    figure, *_ = drawn(*CHOSEN[:4], "method", *CHOSEN[5:])
    alone, *_ = drawn()
    caption = figure.layout.meta["caption"]
    assert caption.startswith(alone.layout.meta["caption"])
    assert "Drawn: minus EB, training loss and test loss, paired by seed" in caption


def test_a_legend_of_differences_says_only_what_tells_them_apart(api):
    """Of two tasks only one has EB: what all of its pairs share goes into the title, or unsaid."""
    api.studies[1] = api.studies[1].model_copy(update={"tasks": ["digits_wide", "gpt_bytes"]})
    api.pairs = [
        paired().model_copy(
            update={
                "first_label": f"adam, digits_wide, 3 epochs, batch 50, width {width}",
                "second_label": f"eb, digits_wide, 3 epochs, batch 50, width {width}",
            }
        )
        for width in (32, 128)
    ]
    figure, *_ = drawn(*CHOSEN[:4], "method", *CHOSEN[5:])
    named = [one.name for one in figure.data if one.showlegend and one.meta == "mean difference"]
    assert named == ["Adam − EB, width 32", "Adam − EB, width 128"]
    both, *_ = drawn()
    assert " and " in both.layout.title.text
    assert " and " not in figure.layout.title.text


def test_a_legend_of_clipped_runs_still_names_the_clipping():
    pair = paired().model_copy(update={"first_label": "eb, clip 1", "second_label": "eb"})
    (told,) = pairs_of_task([pair], None)
    assert (told.first_label, told.second_label) == ("eb, clip 1", "eb")


def test_what_can_be_chosen_are_the_settings_that_vary(api):
    found = run(curves.draw("v", *CHOSEN, *FAMILY, "light", False, 1, None, None, None))[4]
    assert [one["value"] for one in found["panel"]] == ["auto", "none", "method"]
    (methods,) = found["only"]
    assert [one["value"] for one in methods["items"]] == ["method:eb", "method:ib"]


def test_a_band_is_explained_where_there_is_one(api):
    _, curves_say, _ = drawn()
    _, map_says, _ = drawn("loss", "train", "final", "all", "map", "std", True, "focus", "all")
    assert "Band: " in text_of(curves_say)
    assert "Click a point" in text_of(curves_say)
    assert "Band: " not in text_of(map_says)


@pytest.mark.parametrize(
    ("query", "shown"),
    [({}, "learning"), ({"view": "curves"}, "curves"), ({"y": "log"}, "learning")],
)
def test_an_address_that_names_no_picture_shows_that_of_the_study_s_preset(api, query, shown):
    api.studies[1] = api.studies[1].model_copy(update={"picture": "learning"})
    page = run(study.layout("1", **query)).body
    assert by_id(page, ids.VIEW).value == shown
    # The browser writes what differs from it: curves too, or a reload would lose them.
    assert getattr(by_id(page, ids.CONTROLS), "data-fallback") == "learning"


def test_of_many_series_the_other_arrangements_are_drawn_ahead_too():
    view = StudyView(*CHOSEN)
    named = [{"value": one} for one in ("auto", "method", "width")]
    found = list(curves.one_control_away(view, {"many": True, "panel": named, "colour": named}))
    assert {one.view for one in found} >= {"map", "against", "learning", "box"}
    arranged = {(one.family.panel, one.family.colour) for one in found}
    assert arranged == {
        ("auto", "auto"), ("method", "auto"), ("width", "auto"),
        ("auto", "method"), ("auto", "width"),
    }  # fmt: skip
    few = {"many": False, "panel": named, "colour": named}
    assert list(curves.one_control_away(view, few)) == list(curves.one_control_away(view))


def test_the_coordinate_check_asks_for_one_rate_a_series_of_its_first_seed(api, monkeypatch):
    answer = api._sensitivity

    def widths(*asked):
        found = answer(*asked)
        lines = [
            found.series[0].model_copy(update={"id": f"w{width}", "settings": {"width": width}})
            for width in (32, 128)
        ]
        return found.model_copy(update={"series": lines})

    def recorded(trial):
        looked = {"outputs": ["output"], "looked_at": [0, 10], "changes": [[0, trial.id]]}
        return recording(trial).model_copy(update=looked)

    api._sensitivity = widths
    monkeypatch.setattr(fake_api, "recording", recorded)
    figure, caption, _ = drawn(*CHOSEN[:4], "coordinates", *CHOSEN[5:])
    asked = [call.path for call in api.sent if call.path.endswith("/recording")]
    assert len(set(asked)) == len({one.split("/")[-2] for one in asked}) == 1  # both share trials
    (line,) = figure.data
    assert list(line.x) == [32, 128]
    assert "Band" not in text_of(caption)
    assert figure.layout.meta["scrub"]["chosen"] in figure.layout.meta["scrub"]["rates"]


@pytest.mark.parametrize("view", ["curves", "method", "best_of"])
@pytest.mark.parametrize("most", [1000, 4])
def test_of_more_series_than_are_told_at_once_those_of_the_task_are_asked_for(
    api, monkeypatch, view, most
):
    tasks = [f"uci/{name}" for name in ("iris", "wine", "car", "zoo", "adult")]
    api.studies[1] = api.studies[1].model_copy(update={"tasks": tasks})
    monkeypatch.setattr(controls, "MOST_AT_ONCE", most)
    alone = [] if most == 1000 else ["uci/zoo"]
    chosen = (*CHOSEN[:4], view, *CHOSEN[5:-1], "uci/zoo", *FAMILY)
    *_, to_score, _ = run(curves.draw("v", *chosen, "light", False, 1, None, None, None))
    assert to_score[3:] == ["uci/zoo", *alone]
    run(answer.score(to_score, None, 1))
    ends = ("sensitivity", "scorecard", "differences")
    told = [call for call in api.sent if call.path.endswith(ends)]
    assert told
    assert {call.parameters.get("task") for call in told} == set(alone or [None])


def test_where_only_ends_are_known_there_is_no_best_epoch(api):
    told = api._sensitivity

    def nothing(*asked):
        found = told(*asked)
        lines = [one.model_copy(update={"points": []}) for one in found.series]
        return found.model_copy(update={"series": lines})

    api._sensitivity = nothing
    for quantity, words in (("loss", NO_WAYS), ("accuracy", "No trial here has recorded its")):
        figure, *_ = drawn(quantity, "train", "best", *CHOSEN[3:])
        assert figure.layout.annotations[0].text.startswith(words)


def test_tasks_compared_by_the_first_of_very_many_series_are_said_to_be_few(api, monkeypatch):
    told, left_out = answer.scores_of, 0

    async def scores(*asked):
        found = await told(*asked)
        return found.model_copy(update={"across": across(), "left_out": left_out})

    monkeypatch.setattr(curves, "scores_of", scores)
    _, caption, _ = drawn(*CHOSEN[:4], "across", *CHOSEN[5:])
    assert "series." not in text_of(caption)
    left_out = 1160
    _, caption, _ = drawn(*CHOSEN[:4], "across", *CHOSEN[5:], narrow=True)
    assert "The first 2 of 1,162 series." in text_of(caption)


@pytest.mark.parametrize(
    ("reducer", "words"),
    [("final", "finished trials."), ("best", "whose losses over training are known.")],
)
def test_numbers_that_are_not_there_yet_are_said_to_come(api, monkeypatch, reducer, words):
    told = answer.scores_of

    async def nothing(*asked):
        return (await told(*asked)).model_copy(update={"rows": []})

    monkeypatch.setattr(answer, "scores_of", nothing)
    said, *_ = run(answer.score(["v", "train_loss", reducer, None], None, 1))
    assert text_of(said).endswith(words)


def test_where_more_series_are_left_out_than_tasks_and_methods_foretell_the_task_is_asked_for(
    api, monkeypatch
):
    tasks = [f"uci/{name}" for name in ("iris", "wine", "car", "zoo", "adult")]
    api.studies[1] = api.studies[1].model_copy(update={"tasks": tasks})

    def leaving_out(ask):
        async def asked(call):
            found = await ask(call)
            left = 0 if call.parameters.get("task") else 7
            return (
                found.model_copy(update={"left_out": left}) if hasattr(found, "left_out") else found
            )

        return asked

    for module in (curves, answer):
        monkeypatch.setattr(module, "ask", leaving_out(module.ask))
    chosen = (*CHOSEN[:-1], "uci/zoo", *FAMILY)
    _, caption, _, to_score, _ = run(curves.draw("v", *chosen, "light", False, 1, None, None, None))
    assert "The first" not in text_of(caption)
    run(answer.score(to_score, None, 1))
    for end in ("sensitivity", "scorecard"):
        asked = [call.parameters.get("task") for call in api.sent if call.path.endswith(end)]
        assert asked == [None, "uci/zoo"]
