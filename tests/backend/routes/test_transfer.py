"""Trials out to files, and runs made elsewhere in."""

import csv
import gzip
import io
import json
import zlib
from typing import Any

import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient

from backend.services import importing
from backend.settings import get_settings
from ib_core.sweep.result import COLUMNS

RUNS = """dataset,method,lr,seed,train_loss,test_loss,epochs,clip
mnist,EB,0.1,1,0.5,0.6,1,0
mnist,EB,0.1,2,nan,nan,1,0
mnist,exact,0.1,1,0.4,,1,8
"""


def export(api: TestClient, study: int, **query: str) -> bytes:
    answer = api.get(f"/api/studies/{study}/export", params=query)
    assert answer.status_code == 200, answer.text
    assert "attachment" in answer.headers["content-disposition"]
    return answer.content


def rows_of(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode())))


def send(api: TestClient, content: bytes | str, **query: object) -> dict:
    answer = api.post("/api/import", content=content, params=query)
    assert answer.status_code == 201, answer.text
    return answer.json()


def outcomes(api: TestClient, study: int) -> list[tuple]:
    return sorted(
        (row["method"], float(row["lr"]), int(row["seed"]), row["outcome"], row["train_loss"])
        for row in rows_of(export(api, study))
    )


def test_trials_and_series_say_what_varies_in_their_study(
    api: TestClient, trained: int, submit, train
) -> None:
    submit(batch_size=20)
    train()
    study = f"/api/studies/{trained}"
    found = {
        "sensitivity": api.get(f"{study}/sensitivity").json()["series"],
        "scorecard": api.get(f"{study}/scorecard").json()["rows"],
        "compare": api.get(f"/api/compare?study={trained}").json()["series"],
        "json": json.loads(export(api, trained, format="json"))["trials"],
        "sweep": api.get("/api/sweeps/1/trials").json()["items"],
    }
    for name, rows in found.items():
        assert all(row["settings"] == {"batch_size": row["batch_size"]} for row in rows), name
    sizes = {row["batch_size"] for row in found["json"]}
    assert len(sizes) == 2
    said = {json.loads(row["settings"])["batch_size"] for row in rows_of(export(api, trained))}
    assert said == sizes
    card = rows_of(export(api, trained, content="scorecard"))
    assert {json.loads(row["settings"])["batch_size"] for row in card} == sizes


def test_every_trial_is_exported_also_those_that_wait(
    api: TestClient, trained: int, submit
) -> None:
    submit(seeds=3)
    rows = rows_of(export(api, trained))
    assert len(rows) == 18
    assert tuple(rows[0])[: len(COLUMNS)] == COLUMNS
    assert sum(row["state"] == "queued" for row in rows) == 6
    lost = next(row for row in rows if row["outcome"] == "diverged" and row["seed"] == "1")
    assert lost["train_loss"] == ""


def test_all_formats_hold_the_same_trials(api: TestClient, trained: int) -> None:
    from_csv = {int(row["id"]): row["outcome"] for row in rows_of(export(api, trained))}
    trials = json.loads(export(api, trained, format="json"))["trials"]
    table = pq.read_table(io.BytesIO(export(api, trained, format="parquet")))
    assert {trial["id"]: trial["outcome"] for trial in trials} == from_csv
    assert dict(zip(*(table[name].to_pylist() for name in ("id", "outcome")), strict=True)) == (
        from_csv
    )
    assert table.schema.field("lr").type == "double"


def test_a_study_without_trials_exports_as_an_empty_file(api: TestClient, study: int) -> None:
    assert rows_of(export(api, study)) == []
    assert json.loads(export(api, study, format="json")) == {"trials": []}
    parquet = export(api, study, format="parquet")
    assert pq.read_table(io.BytesIO(parquet)).num_rows == 0


def test_runs_made_elsewhere_are_marked_and_judged(api: TestClient) -> None:
    found = send(api, RUNS, name="Elsewhere")
    assert (found["imported"], found["reused"], found["skipped"]) == (3, 0, 0)
    study = found["study_id"]
    assert api.get(f"/api/studies/{study}").json()["state"] == "completed"
    assert outcomes(api, study) == [
        ("eb", 0.1, 1, "completed", "0.5"),
        ("eb", 0.1, 2, "diverged", ""),
        ("isgd", 0.1, 1, "completed", "0.4"),
    ]
    rows = rows_of(export(api, study))
    assert {row["imported"] for row in rows} == {"True"}
    assert {row["task"] for row in rows} == {"mnist_classifier"}
    assert {row["clip"] for row in rows} == {"", "8.0"}


def test_the_same_file_twice_brings_nothing_new(api: TestClient) -> None:
    first = send(api, RUNS)
    again = send(api, RUNS, study_id=first["study_id"])
    assert (again["imported"], again["reused"]) == (0, 3)
    assert again["sweep_ids"] == first["sweep_ids"]
    assert api.get(f"/api/studies/{first['study_id']}").json()["total"] == 3


def test_a_sweep_says_how_many_of_its_runs_were_known_before(api: TestClient) -> None:
    first, second = send(api, RUNS), send(api, RUNS)
    assert first["study_id"] != second["study_id"]
    assert (second["imported"], second["reused"]) == (0, 3)
    for found, known in ((first, False), (second, True)):
        sweeps = [api.get(f"/api/sweeps/{id}").json() for id in found["sweep_ids"]]
        assert sum(sweep["total"] for sweep in sweeps) == 3
        assert sum(sweep["reused"] for sweep in sweeps) == (3 if known else 0)


def test_imported_runs_are_drawn_beside_our_own(api: TestClient, trained: int) -> None:
    runs = "task,method,lr,seed,train_loss\ntoy/quadratic,eb,0.1,1,0.7\n"
    send(api, runs, study_id=trained)
    answer = api.get(f"/api/studies/{trained}/sensitivity").json()
    labels = [line["label"] for line in answer["series"]]
    assert len(labels) == 3
    assert any("imported" in label for label in labels)


def test_two_results_of_one_setting_and_seed_stay_apart(api: TestClient) -> None:
    runs = "task,method,lr,seed,train_loss\nx,eb,1,1,0.5\nx,eb,1,1,0.7\n"
    study = send(api, runs)["study_id"]
    series = api.get(f"/api/studies/{study}/sensitivity").json()["series"]
    assert [line["points"][0]["mean"] for line in series] == [0.5, 0.7]
    assert [line["label"] for line in series] == ["eb", "eb, repeat 2"]


@pytest.mark.parametrize("format", ["csv", "json"])
def test_our_own_export_comes_back_with_the_same_outcomes(
    api: TestClient, trained: int, format: str
) -> None:
    copy = send(api, export(api, trained, format=format))["study_id"]
    assert outcomes(api, copy) == outcomes(api, trained)
    numbers = [
        [
            point["mean"]
            for line in api.get(f"/api/studies/{s}/sensitivity").json()["series"]
            for point in line["points"]
        ]
        for s in (trained, copy)
    ]
    assert numbers[0] == numbers[1]


def test_compressed_files_and_forms_are_read_alike(api: TestClient) -> None:
    packed = send(api, gzip.compress(RUNS.encode()))
    form = api.post("/api/import", files={"file": ("runs.csv", RUNS.encode())})
    assert packed["imported"] == 3
    assert form.status_code == 201
    assert form.json()["reused"] == 3
    study = api.get(f"/api/studies/{form.json()['study_id']}").json()
    assert study["name"] == "Imported: runs.csv"


@pytest.mark.parametrize("name", ["a\tb\u202e.csv", "\x01", "x" * 500, " "])
def test_an_odd_file_name_does_no_harm(api: TestClient, name: str) -> None:
    answer = api.post("/api/import", files={"file": (name, RUNS.encode())})
    assert answer.status_code == 201, answer.text
    study = api.get(f"/api/studies/{answer.json()['study_id']}").json()
    assert study["name"].isprintable()
    refused = api.post("/api/import", content=RUNS, params={"filename": "a\nb"})
    assert refused.status_code == 422


def test_curves_by_epoch_come_along(api: TestClient) -> None:
    runs = (
        "dataset,method,lr,seed,train_loss,train_loss_by_epoch,test_loss_by_epoch\n"
        "x,ib,1,1,0.2,0.9;nan;0.2,0.8;0.7;0.6\n"
    )
    study = send(api, runs)["study_id"]
    sensitivity = api.get(f"/api/studies/{study}/sensitivity", params={"reducer": "best"}).json()
    dot = sensitivity["series"][0]["points"][0]["seeds"][0]
    assert dot["value"] == 0.2
    curve = api.get(f"/api/trials/{dot['trial_id']}/curve").json()["points"]
    assert [point["train_loss"] for point in curve] == [0.9, None, 0.2]


def test_imported_runs_cannot_be_trained_here(api: TestClient) -> None:
    runs = "task,method,lr,seed,train_loss,outcome\nx,eb,1,1,,failed\n"
    sweep = send(api, runs)["sweep_ids"][0]
    answer = api.post(f"/api/sweeps/{sweep}/retry")
    assert answer.status_code == 409
    assert "imported" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"dataset,method,lr\n", "no runs"),
        (b"\xff\xfe\x00", "UTF-8"),
        (b"\x1f\x8b\x08broken", "gzip"),
        (gzip.compress(RUNS.encode(), mtime=0)[:-12], "too early"),
        (b"dataset,method,lr,train_loss\nx,eb,0.1,1,2\n", "Line 2"),
        (b"dataset,method,lr,train_loss\nx,eb,abc,1\n", "Line 2, lr"),
        (b"dataset,method,lr,train_loss\nx,eb,0,1\n", "Line 2, lr"),
        (b"dataset,method,lr,train_loss\n\nx,eb,1,1\nx,,1,1\n", "Line 4, method"),
        (b"dataset,method,lr,seed,train_loss\nx,eb,1,1.5,1\n", "whole number"),
        (b"dataset,method,lr,lr\n", "twice"),
        (b"dataset,method,lr,train_loss\nx,eb,1,\n", "has a loss"),
        (b'{"trials": 3}', "list of runs"),
        (b'{"trials": [', "not JSON"),
        (b'[{"task": "x", "method": "eb", "lr": 1, "train_loss": "x"}]', "Line 1, train_loss"),
    ],
)
def test_files_that_cannot_be_read_say_where(api: TestClient, content: bytes, words: str) -> None:
    answer = api.post("/api/import", content=content)
    assert answer.status_code == 422, answer.text
    assert words in answer.json()["error"]["message"]
    assert api.get("/api/studies").json()["items"] == [], "nothing of it was stored"


def test_rows_without_a_result_are_skipped_and_named(api: TestClient) -> None:
    found = send(api, RUNS + "mnist,IB,0.1,1,,,1,0\n")
    assert (found["imported"], found["skipped"]) == (3, 1)
    assert found["problems"][0]["line"] == 5


def test_a_small_file_may_not_unpack_to_a_large_one(api: TestClient) -> None:
    size = get_settings().max_body_bytes + 1
    packer = zlib.compressobj(9, wbits=31)
    bomb = packer.compress(b"a" * size) + packer.flush()
    assert len(bomb) < 100_000
    answer = api.post("/api/import", content=bomb)
    assert answer.status_code == 413
    assert f"{get_settings().max_body_bytes:,}" in answer.json()["error"]["message"]


def test_no_cell_of_an_export_is_a_formula(api: TestClient) -> None:
    evil = "=HYPERLINK(1)"
    runs = f"task,method,lr,seed,train_loss,profile\n{evil},@x,1,1,0.5,-p\n"
    study = send(api, runs)["study_id"]
    row = rows_of(export(api, study))[0]
    assert (row["task"], row["method"], row["profile"]) == (f"'{evil}", "'@x", "'-p")
    copy = send(api, export(api, study))
    assert (copy["imported"], copy["reused"]) == (0, 1), "and the guard comes off again"


def test_an_unknown_study_takes_no_runs(api: TestClient) -> None:
    assert api.post("/api/import", content=RUNS, params={"study_id": 9}).status_code == 404
    assert api.get("/api/studies/9/export").status_code == 404


def many(rows: int) -> bytes:
    lines = (f"x,eb,0.1,{seed},0.5,0.9;0.5" for seed in range(rows))
    return "\n".join(["task,method,lr,seed,train_loss,train_loss_by_epoch", *lines]).encode()


def test_others_write_while_a_large_file_is_stored(
    api: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces: list[int] = []
    real = importing._insert_trials

    def insert(session: Any, trials: Any) -> None:
        real(session, trials)
        pieces.append(len(trials))

    monkeypatch.setattr(importing, "_insert_trials", insert)
    answer = api.post("/api/import", content=many(2500))
    assert (answer.status_code, answer.json()["imported"]) == (201, 2500)
    assert max(pieces) <= importing.PIECE, "no transaction stores more"
    again = api.post("/api/import", content=many(2500)).json()
    assert (again["imported"], again["reused"]) == (0, 2500)


def test_an_import_that_cannot_be_published_leaves_nothing_behind(
    api: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("no")

    with monkeypatch.context() as patch:
        patch.setattr(importing, "_sweep", fail)
        assert api.post("/api/import", content=many(1200)).status_code == 500
    assert api.get("/api/studies").json()["items"] == []
    assert api.get("/api/storage").json()["trials"] == 0
