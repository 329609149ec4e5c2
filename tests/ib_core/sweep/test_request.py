"""One reader of a sweep: whoever writes it, the same body comes of it, or the same sentence."""

import math
import shlex
from dataclasses import asdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ib_core.errors import IBError
from ib_core.sweep.bodies import specs_of
from ib_core.sweep.request import (
    RATE,
    SETTINGS,
    body_of,
    command_words,
    read_body,
    typed_form,
)

GRID = {"from": 0.01, "to": 100.0, "count": 9}


@pytest.mark.parametrize(
    ("name", "ways", "canonical"),
    [
        ("learning_rates", ["0.01:100:9", " 1e-2 : 1e2 : 9", GRID], GRID),
        ("learning_rates", ["0.1,1,10", "0.1; 1 10", ".1, 1e0, 10", [0.1, 1, 10]], [0.1, 1, 10]),
        ("seeds", ["5", 5], 5),
        ("seeds", ["1,2,7", "1 2 7", [1, 2, 7]], [1, 2, 7]),
        ("seeds", ["7,", [7]], [7]),
        ("clip", ["none, 1", [None, 1.0]], [None, 1.0]),
        ("clip", ["1e0", 1, [1]], [1.0]),
        ("methods", ["eb,ib", "eb ib", ["eb", "ib"]], ["eb", "ib"]),
    ],
)
def test_every_way_of_writing_works_for_api_and_people_alike(name, ways, canonical):
    for way in ways:
        for typed in (False, True):
            assert read_body({name: way}, typed=typed) == {name: canonical}


@pytest.mark.parametrize(
    ("body", "field", "words"),
    [
        ({"learning_rates": "0.1:x:3"}, "learning_rates", "got x"),
        ({"learning_rates": "0.1:1"}, "learning_rates", "from, to, how many"),
        ({"learning_rates": ""}, "learning_rates", "at least one rate"),
        ({"learning_rates": [1, 0]}, "learning_rates.1", "second learning rate"),
        ({"learning_rates": {"from": 1, "to": 2}}, "learning_rates.count", "is needed"),
        ({"learning_rates": GRID | {"step": 1}}, "learning_rates.step", "no 'step'"),
        ({"learning_rates": 7}, "learning_rates", "from:to:count"),
        ({"seeds": "1-5"}, "seeds", "Write 5 for seeds 1 to 5"),
        ({"seeds": "0"}, "seeds", "from 1 to 1,000; got 0"),
        ({"seeds": [1, 2**31]}, "seeds.1", "2,147,483,647"),
        ({"seeds": True}, "seeds", "got true"),
        ({"epochs": 10**400}, "epochs", "more than 40 digits"),
        ({"epochs": 1.5}, "epochs", "a whole number"),
        ({"epochs": []}, "epochs", "got a list of 0"),
        ({"mu": math.nan}, "mu", "got NaN"),
        ({"clip": [1, "x"]}, "clip.1", "got 'x'"),
        ({"profile": "paper"}, "profile", "one of text, authors"),
        ({"profile": ["text"]}, "profile", "one of text, authors"),
        ({"methods": []}, "methods", "1 to 200 methods"),
        ({"methods": [1]}, "methods", "a list of names"),
        ({"task": {"a": 1}}, "task", "got an object"),
        ({"options": {"decay": {"power": 0.75}}}, "options.decay.tau", "is needed"),
        ({"options": {"decay": {"tau": 1, "power": 0.5}}}, "options.decay.power", "above 0.5"),
        ({"options": {"widht": 1}}, "options.widht", "options.width"),
        ({"options": 3}, "options", "must be an object"),
        ({"lerning_rates": [1]}, "lerning_rates", "learning_rates"),
        ({"preset": "first/digits", "task": "digits_mlp"}, "task", "decides task"),
        ({"preset": "first/digits", "methods": "eb"}, "methods", "decides methods"),
        ({"note": "a\x00b"}, "note", "without NUL"),
    ],
)
def test_what_cannot_be_read_is_one_sentence_with_its_field(body, field, words):
    with pytest.raises(IBError) as caught:
        read_body(body)
    assert caught.value.field == field
    assert words in caught.value.message


@pytest.mark.parametrize("name", [name for name, one in SETTINGS.items() if one.kind])
@pytest.mark.parametrize("text", ["1.5.2", "abc", "-5", "1 2"])
def test_a_number_field_never_makes_another_number_of_what_was_typed(name, text):
    inner = name.removeprefix("options.")
    body = {name: text} if inner == name else {"options": {inner: text}}
    with pytest.raises(IBError) as caught:
        read_body(body, typed=True)
    assert caught.value.field == name
    assert text in caught.value.message


def test_nothing_empty_stays_and_null_means_not_said():
    assert read_body({"mu": None, "options": {"width": None, "restart": False}}) == {}
    typed = {"mu": "", "seeds": "", "methods": [], "options": {"decay": {}, "width": ""}}
    assert read_body(typed, typed=True) == {}


BODIES = st.fixed_dictionaries(
    {
        "task": st.just("digits_mlp"),
        "methods": st.lists(st.sampled_from(["eb", "ib", "momentum"]), min_size=1, unique=True),
        "learning_rates": st.lists(
            st.floats(RATE.low, RATE.high), min_size=1, max_size=5, unique=True
        ),
        "seeds": st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=4, unique=True),
    },
    optional={
        "epochs": st.integers(1, 10_000),
        "clip": st.lists(st.none() | st.floats(1e-12, 1e12), min_size=1, max_size=3, unique=True),
        "mu": st.floats(1e-9, 1e6),
        "batch_rule": st.sampled_from(["own", "share"]),
        "profile": st.sampled_from(["text", "authors"]),
        "options": st.fixed_dictionaries(
            {},
            optional={
                "width": st.integers(1, 4096),
                "momentum": st.floats(0, 0.9999),
                "restart": st.just(True),
                "decay": st.fixed_dictionaries({"tau": st.floats(1e-6, 1e12)}),
            },
        ),
    },
)


@settings(max_examples=60, deadline=None)
@given(BODIES)
def test_a_body_survives_its_spec_and_its_command_line(body):
    body["mu"] = body.get("mu", 0.5)  # restarts need one
    options = body.get("options", {})
    if options.get("restart"):
        body["methods"] = ["eb", "ib"]  # which remember nothing
        options.pop("momentum", None)
    elif "momentum" in options and "momentum" not in body["methods"]:
        body["methods"].append("torch.optim.SGD")  # a momentum needs a method that has one
    (spec,) = specs_of(body)
    again = body_of(asdict(spec))
    assert specs_of(again) == (spec,)
    task, *words = shlex.split(shlex.join(command_words(again)))
    flags = {one.flag: name for name, one in SETTINGS.items()}
    typed = {"task": task, "options": {}}
    while words:
        name = flags[words.pop(0)]
        value = "yes" if name == "options.restart" else words.pop(0)
        place = typed["options"] if name.startswith("options.") else typed
        place[name.removeprefix("options.")] = value
    assert specs_of(typed, typed=True) == (spec,)


def test_a_canonical_value_reads_well_where_it_is_typed():
    assert typed_form("learning_rates", GRID) == "0.01:100:9"
    assert typed_form("seeds", [7]) == "7,"
    assert typed_form("seeds", 5) == "5"
    assert typed_form("clip", [None, 0.5]) == "none,0.5"
    assert typed_form("options.decay", {"tau": 100.0, "power": 0.75}) == "100:0.75"


def test_every_setting_says_what_it_takes():
    for name, setting in SETTINGS.items():
        assert setting.help.endswith("."), name
        assert setting.schema, name
        assert setting.flag or name in ("note", "settings")
