"""What is kept of a machine's speed between runs."""

import json

import pytest

from ib_core.sweep import speed
from ib_core.sweep.speed import TYPICAL, calibrate, machine_speed


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """The file of speeds, not there yet; measuring finds double the typical call."""
    file = tmp_path / "cache" / "speed.json"
    monkeypatch.setattr(speed, "_cache_file", lambda: file)
    monkeypatch.setattr(
        speed,
        "measure_speed",
        lambda: speed.Speed(**{**speed.asdict(TYPICAL), "call_seconds": 5e-6}),
    )
    return file


def test_a_machine_is_measured_once_and_then_remembered(kept, monkeypatch):
    assert machine_speed() == TYPICAL, "until it is measured"
    assert calibrate().call_seconds == 5e-6
    monkeypatch.setattr(speed, "measure_speed", lambda: TYPICAL)
    assert calibrate().call_seconds == machine_speed().call_seconds == 5e-6
    assert calibrate(again=True) == machine_speed() == TYPICAL


@pytest.mark.parametrize("text", ["{", "[]", json.dumps({"cpu": {"call_seconds": 1, "gone": 2}})])
def test_what_cannot_be_read_or_was_kept_by_another_version_is_measured_again(kept, text):
    kept.parent.mkdir()
    kept.write_text(text)
    assert machine_speed() == TYPICAL
    assert calibrate().call_seconds == machine_speed().call_seconds == 5e-6


def test_measuring_finds_every_speed():
    found = speed.measure_speed()
    numbers = [v for v in speed.asdict(found).values() if isinstance(v, float)]
    assert all(number > 0 for number in [*numbers, *found.solves.values()])
