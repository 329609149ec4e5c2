"""From trials that restart, through a bundle and the database, to the lines of the picture."""

from statistics import median

import pytest

from backend.services.analysis import theorem
from backend.services.reproduction import store_bundle
from ib_core.reproduction import Bundle, Portion, Study
from ib_core.reproduction.training import train_alone
from tests.factories import new_study

SWEEP = {
    "task": "bundled/iris",
    "methods": ["ib", "eb"],
    "learning_rates": [0.1, 100.0],
    "seeds": 3,
    "epochs": 2,
    "mu": 0.01,
}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory) -> Bundle:
    options = ({"restart": True, "decay": {"tau": 10.0}}, {"restart": False})
    portions = tuple(Portion({**SWEEP, "options": one}) for one in options)
    study = Study("theory/test", "Restarts", "Do they?", portions)
    return train_alone(tmp_path_factory.mktemp("theorem"), study)


def test_a_line_is_the_median_over_seeds_of_what_the_trials_recorded(session, bundle):
    store_bundle(session, bundle=bundle, source="a test")
    found = theorem(session, study_id=1)
    assert [(line.method, line.lr) for line in found.lines] == [
        ("eb", 0.1),
        ("eb", 100.0),
        ("ib", 0.1),
        ("ib", 100.0),
    ]
    for line in found.lines:
        assert line.seeds == 3
        records = [
            result.record["theorem"]
            for spec, result in bundle.results.items()
            if (spec.method, spec.lr) == (line.method, line.lr) and spec.options.restart
        ]
        assert line.average[0] is None
        assert line.average[-1] == pytest.approx(median(one["average"][-1] for one in records))
        assert line.restarts[-1] == median(one["restarts"][-1] for one in records)


def test_a_study_without_restarts_has_no_lines(session):
    assert theorem(session, study_id=new_study(session).id).lines == []
