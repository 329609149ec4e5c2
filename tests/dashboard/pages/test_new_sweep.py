"""The form of a sweep: what is typed becomes a body, and errors find their fields."""

import pytest

from dashboard.ids import NewSweep as ids
from dashboard.pages.new_sweep import forecast
from dashboard.pages.new_sweep.body import (
    FIELDS,
    WITH_ERRORS,
    Unreadable,
    body_from,
    form_from_spec,
    shown_at,
)
from tests.coroutines import run
from tests.dashboard.dispatch import text_of, trigger
from tests.dashboard.fake_api import FakeApi

EMPTY = dict.fromkeys(FIELDS)
GRID = EMPTY | {
    "mode": "grid",
    "task": "digits_mlp",
    "methods": ["eb", "ib"],
    "rates_mode": "grid",
    "rate_from": 0.01,
    "rate_to": 100,
    "rate_count": 9,
    "seeds": "5",
    "profile": "text",
    "device": "auto",
}


def test_what_is_left_empty_is_left_out():
    assert body_from(GRID) == {
        "task": "digits_mlp",
        "methods": ["eb", "ib"],
        "learning_rates": {"from": 0.01, "to": 100.0, "count": 9},
        "seeds": 5,
        "profile": "text",
        "device": "auto",
    }


@pytest.mark.parametrize(
    ("typed", "seeds"), [("5", 5), ("1,2,7", [1, 2, 7]), ("3,", [3]), ("", None)]
)
def test_seeds_are_a_number_or_a_list(typed, seeds):
    assert body_from(GRID | {"seeds": typed}).get("seeds") == seeds


@pytest.mark.parametrize(
    ("typed", "clip"), [("none, 1", [None, 1.0]), ("0.5", [0.5]), ("", None), ("None", [None])]
)
def test_clips_are_norms_or_none(typed, clip):
    assert body_from(GRID | {"clip": typed}).get("clip") == clip


def test_rates_can_be_a_list_or_the_task_s_own():
    assert body_from(GRID | {"rates_mode": "list", "rate_list": "0.1, 1;10"})["learning_rates"] == [
        0.1,
        1.0,
        10.0,
    ]
    assert "learning_rates" not in body_from(GRID | {"rates_mode": "own"})


def test_options_hold_only_what_was_set():
    form = GRID | {"width": 32, "restart": True, "tau": 100, "power": 0.75, "momentum": 0}
    assert body_from(form)["options"] == {
        "width": 32,
        "restart": True,
        "decay": {"tau": 100.0, "power": 0.75},
        "momentum": 0.0,
    }


def test_a_preset_sends_its_name_and_what_replaces_its_own():
    form = GRID | {"mode": "preset", "preset": "first/digits", "seeds": "2"}
    assert body_from(form) == {
        "preset": "first/digits",
        "profile": "text",
        "device": "auto",
        "seeds": 2,
    }


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"rates_mode": "list", "rate_list": "one, two"}, "learning_rates"),
        ({"rates_mode": "list", "rate_list": ""}, "learning_rates"),
        ({"rate_from": ""}, "learning_rates.from"),
        ({"seeds": "many"}, "seeds"),
        ({"clip": "hard"}, "clip"),
    ],
)
def test_what_cannot_be_read_says_what_would_work(change, field):
    with pytest.raises(Unreadable) as caught:
        body_from(GRID | change)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("field", "where"),
    [
        ("task", ids.TASK),
        ("learning_rates.from", ids.RATE_FROM),
        ("learning_rates.3", ids.RATE_COUNT),
        ("methods.1", ids.METHODS),
        ("options.width", FIELDS["width"]),
        ("options.decay.tau", FIELDS["tau"]),
        ("nobody.knows", None),
        (None, None),
    ],
)
def test_an_error_is_shown_at_its_field(field, where):
    found = shown_at(field)
    assert found == where or (field == "learning_rates.3" and found == ids.RATE_LIST)


def test_a_stored_sweep_fills_the_form_so_that_it_asks_for_the_same():
    spec = FakeApi().sweep(1).spec | {"clips": [None, 1.0]}
    form = GRID | {k: v for k, v in form_from_spec(spec).items() if v is not None}
    body = body_from(form)
    assert body["learning_rates"] == spec["learning_rates"]
    assert body["seeds"] == spec["seeds"]
    assert body["clip"] == [None, 1.0]


def forecasted(api, **change):
    form = GRID | change
    found = run(forecast.forecast(*[form[name] for name in FIELDS], None, False))
    shown, rates, disabled, body, panel, *errors = found
    return shown, rates, disabled, body, panel, dict(zip(WITH_ERRORS, errors, strict=True))


def test_the_forecast_says_what_it_would_cost(api):
    shown, rates, disabled, body, _, errors = forecasted(api)
    words = text_of(shown)
    assert "54" in words
    assert "34" in words
    assert "about 12 s" in words
    assert disabled is False
    assert body["task"] == "digits_mlp"
    assert not any(errors.values())
    assert "0.01, 0.03" in text_of(rates)


def test_the_api_s_error_stands_at_its_field_and_nothing_can_be_submitted(api):
    _, _, disabled, body, panel, errors = forecasted(api, task="mnist_classifier")
    assert "MNIST is not on this machine. Fetch it." in errors[ids.TASK]
    assert disabled is True
    assert body is None
    assert panel is None


def test_the_first_study_of_an_installation_can_be_submitted_without_a_forecast(api):
    api.studies.clear()
    _, _, disabled, body, _, _ = forecasted(api)
    assert disabled is False
    assert body is not None


def submitted(dash_app, body, **values):
    return trigger(
        dash_app,
        f"{ids.STUDY}.data",
        (ids.SUBMIT, "n_clicks", 1),
        **{ids.BODY: body, ids.KEY: "k", **values},
    )["response"]


def test_submitting_makes_a_named_study_and_goes_there(api, dash_app):
    answer = submitted(dash_app, body_from(GRID))
    assert answer["location"]["href"] == "/studies/3"
    assert api.studies[3].name == "Handwritten digits, arctan MLP: EB, IB"
    sent = api.sent[-1]
    assert sent.path == "/api/studies/3/sweeps"
    assert sent.headers["Idempotency-Key"] == "form-k"


def test_a_preset_s_study_can_be_found_by_its_tags(api, dash_app):
    submitted(dash_app, {"preset": "paper/05_jsb_chorales"})
    assert api.studies[3].tags == ["paper", "05_jsb_chorales"]
    assert api.studies[3].name == "JSB Chorales"


def test_adding_to_a_study_makes_no_new_one(api, dash_app):
    answer = submitted(dash_app, body_from(GRID), **{ids.STUDY: 1})
    assert answer["location"]["href"] == "/studies/1"
    assert len(api.studies) == 2


def test_changing_the_task_offers_what_suits_it(api, dash_app):
    answer = trigger(
        dash_app,
        f"{ids.TASK_FACTS}.children",
        (ids.TASK, "value", "mnist_classifier"),
        **{ids.METHODS: ["eb", "adam"], FIELDS["profile"]: "text"},
    )["response"]
    assert answer[ids.METHODS]["value"] == ["eb"]
    assert answer[ids.RATE_TO]["value"] == 100.0
