"""Whatever an import takes can be read: on every route, on every page, in every export."""

import csv
import io
import json
from typing import Any

import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient
from hypothesis import event, given, settings
from hypothesis import strategies as st

from backend.services.importing.files import Cells, RawRow
from backend.services.importing.runs import COLUMNS, read_trials
from tests.backend.matrix.page_table import PAGES
from tests.backend.matrix.test_pages import callbacks, press
from tests.backend.matrix.test_states import READING, VARIANTS, Target, _target, people, site
from tests.backend.matrix.world import World

__all__ = ["callbacks", "people", "site"]  # fixtures

#: Any text at all, halves of surrogate pairs and NUL included.
nasty = st.text(st.characters(exclude_categories=()), max_size=20)
numbers = st.floats() | st.integers(-(10**400), 10**400) | st.sampled_from(["nan", "1e400", "x"])
rates = st.floats(1e-12, 1e12) | st.sampled_from([0.1, 1.0])
losses = st.floats(0, 1e308) | st.none() | st.sampled_from(["nan", "inf", 1.7e308, 5e-324])
trees = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | nasty | st.just(10**400),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(nasty, inner, max_size=3),
    max_leaves=12,
)
deep = st.integers(1, 950).map(lambda n: json.loads('{"a":' * n + "1" + "}" * n))
wild = nasty | numbers | trees | deep | st.dictionaries(nasty, trees, max_size=3)

words = st.text("ab=😀<&'\u2028", max_size=12)
series = st.lists(st.floats(), max_size=4).map(lambda n: ";".join(map(repr, n)))

TAME: dict[str, st.SearchStrategy[Any]] = {
    "task": st.sampled_from(["x", "mnist", "toy/quadratic", "=1+1", "  a b ", "\u202eevil", "😀"]),
    "method": st.sampled_from(["eb", "IB", "exact", "-sum", "<b>", "naïve"]),
    "lr": rates,
    "train_loss": losses,
}
FURTHER: dict[str, st.SearchStrategy[Any]] = {
    "seed": st.integers(0, 2**31 - 1),
    "clip": st.sampled_from([0, 1, 0.5, None]),
    "test_loss": losses,
    "initial_loss": losses,
    "test_accuracy": st.floats(-1, 200) | st.none(),
    "outcome": st.sampled_from(["completed", "diverged", "failed", None, ""]),
    "error": nasty,
    "options": st.dictionaries(st.text("ab😀\u2028", max_size=5), st.floats(-1, 1), max_size=3),
    "experiment": st.sampled_from(["uci", "01_mnist_classification", "other"]),
    "diverged_at_step": st.integers(0, 2**62),
    "diverged_layer": st.text("ab=😀", max_size=100),
    "seconds": st.floats(),
    "train_loss_by_epoch": series,
    "test_loss_by_epoch": series,
    "train_loss_steps": series,
    "train_accuracy": st.floats(-1, 200) | st.none(),
    "validation_loss": losses,
    "validation_accuracy": st.floats(-1, 200) | st.none(),
    "dataset": st.sampled_from(["MNIST", "jsb chorales", "car", "elsewhere"]),
    "profile": st.sampled_from(["text", "authors", "", "ours", None]),
    "batch_rule": st.sampled_from(["own", "share", "both", None]),
    "activation": st.sampled_from(["relu", "none such", None]) | words,
    "mu": st.floats(0, 1e12) | st.none(),
    "momentum": st.floats(0, 1) | st.none(),
    "epochs": st.integers(1, 10**9) | st.none(),
    "batch_size": st.integers(1, 10**9) | st.none(),
    "inner_isgd_iterations": st.integers(0, 10**9),
    "nodes": st.integers(0, 10**9),
    "width": st.integers(0, 10**9),
    "intra_epoch": words,
    "diverged_where": st.sampled_from(["train", "test", "step", "=1", None]),
    "source_folder": words,
    "epochs_recorded": st.integers(),
    "learning_rate": rates,
    "repeat": st.integers(0, 2**31 - 1),
    "runtime_s": st.floats(),
    "source": st.fixed_dictionaries(
        {"run": words},
        optional={"tracker": words, "url": st.sampled_from(["javascript:alert(1)", "x"])},
    ),
}
rows = st.fixed_dictionaries(TAME, optional=FURTHER)


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """Return a file; few cells are out of their column's wits, or none would be taken."""
    found = draw(st.lists(rows, min_size=1, max_size=4))
    for name in draw(st.lists(st.sampled_from([*TAME, *FURTHER]), max_size=1)):
        found[0][name] = draw(wild)
    if draw(st.booleans()):
        return json.dumps(found).encode()
    text = io.StringIO()
    writer = csv.DictWriter(text, sorted({name for row in found for name in row}))
    writer.writeheader()
    for row in found:
        packed = {k: json.dumps(v) if isinstance(v, dict | list) else v for k, v in row.items()}
        writer.writerow(packed)
    return text.getvalue().encode("utf-8", "replace")


def test_every_column_that_an_import_looks_at_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: set[str] = set()
    raw, has = Cells.raw, Cells.has

    def noted_raw(self: Cells, *names: str) -> Any:
        looked_at.update(names)
        return raw(self, *names)

    def noted_has(self: Cells, name: str) -> bool:
        looked_at.add(name)
        return has(self, name)

    monkeypatch.setattr(Cells, "raw", noted_raw)
    monkeypatch.setattr(Cells, "has", noted_has)
    plain = {"task": "x", "lr": 0.1, "train_loss": 1.0}
    for method, outcome in (("eb", "failed"), ("exact", "completed")):
        read_trials([RawRow(1, {**plain, "method": method, "outcome": outcome})])
    assert looked_at <= TAME.keys() | FURTHER.keys()
    assert looked_at | TAME.keys() | FURTHER.keys() == COLUMNS, "others are not kept"


#: A thousand in the full run; every one taken is read some thirty times.
MOST = settings.default.max_examples if settings.default.max_examples >= 1000 else 10


@settings(max_examples=MOST)
@given(content=files())
def test_what_is_taken_is_readable_everywhere(
    client: TestClient, people: World, callbacks: dict[str, Any], content: bytes
) -> None:
    owner = people.headers["admin"]
    taken = client.post("/api/import", content=content, headers=owner)
    assert taken.status_code in (201, 413, 422), taken.text
    event("taken" if taken.status_code == 201 else "refused")
    if taken.status_code != 201:
        assert taken.json()["error"]["message"]
        return
    study_id = taken.json()["study_id"]
    target = _target(study_id, taken.json()["sweep_ids"][0])
    _read_routes(client, people, target)
    _read_pages(client, people, target, callbacks)
    _export_and_import(client, owner, study_id)
    assert client.delete(f"/api/studies/{study_id}", headers=owner).status_code == 204


def _read_routes(client: TestClient, people: World, target: Target) -> None:
    for path in READING:
        if not any(part in path for part in ("{study_id}", "{sweep_id}", "{trial_id}", "/paper")):
            continue
        if path.endswith("/recording/export"):  # of what was recorded, which an import is not
            continue
        for query in ({}, *VARIANTS.get(path, ())):
            address = target.fill(path, people)
            answer = client.get(address, params=query, headers=people.headers["viewer"])
            assert answer.status_code == 200, (address, answer.text[:300])
    asked = {"q": "Imported", "spark": "true"}
    assert client.get("/api/studies", params=asked, headers=people.headers["viewer"]).is_success


def _read_pages(
    client: TestClient, people: World, target: Target, callbacks: dict[str, Any]
) -> None:
    for page in (page for page in PAGES if "<" in page or page in ("/", "/compare", "/paper")):
        address = target.fill(page.replace("<", "{").replace(">", "}"), people)
        shown = press(
            client,
            callbacks["router.show"],
            ("location", "pathname", address),
            {"recoveries": 0, "location": f"?studies={target.study_id}"},
            people.headers["viewer"],
        )
        assert shown.status_code == 200, address
        assert "cannot be shown" not in shown.text, (address, shown.text[:500])


def _export_and_import(client: TestClient, owner: dict[str, str], study_id: int) -> None:
    out = {
        format: client.get(
            f"/api/studies/{study_id}/export", params={"format": format}, headers=owner
        ).content
        for format in ("csv", "json", "parquet")
    }
    trials = json.loads(out["json"])["trials"]
    assert pq.read_table(io.BytesIO(out["parquet"])).num_rows == len(trials)
    assert len(list(csv.DictReader(io.StringIO(out["csv"].decode(), newline="")))) == len(trials)
    for format in ("csv", "json"):
        again = client.post("/api/import", content=out[format], headers=owner)
        assert again.status_code == 201, (format, again.text)
        assert again.json()["imported"] + again.json()["reused"] == len(trials)
        other = again.json()["study_id"]
        assert client.delete(f"/api/studies/{other}", headers=owner).status_code == 204
