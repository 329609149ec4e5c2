import pytest

from backend.schemas import BundleRead
from dashboard.ids import Bundle, part
from dashboard.ids import Paper as ids
from dashboard.pages import paper
from tests.coroutines import run
from tests.dashboard.dispatch import by_id, names, text_of, trigger
from tests.dashboard.paper_answer import paper_answer


@pytest.fixture
def page(api):
    return run(paper.layout())


def test_every_experiment_has_its_verdict_claim_and_coverage(page):
    answer = paper_answer()
    for one in (*answer.experiments, answer.uci):
        row = text_of(by_id(page, f"experiment-{one.id}"))
        assert one.title in row
        assert one.claim in row
        assert one.text.verdict in row
        assert one.text.coverage in row


def test_missing_data_is_said_with_how_to_get_it(page):
    one = next(found for found in paper_answer().experiments if not found.present)
    row = text_of(by_id(page, f"experiment-{one.id}"))
    assert all(part in row for part in one.how_to_get.split("`"))  # commands are set as code


def test_published_recorded_and_own_rates_stand_side_by_side(page):
    row = text_of(by_id(page, "experiment-05_jsb_chorales"))
    for words in ("recorded:", "text:", "authors:", "EB 50, IB 500 (10 times)"):
        assert words in row


def test_claims_and_run_times_are_shown(page):
    words = text_of(page)
    for claim in paper_answer().claims:
        assert claim.text in words
    assert "+31.0%" in words
    assert "+152.5%" in words


def test_every_run_button_says_what_it_runs(page):
    buttons = [one for one in names(page) if isinstance(getattr(one, "id", None), dict)]
    assert {one.id["kind"] for one in buttons} == {ids.RUN}
    labels = [one.to_plotly_json()["props"]["aria-label"] for one in buttons]
    assert len(set(labels)) == len(buttons) == 36


def test_a_missing_bundle_is_loaded_with_one_click_here_too(page, api):
    assert "Load the reproduction" in text_of(page)
    assert by_id(page, Bundle.LOADED) is not None
    api.bundle = BundleRead(state="loaded", studies=39)
    assert "Load the reproduction" not in text_of(run(paper.layout()))


def test_who_may_not_write_is_offered_nothing(api):
    api.log_in("vera", "viewer")
    assert "Load the reproduction" not in text_of(run(paper.layout()))


def test_no_command_is_shown_with_its_backticks(page, api, dash_app):
    assert "`" not in text_of(page)
    answer = trigger(dash_app, f"{ids.GRAPH}.figure", (ids.EXPERIMENT, "value", "nothing"))
    said = answer["response"][ids.MESSAGE]["children"]
    assert {"type": "Code", "text": "etascope import-bundle"} in [
        {"type": one["type"], "text": one["props"]["children"]}
        for one in said
        if isinstance(one, dict)
    ]
    assert "`" not in str(said)


def test_one_click_runs_an_experiment_and_goes_to_its_study(dash_app, api):
    button = part(ids.RUN, "authors|06_jsb_chorales_clip_8.0")
    answer = trigger(dash_app, f"{ids.ERROR}.children", (button, "n_clicks", 1))
    sent = [call for call in api.sent if call.method == "POST"]
    assert sent[0].json["study"]["tags"] == ["paper", "authors", "06_jsb_chorales_clip_8.0"]
    assert sent[-1].json["sweep"]["preset"] == "paper/06_jsb_chorales_clip_8.0"
    assert sent[-1].json["sweep"]["profile"] == "authors"
    assert "/studies/" in str(answer)


@pytest.mark.parametrize(("profile", "curves"), [("text", 2), ("authors", 4)])
def test_the_picture_lays_recorded_runs_over_the_authors_profile(api, profile, curves):
    from dashboard.pages.paper.curves import curves_of

    one = next(found for found in paper_answer().experiments if found.id == "05_jsb_chorales")
    assert len(curves_of(one, profile)) == curves
