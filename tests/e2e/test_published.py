"""A published study in a real browser with the network off: drawn, and its controls work."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from backend.schemas import CompareRead, RatePointRead, SeedRead, SeriesRead, StudyRead
from backend.services.publishing import Contents, html_page
from tests.e2e.browser import patient, watch

METHODS = ("eb", "ib", "adam", "momentum")
RATES = [0.01 * 1.6**power for power in range(20)]
SEEDS = range(1, 26)


def point(lr: float, number: int) -> RatePointRead:
    broken = lr > 1.0 + 10 * number
    loss = None if broken else (0.1 / lr + lr) * 1.7**number
    seeds = [
        SeedRead(
            seed=seed,
            value=None if loss is None else loss * (1 + 0.01 * seed),
            outcome="diverged" if broken else "completed",
            trial_id=seed,
        )
        for seed in SEEDS
    ]
    return RatePointRead(
        lr=lr,
        mean=loss,
        finite_mean=loss,
        low=None if loss is None else loss * 0.9,
        high=None if loss is None else loss * 1.1,
        n=len(SEEDS),
        n_finite=0 if broken else len(SEEDS),
        diverged=len(SEEDS) if broken else 0,
        diverged_low=0.0,
        diverged_high=1.0,
        seeds=seeds,
    )


def published() -> str:
    """Return the page of a study of 2,000 trials."""
    key: dict[str, Any] = {"profile": "", "batch_rule": None, "activation": None, "clip": None}
    key |= {"mu": 0.0, "epochs": 1, "batch_size": None, "options": {}, "imported": False}
    series = [
        SeriesRead(
            **key,
            method=method,
            task="digits",
            id=method,
            study_id=1,
            label=method,
            points=[point(lr, number) for lr in RATES],
        )
        for number, method in enumerate(METHODS)
    ]
    answer = CompareRead(
        studies=[], metric="train_loss", reducer="final", band="std", series=series, rows=[]
    )
    now = datetime.now(UTC)
    study = StudyRead(
        id=1,
        name="How far?",
        notes="",
        tags=[],
        owner=None,
        archived=False,
        created_at=now,
        updated_at=now,
        state=None,
        total=2000,
    )
    return html_page(Contents((study,), {"train_loss": answer}, (), "1.0", now))


@pytest.fixture
def page(browser: Browser, tmp_path: Path) -> Any:
    file = tmp_path / "out.html"
    file.write_text(published(), encoding="utf-8")
    context = patient(browser.new_context(offline=True, viewport={"width": 1000, "height": 900}))
    opened = context.new_page()
    seen = watch(opened, "http://nowhere")
    opened.goto(file.as_uri())
    yield opened
    assert seen.complaints == []
    assert seen.foreign == []
    context.close()


def lines(page: Page) -> int:
    return page.locator("#picture polyline").count()


def test_a_published_study_is_alive_without_a_network(page: Page) -> None:
    expect(page.locator("#picture svg circle").first).to_be_attached()
    assert lines(page) == 4
    page.get_by_role("button", name="adam").click()
    assert lines(page) == 3
    expect(page.get_by_role("button", name="adam")).to_have_attribute("aria-pressed", "false")
    page.locator("#picture svg circle").nth(3).hover()
    expect(page.locator("#hover")).to_contain_text("25 seeds")
    before = page.locator("#picture polyline").first.get_attribute("points")
    page.get_by_label("log losses").uncheck()
    assert page.locator("#picture polyline").first.get_attribute("points") != before
    dots = page.locator("#picture circle").count()
    page.get_by_label("every seed").check()
    assert page.locator("#picture circle").count() > dots + 500
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save the data").click()
    assert len(Path(saved.value.path()).read_text().splitlines()) == 2001


def test_two_thousand_trials_make_less_than_two_megabytes() -> None:
    assert len(published().encode()) < 2_000_000
