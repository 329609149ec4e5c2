"""Other trackers' runs: none vanishes, a divergence stays one, and twice adds nothing."""

import importlib.util
import json
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from backend.trackers import Names, TrackedRun, read_tracker, rows_of
from ib_core.errors import IBError
from tests.backend.trackers.stores import MAKERS, Store


@pytest.fixture(params=MAKERS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A store made by the tracker's own library, where it is installed."""
    library = request.param.split("_")[0]
    if library != "wandb" and importlib.util.find_spec(library) is None:
        # Aim's wants older packages than we pin: it is tried in an environment of its own.
        wanted = "aim" if library == "aim" else "'etascope[importers]'"
        pytest.skip(f"{library} is not installed; pip install {wanted}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the libraries' own
        yield MAKERS[request.param](tmp_path)


def send(api: TestClient, rows: list[dict[str, Any]], **query: Any) -> Any:
    content = json.dumps({"trials": rows}).encode()
    headers = {"Content-Type": "application/octet-stream"}
    answer = api.post("/api/import", content=content, params=query, headers=headers)
    assert answer.is_success, answer.text
    return answer.json()


def test_every_run_is_imported_as_its_source_says_or_named(api: TestClient, store: Store) -> None:
    found = read_tracker(store.kind, store.place, store.names)
    assert len(found.dropped) == store.dropped
    assert all(one.why for one in found.dropped)
    for row in found.rows:  # steps as they were logged, in their order
        steps = [int(step) for step in row.get("train_loss_steps", "").split(";") if step]
        assert steps == sorted(steps)
        assert max(steps, default=0) <= 10
    shown = send(api, found.rows, preview=True)
    assert shown["new"] == shown["trials"] == store.completed + store.diverged + store.failed
    ends = Counter(dict.fromkeys(("completed", "diverged", "failed"), 0))
    for series in shown["series"]:
        ends.update({name: series[name] for name in ends})
    assert ends == {
        "completed": store.completed,
        "diverged": store.diverged,
        "failed": store.failed,
    }
    assert api.get("/api/studies").json()["items"] == []  # a preview stores nothing
    stored = send(api, found.rows, name="Theirs", reuse=True)
    assert stored["imported"] == shown["trials"]
    again = read_tracker(store.kind, store.place, store.names)
    more = send(api, again.rows, name="Theirs", reuse=True)
    assert (more["imported"], more["study_id"]) == (0, stored["study_id"])
    assert more["sweep_ids"] == stored["sweep_ids"]
    study = api.get(f"/api/studies/{stored['study_id']}").json()
    assert study["total"] == shown["trials"]
    trial = api.get(f"/api/sweeps/{stored['sweep_ids'][0]}/trials").json()["items"][0]
    origin = api.get(f"/api/trials/{trial['id']}").json()["record"]["imported"]
    assert (origin["tracker"], origin["store"]) == (store.kind, store.place)
    assert origin["run"]


def test_a_run_that_has_ended_meanwhile_is_all_that_a_second_import_adds(api: TestClient) -> None:
    def run(name: str, state: Any, loss: float | None) -> TrackedRun:
        return TrackedRun(name, state, {"lr": 0.1}, task="t", loss=loss)

    first = [run("a", "running", None), run("b", "finished", 0.5)]
    second = [run("a", "finished", 0.4), run("b", "finished", 0.5)]
    one = send(api, rows_of("x", "s", first, Names()).rows, name="N", reuse=True)
    two = send(api, rows_of("x", "s", second, Names()).rows, name="N", reuse=True)
    # The place of b among its likes has moved from first to second; it is the same run.
    assert (one["imported"], two["imported"], two["reused"]) == (1, 1, 1)
    assert api.get(f"/api/studies/{one['study_id']}").json()["total"] == 2


def test_runs_of_one_setting_without_seeds_are_numbered_and_none_is_lost(api: TestClient) -> None:
    runs = [
        TrackedRun(str(n), "finished", {"lr": 3.0}, task="t", loss=float("nan")) for n in range(4)
    ]
    found = rows_of("x", "s", runs, Names())
    assert [row["repeat"] for row in found.rows] == [1, 2, 3, 4]
    (series,) = send(api, found.rows, preview=True)["series"]
    assert (series["diverged"], series["seeds"], series["repeated"]) == (4, [1, 2, 3, 4], 0)


@pytest.mark.parametrize(
    ("kind", "place", "words"),
    [
        ("nonsense", "x", "There is no tracker called"),
        ("table", "nowhere.csv", "There is no file"),
        ("tensorboard", "nowhere", "no event files"),
        ("aim", "nowhere", "Aim cannot read nowhere"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(kind: str, place: str, words: str) -> None:
    if kind in ("tensorboard", "aim"):
        pytest.importorskip(kind)
    with pytest.raises(IBError, match=words):
        read_tracker(kind, place, Names())


def test_a_name_that_no_run_has_is_told_with_the_names_they_have(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("id,rate,loss\n1,0.1,0.5\n")
    with pytest.raises(IBError, match="no learning rate called lr") as error:
        read_tracker("table", str(path), Names())
    assert error.value.hint is not None
    assert "rate" in error.value.hint


def written(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text(json.dumps(rows))
    return str(path)


def test_a_rate_that_a_scheduler_logs_is_not_the_rate_of_the_run(tmp_path: Path) -> None:
    run = {
        "id": "a",
        "name": "swift-1",
        "config": {
            "lr": {"value": 0.1},
            "seed": 3,
            "optimizer": "adam",
            "loss": "mse",
            "name": "n",
        },
        "summary": {"lr": 1e-6, "seed": 9, "loss": 0.5, "val": {"loss": 0.7}},
    }
    names = Names(method="optimizer", seed="seed", test_loss="val.loss", keep=("name",))
    (row,) = read_tracker("wandb", written(tmp_path / "runs.json", [run]), names).rows
    assert (row["lr"], row["seed"], row["method"]) == (0.1, 3, "adam")
    assert (row["train_loss"], row["test_loss"]) == (0.5, 0.7)
    assert row["source"]["run"] == "a"
    named = read_tracker("wandb", str(tmp_path / "runs.json"), Names(loss="loss")).rows[0]
    assert (named["lr"], named["train_loss"]) == (0.1, 0.5)
    flat = {"id": "a", "metrics.lr": 1e-6, "params.lr": 0.1, "params.loss": "mse"}
    exported = written(tmp_path / "m.json", [flat | {"metrics.loss": 0.5}])
    for kind in ("mlflow", "table"):
        (row,) = read_tracker(kind, exported, Names()).rows
        assert (row["lr"], row["train_loss"]) == (0.1, 0.5)


def test_a_misspelt_loss_is_told_though_failed_runs_could_be_imported() -> None:
    runs = [
        TrackedRun("a", "finished", {"lr": 0.1}, metrics={"loss": 0.5}),
        TrackedRun("b", "failed", {"lr": 0.1}),
    ]
    with pytest.raises(IBError, match="No run of s has a loss called 'los'") as error:
        rows_of("x", "s", runs, Names(loss="los"))
    assert error.value.field == "loss"
    assert len(rows_of("x", "s", runs, Names(loss="loss")).rows) == 2
    assert len(rows_of("x", "s", runs[1:], Names(loss="loss")).rows) == 1, "it had none to log"


def table(path: Path, text: str, **names: Any) -> list[dict[str, Any]]:
    path.write_text(text)
    found = read_tracker("table", str(path), Names(**names))
    assert found.dropped == []
    return found.rows


@pytest.mark.parametrize(
    ("header", "names"),
    [
        ("lr,run,loss", {"seed": "run"}),
        ("lr,name,loss", {"method": "name"}),
        ("lr,id,loss", {"task": "id"}),
        ("lr,Name,loss", {"keep": ("Name",)}),
        ("lr,x,run", {"loss": "run"}),
    ],
)
def test_a_column_that_means_something_else_does_not_name_runs(
    tmp_path: Path, api: TestClient, header: str, names: dict[str, Any]
) -> None:
    text = f"{header}\n0.1,1,0.5\n0.2,1,0.5\n0.1,2,0.5\n0.2,2,0.5\n"
    rows = table(tmp_path / "runs.csv", text, **names)
    assert send(api, rows, preview=True)["new"] == 4


def test_rows_of_one_name_are_one_run_only_if_they_are_equal(
    tmp_path: Path, api: TestClient
) -> None:
    lines = ["a,0.1,0.5,x", "a,0.1,nan,x", "a,0.1,nan,y", "b,0.1,0.5,x"]
    path = tmp_path / "runs.csv"
    header = "name,lr,loss,other\n"
    rows = table(path, header + "\n".join(lines))
    assert send(api, rows, name="N", reuse=True)["imported"] == 4
    again = table(path, header + "\n".join(reversed(lines)))
    assert send(api, again, name="N", reuse=True)["imported"] == 0, "their order names nobody"
    path.write_text(header + "\n".join([*lines, lines[0]]))
    found = read_tracker("table", str(path), Names())
    assert [one.run for one in found.dropped] == ["a"]
    assert len(found.rows) == 4


def test_rows_without_a_name_are_known_again_wherever_they_stand(
    tmp_path: Path, api: TestClient
) -> None:
    path = tmp_path / "runs.csv"
    rows = table(path, "lr,loss\n0.1,nan\n0.1,nan\n0.1,0.5\n")
    assert send(api, rows, name="N", reuse=True)["imported"] == 3
    more = table(path, "lr,loss\n0.1,0.4\n0.1,0.5\n0.1,nan\n0.1,nan\n")
    assert send(api, more, name="N", reuse=True)["imported"] == 1


@pytest.mark.parametrize(
    ("said", "loss", "state"),
    [
        ("diverged", "", "diverged"),
        ("Diverged", "0.5", "diverged"),
        ("PRUNED", "0.5", "failed"),
        ("TrialState.PRUNED", "0.5", "failed"),
        ("canceled", "0.5", "failed"),
        ("cancelled", "", "failed"),
        ("error", "0.5", "failed"),
        ("Out of memory", "", "failed"),
        ("COMPLETE", "0.5", "completed"),
        ("COMPLETE", "nan", "diverged"),
        ("WAITING", "0.5", None),
        ("running", "0.5", None),
        ("queued", "0.5", None),
    ],
)
def test_a_table_s_word_for_the_end_of_a_run_is_understood(
    tmp_path: Path, api: TestClient, said: str, loss: str, state: str | None
) -> None:
    path = tmp_path / "runs.csv"
    for column in ("outcome", "state", "Status"):
        path.write_text(f"lr,loss,{column}\n0.1,{loss},{said}\n0.2,0.5,\n")
        found = read_tracker("table", str(path), Names())
        assert len(found.dropped) == (state is None)
        (series,) = send(api, found.rows, preview=True)["series"]
        ends = Counter(["completed", *([state] if state else [])])
        assert {name: series[name] for name in ("completed", "diverged", "failed")} == {
            name: ends[name] for name in ("completed", "diverged", "failed")
        }


def test_a_column_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "export.csv"
    path.write_text("Name,lr,lr,loss\na,0.1,1e-6,0.5\n")
    with pytest.raises(IBError, match="several columns called 'lr'"):
        read_tracker("wandb", str(path), Names())


def lines_of(api: TestClient, study_id: int) -> list[tuple[float, int]]:
    """The rates of a study's series with the number of their seeds, series by series."""
    series = api.get(f"/api/studies/{study_id}/sensitivity").json()["series"]
    return [(point["lr"], point["n"]) for line in series for point in line["points"]]


def test_a_run_that_comes_later_is_one_more_seed_of_its_series(api: TestClient) -> None:
    def rows(names: str, rate: float = 0.1) -> list[dict[str, Any]]:
        losses = {"a": 0.1, "bb": 0.2, "ccc": 0.3, "d": 0.4}
        runs = [
            TrackedRun(name, "finished", {"lr": rate}, task="t", loss=losses[name])
            for name in names.split()
        ]
        return rows_of("x", "s", runs, Names()).rows

    first = send(api, rows("bb a"), name="N", reuse=True)
    second = send(api, rows("ccc bb a"), name="N", reuse=True)
    assert second["imported"] == 1
    assert lines_of(api, first["study_id"]) == [(0.1, 3)]
    other = send(api, rows("d ccc bb a"), name="Another study, where three are known")
    assert lines_of(api, other["study_id"]) == [(0.1, 4)]
    sweeps = [api.get(f"/api/sweeps/{one}").json() for one in second["sweep_ids"]]
    assert [sweep["spec"]["seeds"] for sweep in sweeps] == [[1, 2], [3]]
    third = send(api, rows("d ccc bb a") + rows("a bb", 0.2), name="N", reuse=True)
    assert lines_of(api, third["study_id"]) == [(0.1, 4), (0.2, 2)]


def test_runs_without_seeds_keep_clear_of_those_that_have_some(api: TestClient) -> None:
    runs = [
        TrackedRun(str(n), "finished", {"lr": 0.1, **({"seed": n} if n % 2 else {})}, loss=0.1 * n)
        for n in range(1, 5)
    ]
    stored = send(api, rows_of("x", "s", runs, Names(seed="seed")).rows, name="N")
    assert lines_of(api, stored["study_id"]) == [(0.1, 4)]


@pytest.mark.parametrize("place", ["method", "seed", "test_loss", "task", "epochs", "batch_size"])
def test_nothing_that_no_run_has_is_passed_over(tmp_path: Path, place: str) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("id,lr,loss,which\n1,0.1,0.5,sgd\n2,0.2,0.4,sgd\n")
    with pytest.raises(IBError, match="has anything called 'optimiser'") as error:
        read_tracker("table", str(path), Names(**{place: "optimiser"}))
    assert "which" in str(error.value.hint)
