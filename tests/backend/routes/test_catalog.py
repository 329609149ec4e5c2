"""What can be run, and whether its data is here."""

from pathlib import Path

import pytest
from fastapi.testclient import TestClient


@pytest.fixture
def no_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ETASCOPE_DATA_DIR", str(tmp_path / "nothing"))


def test_tasks_say_how_large_they_are_and_where_their_data_is(
    api: TestClient, no_data: None
) -> None:
    tasks = {task["name"]: task for task in api.get("/api/catalog").json()["tasks"]}
    autoencoder, digits = tasks["mnist_autoencoder"], tasks["digits_mlp"]
    assert autoencoder["profiles"]["text"]["parameters"] == 1_152_614
    assert not autoencoder["present"]
    assert "etascope data fetch" in autoencoder["how_to_get"]
    assert digits["present"]
    assert "ib_plus" in digits["methods"]
    assert "ib_plus" not in autoencoder["methods"]
    assert tasks["music/jsb_chorales"]["profiles"]["authors"]["parameters"] == 150_932
    assert tasks["uci/abalone"]["profiles"]["text"]["parameters"] is None


def test_methods_activations_presets_metrics_and_limits_are_there(
    api: TestClient, no_data: None
) -> None:
    catalog = api.get("/api/catalog").json()
    assert [method["name"] for method in catalog["methods"]][:2] == ["eb", "ib"]
    activations = {a["name"]: a["approximation_error"] for a in catalog["activations"]}
    assert activations["relu"] is None
    assert 0 < activations["tanh"] <= 1e-3
    presets = {preset["name"]: preset for preset in catalog["presets"]}
    assert presets["paper/05_jsb_chorales"]["trials"] == 2 * 7 * 5
    assert (presets["first/digits"]["present"], presets["paper/uci"]["present"]) == (True, False)
    assert all(metric["definition"] for metric in catalog["metrics"])
    assert catalog["limits"]["trials_per_sweep"] == 20_000


def test_every_preset_can_be_submitted_as_it_stands(
    api: TestClient, study: int, no_data: None
) -> None:
    for preset in api.get("/api/catalog").json()["presets"]:
        for body in preset["sweeps"]:
            answer = api.post(f"/api/studies/{study}/sweeps?dry_run=true", json=body)
            error = answer.json().get("error", {})
            assert answer.status_code == 200 or error["code"] == "missing_data", answer.text
            if preset["name"] == "paper/uci":
                break  # the other 120 differ in the table's name only


def test_missing_data_says_how_to_get_it(api: TestClient, study: int, no_data: None) -> None:
    answer = api.post(f"/api/studies/{study}/sweeps", json={"preset": "paper/05_jsb_chorales"})
    assert answer.status_code == 422
    assert "etascope data fetch" in answer.json()["error"]["message"]
