"""Families: every setting takes a list, the grid is the product, and schedules share a stack."""

import time
from itertools import product
from typing import Any

import pytest

from ib_core.errors import IBError
from ib_core.methods import METHODS, find_method
from ib_core.sweep import plan_shards
from ib_core.sweep.bodies import specs_of
from ib_core.sweep.request import SETTINGS, command_words, read_body
from ib_core.sweep.spec import MOST_TRIALS, TrialSpec

GRID: dict[str, Any] = {"task": "digits_mlp", "learning_rates": [0.1, 1], "seeds": 1, "epochs": 1}

#: Two values of every setting that makes a family, and where a trial has them.
TWO: dict[str, tuple[list[Any], str]] = {
    "epochs": ([1, 2], "epochs"),
    "batch_size": ([10, 50], "batch_size"),
    "mu": ([0.0, 0.1], "mu"),
    "batch_rule": (["own", "share"], "batch_rule"),
    "schedule": (["constant", "cosine"], "method"),
    "warmup": ([0, 5], "method"),
    "activation": (["relu", "arctan"], "activation"),
    "options.width": ([8, 16], "width"),
    "options.depth": ([1, 2], "depth"),
    "options.isgd_form": (["text", "authors"], "isgd_form"),
    "options.inner_steps": ([1, 2], "inner_steps"),
    "options.momentum": ([0.5, 0.9], "momentum"),
    "options.validation": ([None, 0.1], "validation"),
    "options.decay": ([None, {"tau": 3.0}], "decay"),
    "options.restart": ([True, False], "restart"),
}


def trials(body: dict[str, Any], *, typed: bool = False) -> list[TrialSpec]:
    return [trial for spec in specs_of(body, typed=typed) for trial in spec.expand()]


def value(trial: TrialSpec, name: str) -> Any:
    return getattr(trial if hasattr(trial, name) else trial.options, name)


@pytest.mark.parametrize("path", [name for name, one in SETTINGS.items() if one.listed])
def test_every_setting_takes_a_list_in_the_body_in_vary_and_as_typed(path):
    values, where = TWO[path]
    name = path.removeprefix("options.")
    method = {"isgd_form": "isgd", "inner_steps": "isgd", "momentum": "momentum"}.get(name, "ib")
    base = {"methods": [method], **{key: one for key, one in GRID.items() if key != name}}
    base |= {"mu": 0.1} if name == "restart" else {}
    found = trials({**base, name: values})
    assert len(found) == 4
    assert len({repr(value(trial, where)) for trial in found}) == 2
    body = read_body({**base, name: values})
    task, *words = command_words(body)
    flags = {one.flag: name for name, one in SETTINGS.items()}
    typed: dict[str, Any] = {"task": task}
    typed |= {flags[flag]: text for flag, text in zip(words[::2], words[1::2], strict=True)}
    assert trials({key.removeprefix("options."): text for key, text in typed.items()}, typed=True)
    if name != "decay":
        assert trials({**base, "vary": {name: values}}) == found
        said = ",".join("none" if one is None else str(one) for one in values)
        assert trials({**base, "vary": [f"{name}={said}"]}, typed=True) == found


def test_the_product_is_the_grid_and_one_value_is_no_family():
    lists = {"width": [8, 16], "batch_size": [10, 25, 50], "clip": [None, 1], "warmup": [0, 3]}
    found = trials({**GRID, **lists})
    assert len(found) == len(set(map(repr, found))) == 2 * 2 * 2 * 3 * 2 * 2
    assert specs_of({**GRID, "width": [8]}) == specs_of({**GRID, "options": {"width": 8}})
    assert specs_of({**GRID, "warmup": 0, "schedule": "constant"}) == specs_of(GRID)


def test_schedules_and_rates_share_a_stack_and_shapes_do_not():
    slow = {**GRID, "epochs": 20, "schedule": ["constant", "linear", "cosine"], "warmup": [0, 9]}
    assert len(specs_of(slow)) == 1
    shards = plan_shards(trials({**slow, "width": [8, 16]}), seconds=1e9)
    assert sorted(len(shard.indices) for shard in shards) == [24, 24]


def test_options_of_methods_vary_where_a_method_has_them():
    (spec,) = specs_of(
        {**GRID, "methods": ["eb", "torch.optim.AdamW"], "vary": {"weight_decay": [0, 0.01]}}
    )
    assert spec.methods == ("eb", "torch.optim.AdamW(weight_decay=0)", "torch.optim.AdamW")
    momentum = {**GRID, "methods": ["eb", "momo"], "momentum": [0.5, 0.9]}
    said = {(trial.method, trial.options.momentum) for trial in trials(momentum)}
    assert said == {("eb", None), ("momo", 0.5), ("momo", None)}


@pytest.mark.parametrize(
    ("more", "field", "words"),
    [
        ({"width": [8, "x"]}, "options.width.1", "whole number"),
        ({"width": [8, 8]}, "options.width.1", "given twice"),
        ({"width": [8, None]}, "options.width.1", "is empty"),
        ({"width": []}, "options.width", "a list of 0"),
        ({"activation": ["relu", "rleu"]}, "activation", "rleu"),
        ({"vary": {"widht": [8]}}, "vary.widht", "width"),
        ({"vary": {"warmup": ["x"]}}, "vary.warmup", "got x"),
        ({"vary": {"batch_size": [0]}}, "vary.batch_size", "from 1"),
        ({"vary": {"profile": ["text"]}}, "vary.profile", "cannot vary"),
        ({"width": 8, "vary": {"width": [8]}}, "vary.width", "said twice"),
        ({"methods": ["eb(warmup=3)"], "warmup": 5}, "warmup", "of its own"),
        (
            {"width": [*range(1, 51)], "depth": [*range(1, 41)], "seeds": 9},
            "options.width",
            "trials",
        ),
        ({name: [*range(1, 51)] for name in ("width", "epochs", "mu")}, "epochs", "trials"),
    ],
)
def test_what_cannot_be_a_family_is_one_sentence_with_its_field(more, field, words):
    with pytest.raises(IBError) as caught:
        specs_of({**GRID, **more})
    assert caught.value.field == field
    assert words in caught.value.message
    if words == "trials":
        assert f"{MOST_TRIALS:,}" in caught.value.message


def test_what_stands_beside_a_preset_replaces_only_that():
    whole = specs_of({"preset": "first/digits"})
    family = specs_of({"preset": "first/digits", "seeds": 1, "vary": {"width": [8, 16]}})
    assert {spec.options.width for spec in family} == {8, 16}
    assert {spec.learning_rates for spec in family} == {whole[0].learning_rates}


def test_combinations_of_options_are_counted_before_the_first_is_made():
    fifty = [round(0.5 + n / 200, 4) for n in range(50)]
    names = ("beta1", "beta2", "eps", "weight_decay", "tau", "power")
    body = {**GRID, "methods": ["torch.optim.AdamW"], "vary": dict.fromkeys(names, fifty)}
    began = time.process_time()
    with pytest.raises(IBError, match=f"{50**6:,}"):  # some terabytes of names
        specs_of(body)
    assert time.process_time() - began < 5


def test_methods_have_the_options_they_take_in_the_order_of_the_combinations():
    vary = {"beta1": [0.5, 0.9], "momentum": [0.1, 0.2], "warmup": [0, 3], "tau": [7]}
    methods = ["torch.optim.SGD", "torch.optim.Adam", "eb"]
    (spec,) = specs_of({**GRID, "methods": methods, "vary": vary})
    own = {"torch.optim.SGD": ["momentum"], "torch.optim.Adam": ["beta1"], "eb": []}
    expected = dict.fromkeys(
        find_method(f"{method}({','.join(said)})").name
        for values in product(*vary.values())
        for method in methods
        for said in [
            [
                f"{name}={value}"
                for name, value in zip(vary, values, strict=True)
                if name in (*own[method], "warmup", "tau")
            ]
        ]
    )
    assert spec.methods == tuple(expected)
    assert len(expected) == 2 * (2 + 2 + 1)


@pytest.mark.parametrize("method", ["adamw", "lion", "muon", "schedule_free", "torch.optim.AdamW"])
def test_weight_decay_varies_wherever_a_method_has_one(method):
    found = specs_of({**GRID, "methods": ["eb", method], "vary": {"weight_decay": [0.5, 0.2]}})
    assert [spec.methods for spec in found] == [
        ("eb", f"{method}(weight_decay=0.5)", f"{method}(weight_decay=0.2)")
    ]
    by_flag = trials({**GRID, "methods": method, "vary": ["weight_decay=0.5,0.2"]}, typed=True)
    assert {trial.method for trial in by_flag} == set(found[0].methods[1:])


def test_restarts_in_a_list_have_the_addresses_they_have_alone():
    one = {**GRID, "mu": 0.1}
    alone = [trials({**one, "options": {"restart": restart}}) for restart in (True, False)]
    together = trials({**one, "options": {"restart": [True, False]}})
    assert together == [*alone[0], *alone[1]]
    assert [trial.as_dict() for trial in together[-4:]] == [t.as_dict() for t in alone[1]]


@pytest.mark.parametrize("most", [300, 301, 150])
def test_the_limit_of_a_search_holds_for_the_whole_family(most):
    search = {"find": "edge", "from": 0.01, "to": 100, "most": most}
    body = {**GRID, "learning_rates": search, "seeds": 5, "options": {"width": [8, 16, 32]}}
    found = specs_of(body)
    limits = [spec.search.most for spec in found]
    assert sum(limits) == most
    assert max(limits) - min(limits) <= 1
    assert all(spec.search.most >= spec.size for spec in found)
    (alone,) = specs_of({**body, "options": {}})
    assert alone.search.most == most


def test_a_limit_that_does_not_pay_all_first_rounds_is_refused():
    search = {"find": "edge", "from": 0.01, "to": 100, "most": 149}
    body = {**GRID, "learning_rates": search, "seeds": 5, "options": {"width": [8, 16, 32]}}
    with pytest.raises(IBError, match="3 sweeps take 150 trials; most allows 149") as refused:
        specs_of(body)
    assert refused.value.field == "learning_rates.most"
    unlimited = specs_of({**body, "learning_rates": {**search, "most": None}})
    assert sum(spec.search.most for spec in unlimited) <= MOST_TRIALS


def test_a_search_in_place_of_a_presets_rates_has_one_limit():
    search = {"find": "edge", "from": 0.01, "to": 100, "most": 1001}
    found = specs_of({"preset": "study/transfer", "learning_rates": search})
    assert len({(spec.task, spec.options.width) for spec in found}) > 2
    assert sum(spec.search.most for spec in found) == 1001
    assert all(spec.search.most >= spec.size for spec in found)


@pytest.mark.parametrize("method", ["momentum", "ib_momentum", "schedule_free", "torch.optim.SGD"])
def test_restarts_are_refused_to_methods_that_remember_earlier_steps(method):
    with pytest.raises(IBError, match="remembers of earlier steps") as refused:
        specs_of({**GRID, "methods": ["eb", method], "mu": 0.1, "options": {"restart": True}})
    assert refused.value.field == "options.restart"
    forgetful = [name for name, one in METHODS.items() if not one.remembers]
    assert forgetful == ["eb", "ib", "ib_plus", "isgd", "sps", "ngn", "ib_conv", "proxprop"]
    forgetful.remove("ib_conv")  # which wants a network with filters
    specs_of({**GRID, "methods": forgetful, "mu": 0.1, "options": {"restart": True}})
