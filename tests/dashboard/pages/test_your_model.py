"""Your model: what workers bring along on its page, and the form drawn from a task's schema."""

import json

import pytest

from dashboard.api_client import CATALOG
from dashboard.ids import NewSweep as ids
from dashboard.ids import part
from dashboard.pages import new_sweep, workers
from dashboard.pages.new_sweep.body import FIELDS, body_from, form_from_spec, read_own
from dashboard.pages.new_sweep.form import own_fields
from tests.coroutines import run
from tests.dashboard.dispatch import by_id, names, text_of, trigger
from tests.dashboard.fake_api import FakeApi
from tests.dashboard.own_answers import OWN_OPTIONS, own_catalog, own_task
from tests.dashboard.pages.test_new_sweep import GRID

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


@pytest.mark.parametrize(
    ("text", "value"),
    [("64", 64), ("1e-2", 0.01), (".5", 0.5), ('"layer norm"', "layer norm"), ("false", False)],
)
def test_what_a_field_holds_becomes_a_value_of_the_body(text: str, value: object) -> None:
    assert body_from(OWN | {"vary": held(norm=text)})["vary"] == {"norm": [value]}


@pytest.mark.parametrize("text", [None, "", "{}", "[1]", "{", '{"width": ""}', '{"width": 3}'])
def test_fields_that_are_empty_or_not_ours_say_nothing(text: str | None) -> None:
    assert read_own(text) == {}
    assert "vary" not in body_from(OWN | {"vary": text})


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
    assert read_own(form["vary"]) == {"norm": ["layer norm"], "dropout": [0.5]}


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
