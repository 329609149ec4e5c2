"""What all methods do on every UCI table: what is shipped is what its trials say."""

from math import isfinite

import pytest

from backend.db import transaction
from backend.services.analysis import stored
from backend.services.analysis.unstored import SHOWN, judge_tables, stored_tables
from backend.services.reproduction import store_bundle
from ib_core.datasets import DATASETS, UCI_NAMES
from ib_core.methods import METHODS
from ib_core.metrics import rank_test
from ib_core.reproduction import (
    SHIPPED_TABLES,
    TABLES,
    Bundle,
    check,
    find_bundle,
    shipped_folder,
)
from ib_core.reproduction.bundle import SHIPPED_METHODS
from ib_core.sweep import ENGINE_VERSION

SOME = ("balloons", "iris", "car", "statlog-shuttle")


@pytest.fixture(scope="module")
def some(tmp_path_factory):
    """The bundle of a few tables; all of it takes half a minute to read."""
    folder = tmp_path_factory.mktemp("tables")
    for name in ("studies.json", *(f"uci.{table}.columns.xz" for table in SOME)):
        (folder / name).write_bytes((shipped_folder(SHIPPED_TABLES) / name).read_bytes())
    return Bundle(folder)


def rows_by_place(found):
    return {(row.table, row.method): row.metrics for row in found.rows}


def test_every_table_that_can_be_had_has_every_method_rate_and_seed():
    found = stored_tables()
    tables = {row.table for row in found.rows}
    assert tables == set(UCI_NAMES) - {"miniboone"}  # 130,000 rows that were not here
    fitting = {name for name, one in METHODS.items() if not (one.exact or one.implicit_filters)}
    assert len(found.rows) == len(rows_by_place(found)) == len(tables) * len(fitting)
    assert {row.method for row in found.rows} == fitting
    assert found.rates[-1] / found.rates[0] >= 1000
    assert found.trials == len(found.rows) * len(found.rates) * found.seeds
    assert found.seeds == 5
    files = {path.name for path in shipped_folder(SHIPPED_TABLES).glob("*.columns.xz")}
    assert files == {f"uci.{table}.columns.xz" for table in tables}


def test_the_trials_of_some_tables_give_the_numbers_that_are_shipped(some):
    wanted = {trial for _, trial in TABLES.only([f"uci/{name}" for name in SOME]).trials()}
    assert some.results.keys() == wanted
    assert {one.record["engine"] for one in some.results.values()} == {ENGINE_VERSION}
    again, shipped = rows_by_place(judge_tables(some.results_of(TABLES))), stored_tables()
    assert len(again) == len(SOME) * 18
    for place, metrics in again.items():
        assert metrics == rows_by_place(shipped)[place]
        assert tuple(metrics) == SHOWN


def test_best_rates_and_their_means_are_those_of_a_plain_reckoning(some):
    """Chosen by mean validation losses, each at most the training loss at the start; then test."""
    cells = {}
    for spec, one in some.results.items():
        cells.setdefault((spec.task, spec.method), {}).setdefault(spec.lr, []).append(one)
    shipped, found = rows_by_place(stored_tables()), 0
    for (task, method), by_rate in cells.items():
        chosen, means = {}, {}
        for lr, seeds in by_rate.items():
            ends = [
                (one.validation_loss, one.initial_loss, one.test_loss, one.curve[0].test_loss)
                for one in seeds
            ]
            chosen[lr] = sum(min(v, top) if isfinite(v) else top for v, top, _, _ in ends) / 5
            means[lr] = sum(min(t, top) if isfinite(t) else top for _, _, t, top in ends) / 5
        best = min(chosen, key=lambda lr: (round(chosen[lr], 12), lr))
        mine = shipped[task.removeprefix("uci/"), method]
        if mine["best_rate"].value is not None:
            assert (method, mine["best_rate"].value) == (method, best)
            assert mine["best_mean"].value == pytest.approx(means[best], rel=5e-5)
            found += 1
    assert found > 60


def test_a_table_of_the_smaller_comparison_has_the_same_trials_here(some):
    stored = find_bundle(SHIPPED_METHODS).results
    both = [spec for spec in some.results if spec in stored]
    assert len(both) == 990  # car
    for spec in both:
        assert some.results[spec].fingerprint == stored[spec].fingerprint
        assert some.results[spec].test_loss == pytest.approx(stored[spec].test_loss, nan_ok=True)


@pytest.mark.parametrize("number", ["best_mean", "lr_sensitivity"])
def test_the_ranks_are_those_of_the_numbers(number):
    found = stored_tables()
    values = {}
    for row in found.rows:
        values.setdefault(row.table, {})[row.method] = row.metrics[number].value
    whole = {name: one for name, one in values.items() if None not in one.values()}
    (ranks,) = (one for one in found.across.ranks if one.number == number)
    again = rank_test(whole)
    assert ranks.tasks == again.n == len(whole)
    assert ranks.critical_difference == pytest.approx(again.critical_difference)
    # The shipped numbers have five digits, so a few of them tie that did not.
    assert ranks.mean_ranks == pytest.approx(again.ranks, abs=0.02)


def test_some_of_it_trained_again_gives_the_same(some):
    if not DATASETS["uci/iris"].present():
        pytest.skip("no UCI tables: set ETASCOPE_DATA_DIR to a folder with them")
    mild = [one for spec, one in some.results.items() if spec.task == "uci/iris" and spec.lr < 0.1]
    found = check(sorted(mild, key=lambda one: one.fingerprint)[:12])
    assert {one.verdict for one in found} <= {"agrees", "chaotic"}
    assert sum(one.verdict == "agrees" for one in found) > 8


def test_the_api_says_the_same_of_it_and_of_its_trials_once_they_are_here(api, some):
    answer = api.get("/api/bundle/tables")
    assert answer.json() == stored_tables().model_dump(mode="json")
    few = Bundle(some.folder)
    few.results = {spec: one for spec, one in few.results.items() if spec.task == "uci/iris"}
    with transaction() as session:
        stored = store_bundle(session, bundle=few, source="a test")
    assert (stored.studies, stored.new) == (1, 990)
    (study,) = api.get("/api/studies", params={"tag": "uci"}).json()["items"]
    assert set(study["tags"]) == {"compare", "uci"}
    card = api.get(f"/api/studies/{study['id']}/scorecard", params={"metric": "test_loss"}).json()
    assert len(card["rows"]) == 18
    shipped = rows_by_place(stored_tables())
    for row in card["rows"]:
        for name, mine in shipped["iris", row["method"]].items():
            theirs = row["metrics"][name]
            ends = {"value": mine.value, "low": mine.low, "high": mine.high}
            told = {end: theirs[end] for end in ends if theirs[end] is not None}
            assert {end: one for end, one in ends.items() if one is not None} == pytest.approx(
                told, rel=1e-4
            )
            assert (mine.censored, mine.n) == (theirs["censored"], theirs["n"])
    sweep = study["sweep_ids"][0]
    trial = api.get(f"/api/sweeps/{sweep}/trials", params={"limit": 1}).json()["items"][0]
    curve = api.get(f"/api/trials/{trial['id']}/curve").json()
    assert [point["step"] for point in curve["points"]] == [0]
    assert trial["initial_loss"] is not None
    # Of the way between start and end nothing is known, so nothing is said of it.
    learning = api.get(f"/api/studies/{study['id']}/learning").json()
    assert learning["series"] == []
    assert {row["metrics"]["time_to_target"]["value"] for row in card["rows"]} == {None}
    best = api.get(f"/api/studies/{study['id']}/sensitivity", params={"reducer": "best"}).json()
    assert not any(line["points"] for line in best["series"])


def test_one_task_of_a_study_of_many_can_be_asked_for_alone(api, some, monkeypatch):
    two = Bundle(some.folder)
    tables = ("uci/balloons", "uci/iris")
    two.results = {
        spec: one
        for spec, one in two.results.items()
        if spec.task in tables and spec.method in ("eb", "ib", "sps")
    }
    with transaction() as session:
        store_bundle(session, bundle=two, source="a test")
    (study,) = api.get("/api/studies", params={"tag": "uci"}).json()["items"]

    def ask(what, **query):
        return api.get(f"/api/studies/{study['id']}/{what}", params=query).json()

    for what, rows in (("sensitivity", "series"), ("scorecard", "rows"), ("differences", "items")):
        whole = {row.get("id", row.get("first")): row for row in ask(what)[rows]}
        alone = ask(what, task="uci/iris")
        assert alone.get("left_out", 0) == 0
        assert len(alone[rows]) == len(whole) / 2
        for row in alone[rows]:
            other = whole[row.get("id", row.get("first"))]
            apart = {"label", "settings", "first_label", "second_label"}  # named by what differs
            assert {k: v for k, v in row.items() if k not in apart} == {
                k: v for k, v in other.items() if k not in apart
            }
    monkeypatch.setattr(stored, "MOST_SERIES", 4)
    assert ask("sensitivity", metric="test_loss")["left_out"] == 2
    assert ask("sensitivity", metric="test_loss", task="uci/iris")["left_out"] == 0
    assert ask("sensitivity", task="uci/nowhere")["series"] == []
