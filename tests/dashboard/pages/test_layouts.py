"""Every page renders, says what its controls are, and survives an empty or absent API."""

import pytest
from plotly.utils import PlotlyJSONEncoder

from backend.client import calls
from dashboard import pages
from dashboard.pages import compare
from dashboard.router import render
from tests.coroutines import run
from tests.dashboard.dispatch import names, text_of

ADDRESSES = (
    ("/", ""),
    ("/", "?lr=3"),
    ("/history", ""),
    ("/new", ""),
    ("/new", "?preset=paper/05_jsb_chorales"),
    ("/new", "?study=1&task=digits_mlp&lrs=0.1,1"),
    ("/new", "?sweep=1"),
    ("/studies/1", ""),
    ("/studies/1", "?view=method&y=log&trials=1"),
    ("/trials/27", ""),
    ("/compare", "?studies=1,2"),
    ("/paper", ""),
    ("/workers", ""),
)
#: Fields; each needs a name for those who cannot see it.
FIELDS = {
    "TextInput", "NumberField", "Select", "MultiSelect", "Textarea", "TagsInput", "Checkbox",
    "Switch", "SegmentedControl", "CheckboxGroup",
}  # fmt: skip


def body(path: str, search: str = ""):
    view, page = run(render(pages.PAGES, path, search))
    assert page is not None
    return view


@pytest.mark.parametrize(("path", "search"), ADDRESSES)
def test_a_page_renders_and_can_be_sent(api, path, search):
    view = body(path, search)
    assert PlotlyJSONEncoder().encode(view.body)
    assert "cannot be shown" not in text_of(view.body)


@pytest.mark.parametrize(("path", "search"), ADDRESSES)
def test_every_control_has_a_name(api, path, search):
    for one in names(body(path, search).body):
        if type(one).__name__ not in FIELDS or getattr(one, "display", None) == "none":
            continue
        named = getattr(one, "label", None) or any(
            key in one.to_plotly_json()["props"] for key in ("aria-label", "aria-labelledby")
        )
        assert named, one


@pytest.mark.parametrize(("path", "search"), ADDRESSES)
def test_a_page_has_one_heading_of_the_first_order(api, path, search):
    headings = [one for one in names(body(path, search).body) if type(one).__name__ == "H1"]
    assert len(headings) == 1


@pytest.mark.parametrize(("path", "search"), ADDRESSES)
def test_every_picture_has_words(api, path, search):
    for one in names(body(path, search).body):
        if type(one).__name__ == "Img":
            assert one.alt


@pytest.mark.parametrize("path", ["/studies/99", "/studies/x", "/studies/0", "/trials/9999"])
def test_an_unknown_id_is_a_page_that_says_so(api, path):
    view = body(path)
    assert view.title == "Not found"
    assert "There is no" in text_of(view.body)


@pytest.mark.parametrize(("path", "search"), [one for one in ADDRESSES if "preset" not in one[1]])
def test_without_an_api_a_page_says_so(api, path, search):
    api.away = True
    assert "does not answer" in text_of(body(path, search).body)


def test_the_study_s_name_is_the_tab_s_title_and_the_last_breadcrumb(api):
    view = body("/studies/1")
    assert view.title == api.studies[1].name
    assert view.crumbs[-1][0] == api.studies[1].name


def test_the_paper_page_names_its_experiments_and_what_was_not_tested(api):
    words = text_of(body("/paper").body)
    assert "JSB Chorales" in words
    assert "not tested" in words


def test_the_workers_page_tells_the_silent_from_the_living(api):
    words = text_of(body("/workers").body)
    assert "shard 7, 27 trials" in words
    assert "silent" in words
    assert "No worker is alive." in words


def test_a_trial_leads_to_one_update_at_its_rate(api):
    links = [getattr(one, "href", "") for one in names(body("/trials/27").body)]
    assert any(str(href).startswith("/updates?lr=100") for href in links)
    assert "abc123" in text_of(body("/trials/27").body)


def test_a_comparison_names_curves_by_method_and_study(api):
    found = run(api.send(calls.compare([1, 2])))
    for line in found.series:
        line.label = f"{line.method}, Digits 1, text profile, batch 50, engine 1, data b535a6"
    series, rows = compare.renamed(found)
    assert series[0].label == "eb, Digits 1: EB against IB"
    assert rows[0].label == series[0].label


def test_curves_of_one_study_are_told_apart_by_what_they_differ_in(api):
    found = run(api.send(calls.compare([1])))
    twin = found.series[0].model_copy(update={"id": "other", "label": "eb, batch 7"})
    found.series.append(twin)
    assert compare.renamed(found)[0][-1].label == "eb, Digits 1: EB against IB, batch 7"
