"""`etascope submit` against the API in this process."""

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from typer.testing import CliRunner, Result

from backend.cli import app as etascope
from backend.cli import submit as cli_submit
from backend.client import Client
from ib_core.errors import IBError
from ib_core.sweep.presets import PRESETS

GRID = ("toy/quadratic", "--methods", "eb,ib", "--lrs", "0.1,1", "--seeds", "2", "--no-wait")


@pytest.fixture(autouse=True)
def _use_this_api(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(url: str, token: str | None) -> Client:
        return Client(http=TestClient(app, base_url=url))

    monkeypatch.setattr(cli_submit, "connect", connect)
    monkeypatch.setattr(cli_submit, "_local_server", lambda: "http://127.0.0.1:8050")


def submit(*arguments: str) -> Result:
    return CliRunner().invoke(etascope, ["submit", *arguments])


def studies(api: TestClient) -> list[str]:
    return [study["name"] for study in api.get("/api/studies").json()["items"]]


def test_receipt_says_how_many_trials_and_where_to_look(api: TestClient) -> None:
    shown = submit(*GRID)

    assert shown.output == "Submitted 8 trials: http://127.0.0.1:8050/studies/1\n"
    assert studies(api) == ["toy/quadratic: eb, ib"]


def test_named_study_is_used_again_and_trials_too(api: TestClient) -> None:
    submit(*GRID, "--study", "Mine")
    shown = submit(*GRID, "--study", "Mine", "--lrs", "0.1,1,3")

    assert "Submitted 12 trials, 8 of them already known" in shown.output
    assert studies(api) == ["Mine"]


def test_a_presets_study_opens_with_its_picture_however_it_was_submitted(api: TestClient) -> None:
    few = ("--seeds", "1", "--lrs", "0.1", "--no-wait")
    shown = submit("--preset", "study/edge_of_stability", *few)
    picture = PRESETS["study/edge_of_stability"].picture
    assert picture
    assert f"/studies/1?view={picture}\n" in shown.output
    body = {"preset": "study/edge_of_stability", "seeds": 1, "learning_rates": [0.1]}
    api.post("/api/sweeps", json={"study": {"name": "By hand"}, "sweep": body})
    found = api.get("/api/studies").json()["items"]
    assert [one["picture"] for one in found] == [picture, picture]
    plain = {"task": "toy/quadratic", "learning_rates": [0.1]}  # a tag alone is somebody's word
    api.post("/api/sweeps", json={"study": {"name": "Plain", "tags": ["study"]}, "sweep": plain})
    assert api.get("/api/studies/3").json()["picture"] == ""


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("no_such_task",), "There is no task called 'no_such_task'"),
        (("toy/quadratic", "--methods", "zz"), "There is no method called 'zz'"),
        (
            ("toy/quadratic", "--epochs", "99999999"),
            "--epochs: Epochs must be a whole number from 1 to 10,000; got 99999999.",
        ),
        (("--preset", "nope"), "There is no preset called 'nope'"),
    ],
)
def test_refused_sweep_leaves_no_empty_study(
    api: TestClient, arguments: tuple[str, ...], sentence: str
) -> None:
    shown = submit(*arguments, "--no-wait")

    assert isinstance(shown.exception, IBError)
    assert sentence in shown.exception.message
    assert studies(api) == []
