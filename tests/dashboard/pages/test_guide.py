"""The guide: what it defines, and that links into it arrive."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dash.development.base_component import Component

from backend.schemas import ActivationRead, CatalogRead, MethodRead, MetricDefinitionRead
from dashboard.pages import guide
from dashboard.pages.guide.prose import inline
from ib_core.methods.base import METHODS
from ib_core.metrics import METRICS

DASHBOARD = Path(guide.__file__).parents[2]


@pytest.fixture(scope="module")
def catalog() -> CatalogRead:
    return CatalogRead(
        engine_version="1.2",
        tasks=[],
        methods=[
            MethodRead(name=m.name, title=m.title, summary=m.summary, implicit=m.implicit)
            for m in METHODS.values()
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


def nodes(node: Any) -> Iterator[Any]:
    yield node
    children = getattr(node, "children", None) if isinstance(node, Component) else None
    for child in children if isinstance(children, list | tuple) else [children]:
        if child is not None:
            yield from nodes(child)


def anchors(catalog: CatalogRead) -> list[str]:
    found = [section.anchor for section in guide.sections(catalog)]
    for section in guide.sections(catalog):
        for part in section.body:
            found += [n.id for n in nodes(part) if isinstance(n, Component) and hasattr(n, "id")]
    return found


def text(catalog: CatalogRead) -> str:
    parts = [part for section in guide.sections(catalog) for part in section.body]
    return " ".join(str(n) for part in parts for n in nodes(part) if isinstance(n, str))


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
    before, code, after = inline("Run `etascope up` now.")
    assert (before, code.children, after) == ("Run ", "etascope up", " now.")
