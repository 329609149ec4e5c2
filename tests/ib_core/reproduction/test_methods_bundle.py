"""The stored comparison of all methods, and the field's studies: whole, addressed, trainable."""

import math
import random
from statistics import fmean

import pytest

from ib_core.datasets import DATASETS, UCI_NAMES, data_card
from ib_core.methods import METHODS
from ib_core.metrics import SeedResult
from ib_core.reproduction import COMPARISON, FIELD, THEORY, Bundle, check, find_bundle
from ib_core.sweep import ENGINE_VERSION, Outcome, fingerprint
from ib_core.sweep.presets import COMPARED_TABLES
from ib_core.tasks import TASKS


@pytest.fixture(scope="module")
def stored() -> Bundle:
    return find_bundle("methods")


@pytest.fixture(scope="module")
def field() -> Bundle:
    return find_bundle("studies")


@pytest.mark.parametrize(("name", "studies"), [("stored", (COMPARISON, THEORY)), ("field", FIELD)])
def test_every_trial_of_its_studies_is_there_with_its_address(name, studies, request):
    stored = request.getfixturevalue(name)
    wanted = {trial for study in studies for _, trial in study.trials()}
    assert wanted == stored.results.keys()
    assert [study.name for study in stored.studies()] == [study.name for study in studies]
    for spec, result in stored.results.items():
        assert result.record["engine"] == ENGINE_VERSION
        assert result.fingerprint == fingerprint(spec, result.record["data"])


def test_all_methods_but_exact_isgd_share_rates_seeds_and_rows_held_out(stored):
    by_task: dict[str, dict[str, set[tuple[float, int]]]] = {}
    for result in stored.results_of(COMPARISON):
        spec = result.spec
        assert result.validation_loss is not None
        by_task.setdefault(spec.task, {}).setdefault(spec.method, set()).add((spec.lr, spec.seed))
    for task, methods in by_task.items():
        fitting = {
            name
            for name, one in METHODS.items()
            if not one.exact
            and (TASKS[task].linear_output or not one.implicit_output)
            and (TASKS[task].has_filters or not one.implicit_filters)
        }
        assert set(methods) == fitting
        assert len({frozenset(grid) for grid in methods.values()}) == 1
        rates = {lr for lr, _ in methods["eb"]}
        assert max(rates) / min(rates) >= 1000
        assert len({seed for _, seed in methods["eb"]}) == 5


def test_the_tables_compared_on_are_those_that_the_rule_by_size_gives():
    """Every fifth by rows of those with 300 to 3,000 and at most 64 columns, and car."""
    beside = {"car", "breast-cancer-wisc-diag"}
    small = [name for name in UCI_NAMES if name != "miniboone"]  # 130,000 rows, often not here
    if not all(DATASETS[f"uci/{name}"].present() for name in small):
        pytest.skip("no UCI tables: set ETASCOPE_DATA_DIR to a folder with them")
    cards = {name: data_card(f"uci/{name}") for name in small if name not in beside}
    sized = sorted(
        (card.rows, name)
        for name, card in cards.items()
        if 300 <= card.rows <= 3000 and card.inputs <= 64
    )
    by_rule = {name for _, name in sized[4::5]}
    assert set(COMPARED_TABLES) == {*by_rule, "car"}


def test_what_restarts_left_at_zero_is_broken(stored):
    """App. C: at theta = 0 a ReLU network has no gradient, so its loss is that of guessing."""
    found = [one for one in stored.results.values() if one.spec.options.restart]
    assert sum(one.restarts > 0 for one in found) == 33
    lost = [one for one in found if one.at_zero]
    assert len(lost) == 7
    assert [one.train_loss for one in lost] == pytest.approx([math.log(10)] * 7)
    assert sum(one.outcome is Outcome.COMPLETED for one in lost) == 2
    for one in found:
        end = SeedResult(1, one.train_loss, one.initial_loss, at_zero=one.at_zero)
        assert end.broken == (one.at_zero or not one.train_loss < one.initial_loss)


def test_some_of_it_trained_again_gives_the_same(stored):
    small = [spec for spec in stored.results if spec.task == "bundled/iris" and spec.lr < 0.1]
    drawn = random.Random(3).sample(sorted(small, key=str), 3)
    found = check([stored.results[spec] for spec in drawn])
    assert {one.verdict for one in found} <= {"agrees", "chaotic"}


def test_mup_holds_the_best_rate_where_it_moves_without(field):
    """What the study of transfer is for: Adam on the MLP and on the small GPT, width by width."""
    study = next(one for one in FIELD if one.name == "study/transfer")
    losses: dict[tuple[str, str], dict[int | None, dict[float, list[float]]]] = {}
    for result in field.results_of(study):
        spec = result.spec
        if spec.method == "adam":
            scaling = str(dict(spec.options.own).get("scaling", "standard"))
            rates = losses.setdefault((spec.task, scaling), {}).setdefault(spec.options.width, {})
            capped = min(result.initial_loss, result.train_loss)  # NaN comes second
            rates.setdefault(spec.lr, []).append(capped)
    moved = {}
    for series, widths in losses.items():
        means = [[fmean(rates[lr]) for lr in sorted(rates)] for rates in widths.values()]
        best = [own.index(min(own)) for own in means]
        assert len(best) == 3
        moved[series] = max(best) - min(best)
    for task in ("digits_wide", "gpt_bytes"):
        assert moved[task, "mup_adam"] <= 1 < moved[task, "standard"]
