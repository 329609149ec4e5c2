from dataclasses import replace

import pytest

from ib_core.reproduction.bundle import Bundle
from ib_core.reproduction.training import Progress, forecast, rounds, train
from ib_core.sweep.runner import run_all
from tests.ib_core.reproduction.toy_study import STUDY


@pytest.fixture(scope="module")
def results():
    return run_all([trial for _, trial in STUDY.trials()], lanes=1)


class Killed(Progress):
    """Ends the run in the middle, as Ctrl-C would."""

    def begin(self, unit):
        if unit.stage == 1:
            raise KeyboardInterrupt


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr("ib_core.reproduction.training.ROUND_SECONDS", 0.0)
    bundle = Bundle(tmp_path)
    first = forecast([STUDY], bundle)
    assert [unit.stage for unit in first.units] == [0, 1]  # a stage a seed
    with pytest.raises(KeyboardInterrupt):
        train(first.units, bundle, progress=Killed())
    again = forecast([STUDY], Bundle(tmp_path))
    assert again.known == 4
    assert {trial.seed for unit in again.units for trial in unit.trials} == {2}
    assert train(again.units, bundle, progress=Progress()) == []
    assert forecast([STUDY], Bundle(tmp_path)).units == ()


def test_neighbours_are_trained_together_up_to_a_round(tmp_path):
    one, two = (replace(unit, seconds=60.0) for unit in forecast([STUDY], Bundle(tmp_path)).units)
    assert rounds([one, two], 100.0) == [one, two]
    (both,) = rounds([one, two], 120.0)
    assert both.trials == one.trials + two.trials
    assert both.seconds == 120.0
    assert both.name.endswith("stage 0 and 1 more")
    assert train([both], Bundle(tmp_path), progress=Progress()) == []
    assert forecast([STUDY], Bundle(tmp_path)).units == ()


def test_results_known_elsewhere_are_found_not_trained_and_nothing_is_written(tmp_path, results):
    known = {result.fingerprint: result for result in results}
    found = forecast([STUDY], Bundle(tmp_path / "none"), elsewhere=lambda wanted: known)
    assert (found.units, found.known) == ((), len(results))
    assert found.found == tuple(results)
    assert not (tmp_path / "none").exists()


def test_units_that_do_not_fit_the_time_are_left(tmp_path):
    bundle = Bundle(tmp_path)
    units = forecast([STUDY], bundle).units
    left = train(units, bundle, progress=Progress(), deadline=0.0)
    assert left == list(units)
    assert bundle.results == {}


def test_a_result_of_other_data_is_trained_again(tmp_path, results):
    bundle = Bundle(tmp_path)
    bundle.append(replace(results[0], fingerprint="0" * 64))
    wanted = [trial for unit in forecast([STUDY], bundle).units for trial in unit.trials]
    assert results[0].spec in wanted


def test_at_most_so_many_seeds(tmp_path):
    units = forecast([STUDY], Bundle(tmp_path), seeds=1).units
    assert {trial.seed for unit in units for trial in unit.trials} == {1}
