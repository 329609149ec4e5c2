import pytest

from ib_core.errors import IBError
from ib_core.sweep import log_grid
from ib_core.sweep.bodies import specs_of
from ib_core.sweep.presets import PRESETS
from ib_core.sweep.result import fingerprint
from ib_core.sweep.spec import SweepSpec, TrialSpec


def create(**changes):
    settings = {"learning_rates": [0.1, 1.0], "seeds": [1, 2]}
    return SweepSpec.create(changes.pop("task", "bundled/iris"), **{**settings, **changes})


def test_a_log_spaced_grid_holds_its_ends_and_reads_well():
    assert log_grid(0.01, 100, 5) == (0.01, 0.1, 1.0, 10.0, 100)
    assert log_grid(0.01, 100, 13)[1] == 0.02154


def test_a_number_of_seeds_means_one_to_that_number():
    for said, meant in ((3, (1, 2, 3)), ("3", (1, 2, 3)), ("1,2,7", (1, 2, 7)), ("7,", (7,))):
        (spec,) = specs_of({"task": "bundled/iris", "seeds": said})
        assert spec.seeds == meant


def test_a_sweep_is_every_combination_once():
    spec = create(methods=("eb", "ib"), clips=(None, 1.0))
    trials = spec.expand()
    assert len(trials) == spec.size == len(set(trials)) == 16


def test_settings_a_method_ignores_do_not_change_its_address():
    plain, odd = (
        create(methods=("eb",), batch_rule=rule, options=options).expand()[0]
        for rule, options in (("own", {}), ("share", {"isgd_form": "authors"}))
    )
    assert fingerprint(plain, "d") == fingerprint(odd, "d")


@pytest.mark.parametrize(
    "change",
    [
        {"epochs": 11},
        {"batch_size": 50},
        {"mu": 0.1},
        {"profile": "authors"},
        {"activation": "relu"},
        {"clips": (1.0,)},
        {"options": {"width": 7}},
        {"options": {"decay": {"tau": 10.0}}},
        {"learning_rates": [0.2]},
        {"seeds": [3]},
    ],
)
def test_whatever_decides_a_result_changes_its_address(change):
    assert fingerprint(create().expand()[0], "d") != fingerprint(create(**change).expand()[0], "d")
    assert fingerprint(create().expand()[0], "d") != fingerprint(create().expand()[0], "e")


def test_every_profile_has_the_batch_rule_of_its_experiments():
    assert create(profile="text").batch_rule == "own"
    assert create(profile="authors").batch_rule == "share"
    assert create(profile="authors", batch_rule="own").batch_rule == "own"


def test_a_trial_survives_its_json_form():
    trial = create(options={"decay": {"tau": 10.0, "power": 0.8}, "width": 5}).expand()[0]
    assert TrialSpec.from_dict(trial.as_dict()) == trial


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"task": "mnist_clasifier"}, "no task called 'mnist_clasifier'.*digits_mlp"),
        ({"task": "uci/carr"}, "no UCI set called 'carr'"),
        ({"methods": ("eb", "sgd")}, "no method called 'sgd'.*isgd"),
        ({"methods": ()}, "at least one of: eb"),
        ({"methods": ("eb", "eb")}, "each method once"),
        ({"methods": ("ib_plus",), "task": "digits_autoencoder"}, "ends in relu"),
        ({"learning_rates": []}, "Give 1 to 1,000 learning rates; got 0"),
        ({"learning_rates": [-1.0]}, "1e-12 to 1e12; got -1"),
        ({"learning_rates": [float("nan")]}, "got NaN"),
        ({"learning_rates": [float("inf")]}, "got Infinity"),
        ({"learning_rates": [0.1, 0.1]}, "0.1 is given twice"),
        ({"seeds": []}, "Give 1 to 1,000 seeds"),
        ({"seeds": [1, 1]}, "seed 1 is given twice"),
        ({"seeds": [10**9 * 5]}, "whole number from 0"),
        ({"epochs": 0}, "Epochs must be a whole number from 1"),
        ({"batch_size": -5}, "Batch size must be a whole number"),
        ({"mu": -0.1}, "Ridge mu must be a number from 0"),
        ({"mu": float("nan")}, "Ridge mu must be a number"),
        ({"clips": (0.0,)}, "clipping norm must be a number"),
        ({"clips": (1.0, 1.0)}, "each clip once"),
        ({"batch_rule": "mine"}, "own, share; got 'mine'"),
        ({"profile": "paper"}, "text, authors; got 'paper'"),
        ({"activation": "swish"}, "no activation called 'swish'"),
        ({"options": {"widht": 3}}, "no option called 'widht'"),
        ({"options": {"width": 0}}, "Width must be a whole number"),
        ({"options": {"depth": 2}, "task": "music/procedural", "batch_size": 1}, "fixed depth"),
        ({"options": {"restart": True}}, "Restarts need mu > 0"),
        ({"options": {"momentum": 1.0}}, "Momentum must be a number from 0 to 0.9999; got 1"),
        ({"options": {"momentum": 0.5}}, "None of the methods has a momentum"),
        (
            {"options": {"decay": {"tau": 1.0, "power": 0.1}}},
            "above 0.5, at most 1; got 0.1",
        ),
        ({"task": "music/procedural", "batch_size": 10}, "1 piece at a time"),
        ({"seeds": range(1, 1001), "learning_rates": [i + 1 for i in range(21)]}, "at most 20,000"),
    ],
)
def test_what_cannot_run_is_said_in_one_sentence(change, words):
    with pytest.raises(IBError, match=words):
        create(**change)


def test_every_preset_is_runnable_in_its_profiles_and_the_seventeen_are_there():
    numbers = [name for name in PRESETS if name.startswith("paper/") and name != "paper/uci"]
    assert len(numbers) == 17
    for name in PRESETS:
        for profile in ("text", "authors") if PRESETS[name].authors else ("text",):
            assert all(spec.size > 0 for spec in specs_of({"preset": name, "profile": profile}))


def test_a_body_changes_what_it_names_of_a_preset_and_nothing_else():
    (spec,) = specs_of({"preset": "paper/07_jsb_chorales_clip_1.0", "seeds": 1, "mu": None})
    assert (spec.seeds, spec.clips, spec.epochs) == ((1,), (1.0,), 5)
    assert len(spec.learning_rates) == 7


def test_a_body_may_build_its_grid_from_two_ends():
    (spec,) = specs_of(
        {"task": "digits_mlp", "learning_rates": {"from": 0.01, "to": 100, "count": 5}, "seeds": 2}
    )
    assert spec.learning_rates == (0.01, 0.1, 1.0, 10.0, 100)
    assert spec.seeds == (1, 2)
