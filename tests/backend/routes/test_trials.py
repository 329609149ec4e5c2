"""One trial and its curve."""

from fastapi.testclient import TestClient

from ib_core.sweep.result import COLUMNS


def first_trial(api: TestClient, sweep: int, **query: object) -> dict:
    return api.get(f"/api/sweeps/{sweep}/trials", params=query).json()["items"][0]


def test_a_trial_has_the_columns_of_the_files_and_its_record(
    api: TestClient, submit, train
) -> None:
    sweep = submit()["id"]
    train()
    trial = api.get(f"/api/trials/{first_trial(api, sweep)['id']}").json()
    assert set(COLUMNS) | {"id", "state", "record"} <= trial.keys()
    assert trial["record"] == {"engine": "test"}
    assert (trial["outcome"], trial["imported"]) == ("completed", False)


def test_a_waiting_trial_has_no_outcome(api: TestClient, submit) -> None:
    trial = first_trial(api, submit()["id"])
    assert (trial["state"], trial["outcome"], trial["train_loss"]) == ("queued", None, None)


def test_a_curve_goes_on_after_a_step(api: TestClient, submit, train) -> None:
    sweep = submit()["id"]
    train()
    path = f"/api/trials/{first_trial(api, sweep)['id']}/curve"
    whole = api.get(path).json()
    assert [point["step"] for point in whole["points"]] == [0, 1, 2]
    rest = api.get(path, params={"after": 1}).json()
    assert [point["step"] for point in rest["points"]] == [2]
    assert rest["last_step"] == 2


def test_losses_that_are_not_finite_are_null(api: TestClient, submit, train) -> None:
    sweep = submit()["id"]
    train()
    trial = first_trial(api, sweep, state="diverged", seed=1)
    assert (trial["train_loss"], trial["outcome"]) == (None, "diverged")
    points = api.get(f"/api/trials/{trial['id']}/curve").json()["points"]
    assert points[-1]["train_loss"] is None


def test_unknown_trials_and_odd_parameters_are_refused(api: TestClient) -> None:
    assert api.get("/api/trials/5").status_code == 404
    assert api.get("/api/trials/5/curve").status_code == 404
    assert api.get("/api/trials/five").status_code == 422
    assert api.get("/api/trials/5/curve", params={"max_points": 1}).status_code == 422
    assert api.get(f"/api/trials/{2**63}").status_code == 422
