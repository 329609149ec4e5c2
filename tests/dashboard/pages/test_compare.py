"""Several studies on one axis."""

import pytest

from backend.schemas import CompareRead, CompareStudy, SeriesRead
from dashboard.figures import told_apart
from dashboard.ids import Compare as ids
from dashboard.pages import compare
from tests.coroutines import run
from tests.dashboard import answers
from tests.dashboard.dispatch import by_id, trigger

CHOSEN = {
    ids.QUANTITY: "loss",
    ids.SPLIT: "test",
    ids.REDUCER: "final",
    ids.BAND: "std",
    ids.SCALE: "focus",
    ids.SEEDS: False,
    ids.VIEW: "curves",
}


def compared(dash_app, studies):
    answer = trigger(dash_app, f"{ids.DRAWN}.data", (ids.STUDIES, "value", studies), **CHOSEN)
    return answer["response"]


def test_the_curves_of_all_studies_are_in_one_picture(api, dash_app):
    answer = compared(dash_app, ["1", "2"])
    means = [one for one in answer[ids.DRAWN]["data"]["data"] if one.get("meta") == "mean"]
    assert len(means) == 4
    assert len({one["name"] for one in means}) == 4
    asked = next(call for call in api.sent if call.path == "/api/compare")
    assert asked.parameters["metric"] == "test_loss"
    assert "Start at" in str(answer[ids.ADVICE]["children"])
    assert "Best rate" in str(answer[ids.TABLE]["children"])
    assert "holds" in str(answer[ids.ANSWER]["children"])
    assert "compare-graph" in str(answer[ids.LANES]["data"])


def test_markup_in_a_study_s_name_is_shown_letter_by_letter(api, dash_app):
    api.studies[1] = api.studies[1].model_copy(update={"name": "Walk <b>one</b> & <i>two</i>"})
    figure = compared(dash_app, ["1", "2"])[ids.DRAWN]["data"]
    named = [one for one in figure["data"] if "Walk" in str(one)]
    assert named
    for one in named:
        for text in [one.get("name") or "", *(one.get("hovertext") or [])]:
            assert "<b>one" not in text
            assert "<i>" not in text
    assert any("Walk &lt;b&gt;one&lt;/b&gt; &amp;" in (one.get("name") or "") for one in named)
    assert "Walk <b>one</b>" in figure["layout"]["meta"]["label"]  # spoken, not drawn


@pytest.mark.parametrize("studies", [[], None, ["x"]])
def test_without_studies_the_page_says_what_to_do(api, dash_app, studies):
    answer = compared(dash_app, studies)
    assert "Choose studies" in str(answer[ids.MESSAGE]["children"])
    assert answer[ids.FIGURE]["style"] == {"display": "none"}
    assert answer[ids.FOR_PAPER]["style"] == {"display": "none"}
    assert compared(dash_app, ["1", "2"])[ids.FOR_PAPER]["style"] is None


def test_without_studies_the_latest_are_offered_and_one_alone_is_offered_company(api, dash_app):
    empty = str(compared(dash_app, [])[ids.MESSAGE]["children"])
    assert "Compare the two latest" in empty
    assert all(f"+ {study.name}" in empty for study in api.studies.values() if study.total)
    alone = str(compared(dash_app, ["1"])[ids.MESSAGE]["children"])
    assert f"+ {api.studies[1].name}" not in alone
    assert f"+ {api.studies[2].name}" in alone
    assert "compare-pick" not in str(compared(dash_app, ["1", "2"])[ids.MESSAGE]["children"])


def test_a_study_that_is_gone_is_said_in_the_api_s_words(api, dash_app):
    answer = compared(dash_app, ["1", "99"])
    assert "There is no study 99." in str(answer[ids.MESSAGE]["children"])


def test_more_curves_than_anybody_could_tell_apart_are_not_drawn(dash_app, api, monkeypatch):
    monkeypatch.setattr(compare, "MOST_CURVES", 3)
    answer = compared(dash_app, ["1", "2"])
    assert answer[ids.FIGURE]["style"] == {"display": "none"}
    assert "4 curves are too many" in str(answer[ids.MESSAGE])


def line(study: int, label: str) -> SeriesRead:
    found = answers.series("eb")
    return found.model_copy(update={"study_id": study, "id": f"{study} {label}", "label": label})


def test_curves_are_named_by_study_and_by_what_tells_them_apart_in_it():
    name = "A study whose name is long, very long"
    studies = [CompareStudy(id=1, name=name), CompareStudy(id=2, name="Two")]
    widths = [line(1, f"eb, {name}, 2 epochs, width {width}") for width in (8, 32)]
    found = CompareRead(
        studies=studies, metric="train_loss", reducer="final", band="std", rows=[],
        series=[*widths, line(2, "eb, Two, 5 epochs")],
    )  # fmt: skip
    series, _ = compare.renamed(found, 12)
    assert [one.label for one in series] == [
        "eb, A study who…, width 8",
        "eb, A study who…, width 32",
        "eb, Two",
    ]


def test_a_study_s_short_name_is_what_panels_and_legends_call_it_too():
    studies = [
        CompareStudy(id=1, name="A study whose name is long"),
        CompareStudy(id=2, name="Two"),
    ]
    lines = [line(1, "eb, A study whose name is long"), line(2, "eb, Two")]
    given = [
        one.model_copy(update={"settings": {"study": study.name, "width": 8}})
        for one, study in zip(lines, studies, strict=True)
    ]
    found = CompareRead(
        studies=studies, metric="train_loss", reducer="final", band="std", rows=[], series=given
    )
    named, _ = compare.renamed(found, 12)
    assert [one.settings for one in named] == [
        {"study": "A study who…", "width": 8},
        {"study": "Two", "width": 8},
    ]


def test_studies_of_one_name_are_told_apart_by_number():
    studies = [CompareStudy(id=number, name="Digits") for number in (1, 2)]
    found = CompareRead(
        studies=studies, metric="train_loss", reducer="final", band="std", rows=[],
        series=[line(1, "eb, Digits"), line(2, "eb, Digits")],
    )  # fmt: skip
    assert [one.label for one in compare.renamed(found)[0]] == ["eb, Digits (1)", "eb, Digits (2)"]


def test_names_that_begin_alike_are_told_apart_by_their_ends_where_there_is_no_room():
    names = [
        "JSB Chorales (text profile)",
        "JSB Chorales (authors profile)",
        "JSB Chorales, clip 8",
    ]
    assert told_apart(names, 16) == ["text profile", "authors profile", "clip 8"]
    assert told_apart(names, 40) == names
    assert told_apart(["Digits", "Digits and a long name more"], 16) == [
        "Digits",
        "Digits and a lo…",
    ]


def test_the_zoom_is_in_the_address_and_comes_back_from_it(api):
    page = run(compare.layout(studies="1,2", zoom="0.1,10"))
    assert by_id(page, ids.ZOOM).data == "0.1,10"
    assert "zoom" in [control.name for control in compare.CONTROLS]
    # Looking closer asks the server for nothing.
    assert "zoom" not in [control.name for control in compare.DRAWN_BY]
