"""One sweep, three ways: the numbers on the page are the API's and the command line's."""

import csv
import subprocess
import sys
from pathlib import Path
from statistics import fmean
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from dashboard.theme import number
from tests.e2e.conftest import Visit
from tests.e2e.installation import ROOT, submit, wait_for_study

SWEEP = {
    "task": "digits_mlp",
    "methods": ["eb", "ib"],
    "learning_rates": [0.05, 0.5, 5],
    "seeds": 2,
}
PLOT = "#study-graph .js-plotly-plot"
Cell = tuple[str, float, int]


@pytest.fixture
def study(visit: Visit) -> int:
    """Return the sweep's study on the server, finished."""
    found = submit(visit.url, "Three ways", SWEEP)
    wait_for_study(visit.url, found)
    return found


@pytest.fixture
def shell(tmp_path: Path) -> dict[Cell, dict[str, str]]:
    """Return the same sweep's trials as the command line writes them."""
    file = tmp_path / "trials.csv"
    grid = ["--methods", "eb,ib", "--lrs", "0.05,0.5,5", "--seeds", "2"]
    sweep = [sys.executable, "-m", "backend.cli", "sweep", "digits_mlp", *grid]
    subprocess.run([*sweep, "--csv", str(file)], check=True, cwd=ROOT, capture_output=True)
    rows = list(csv.DictReader(file.read_text().splitlines()))
    return {(row["method"], float(row["lr"]), int(row["seed"])): row for row in rows}


def read(visit: Visit, path: str, **query: Any) -> Any:
    answer = httpx.get(visit.url + path, params=query, trust_env=False, timeout=30)
    return answer.raise_for_status().json()


def table_of(page: Page) -> dict[Cell, tuple[str, str]]:
    """Return what the table of trials prints: training and test loss."""
    rows = page.locator("#study-grid .ag-center-cols-container .ag-row")
    expect(rows).to_have_count(12)
    methods = {"EB": "eb", "IB": "ib"}
    found = {}
    for row in rows.all():
        own = row.locator(".ag-cell").all()
        cells = {cell.get_attribute("col-id"): cell.inner_text() for cell in own}
        key = (methods[cells["method"]], float(cells["lr"]), int(cells["seed"]))
        found[key] = (cells["train_loss"], cells["test_loss"])
    return found


def test_page_api_and_command_line_print_the_same(visit: Visit, study: int, shell) -> None:
    sweep = read(visit, f"/api/studies/{study}")["sweep_ids"][0]
    trials = read(visit, f"/api/sweeps/{sweep}/trials", limit=100)["items"]
    assert len(trials) == len(shell) == 12
    page = visit.open(f"/studies/{study}")
    page.locator("#study-grid").scroll_into_view_if_needed()
    shown = table_of(page)
    for trial in trials:
        key = (trial["method"], trial["lr"], trial["seed"])
        losses = [trial["train_loss"], trial["test_loss"]]
        written = [float(shell[key][name]) for name in ("train_loss", "test_loss")]
        assert shown[key] == tuple(map(number, losses)) == tuple(map(number, written))

    curves = read(visit, f"/api/studies/{study}/sensitivity")["series"]
    drawn = page.eval_on_selector(
        PLOT, "p => p._fullData.filter(t => t.meta === 'mean').map(t => Array.from(t.y))"
    )
    assert drawn == [[point["mean"] for point in line["points"]] for line in curves]
    for line in curves:
        for point in line["points"]:
            own = [row for key, row in shell.items() if key[:2] == (line["method"], point["lr"])]
            mean = fmean(float(row["train_loss"]) for row in own)
            assert number(point["mean"]) == number(mean)

    scores = read(visit, f"/api/studies/{study}/scorecard")["rows"]
    best = page.get_by_role("row", name="Best mean loss").get_by_role("cell")
    printed = [words.split(" n ")[0] for words in best.all_inner_texts()]
    assert printed == [number(row["metrics"]["best_mean"]["value"]) for row in scores]
