import csv
import gzip

import pytest

from ib_core.errors import CorruptData
from ib_core.reproduction.recorded import recorded_evidence, recorded_overheads, recorded_runs

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
    found = recorded_evidence()
    assert found.overheads == {"JSB Chorales": 1.5}
    assert found.result_overheads == {"JSB Chorales": 4.0}


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
    assert not recorded_evidence().curves
