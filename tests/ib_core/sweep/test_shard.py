import time

import pytest

from ib_core.sweep.machine import TYPICAL
from ib_core.sweep.shard import SHARD_BYTES, SHARD_SECONDS, plan_shards, stack_key
from ib_core.sweep.spec import SweepSpec


@pytest.fixture(autouse=True)
def typical_machine(monkeypatch):
    """Plans must not depend on how busy this machine was when it was measured."""
    monkeypatch.setattr("ib_core.sweep.shard.machine_speed", lambda device: TYPICAL)


def trials_of(task="digits_mlp", **settings):
    settings = {"learning_rates": [0.1, 1.0, 10.0], "seeds": [1, 2], **settings}
    return SweepSpec.create(task, **settings).expand()


def test_every_trial_is_in_exactly_one_shard():
    trials = trials_of(methods=("eb", "ib", "isgd")) + trials_of("bundled/wine")
    planned = plan_shards(trials)
    assert sorted(i for shard in planned for i in shard.indices) == list(range(len(trials)))
    for shard in planned:
        assert len({stack_key(trials[i]) for i in shard.indices}) == 1


def test_methods_rates_and_seeds_share_a_stack_but_exact_isgd_does_not():
    together = trials_of(methods=("eb", "ib", "ib_plus", "adam"))
    assert len({stack_key(trial) for trial in together}) == 1
    assert len({stack_key(trial) for trial in trials_of(methods=("eb", "isgd"))}) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"epochs": 7},
        {"batch_size": 7},
        {"activation": "relu"},
        {"profile": "authors"},
        {"options": {"width": 7}},
        {"options": {"depth": 2}},
        {"task": "bundled/wine"},
    ],
    ids=str,
)
def test_what_shapes_the_program_keeps_trials_apart(change):
    trials = trials_of() + trials_of(**change)
    assert len({stack_key(trial) for trial in trials}) == 2


@pytest.mark.parametrize("change", [{"inner_steps": 7}, {"isgd_form": "authors"}], ids=str)
def test_exact_isgd_of_another_kind_stands_apart(change):
    trials = trials_of(methods=("isgd",)) + trials_of(methods=("isgd",), options=change)
    assert len({stack_key(trial) for trial in trials}) == 2


def test_seeds_of_a_music_task_share_a_stack():
    assert len({stack_key(trial) for trial in trials_of("music/procedural")}) == 1


def test_a_long_group_is_cut_into_equal_shards_of_about_the_target():
    trials = trials_of(
        "digits_autoencoder",
        learning_rates=[0.01 * (i + 1) for i in range(50)],
        seeds=range(1, 41),
        epochs=50,
    )
    planned = plan_shards(trials)
    sizes = {len(shard.indices) for shard in planned}
    assert len(planned) > 5
    assert max(sizes) - min(sizes) <= max(sizes) // 2
    for shard in planned:
        assert shard.seconds < 2 * SHARD_SECONDS
        assert shard.memory_bytes <= SHARD_BYTES


def test_where_nobody_watches_a_short_group_is_cut_for_its_processes_only():
    trials = trials_of("digits_autoencoder", epochs=50)
    assert len(plan_shards(trials, lanes=2)) > 2
    assert len(plan_shards(trials, lanes=2, seconds=240)) == 2


def test_pairs_stay_together():
    trials = trials_of(learning_rates=[0.01 * (i + 1) for i in range(100)], seeds=range(1, 101))
    for shard in plan_shards(trials):
        cells = [(trials[i].lr, trials[i].seed) for i in shard.indices]
        assert sum(cells.count(cell) == 1 for cell in set(cells)) <= 2


@pytest.mark.parametrize("count", [20_000])
def test_planning_a_full_sweep_is_quick(count):
    trials = trials_of(
        learning_rates=[0.001 * (i + 1) for i in range(100)], seeds=range(1, count // 200 + 1)
    )
    plan_shards(trials[:10])
    start = time.perf_counter()
    planned = plan_shards(trials)
    assert time.perf_counter() - start < 5  # about 0.3 s; a quadratic plan would take minutes
    assert sum(len(shard.indices) for shard in planned) == count
