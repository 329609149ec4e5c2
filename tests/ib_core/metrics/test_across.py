"""Many tasks at once, among them the shipped study of seven methods on every UCI table."""

import gzip
import json
import math
from collections import defaultdict
from functools import cache

import numpy as np
import pytest
from scipy import stats

from ib_core.errors import InvalidSpec
from ib_core.metrics import RateCurve, SeedResult
from ib_core.metrics.across import (
    chance_over_tasks,
    critical_difference,
    interquartile_mean,
    performance_profiles,
    rank_test,
    ranks,
)
from ib_core.metrics.scoring import score_tasks
from ib_core.metrics.task_table import TaskTable
from ib_core.reproduction.bundle import shipped_folder
from ib_core.reproduction.studies import BEYOND
from tests.ib_core.metrics import slow_twins as slow

METHODS = ("eb", "ib", "ib_plus", "momentum", "adam")
#: Tables that the shipped bundle did not have when its ranks were first computed, over 85.
_NAMES = """
    annealing bank blood cardiotocography-3clases conn-bench-sonar-mines-rocks
    conn-bench-vowel-deterding cylinder-bands echocardiogram energy-y2 fertility flags
    heart-cleveland hill-valley lenses low-res-spect mammographic molec-biol-splice monks-2
    oocytes-merluccius-nucleus-4d oocytes-trisopterus-nucleus-2f oocytes-trisopterus-states-5b
    ozone pendigits pittsburg-bridges-T-OR-D pittsburg-bridges-TYPE plant-texture spectf
    statlog-australian-credit statlog-german-credit statlog-landsat twonorm
    vertebral-column-3clases wine-quality-red wine-quality-white zoo
"""
LATER = frozenset(_NAMES.split())


@cache
def uci_curves() -> dict[str, dict[str, RateCurve]]:
    """Return the study's curves by table, read from the packed files."""
    study = next(one for one in BEYOND if one.name == "beyond/uci_methods")
    wanted = {
        (trial.task, trial.method, trial.lr): trial.as_dict()
        for _, trial in study.trials()
        if trial.seed == 1  # the one the printed ranks were computed from
    }
    found: dict[str, dict[str, list]] = defaultdict(lambda: defaultdict(list))
    for path in sorted(shipped_folder().glob("uci.*.jsonl.gz")):
        for line in gzip.decompress(path.read_bytes()).decode().splitlines():
            trial = json.loads(line)
            spec = trial["spec"]
            expected = wanted.get((spec["task"], spec["method"], spec["lr"]))
            if expected is None or any(spec[k] != expected[k] for k in spec if k != "options"):
                continue
            result = SeedResult(1, trial["train_loss"], trial["initial_loss"], trial["outcome"])
            found[spec["task"]][spec["method"]].append((spec["lr"], result))
    return {
        task: {method: RateCurve.from_results(rows[method]) for method in METHODS}
        for task, rows in found.items()
    }


def first_tables() -> dict[str, dict[str, RateCurve]]:
    return {
        task: curves
        for task, curves in uci_curves().items()
        if task.removeprefix("uci/") not in LATER
    }


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        ("best_mean", (3.09, 4.04, 4.27, 1.96, 1.64)),
        ("lr_sensitivity", (4.20, 3.44, 1.32, 2.75, 3.29)),
    ],
)
def test_the_shipped_uci_tables_have_their_recorded_ranks(number, expected):
    scores = score_tasks(first_tables())
    assert len(scores) == 85
    found = rank_test(
        {
            task: {label: row[number].value for label, row in score.rows.items()}
            for task, score in scores.items()
        }
    )
    assert tuple(round(found.ranks[method], 2) for method in METHODS) == expected
    assert found.n == 85
    assert round(found.critical_difference, 2) == 0.66
    assert found.p < 1e-20
    assert not found.left_out


def test_ibs_best_is_dearer_than_ebs_on_most_tables():
    dearer = 0
    for curves in first_tables().values():
        eb, ib = (min(slow.capped_means(curves[name]).values()) for name in ("eb", "ib"))
        dearer += ib > 1.05 * eb
    assert dearer == 52


def test_ties_share_their_rank():
    table = np.array([[1.0, 2.0, 2.0, 3.0], [5.0, 5.0, 5.0, 5.0], [math.inf, 1.0, math.inf, 0.0]])
    assert ranks(table).tolist() == stats.rankdata(table, axis=1).tolist()


@pytest.mark.parametrize("seed", range(4))
def test_friedmans_test_is_scipys(seed):
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 6, (20, 4)) + np.array([0, 0, 1, 2])
    values = {str(i): dict(zip("abcd", row, strict=True)) for i, row in enumerate(table.tolist())}
    found = rank_test(values)
    expected = stats.friedmanchisquare(*table.T)
    assert (found.statistic, found.p) == pytest.approx((expected.statistic, expected.pvalue))


def test_the_critical_difference_is_demsars():
    # Demsar 2006, table 5: q of 5 % for 2 .. 10 classifiers.
    table = (1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164)
    for k, q in enumerate(table, 2):
        assert critical_difference(k, 30) == pytest.approx(
            q * math.sqrt(k * (k + 1) / 180), rel=1e-3
        )


def test_groups_hold_what_cannot_be_told_apart():
    rng = np.random.default_rng(0)
    values = {
        str(i): {"a": x, "b": x + rng.normal(0, 0.01), "c": x + 5, "d": x + 9}
        for i, x in enumerate(rng.random(40).tolist())
    }
    found = rank_test(values)
    assert [set(group) for group in found.groups] == [{"a", "b"}]


def test_tasks_without_a_number_are_left_out_and_named():
    values = {"one": {"a": 1.0, "b": 2.0}, "two": {"a": None, "b": 1.0}, "three": {"b": 1.0}}
    found = rank_test(values)
    assert (found.n, found.left_out) == (1, ("two", "three"))
    assert found.ranks == {"a": 1.0, "b": 2.0}
    with pytest.raises(InvalidSpec, match="two series"):
        rank_test({"one": {"a": 1.0}})


def test_a_profile_is_the_share_of_tasks_within_a_factor_of_the_best():
    values = {
        "one": {"a": 1.0, "b": 2.0},
        "two": {"a": 3.0, "b": 1.0},
        "three": {"a": 1.0, "b": math.inf},
        "four": {"a": 2.0, "b": 2.0},
    }
    found = performance_profiles(values, (1.0, 2.0, 3.0))
    assert found == {"a": (0.75, 0.75, 1.0), "b": (0.5, 0.75, 0.75)}
    with pytest.raises(InvalidSpec, match="above 0"):
        performance_profiles({"one": {"a": 0.0, "b": 1.0}}, (1.0,))


@pytest.mark.parametrize("n", [3, 4, 9, 40])
def test_the_middle_half_is_a_trimmed_mean(n):
    values = np.random.default_rng(n).lognormal(size=n).tolist()
    found = interquartile_mean(values)
    assert found.value == pytest.approx(stats.trim_mean(values, 0.25))
    assert found.low <= found.value <= found.high
    assert found.n == n


def test_one_explosion_does_not_move_the_middle_half():
    values = [1.0, 1.1, 0.9, 1.2, 0.8, 1.0, 1.05, 0.95]
    assert interquartile_mean([*values[:-1], 1e30]).value == pytest.approx(
        interquartile_mean([*values[:-1], 2.0]).value
    )


def test_every_task_counts_alike_in_the_chance_to_be_better(make_curve):
    long = {lr: [1.0] * 4 for lr in (0.1, 0.2, 0.3, 0.4)}
    worse = {lr: [1.5] * 4 for lr in long}
    tables = [
        TaskTable.of({"eb": make_curve(long), "ib": make_curve(worse)}),
        TaskTable.of({"eb": make_curve({1.0: [1.0] * 4}), "ib": make_curve({1.0: [0.5] * 4})}),
    ]
    found = chance_over_tasks(tables, "ib", "eb")
    assert (found.value, found.n) == (0.5, 2)
    assert "Seeds resampled" in found.note


def test_with_one_seed_a_task_tasks_are_resampled():
    tables = [TaskTable.of(curves) for curves in first_tables().values()]
    found = chance_over_tasks(tables, "ib_plus", "eb")
    assert found.n == 85
    assert "tasks resampled" in found.note
    expected = np.mean([slow.chance(c["ib_plus"], c["eb"]) for c in first_tables().values()])
    assert found.value == pytest.approx(expected)
    assert found.low < found.value < found.high
    assert found.high - found.low < 0.1


def test_without_a_common_task_there_is_no_chance(make_curve):
    assert chance_over_tasks([TaskTable.of({"eb": make_curve({1.0: [1.0]})})], "ib", "eb").n == 0
