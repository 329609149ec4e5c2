"""The guide: what it defines, and that links into it arrive."""

import re
from pathlib import Path
from typing import Any

import pytest

from backend.schemas import ActivationRead, CatalogRead, MethodRead, MetricDefinitionRead
from dashboard.components.controls import BANDS
from dashboard.components.elements import with_code
from dashboard.figures.wording import BAND_WORDS
from dashboard.pages import guide
from ib_core.methods import METHODS
from ib_core.metrics import METRICS
from tests.dashboard.component_tree import nodes, said

DASHBOARD = Path(guide.__file__).parents[2]


@pytest.fixture(scope="module")
def catalog() -> CatalogRead:
    return CatalogRead(
        engine_version="1.2",
        tasks=[],
        methods=[
            MethodRead(name=name, title=m.title, summary=m.summary, implicit=m.implicit)
            for name, m in METHODS.items()
        ],
        activations=[
            ActivationRead(name="relu"),
            ActivationRead(name="tanh", approximation_error=5e-4),
        ],
        presets=[],
        metrics=[
            MetricDefinitionRead(
                name=m.name,
                title=m.title,
                unit=m.unit,
                better=m.better,
                definition=m.definition,
                citation=m.citation,
            )
            for m in METRICS.values()
        ],
        limits={},
    )


def bodies(catalog: CatalogRead) -> list[Any]:
    return [section.body for section in guide.sections(catalog)]


def anchors(catalog: CatalogRead) -> list[str]:
    headings = [section.anchor for section in guide.sections(catalog)]
    return headings + [node.id for node in nodes(bodies(catalog)) if hasattr(node, "id")]


def text(catalog: CatalogRead) -> str:
    return said(bodies(catalog))


def test_no_anchor_is_used_twice(catalog: CatalogRead) -> None:
    found = anchors(catalog)
    assert len(found) == len(set(found))


def test_every_link_into_the_guide_arrives(catalog: CatalogRead) -> None:
    wanted = {
        anchor
        for path in DASHBOARD.rglob("*.py")
        for anchor in re.findall(r'guide_link\(\s*"([\w-]+)"|/guide#([\w-]+)"', path.read_text())
        for anchor in anchor
        if anchor
    }
    assert wanted >= {"toy", "updates"}
    assert wanted <= set(anchors(catalog))


@pytest.mark.parametrize(
    "anchor",
    [
        *("rail", "strip", "band", "dots", "threshold", "headroom", "robust_range", "censored"),
        *("lr_sensitivity", "own", "share", "profile-text", "profile-authors", "diverged"),
        *("failed", "cite", "import", "api", "record", "uninstall", "method-ib_plus"),
    ],
)
def test_what_a_reader_may_ask_has_a_place(catalog: CatalogRead, anchor: str) -> None:
    assert anchor in anchors(catalog)


def test_definitions_are_quoted_from_the_api(catalog: CatalogRead) -> None:
    words = text(catalog)
    for metric in catalog.metrics:
        assert metric.definition in words
    for method in catalog.methods:
        assert method.summary.rstrip(".") in words


def test_the_citation_names_the_engine_that_made_the_numbers(catalog: CatalogRead) -> None:
    assert "engine version 1.2" in text(catalog)
    assert "Robust Implicit Backpropagation" in text(catalog)


def test_code_stands_between_backticks() -> None:
    before, code, after = with_code("Run `etascope up` now.")
    assert (before, code.children, after) == ("Run ", "etascope up", " now.")


def test_the_guide_calls_the_bands_what_the_control_calls_them(catalog: CatalogRead) -> None:
    """It said quartiles where 10 to 90 % was drawn."""
    assert dict(BANDS)["quantile"] == "10–90 %"
    assert "10th to 90th percentile" in text(catalog)
    assert "quartile" not in text(catalog)
    assert "10th to 90th" in BAND_WORDS["quantile"]
