"""`etascope import`, `export` and `check`, and the page that opens without a network."""

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from typer.testing import CliRunner, Result

from backend.cli import app as etascope
from backend.cli import submit as cli_submit
from backend.cli.transfer import _still_trains, _verdict
from backend.client import Client
from backend.schemas import NumberRead, SweepState
from backend.services import publishing
from ib_core.sweep.result import Outcome
from tests import factories
from tests.backend.conftest import toy_result


@pytest.fixture(autouse=True)
def _use_this_api(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(url: str | None, token: str | None) -> Client:
        return Client(http=TestClient(app, base_url="http://127.0.0.1:8050"))

    monkeypatch.setattr(cli_submit, "connect", connect)


def run(*arguments: str, answer: str = "") -> Result:
    return CliRunner().invoke(etascope, list(arguments), input=answer)


RUNS = "id,rate,opt,loss,status\na,0.1,sgd,0.5,finished\nb,1,sgd,nan,finished\nc,1,sgd,,running\n"
FLAGS = ("--lr", "rate", "--method", "opt", "--server", "http://here")


def test_an_import_is_shown_before_it_is_stored(api: TestClient, tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(RUNS)
    shown = run("import", "table", str(path), *FLAGS, answer="n\n")
    assert "2 runs, 2 of them new here." in shown.output
    assert "runs, sgd: 2 rates (0.1 to 1), 1 seeds; 1 completed, 1 diverged" in shown.output
    assert "c: it is still running" in shown.output
    assert api.get("/api/studies").json()["items"] == []
    stored = run("import", "table", str(path), *FLAGS, "--yes")
    assert "Study 1: 2 runs imported, 0 were known." in stored.output
    again = run("import", "table", str(path), *FLAGS, "--yes")
    assert "Study 1: 0 runs imported, 2 were known." in again.output


def test_a_study_becomes_one_page_and_a_zip(trained: int, tmp_path: Path) -> None:
    page, packed = tmp_path / "out.html", tmp_path / "out.zip"
    done = run("export", "study", str(trained), "--html", str(page), "--zip", str(packed))
    assert done.exit_code == 0, done.output
    text = page.read_text()
    assert "http-equiv" in text
    assert "//" not in text.replace("http://www.w3.org/2000/svg", "").replace("// ", "")
    data = json.loads(text.split('id="data">')[1].split("</script>")[0])
    seeds = [
        seed
        for series in data["metrics"][0]["series"]
        for point in series["points"]
        for seed in point["seeds"]
    ]
    assert len(seeds) == 12
    lost = [diverged for _, value, _, diverged in seeds if value is None]
    assert lost == [1] * len(lost) != []  # a divergence is in it, as such
    with zipfile.ZipFile(io.BytesIO(packed.read_bytes())) as file:
        names = set(file.namelist())
        commands = file.read("repeat.sh").decode()
        assert file.read(f"data/study-{trained}-trials.csv").count(b"\n") == 13
    assert {"index.html", "README.txt", "data/numbers.csv", "sweeps/1.json"} <= names
    assert any(name.startswith("figures/") for name in names)
    assert "etascope submit toy/quadratic --methods eb,ib" in commands


def test_names_of_studies_cannot_break_out_of_the_page(
    api: TestClient, trained: int, tmp_path: Path
) -> None:
    hostile = "</script><script>alert(1)</script>"
    api.patch(f"/api/studies/{trained}", json={"name": hostile, "notes": hostile})
    page = tmp_path / "out.html"
    run("export", "study", str(trained), "--html", str(page))
    assert "<script>alert" not in page.read_text()


def test_a_page_of_two_thousand_trials_is_below_two_megabytes(api: TestClient) -> None:
    rows = "\n".join(
        f"t,{method},{0.01 * 1.5**rate},{seed},{0.123456789 * seed + rate},1"
        for method in ("eb", "ib", "adam", "isgd")
        for rate in range(20)
        for seed in range(25)
    )
    api.post("/api/import", content=f"task,method,lr,seed,train_loss,epochs\n{rows}\n")
    page = api.get("/api/publish", params={"study": 1})
    assert page.status_code == 200
    assert page.text.count("[") > 2000
    assert len(page.content) < 2_000_000


def test_several_studies_are_one_page(
    api: TestClient, trained: int, submit: Callable[..., Any], tmp_path: Path
) -> None:
    api.post("/api/studies", json={"name": "Another"})
    page = tmp_path / "out.html"
    done = run("export", "comparison", "1", "2", "--html", str(page))
    assert done.exit_code == 0, done.output
    assert "A study against Another" in page.read_text()
    assert run("export", "study", "1", "2", "--html", str(page)).exit_code != 0
    assert run("export", "study", "99", "--html", str(page)).exit_code != 0
    assert publishing.MEDIA_TYPES


class Row:
    """One row of a scorecard."""

    label, task = "mine", "digits"

    def __init__(self, **metrics: Any) -> None:
        common = {"low": None, "high": None, "definition": "", "censored": "none", "n": 3}
        common |= {"title": "", "unit": "", "better": "neither", "text": ""}
        self.metrics = {
            name: NumberRead(**common | {"value": value} | more)
            for name, (value, more) in metrics.items()
        }


@pytest.mark.parametrize(
    ("name", "value", "more", "bound", "good"),
    [
        ("edge", 0.6, {}, 0.5, True),
        ("edge", 0.4, {}, 0.5, False),
        ("edge", 0.5, {}, 0.5, True),
        ("edge", 3.0, {"censored": "above"}, 0.5, True),
        ("edge", 0.6, {"censored": "below"}, 0.5, False),  # at most that: it may be less
        ("edge", None, {"note": "no run broke"}, 0.5, False),
        ("lr_sensitivity", 0.2, {}, 0.3, True),
        ("lr_sensitivity", 0.4, {}, 0.3, False),
        ("lr_sensitivity", 0.2, {"censored": "above"}, 0.3, False),
        ("lr_sensitivity", 0.2, {"censored": "below"}, 0.3, True),
    ],
)
def test_a_number_keeps_to_its_bound_or_a_sentence_says_what_it_is(
    name: str, value: float | None, more: dict[str, Any], bound: float, good: bool
) -> None:
    row: Any = Row(**{name: (value, more)})
    found, sentence = _verdict(row, name, bound)
    assert found is good
    assert sentence.startswith("ok" if good else "FAIL")
    assert f"{bound:g}" in sentence


GATE = ("check", "--method", "ib", "--edge-at-least", "0.01", "--study")


def test_check_does_not_judge_a_study_that_still_trains(
    trained: int, submit: Callable[..., Any]
) -> None:
    assert run(*GATE, str(trained)).exit_code == 0
    submit(learning_rates=[0.5])
    refused = run(*GATE, str(trained))
    assert (refused.exit_code, refused.output) == (
        1,
        f"FAIL: study {trained} has not ended: 4 of its 16 trials wait or run; "
        "judge it as it is with --unfinished.\n",
    )
    assert run(*GATE, str(trained), "--unfinished").output.startswith("ok: the edge of")


def test_check_does_not_judge_a_search_between_two_rounds(trained: int, api: TestClient) -> None:
    study = Client(http=api).study(trained)
    assert _still_trains(study) is None
    between = study.model_copy(update={"state": SweepState.RUNNING})
    assert "its search goes on" in str(_still_trains(between))


def test_check_names_the_trials_that_failed(
    study: int, submit: Callable[..., Any], train: Callable[..., None]
) -> None:
    submit()

    def judge(trial: Any) -> Any:
        if (trial.spec["lr"], trial.spec["seed"]) == (1.0, 1):
            return factories.result(trial, outcome=Outcome.FAILED, error="out of memory\nmore")
        return toy_result(trial)

    train(judge)
    found = run(*GATE, str(study))
    head, line, verdict = found.output.splitlines()
    assert head == "1 failed trials are in no number:"  # EB's is not asked for
    assert line.endswith("on toy/quadratic, rate 1, seed 1: out of memory")
    assert verdict.startswith("ok")


def test_check_fails_a_pipeline_with_a_sentence(trained: int) -> None:
    failed = run("check", "--study", str(trained), "--method", "ib", "--edge-at-least", "1e9")
    assert failed.exit_code == 1
    assert failed.output.startswith("FAIL: the edge of")
    unknown = run("check", "--study", str(trained), "--method", "x", "--edge-at-least", "1")
    assert unknown.exit_code != 0
    assert "no results of 'x'" in str(unknown.exception)
    nothing = run("check", "--study", str(trained), "--method", "ib")
    assert "--edge-at-least" in str(nothing.exception)
