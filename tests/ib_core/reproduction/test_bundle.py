import gzip
import json
import math
from dataclasses import replace

import pytest

from ib_core.errors import InvalidSpec
from ib_core.reproduction.bundle import Bundle, find_bundle
from ib_core.reproduction.codec import decode, encode
from ib_core.reproduction.studies import Portion, Study
from ib_core.reproduction.training import Progress, forecast, rounds, train
from ib_core.sweep.local import run_all

TOY = {
    "task": "toy/quadratic",
    "methods": ["eb", "ib"],
    "learning_rates": [0.5, 3.0],
    "seeds": 2,
    "epochs": 1,
}
STUDY = Study("text/toy", "Toy", "Does it diverge?", (Portion(TOY),))


@pytest.fixture(scope="module")
def results():
    return run_all([trial for _, trial in STUDY.trials()], lanes=1)


def test_a_result_survives_the_way_through_a_line(results):
    for result in results:
        read = decode(encode(result))
        assert read.spec == result.spec
        assert read.fingerprint == result.fingerprint
        assert read.outcome == result.outcome
        assert read.divergence == result.divergence
        assert read.record == result.record
        assert read.train_loss == pytest.approx(result.train_loss, rel=1e-8)
        assert [point.step for point in read.curve] == [point.step for point in result.curve]


def test_a_loss_that_is_not_finite_is_null_in_the_file_and_nan_again_after_it(results):
    broken = replace(results[0], train_loss=math.inf)
    line = encode(broken)
    assert json.loads(line)["train_loss"] is None
    assert math.isnan(decode(line).train_loss)


def test_what_was_appended_is_there_without_packing(tmp_path, results):
    Bundle(tmp_path).append(results[0])
    assert list(Bundle(tmp_path).results) == [results[0].spec]


def test_a_torn_last_line_costs_one_trial_only(tmp_path, results):
    bundle = Bundle(tmp_path)
    bundle.append(results[0])
    with (tmp_path / "toy.quadratic.jsonl").open("a") as journal:
        journal.write(encode(results[1])[:200])
    assert list(Bundle(tmp_path).results) == [results[0].spec]


def test_packing_the_same_results_gives_the_same_bytes(tmp_path, results):
    for folder, order in (("a", results), ("b", results[::-1])):
        bundle = Bundle(tmp_path / folder)
        for result in order:
            bundle.append(result)
        bundle.pack([STUDY])
        assert not list((tmp_path / folder).glob("*.jsonl"))
    packed = [(tmp_path / name / "toy.quadratic.jsonl.gz").read_bytes() for name in "ab"]
    assert packed[0] == packed[1]
    assert len(gzip.decompress(packed[0]).splitlines()) == len(results)


def test_a_packed_bundle_says_what_its_studies_are(tmp_path, results):
    bundle = Bundle(tmp_path)
    for result in results[:3]:
        bundle.append(result)
    bundle.pack([STUDY, replace(STUDY, name="text/empty", portions=())])
    (study,) = find_bundle(tmp_path).studies()
    assert (study.name, study.question) == (STUDY.name, STUDY.question)
    assert len(find_bundle(tmp_path).results_of(study)) == 3


def test_a_folder_that_is_no_bundle_is_refused(tmp_path):
    with pytest.raises(InvalidSpec, match="no bundle"):
        find_bundle(tmp_path)


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


def test_results_known_elsewhere_are_copied_not_trained(tmp_path, results):
    known = {result.fingerprint: result for result in results}
    found = forecast([STUDY], Bundle(tmp_path), elsewhere=lambda wanted: known)
    assert found.units == ()
    assert len(Bundle(tmp_path).results) == len(results)


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
