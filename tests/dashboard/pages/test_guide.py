"""The guide: what it defines, and that links into it arrive."""

import re
from pathlib import Path
from typing import Any

import pytest

from backend.schemas import ActivationRead, CatalogRead, MethodRead
from dashboard.components.controls import BANDS
from dashboard.components.elements import with_code
from dashboard.figures.wording import BAND_WORDS
from dashboard.pages import guide
from dashboard.pages.guide import numbers
from dashboard.pages.guide.material import METHODS as EXAMPLED
from dashboard.pages.guide.material import example
from ib_core.methods import METHODS
from ib_core.metrics import NUMBERS
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
        metrics=[],
        limits={},
    )


def bodies(catalog: CatalogRead) -> list[Any]:
    return [section.body for section in guide.sections(catalog)]


def anchors(catalog: CatalogRead) -> list[str]:
    headings = [section.anchor for section in guide.sections(catalog)]
    return headings + [node.id for node in nodes(bodies(catalog)) if hasattr(node, "id")]


def number_anchors() -> list[str]:
    found = numbers.sections()
    own = [node.id for one in found for node in nodes(one.body) if hasattr(node, "id")]
    return [one.anchor for one in found] + own


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
        *("rail", "strip", "band", "dots", "threshold", "headroom", "gap", "ranks"),
        *("lr_sensitivity", "own", "share", "profile-text", "profile-authors", "diverged"),
        *("failed", "cite", "import", "api", "record", "uninstall", "method-ib_plus"),
    ],
)
def test_what_a_reader_may_ask_has_a_place(catalog: CatalogRead, anchor: str) -> None:
    assert anchor in anchors(catalog)


def test_definitions_are_quoted_from_where_they_are_made(catalog: CatalogRead) -> None:
    words = text(catalog)
    for kind in NUMBERS:
        assert kind.definition in words
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
    curve = next(one for one in guide.sections(catalog) if one.anchor == "curve")
    assert "quartile" not in said(curve.body)
    assert "10th to 90th" in BAND_WORDS["quantile"]


def test_every_number_is_explained_with_a_picture_and_none_that_is_none() -> None:
    assert list(numbers.EXPLAINED) == [kind.name for kind in NUMBERS]
    for section in numbers.sections():
        pictures = [node for node in nodes(section.body) if hasattr(node, "src")]
        assert len(pictures) == (0 if section.anchor == "words" else 2), section.anchor
        assert all(node.alt for node in pictures)


def test_no_anchor_among_the_numbers_is_used_twice() -> None:
    found = number_anchors()
    assert len(found) == len(set(found))


def test_the_example_has_every_number_that_is_drawn() -> None:
    """A picture of a number that the example lacks would be a picture of nothing."""
    for kind in NUMBERS:
        known = [m for m in EXAMPLED if example().number(m, kind.name).value is not None]
        assert known, kind.name


def test_what_is_written_below_a_picture_is_what_the_table_would_have() -> None:
    for kind, section in zip(NUMBERS, numbers.sections()[2:], strict=True):
        words = said(section.body)
        for method in EXAMPLED:
            found = example().number(method, kind.name)
            assert (f"{method.upper()} {kind.write(found)}" in words) == (found.value is not None)
