"""Your model: what workers bring along on its page, and the form drawn from a task's schema."""

import json

import pytest

from backend.client import ApiError
from dashboard.api_client import CATALOG
from dashboard.ids import NewSweep as ids
from dashboard.ids import part
from dashboard.pages import new_sweep, workers
from dashboard.pages.new_sweep import forecast
from dashboard.pages.new_sweep.body import (
    FIELDS,
    WITH_ERRORS,
    Refused,
    body_from,
    form_from_spec,
    own_texts,
    read_own,
    shown_at,
)
from dashboard.pages.new_sweep.form import own_fields
from tests.coroutines import run
from tests.dashboard.dispatch import by_id, names, text_of, trigger
from tests.dashboard.fake_api import FakeApi
from tests.dashboard.own_answers import OWN_OPTIONS, own_catalog, own_task
from tests.dashboard.pages.test_new_sweep import GRID, submitted

OPTIONS = OWN_OPTIONS["properties"]
OWN = GRID | {"task": "my_file.py:task", "methods": ["eb", "my_file.py:lion"]}


@pytest.fixture
def own_api(api: FakeApi) -> FakeApi:
    """An API whose workers bring something along."""
    api.catalog = own_catalog()
    CATALOG.forget("catalog")
    yield api
    CATALOG.forget("catalog")


def held(**texts: str) -> str:
    return json.dumps(texts)


def test_the_page_says_whose_which_version_and_which_options(own_api: FakeApi) -> None:
    words = text_of(run(workers.model_layout()))
    assert "my_file.py:task" in words
    assert "aaaa0000" in words
    assert "on anna.lab" in words
    assert "whole numbers from 4 to 512" in words
    assert "batch, layer norm, false" in words
    assert "no living worker has it;  anna.lab  had it" in words
    assert "etascope submit my_file.py:task@aaaa0000" in words


def test_commands_can_be_copied_and_no_code_can_be_sent(own_api: FakeApi) -> None:
    page = names(run(workers.model_layout()))
    copied = {one.value for one in page if type(one).__name__ == "CopyButton"}
    assert {workers.NEW, workers.UP, workers.WORKER, workers.PACKAGE} <= copied
    kinds = {type(one).__name__ for one in page}
    assert kinds.isdisjoint({"Upload", "TextInput", "Textarea", "FileInput"})


def test_without_any_it_says_how_to_add_one(api: FakeApi) -> None:
    words = text_of(run(workers.model_layout()))
    assert "No worker brings anything along yet" in words
    assert "etascope up --with my_file.py" in words


def test_fields_are_drawn_from_the_schema() -> None:
    found = own_fields(own_task(), held(width="16, 64", norm='"layer norm",false'))
    width = by_id(found, part("own-number", "width"))
    assert (width.text, width.label) == ("16, 64", "width")
    assert not hasattr(width, "kind"), "a list, which the server reads"
    assert width.placeholder == "32, the default"
    dropout = by_id(found, part("own-number", "dropout"))
    assert dropout.text == ""
    norm = by_id(found, part("own-choice", "norm"))
    assert [one["label"] for one in norm.data] == ["batch", "layer norm", "false"]
    assert norm.value == ['"layer norm"', "false"]
    assert own_fields(own_task(options={}), None) is None


def test_a_field_keeps_what_was_typed_right_or_wrong() -> None:
    found = own_fields(own_task(), held(dropout="0,5", width="16  64"))
    assert by_id(found, part("own-number", "dropout")).text == "0,5"
    assert by_id(found, part("own-number", "width")).text == "16  64"


@pytest.mark.parametrize(
    ("name", "text", "values"),
    [
        ("width", "64", [64]),
        ("width", "16, 64", [16, 64]),
        ("width", "16 64;1_28", [16, 64, 128]),
        ("width", "8,16", [8, 16]),
        ("dropout", "1e-2", [0.01]),
        ("dropout", ".5", [0.5]),
        ("dropout", "0, .5", [0.0, 0.5]),
        ("norm", '"layer norm"', ["layer norm"]),
        ("norm", '"batch",false', ["batch", False]),
        ("norm", '"a, b"', ["a, b"]),
        ("nobody_knows", "0,5", ["0,5"]),
    ],
)
def test_what_a_field_holds_becomes_values_of_the_body(
    name: str, text: str, values: list[object]
) -> None:
    found = body_from(OWN | {"vary": held(**{name: text})}, OPTIONS)["vary"]
    assert found == {name: values}
    assert [type(one) for one in found[name]] == [type(one) for one in values]


#: What is typed into a field, and what is said beneath it.
REFUSED = {
    ("dropout", "0,5"): "Write 0.5, with a point, or 0, 5 for two.",
    ("dropout", ",5"): "Write .5, with a point, or , 5 for two.",
    ("dropout", "1.5"): "The first value of dropout must be a number from 0 to 0.9; got 1.5.",
    ("dropout", "0.1, x"): "That is no number: write it as 0.01 or 1e-2; got x.",
    ("dropout", "nan"): "That is no number: write it as 0.01 or 1e-2; got nan.",
    ("width", "16, 2.5"): (
        "The second value of width must be a whole number from 4 to 512; got 2.5."
    ),
    ("width", "true"): "That is no number: write it as 20; got true.",
}


@pytest.mark.parametrize(("name", "text"), REFUSED)
def test_what_an_option_does_not_take_is_refused_at_its_field(name: str, text: str) -> None:
    with pytest.raises(Refused) as caught:
        body_from(OWN | {"vary": held(**{name: text})}, OPTIONS)
    assert (caught.value.name, str(caught.value)) == (f"vary.{name}", REFUSED[name, text])


def forecasted(**change: str) -> tuple[str, dict[str, dict[str, str]], object]:
    filled = [(OWN | change)[name] for name in FIELDS]
    shown, _, answer, panel, *rest = run(forecast.forecast(filled, False))
    assert not any(rest[: len(WITH_ERRORS)])
    assert answer["ready"] is (shown is not None and "Not ready" not in text_of(shown))
    return text_of(shown), answer["own"], panel


def test_an_error_of_an_option_stands_beside_its_field_and_is_no_alert(own_api: FakeApi) -> None:
    shown, own, panel = forecasted(vary=held(dropout="0,5", width="1e1"))
    assert (shown, panel) == ("Not ready: see dropout.", None)
    words = REFUSED["dropout", "0,5"]
    assert own == {"dropout": {"answers": "0,5", "error": words}, "width": {"answers": "1e1"}}
    assert "/api/forecast" not in [call.path for call in own_api.sent]


def test_the_server_s_error_of_an_option_stands_there_too(own_api: FakeApi) -> None:
    words = "The value of dropout 0.5 is given twice."
    own_api.refused_forecast = ApiError(422, "invalid", words, field="vary.dropout")
    shown, own, panel = forecasted(vary=held(dropout=".5, 0.5"))
    assert (shown, panel) == ("Not ready: see dropout.", None)
    assert own == {"dropout": {"answers": ".5, 0.5", "error": words}}
    assert shown_at("vary.dropout") == "vary.dropout"
    assert shown_at("vary.dropout", preset=True) is None


def test_what_an_option_was_understood_as_is_said(own_api: FakeApi) -> None:
    _, own, _ = forecasted(vary=held(dropout="1e-2 .5"))
    assert own == {"dropout": {"answers": "1e-2 .5", "understood": "2 values: 0.01 and 0.5"}}
    assert own_api.sent[-1].json["vary"] == {"dropout": [0.01, 0.5]}


def test_a_click_sends_no_option_that_is_wrong(dash_app, own_api: FakeApi) -> None:
    answer = submitted(dash_app, OWN | {"vary": held(dropout="0,5")})
    assert REFUSED["dropout", "0,5"] in json.dumps(answer[ids.ERROR])
    assert "dropout: " in json.dumps(answer[ids.ERROR])
    assert all(call.method == "GET" for call in own_api.sent)


@pytest.mark.parametrize("text", [None, "", "{}", "[1]", "{", '{"width": ""}', '{"width": 3}'])
def test_fields_that_are_empty_or_not_ours_say_nothing(text: str | None) -> None:
    assert own_texts(text) == {}
    assert "vary" not in body_from(OWN | {"vary": text}, OPTIONS)


def test_other_methods_join_those_that_are_ticked() -> None:
    other = "torch.optim.AdamW(weight_decay=0.1,amsgrad=true), torch.optim.RAdam"
    assert body_from(OWN | {"other_methods": other})["methods"] == [
        "eb",
        "my_file.py:lion",
        "torch.optim.AdamW(weight_decay=0.1,amsgrad=true)",
        "torch.optim.RAdam",
    ]


def test_a_stored_sweep_fills_the_fields_again() -> None:
    spec = FakeApi().sweep(1).spec | {
        "task": "my_file.py:task",
        "options": {"norm": "layer norm", "dropout": 0.5, "code": "aaaa0000aaaa0000"},
    }
    form = form_from_spec(spec)
    assert read_own(form["vary"], OPTIONS) == {"norm": ["layer norm"], "dropout": [0.5]}


def test_choosing_a_task_draws_its_fields(dash_app, own_api: FakeApi) -> None:
    answer = trigger(
        dash_app,
        f"{ids.OWN}.children",
        (ids.TASK, "value", "my_file.py:task"),
        **{FIELDS["profile"]: "text", ids.METHODS: ["eb", "ib"]},
    )
    changed = answer["response"]
    drawn = json.dumps(changed[ids.OWN])
    assert all(f'"key": "{name}"' in drawn for name in OWN_OPTIONS["properties"])
    assert changed[ids.METHODS]["value"] == ["eb"]


def test_the_form_opens_with_a_task_of_one_s_own_from_the_address(own_api: FakeApi) -> None:
    view = run(new_sweep.layout(task="my_file.py:task", vary=held(width="64")))
    assert by_id(view.body, part("own-number", "width")).text == "64"
    assert by_id(view.body, ids.METHODS).value == ["eb"]
    assert by_id(view.body, FIELDS["vary"]).value == held(width="64")
    assert "version aaaa0000 on anna.lab" in text_of(by_id(view.body, ids.TASK_FACTS))
