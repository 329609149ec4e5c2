"""The start page: a race to turn, the study that runs, and where to go from there."""

import asyncio
import json
from typing import Any

import pytest
from dash import no_update

from backend.schemas import BundleRead
from backend.services.start import race
from dashboard.components import elements
from dashboard.figures.thumbnails import curve_chart, race_picture
from dashboard.ids import Bundle
from dashboard.ids import Start as ids
from dashboard.pages import start
from tests.coroutines import run
from tests.dashboard.dispatch import by_id, text_of, trigger
from tests.dashboard.paper_answer import paper_answer


def test_the_browser_gets_every_rate_with_the_apis_own_curves_and_words():
    sent = race_picture(race(), 0.5)
    assert sent["race"] == race().model_dump(mode="json")
    assert set(sent["styles"]) == {lane.method for lane in race().rates[0].lanes}


def test_the_slider_begins_where_the_next_notch_breaks_something():
    rates = race().rates
    first = next(index for index, rate in enumerate(rates) if rate.lr == start.FIRST_RATE)
    assert not any(lane.broken for lane in rates[first].lanes)
    assert any(lane.broken for lane in rates[first + 1].lanes)


@pytest.mark.parametrize(("query", "rate"), [({}, 0.5), ({"lr": "3"}, 3), ({"lr": "x"}, 0.5)])
def test_the_address_says_where_the_slider_stands(api, query, rate):
    assert by_id(run(start.layout(**query)), ids.RATE).data == rate


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (None, ""),
        ("3", ""),
        ("0.51", "Nothing was trained at 0.51: this is the nearest rate that was."),
        ("500", "Learning rate must be a number from 0.01 to 100; got 500."),
        ("-1", "Learning rate must be a number from 0.01 to 100; got -1."),
        ("abc", "That is no number: write it as 0.01 or 1e-2; got abc."),
    ],
)
def test_a_rate_that_cannot_be_shown_is_told(api, given, said):
    page = run(start.layout(**({} if given is None else {"lr": given})))
    assert by_id(page, ids.ASKED).children == said


def asked(api) -> list[str]:
    return [f"{call.method} {call.path}" for call in api.sent]


def test_arriving_asks_for_the_first_study_and_following_does_not(api):
    assert run(start.begin(None)) == start.SETTLED
    assert "POST /api/first-study" in asked(api)
    api.sent.clear()
    run(start.follow(None, None))
    run(start.follow(1, start.SETTLED))
    assert "POST /api/first-study" not in asked(api)


def test_a_viewer_does_not_ask_for_it(api):
    api.log_in("vera", "viewer")
    assert run(start.begin(None)) == start.SETTLED
    assert "POST /api/first-study" not in asked(api)


def test_however_slowly_the_first_study_begins_the_page_waits_for_it_and_follows(api):
    first = api.studies.pop(1)
    api.studies.clear()

    async def slowly_begun() -> str:
        await asyncio.sleep(0.2)
        api.studies[1] = first
        return await start.begin(None)

    async def arrive() -> list[Any]:
        beginning, seen = asyncio.create_task(slowly_begun()), []
        while not beginning.done():
            seen.append(await start.follow(None, None))
            await asyncio.sleep(0.05)
        return [*seen, await start.follow(4, await beginning)]

    *meanwhile, last = run(arrive())
    early = [answer for answer in meanwhile if answer[0] is no_update]
    assert len(early) >= 2
    assert all(paused is False for *_, paused in early)
    assert "Digits 1" in text_of(last[0])


def test_no_tick_can_overtake_the_beginning(dash_app):
    [beginning] = [one for one in dash_app._callback_list if one["output"] == f"{ids.BEGUN}.data"]
    assert [one["id"] for one in beginning["inputs"]] == [ids.BEGUN]
    [follows] = [one for one in dash_app._callback_list if f"{ids.STUDY}.children" in one["output"]]
    assert [one["id"] for one in follows["inputs"]] == [ids.TICK]
    assert follows["running"]


def test_a_beginning_without_an_answer_is_told_and_the_page_still_looks(api, dash_app):
    api.studies.clear()
    api.away = True
    answer = trigger(dash_app, ids.BEGUN, (ids.BEGUN, "storage_type", "memory"))
    assert answer["response"][ids.BEGUN]["data"] == start.UNKNOWN
    assert "does not answer" in json.dumps(answer["sideUpdate"])
    api.away = False
    told, _, _, paused = run(start.follow(1, start.UNKNOWN))
    assert "Start the first study" in text_of(told)
    assert paused is False


def test_a_running_study_is_followed_and_one_that_ended_is_not(api):
    told, chart, latest, paused = run(start.follow(1, start.SETTLED))
    assert paused is True
    assert "54 training runs, 11 of them broke." in text_of(told)
    assert "Digits 1" in text_of(latest)
    assert chart["lines"]
    api.running = True
    api.studies[2] = api._study(2)
    told, _, _, paused = run(start.follow(2, start.SETTLED))
    assert paused is False
    assert "Digits 2" in text_of(told)
    assert "20 of 54 training runs done, about 12 s left." in text_of(told)


def test_studies_of_the_bundle_are_not_ones_latest(api):
    api.studies[2] = api.studies[2].model_copy(update={"bundle": True})
    _, _, latest, _ = run(start.follow(1, start.SETTLED))
    assert "Digits 1" in text_of(latest)
    assert "Digits 2" not in text_of(latest)


def test_an_empty_history_says_what_to_do_next(api):
    api.studies.clear()
    told, chart, latest, paused = run(start.follow(1, start.SETTLED))
    assert "Start the first study" in text_of(told)
    assert (chart, paused) == (None, True)
    assert "listed here" in text_of(latest)
    api.log_in("vera", "viewer")
    assert "Start the first study" not in text_of(run(start.follow(1, start.SETTLED))[0])


def test_the_small_curve_shows_the_apis_means_on_the_axis_of_the_whole_sweep(api):
    study, sweep = api.studies[1], api.sweep(1)
    chart = curve_chart(study, sweep)
    assert chart is not None
    drawn = [[tuple(point) for point in line["points"]] for line in chart["lines"]]
    assert drawn == [[(one.lr, one.mean) for one in spark.points] for spark in study.spark]
    rates = sweep.spec["learning_rates"]
    assert chart["x"]["range"] == [min(rates), max(rates)]


def test_curves_of_one_method_are_told_apart_by_words_and_by_how_opaque_they_are(api):
    study = api.studies[1]
    [spark] = [one for one in study.spark if one.method == "eb"][:1]
    both = [
        spark.model_copy(update={"label": f"Explicit (EB), {w}"}) for w in ("no clip", "clip 1")
    ]
    chart = curve_chart(study.model_copy(update={"spark": both}), None)
    assert chart is not None
    assert [label["words"] for label in chart["labels"]] == ["no clip", "clip 1"]
    assert len({line["opacity"] for line in chart["lines"]}) == 2
    alone = curve_chart(study.model_copy(update={"spark": [spark]}), None)
    assert alone is not None
    assert [line["opacity"] for line in alone["lines"]] == [1.0]


def test_a_study_without_results_has_no_curve_yet(api):
    assert curve_chart(api.studies[1].model_copy(update={"spark": []}), None) is None


JUDGED = {
    "counts": {"cannot tell": 13, "differs": 2, "reproduced": 2},
    "authors_counts": {"reproduced": 15, "cannot tell": 2},
}


def test_the_papers_verdicts_are_those_of_its_page(api):
    api.bundle = BundleRead(state="loaded", studies=39)
    shown, mark, done = run(start.judge(None, None, None))
    for count in paper_answer().counts.values():
        assert not count or str(count) in text_of(shown)
    assert done is True
    assert "13 stay open" in start._verdicts(paper_answer().model_copy(update=JUDGED))
    assert len(start._verdicts(paper_answer().model_copy(update=JUDGED))) < 144  # four lines
    assert run(start.judge(None, 1, mark)) == (no_update, no_update, no_update)


def test_a_missing_bundle_is_offered_loaded_and_then_judged(api, dash_app):
    shown, mark, done = run(start.judge(None, None, None))
    assert "Load the reproduction" in text_of(shown)
    assert done is False
    answer = trigger(dash_app, Bundle.LOADED, (Bundle.BUTTON, "n_clicks", 1))["response"]
    assert answer[Bundle.WORDS]["children"] == elements.LOADING
    assert answer[Bundle.INTERVAL]["disabled"] is False
    api.bundle = BundleRead(state="loaded", studies=39)
    answer = trigger(dash_app, Bundle.LOADED, (Bundle.INTERVAL, "n_intervals", 1))["response"]
    assert answer[Bundle.LOADED]["data"] == 39
    shown, _, _ = run(start.judge(39, None, mark))
    assert "experiments" in text_of(shown)


def test_a_bundle_that_could_not_be_loaded_says_why(api):
    api.bundle = BundleRead(state="failed", studies=0, message="The disk is full.")
    shown, _, _ = run(start.judge(None, None, None))
    assert "The disk is full." in text_of(shown)
