"""From trials that restart, through a bundle and the database, to the lines of the picture."""

from statistics import median

import pytest

from backend.services.analysis import theorem
from backend.services.analysis.learning import NUMBERS, _line
from backend.services.analysis.series import key_of_spec
from backend.services.reproduction import store_bundle
from ib_core.reproduction import Bundle, Portion, Study
from ib_core.reproduction.training import train_alone
from ib_core.sweep import SweepSpec
from tests.factories import new_study

SWEEP = {
    "task": "bundled/iris",
    "methods": ["ib", "eb"],
    "learning_rates": [0.1, 100.0],
    "seeds": 3,
    "epochs": 2,
}
RESTARTS = {"restart": True, "decay": {"tau": 10.0}}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory) -> Bundle:
    sweeps = ((0.01, RESTARTS), (0.01, {"restart": False}), (0.1, RESTARTS))
    portions = tuple(Portion({**SWEEP, "mu": mu, "options": one}) for mu, one in sweeps)
    study = Study("theory/test", "Restarts", "Do they?", portions)
    return train_alone(tmp_path_factory.mktemp("theorem"), study)


def test_a_line_is_the_median_over_seeds_of_what_the_trials_recorded(session, bundle):
    store_bundle(session, bundle=bundle, source="a test")
    found = theorem(session, study_id=1)
    assert [(line.label, line.lr) for line in found.lines] == [
        (f"{method}, mu {mu}", lr)
        for method in ("eb", "ib")
        for mu in (0.01, 0.1)
        for lr in (0.1, 100.0)
    ]
    for line in found.lines:
        assert line.seeds == 3
        mu = float(line.label.rpartition(" ")[2])
        records = [
            result.record["theorem"]
            for spec, result in bundle.results.items()
            if (spec.method, spec.mu, spec.lr) == (line.method, mu, line.lr)
            and spec.options.restart
        ]
        assert line.average[0] is line.gradient[0] is None
        assert line.average[-1] == pytest.approx(median(one["average"][-1] for one in records))
        assert line.restarts[-1] == median(one["restarts"][-1] for one in records)


def test_where_a_run_has_ended_there_is_no_median_of_the_others():
    whole = {"step": [0, 5], **{name: [1.0, 2.0] for name in NUMBERS}}
    ended = {"step": [0], **{name: [3.0] for name in NUMBERS}}
    key = key_of_spec(SweepSpec.create("bundled/iris", learning_rates=[1.0]).expand()[0])
    found = _line(key, "eb", 1.0, [whole, ended, whole])
    assert found.average == [1.0, None]


def test_a_study_without_restarts_has_no_lines(session):
    assert theorem(session, study_id=new_study(session).id).lines == []
