"""The form of a sweep: what is typed becomes a body, and errors find their fields."""

import pytest

from backend.client import ApiError
from dashboard.ids import NewSweep as ids
from dashboard.pages import new_sweep
from dashboard.pages.new_sweep import forecast
from dashboard.pages.new_sweep.body import (
    FIELDS,
    KINDS,
    LABELS,
    TYPED,
    UNDERSTOOD,
    WITH_ERRORS,
    Refused,
    body_from,
    form_from_spec,
    in_the_forms_words,
    shown_at,
)
from ib_core.sweep import specs_of
from tests.coroutines import run
from tests.dashboard.dispatch import names, text_of, trigger
from tests.dashboard.fake_api import FakeApi

EMPTY = dict.fromkeys(FIELDS)
GRID = EMPTY | {
    "mode": "grid",
    "task": "digits_mlp",
    "methods": ["eb", "ib"],
    "rates_mode": "grid",
    "rate_from": "1e-2",
    "rate_to": "100",
    "rate_count": "9",
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


def test_what_is_recorded_is_chosen_and_comes_back_from_a_stored_sweep():
    body = body_from(GRID | {"record": ["activations", "norms"]})
    assert body["record"] == ["norms", "activations"]
    (spec,) = specs_of(body)
    assert form_from_spec(spec.as_dict())["record"] == ["norms", "activations"]
    assert "record" not in body_from(GRID | {"record": []})


EDGE = GRID | {"rates_mode": "edge", "rate_within": "1.2", "rate_most": ""}


def test_rates_can_be_searched_for():
    asked = {"find": "edge", "from": 0.01, "to": 100.0, "within": 1.2}
    assert body_from(EDGE)["learning_rates"] == asked
    assert body_from(EDGE | {"rate_most": "300"})["learning_rates"] == {**asked, "most": 300}
    assert shown_at("learning_rates.most", rates="edge") == "rate_most"
    assert shown_at("learning_rates", rates="edge", falls=True) == "rate_to"
    spec = {"task": "digits_mlp", "methods": ["eb"], "learning_rates": [1.0], "search": asked}
    again = {k: v for k, v in form_from_spec(spec).items() if v is not None}
    assert body_from(EMPTY | {"mode": "grid"} | again)["learning_rates"] == asked
    best = {**spec, "search": {**asked, "find": "best"}}
    again = {k: v for k, v in form_from_spec(best).items() if v is not None}
    assert body_from(EMPTY | {"mode": "grid"} | again)["learning_rates"] == best["search"]


def test_a_forecast_of_a_search_says_at_most(api):
    shown, *_ = forecasted(api, **{k: v for k, v in EDGE.items() if v is not None})
    assert "at most 54" in text_of(shown)
    assert "Time of one worker at most about 12 s" in text_of(shown)


def test_options_hold_only_what_was_set():
    texts = {"width": "32", "tau": "1e2", "power": ".75", "momentum": "0"}
    form = GRID | texts | {"restart": True}
    assert body_from(form)["options"] == {
        "width": 32,
        "restart": True,
        "decay": {"tau": 100.0, "power": 0.75},
        "momentum": 0.0,
    }


def test_a_preset_sends_its_name_and_what_replaces_its_own():
    form = GRID | {"mode": "preset", "preset": "first/digits", "seeds": "2", "width": "16"}
    assert body_from(form) == {
        "preset": "first/digits",
        "profile": "text",
        "device": "auto",
        "seeds": 2,
        "options": {"width": 16},
    }


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"rates_mode": "list", "rate_list": "one, two"}, "rate_list"),
        ({"rates_mode": "list", "rate_list": ""}, "rate_list"),
        ({"rate_from": ""}, "rate_from"),
        ({"seeds": "many"}, "seeds"),
        ({"clip": "hard"}, "clip"),
        ({"power": "0.75"}, "tau"),
        *(({name: "1, 5"}, name) for name in KINDS),
        *(({name: "abc"}, name) for name in (*KINDS, *UNDERSTOOD)),
        *(({name: "1, -5"}, name) for name in (*KINDS, *UNDERSTOOD)),
    ],
)
def test_what_cannot_be_read_says_so_at_its_field(change, field):
    form = EDGE if field in ("rate_within", "rate_most") else GRID
    with pytest.raises(Refused) as caught:
        body_from(form | change)
    assert caught.value.name == field


def test_a_field_that_does_not_count_may_hold_anything():
    listed = GRID | {"rates_mode": "list", "rate_list": "0.01:100:9", "rate_from": "abc"}
    assert body_from(listed)["learning_rates"] == {"from": 0.01, "to": 100, "count": 9}


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            "learning_rates.from should be greater than or equal to 0.000000000001; got 0.0.",
            "From should be greater than or equal to 1e-12; got 0.0.",
        ),
        (
            "clip.0 should be greater than or equal to 1; got -1.",
            "Clipping norms: the first one should be greater than or equal to 1; got -1.",
        ),
        ("learning_rates.2 should be a number.", "Rates: the third one should be a number."),
        (
            "jsb_chorales_rnn has a fixed depth; leave options.depth out.",
            "jsb_chorales_rnn has a fixed depth; leave Depth empty.",
        ),
        ("batch_size must be 1, got 4.", "Batch size must be 1, got 4."),
        ("seeds should be at most 9; got 10.", "Seeds should be at most 9; got 10."),
        ("The number of seeds must be 1 to 9.", "The number of seeds must be 1 to 9."),
        ("options.decay.tau should be a number.", "Decay: tau should be a number."),
        ("A grid must rise; got 1 to 0.1.", "A grid must rise; got 1 to 0.1."),
    ],
)
def test_an_error_of_the_api_speaks_the_form_s_words(said, words):
    assert in_the_forms_words(said) == words


@pytest.mark.parametrize(
    ("field", "where"),
    [
        ("task", "task"),
        ("learning_rates.from", "rate_from"),
        ("learning_rates", "rate_count"),
        ("learning_rates.3", "rate_count"),
        ("methods.1", "methods"),
        ("clip.0", "clip"),
        ("options.width", "width"),
        ("options.decay.tau", "tau"),
        ("nobody.knows", None),
        (None, None),
    ],
)
def test_an_error_is_shown_at_its_field(field, where):
    assert shown_at(field) == where


def test_a_grid_that_falls_is_wrong_at_its_end(api):
    assert shown_at("learning_rates", falls=True) == "rate_to"
    assert shown_at("learning_rates", rates="list", falls=True) == "rate_list"
    words = "A grid must rise; got 10 to 1."
    api.refused_forecast = ApiError(422, "invalid", words, field="learning_rates")
    shown, _, ready, _, errors, _ = forecasted(api, rate_from="10", rate_to="1")
    assert errors["rate_to"] == words
    assert text_of(shown) == "Not ready: see To."
    assert ready is False


def test_what_is_said_of_a_field_names_the_text_it_is_about(api):
    for seeds in ("5", "1, x"):
        change = {"seeds": seeds, "clip": ".5", "rate_from": "1e-4"}
        filled = [(GRID | change)[name] for name in FIELDS]
        told = run(forecast.forecast(filled, False))[-len(TYPED + UNDERSTOOD) :]
        answer = dict(zip(TYPED, told, strict=False))
        held = {name: GRID[name] or "" for name in TYPED}
        assert answer == held | change


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("clip", "1,5", "2 values: 1 and 5"),
        ("epochs", "2,5", "2 values: 2 and 5"),
        ("epochs", "1_000", "1000"),
        ("seeds", "2,5", "2 seeds: 2 and 5"),
        ("seeds", "7,", "seed 7"),
        ("seeds", "1,2,3,4,5,6,7,8,9", "9 seeds: 1, 2, 3, … and 9"),
    ],
)
def test_a_comma_that_makes_two_numbers_of_one_is_said_aloud(api, name, text, said):
    *_, errors, read = forecasted(api, **{name: text})
    assert not any(errors.values())
    assert read[name] == said


def test_blanks_between_numbers_ask_for_commas_where_a_list_may_stand(api):
    *_, errors, _ = forecasted(api, epochs="16 64")
    assert errors["epochs"] == "Write 16, 64, with commas, for several values; got 16 64."


def test_a_name_of_several_words_stays_one_value(api):
    assert body_from(GRID | {"activation": ["leaky relu"]})["activation"] == "leaky relu"


def test_an_error_is_never_shown_at_a_field_that_is_hidden():
    assert shown_at("learning_rates.from", rates="list") == "rate_list"
    assert shown_at("learning_rates", rates="own") is None
    assert shown_at("learning_rates", preset=True) is None
    assert shown_at("epochs", rates="own", preset=True) == "epochs"


def test_every_field_s_label_is_the_one_errors_name(api):
    view = run(new_sweep.layout())
    shown = {getattr(one, "id", None): one for one in names(view.body)}
    for name in WITH_ERRORS:
        assert shown[FIELDS[name]].label == LABELS[name]


def test_a_stored_sweep_fills_the_form_so_that_it_asks_for_the_same():
    spec = FakeApi().sweep(1).spec | {"clips": [None, 1.0]}
    form = GRID | {k: v for k, v in form_from_spec(spec).items() if v is not None}
    body = body_from(form)
    assert body["learning_rates"] == spec["learning_rates"]
    assert body["seeds"] == spec["seeds"]
    assert body["clip"] == [None, 1.0]


def test_a_stored_sweep_of_one_seed_asks_for_that_seed_and_not_for_so_many():
    spec = FakeApi().sweep(1).spec | {"seeds": [7]}
    assert body_from(GRID | {"seeds": form_from_spec(spec)["seeds"]})["seeds"] == [7]


def test_the_address_fills_in_every_field_as_it_was_typed(api):
    typed = GRID | dict.fromkeys(KINDS, "1e-1") | {"restart": "1", "note": "a, b & c"}
    typed |= {"methods": "ib,eb", "seeds": "1, x", "clip": "", "activation": "relu"}
    address = {name: value for name, value in typed.items() if value is not None}
    view = run(new_sweep.layout(**address, name="Mine"))
    shown = {getattr(one, "id", None): one for one in names(view.body)}
    for name in (*KINDS, "seeds", "clip"):
        assert shown[FIELDS[name]].text == address[name]
    assert shown[ids.METHODS].value == ["ib", "eb"]
    assert shown[FIELDS["restart"]].checked is True
    assert shown[FIELDS["note"]].value == "a, b & c"
    assert shown[ids.NAME].value == "Mine"


def forecasted(api, **change):
    filled = [(GRID | change)[name] for name in FIELDS]
    shown, rates, answer, panel, *rest = run(forecast.forecast(filled, False))
    assert answer["form"] == filled
    errors = dict(zip(WITH_ERRORS, rest, strict=False))
    read = dict(zip(UNDERSTOOD, rest[-len(UNDERSTOOD) :], strict=True))
    return shown, rates, answer["ready"], panel, errors, read


def test_the_forecast_says_what_it_would_cost(api):
    shown, rates, ready, _, errors, read = forecasted(api, clip="none, 1e-1")
    words = text_of(shown)
    assert "54" in words
    assert "34" in words
    assert "about 12 s" in words
    assert ready is True
    assert not any(errors.values())
    assert "0.01, 0.03" in text_of(rates)
    assert (read["seeds"], read["clip"]) == ("seeds 1 to 5", "2 values: none and 0.1")


def test_the_api_s_error_stands_at_its_field_and_nothing_can_be_submitted(api):
    shown, _, ready, panel, errors, _ = forecasted(api, task="mnist_classifier")
    assert "MNIST is not on this machine. Fetch it." in errors["task"]
    assert text_of(shown) == "Not ready: see Task."
    assert ready is False
    assert panel is None


def test_a_text_that_is_no_number_never_reaches_the_api(api):
    shown, _, ready, _, errors, _ = forecasted(api, width="16, x")
    assert errors["width"] == "That is no number: write it as 20; got x."
    assert text_of(shown) == "Not ready: see Width."
    assert ready is False
    assert api.sent == []


def test_a_field_takes_several_values_and_says_what_it_understood(api):
    change = {"width": "1_6;64", "activation": ["relu", "arctan"], "warmup": "0, 1e1"}
    *_, errors, read = forecasted(api, **change)
    assert not any(errors.values())
    body = api.sent[-1].json
    assert (body["options"], body["warmup"]) == ({"width": [16, 64]}, [0, 10])
    assert body["activation"] == ["relu", "arctan"]
    assert (read["width"], read["warmup"]) == ("2 values: 16 and 64", "2 values: 0 and 10")
    assert "activation" not in body_from(GRID | {"activation": []})


def test_a_forecast_needs_no_study(api):
    api.studies.clear()
    assert forecasted(api)[2] is True
    assert [call.path for call in api.sent] == ["/api/forecast"]


def submitted(dash_app, form=GRID, **values):
    filled = {FIELDS[name]: value for name, value in form.items()}
    return trigger(
        dash_app,
        f"{ids.STUDY}.data",
        (ids.SUBMIT, "n_clicks", 1),
        **{**filled, ids.KEY: "k", **values},
    )["response"]


def test_a_click_submits_what_the_form_says_now_or_nothing(api, dash_app):
    answer = submitted(dash_app, GRID | {"epochs": "2.5"})
    assert "location" not in answer
    words = answer[ids.ERROR]["children"]["props"]["children"]
    assert "Epochs: Epochs must be a whole number" in str(words)
    assert api.sent == []
    submitted(dash_app, GRID | {"epochs": "1e1"})
    assert api.sent[-1].json["sweep"]["epochs"] == 10


def test_submitting_makes_a_named_study_and_goes_there(api, dash_app):
    answer = submitted(dash_app)
    assert answer["location"]["href"] == "/studies/3"
    assert api.studies[3].name == "Handwritten digits, arctan MLP: EB, IB"
    sent = api.sent[-1]
    assert sent.path == "/api/sweeps"
    assert sent.json["reuse"] is False, "a second study may have the name of the first"
    assert sent.headers["Idempotency-Key"] == "form-k"


def test_a_preset_s_study_can_be_found_by_its_tags(api, dash_app):
    answer = submitted(dash_app, GRID | {"mode": "preset", "preset": "paper/05_jsb_chorales"})
    assert answer["location"]["href"] == "/studies/3?view=across"
    assert api.studies[3].tags == ["paper", "05_jsb_chorales"]
    assert api.studies[3].name == "JSB Chorales"


def test_adding_to_a_study_makes_no_new_one(api, dash_app):
    answer = submitted(dash_app, **{ids.STUDY: 1})
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
    assert answer[ids.RATE_TO]["text"] == "100"
