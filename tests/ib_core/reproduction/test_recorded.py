import csv
import gzip
import io

import pytest

from ib_core.errors import CorruptData, MissingData
from ib_core.reproduction.bundle import Bundle, shipped_folder
from ib_core.reproduction.evidence import Evidence, Run, runs_of
from ib_core.reproduction.recorded import (
    NUMBERS,
    RUNS,
    UCI,
    as_runs,
    initial_losses,
    make_facts,
    recorded_evidence,
    recorded_file,
    recorded_overheads,
    recorded_runs,
)

LINE = {
    **{"experiment": "05_jsb_chorales", "dataset": "JSB Chorales", "batch_size": "1", "clip": "0"},
    **{"lr": "5.0", "seed": "1", "epochs": "2", "method": "EB", "epochs_recorded": "2"},
    **{"test_accuracy": "0", "runtime_s": "10.0"},
    **{"train_loss_by_epoch": "2.0;1.0", "test_loss_by_epoch": "2.5;1.5"},
}
TIMED = {"experiment": "", "epochs_recorded": "0", "train_loss_by_epoch": ""}


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setenv("ETASCOPE_DATA_DIR", str(tmp_path))
    (tmp_path / "paper").mkdir()
    return tmp_path / "paper" / "authors_runs.csv.gz"


def write(file, *changes, columns=tuple(LINE)):
    with gzip.open(file, "wt", newline="") as out:
        table = csv.DictWriter(out, columns, extrasaction="ignore")
        table.writeheader()
        table.writerows(LINE | change for change in changes)


def test_trial_runs_duplicates_and_strangers_are_left_out(file):
    names = ("", "05_jsb_chorales (duplicate)", "99_another_paper")
    write(file, {}, *({"experiment": name} for name in names))
    (run,) = recorded_runs()
    assert (run.train, run.test, run.seconds) == ((2.0, 1.0), (2.5, 1.5), 10.0)


def test_run_times_are_those_of_runs_that_hold_nothing_else(file):
    write(
        file,
        {},
        {"method": "IB", "runtime_s": "50.0"},
        {**TIMED, "lr": "57.0"},
        {**TIMED, "lr": "57.0", "method": "IB", "runtime_s": "25.0"},
        {**TIMED, "lr": "58.0", "method": "IB", "runtime_s": "999.0"},  # nothing to compare it with
    )
    assert recorded_overheads() == {"JSB Chorales": 1.5}
    rows = list(csv.DictReader(io.StringIO(make_facts(Evidence())[NUMBERS])))
    times = {row["number"]: float(row["value"]) for row in rows if "overhead" in row["number"]}
    assert times == {"overhead": 1.5, "result_overhead": 4.0}


def test_a_file_that_changes_is_read_again(file):
    write(file, {})
    assert len(recorded_runs()) == 1
    write(file, {}, {"seed": "2"})
    assert len(recorded_runs()) == 2


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda file: file.write_bytes(b"experiment,lr\n"), "line 1, cannot be read"),
        (lambda file: file.write_bytes(file.read_bytes()[:-12]), "cannot be read"),
        (lambda file: write(file, {}, {"lr": "high"}), "line 3, cannot be read"),
        (lambda file: write(file, {"test_loss_by_epoch": ""}), "line 2, cannot be read"),
        (lambda file: write(file, {"seed": "inf"}), "line 2, cannot be read"),
        (lambda file: write(file, {"runtime_s": "nan"}), "line 2, .* cannot take nan seconds"),
        (lambda file: write(file, {**TIMED, "runtime_s": "0"}), "line 2, .* cannot take 0 seconds"),
        (lambda file: file.write_bytes(file.read_bytes()[:20] + b"?" * 200), "cannot be read"),
        (lambda file: write(file, {}, columns=tuple(LINE)[:5]), "has no column 'method'"),
        (lambda file: write(file, {}, columns=tuple(LINE)[:9]), "has no column"),
    ],
)
def test_a_spoilt_file_is_told_in_a_sentence(file, spoil, words):
    write(file, {})
    spoil(file)
    with pytest.raises(CorruptData, match=words) as told:
        recorded_runs()
    assert str(file) in str(told.value)


def test_without_the_file_there_is_nothing(file):
    assert recorded_overheads() == {}
    with pytest.raises(MissingData):
        make_facts(Evidence())
    assert len(recorded_evidence().facts) == 17  # these come along


def ours(seed, loss, experiment="05_jsb_chorales"):
    return Run(experiment, "", "eb", 5.0, seed, 0.1, initial_loss=loss)


def test_initial_losses_are_those_of_our_same_seeds_else_their_mean(file):
    write(file, {}, {"seed": "2"}, {"seed": "3"}, {"seed": "4", "train_loss_by_epoch": "9;nan"})
    known = Evidence.of([ours(1, 3.0), ours(2, 4.0)])
    assert initial_losses(known) == {"05_jsb_chorales": {1: 3.0, 2: 4.0}}
    found = list(as_runs(recorded_runs(), known))
    assert [run.initial_loss for run in found] == [3.0, 4.0, 3.5, 3.5]
    assert [run.outcome for run in found] == ["completed"] * 3 + ["diverged"]


def test_a_fact_is_the_mean_spread_and_count_of_its_seeds(file):
    losses = ("1;1.0", "1;2.0", "1;9.0", "1;nan")
    write(file, *({"seed": str(i), "train_loss_by_epoch": one} for i, one in enumerate(losses, 1)))
    known = Evidence.of([ours(seed, 4.0) for seed in (1, 2, 3, 4)])
    (row,) = csv.DictReader(io.StringIO(make_facts(known)[RUNS]))
    assert (row["n"], row["train_non_finite"], row["broken"]) == ("4", "1", "2")
    assert (row["train_mean"], row["train_lowest"], row["train_highest"]) == ("", "1", "9")
    assert float(row["capped"]) == (1 + 2 + 4 + 4) / 4
    assert float(row["test_mean"]) == 1.5


def test_the_tables_that_come_along_are_those_of_the_recorded_runs():
    if recorded_file() is None:
        pytest.skip("no recorded runs: set ETASCOPE_DATA_DIR to a folder with paper/")
    results = Bundle(shipped_folder()).results.values()
    made = make_facts(Evidence.of(runs_of(results, "authors")))
    for name in (RUNS, UCI, NUMBERS):
        kept = (shipped_folder().with_name("printed") / name).read_text()
        assert made[name] == kept, f"{name}: `python -m ib_core.reproduction facts` makes it anew"


def test_the_facts_hold_what_is_known_of_the_recorded_runs():
    found = recorded_evidence()
    points = {point.lr: point for point in found.facts["01_mnist_classification"]["eb"]}
    assert {point.n for point in points.values()} == {20}
    assert found.facts["05_jsb_chorales"]["eb"][-1].lr == 500
    assert found.facts["05_jsb_chorales"]["eb"][-1].train.mean == pytest.approx(0.0075, abs=1e-4)
    lost = [
        (name, method, point.lr)
        for name, methods in found.facts.items()
        for method, rates in methods.items()
        for point in rates
        if point.train.non_finite
    ]
    assert lost == [("10_musedata_clip_8.0", "eb", 500.0)]
    assert len(found.uci) == 121
