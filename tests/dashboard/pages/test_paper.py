import pytest

from backend.schemas import BundleRead, RanksRead
from dashboard.figures import clip_figure
from dashboard.ids import Bundle, part
from dashboard.ids import Paper as ids
from dashboard.pages import paper
from dashboard.pages.new_sweep.forecast import tags_of
from dashboard.pages.paper import claims_table, draw_tables
from dashboard.pages.paper.detail import curves_of, draw
from dashboard.pages.paper.matrix import ranks_words, run_button
from tests.coroutines import run
from tests.dashboard.dispatch import by_id, names, text_of, trigger
from tests.dashboard.paper_answer import paper_answer

CLIPPED = "06_jsb_chorales_clip_8.0"


@pytest.fixture
def page(api):
    return run(paper.layout())


def detail(experiment, profile="text", loss="train_loss"):
    """Return what the detail shows of an experiment, by the place it stands in."""
    shown = run(draw(experiment, profile, loss, "light", False))
    places = (ids.VERDICT, ids.GRAPH, "graph style", ids.CLIPPING, "clipping style", ids.MESSAGE)
    return dict(zip(places, shown, strict=True))


def test_what_the_evidence_supports_stands_on_top(page):
    words = text_of(page)
    places = [words.index(sentence) for sentence in paper_answer().headline]
    assert places == sorted(places)
    assert places[-1] < words.index("17 experiments, run both ways")


def test_every_experiment_has_its_claim_and_a_verdict_in_both_profiles(page):
    answer = paper_answer()
    for one in (*answer.experiments, answer.uci):
        row = text_of(by_id(page, f"experiment-{one.id}"))
        assert one.title in row
        assert one.claim in row
        assert one.text.verdict in row
        assert one.authors.word in row


def test_a_small_curve_opens_the_detail_of_its_profile(page):
    row = by_id(page, "experiment-05_jsb_chorales")
    links = {one.href for one in names(row) if getattr(one, "href", None)}
    assert links == {
        "/paper?experiment=05_jsb_chorales",
        "/paper?experiment=05_jsb_chorales&profile=authors",
    }
    images = [one for one in names(row) if getattr(one, "src", None)]
    assert len(images) == 2
    assert all(one.alt.startswith("Loss against learning rate of EB") for one in images)


def test_the_row_of_all_tables_leads_to_them(page):
    (to,) = (one for one in names(by_id(page, "experiment-uci")) if getattr(one, "href", None))
    assert "UCI: 120 tables" in text_of(by_id(page, to.href.removeprefix("#")))


def test_the_detail_says_what_was_published_and_what_decides(api):
    one = next(found for found in paper_answer().experiments if found.id == "05_jsb_chorales")
    for profile in ("text", "authors"):
        shown = detail(one.id, profile)
        said = text_of(shown[ids.VERDICT])
        found = getattr(one, profile)
        assert one.claim in said
        assert found.reason in said
        assert found.coverage in said
        below = text_of(shown[ids.MESSAGE])
        assert one.note in below
        assert found.methods[0].edge in below
    assert "Recorded runs" in below
    # On a phone, where tables have no head, every row says whose it is.
    rows = [
        one for one in names(shown[ids.MESSAGE]) if "data-title" in one.to_plotly_json()["props"]
    ]
    whose = [getattr(one, "data-title") for one in rows]
    assert whose == ["Ours"] * len(found.methods) + ["Recorded runs"] * len(one.recorded_methods)


def test_the_edges_are_drawn_where_the_numbers_have_them(api):
    shown = detail("05_jsb_chorales")
    one = next(found for found in paper_answer().experiments if found.id == "05_jsb_chorales")
    lines = [shape["x0"] for shape in shown[ids.GRAPH].layout.shapes if shape["yref"] == "y domain"]
    assert lines == [row.edge_value for row in one.text.methods]


@pytest.mark.parametrize(("experiment", "drawn"), [(CLIPPED, True), ("05_jsb_chorales", False)])
def test_only_clipped_experiments_show_clipped_minus_unclipped(api, experiment, drawn):
    shown = detail(experiment)
    assert (shown["clipping style"].get("display") != "none") is drawn
    assert bool(shown[ids.CLIPPING]["data"]) is drawn


def test_clipping_is_drawn_for_training_and_test_with_a_dot_a_seed(api):
    traces = detail(CLIPPED)[ids.CLIPPING].data
    assert len(traces) == 8  # two methods, two losses, dots and means
    dots = [trace for trace in traces if trace["mode"] == "markers"]
    assert {len(trace["x"]) for trace in dots} == {20}  # four rates, five seeds


def test_the_study_an_experiment_ran_in_is_linked(api):
    below = text_of(detail("05_jsb_chorales")[ids.MESSAGE])
    assert "Study 2" in below


def test_test_losses_are_drawn_on_demand(api):
    figure = detail("05_jsb_chorales", loss="test_loss")[ids.GRAPH]
    assert "test loss" in figure.layout.yaxis.title.text.lower()


def test_missing_data_is_said_with_how_to_get_it(api):
    absent = [one for one in paper_answer().experiments if not one.present]
    if not absent:
        pytest.skip("every data set is here")
    below = text_of(detail(absent[0].id)[ids.MESSAGE])
    assert all(part in below for part in absent[0].how_to_get.split("`"))


def test_claims_uci_and_run_times_are_shown(page):
    words = text_of(page)
    for claim in paper_answer().claims:
        assert claim.text in words
        assert claim.rule in words
        assert claim.recorded.reason in words
    assert "+31.0%" in words
    assert "+152.5%" in words
    assert paper_answer().rules["bounds"] in words
    assert "90.00 %" in words  # EB's accuracy


def test_the_pictures_of_uci_have_a_dot_and_a_row_a_table(api):
    accuracies, _, agreement, _ = run(draw_tables("light", True))
    dots = accuracies.data[1]
    assert (list(dots.x), list(dots.y)) == ([90.0], [95.0])
    assert [list(trace.y) for trace in agreement.data] == [["iris"], ["iris"]]


def test_every_run_button_says_what_it_runs(page, api):
    buttons = [one for one in names(page) if isinstance(getattr(one, "id", None), dict)]
    assert {one.id["key"] for one in buttons} == {"text|uci", "authors|uci"}
    below = names(detail(CLIPPED, "authors")[ids.MESSAGE])
    (button,) = [one for one in below if isinstance(getattr(one, "id", None), dict)]
    assert button.id["key"] == f"authors|{CLIPPED}"
    label = button.to_plotly_json()["props"]["aria-label"]
    assert label == "Run JSB Chorales, clip 8, authors profile"


def test_a_missing_bundle_is_loaded_with_one_click_here_too(page, api):
    assert "Load the reproduction" in text_of(page)
    assert by_id(page, Bundle.LOADED) is not None
    api.bundle = BundleRead(state="loaded", studies=39)
    assert "Load the reproduction" not in text_of(run(paper.layout()))


def test_the_theorem_is_drawn_from_the_newest_study_of_its_preset_that_has_ended(api, page):
    assert "Nothing of it was run here yet" in text_of(page)
    tags = [*tags_of({"preset": "theory/level_set"})]  # as the form and the bundle give them
    for number, state in ((1, "completed"), (2, "running")):
        api.studies[number] = api.studies[number].model_copy(update={"tags": tags, "state": state})
    shown = run(paper.layout())
    assert by_id(shown, ids.THEOREM_STUDY).data == 1
    api.studies[1] = api.studies[1].model_copy(update={"tags": []})
    assert by_id(run(paper.layout()), ids.THEOREM_STUDY).data == 2


def test_who_may_not_write_is_offered_nothing(api):
    api.log_in("vera", "viewer")
    shown = run(paper.layout())
    assert "Load the reproduction" not in text_of(shown)
    assert not [one for one in names(shown) if isinstance(getattr(one, "id", None), dict)]


def test_no_command_is_shown_with_its_backticks(page, api):
    assert "`" not in text_of(page)
    said = detail("nothing")[ids.MESSAGE]
    assert "etascope import-bundle" in [getattr(one, "children", None) for one in said]
    assert "`" not in text_of(said)


def test_one_click_runs_an_experiment_and_goes_to_its_study(dash_app, api):
    button = part(ids.RUN, "authors|06_jsb_chorales_clip_8.0")
    answer = trigger(dash_app, f"{ids.ERROR}.children", (button, "n_clicks", 1))
    sent = [call for call in api.sent if call.method == "POST"]
    assert sent[0].json["study"]["tags"] == ["paper", "authors", "06_jsb_chorales_clip_8.0"]
    assert sent[-1].json["sweep"]["preset"] == "paper/06_jsb_chorales_clip_8.0"
    assert sent[-1].json["sweep"]["profile"] == "authors"
    assert "/studies/" in str(answer)


@pytest.mark.parametrize(("profile", "curves"), [("text", 2), ("authors", 4)])
@pytest.mark.parametrize("loss", ["train_loss", "test_loss"])
def test_the_recorded_runs_lie_under_the_authors_profile(profile, curves, loss):
    one = next(found for found in paper_answer().experiments if found.id == "05_jsb_chorales")
    assert len(curves_of(one, profile, loss)) == curves


def test_what_must_be_read_beside_a_verdict_stands_there_without_a_click():
    answer = paper_answer()
    (better,) = (one for one in answer.claims if one.id == "better")
    told = better.recorded.model_copy(update={"beside": "by sign alone 15 of 17"})
    shown = answer.model_copy(update={"claims": [better.model_copy(update={"recorded": told})]})
    folded = [
        one for one in names(claims_table(shown)) if getattr(one, "className", "") == "folded"
    ]
    assert "15 of 17" in text_of(claims_table(shown))
    assert not any("15 of 17" in text_of(one) for one in folded if one.children)


@pytest.mark.parametrize("narrow", [False, True])
def test_the_legend_of_clipped_differences_stands_below_the_title(narrow):
    one = next(found for found in paper_answer().experiments if found.id == CLIPPED)
    title = f"{one.title}: clipped minus unclipped"
    layout = clip_figure(one.text.clipping, title, "light", narrow=narrow).layout
    lines = 1 + layout.title.text.count("<br>")
    assert lines == (2 if narrow else 1)
    # Titles have 17 pixels and begin 12 from the top.
    assert (1 - layout.legend.y) * layout.height >= layout.title.pad.t + 17 * lines
    assert layout.margin.t > (1 - layout.legend.y) * layout.height


def test_a_match_of_losses_is_not_called_a_reproduction(page):
    words = text_of(page)
    assert "do our losses match theirs?" in words
    assert "Where they match, what runs here is what they ran" in words  # few were run
    for one in paper_answer().experiments:
        assert one.authors.word in ("losses match", "losses differ", "cannot tell", "not tested")


def test_nothing_is_offered_to_run_that_cannot_be(page):
    uci = paper_answer().uci
    enough = uci.text.model_copy(update={"trials": uci.text.of_here})
    assert run_button(uci, "text", enough, started=True).disabled
    if uci.text.of_here:
        less = uci.text.model_copy(update={"trials": uci.text.of_here - 1})
        assert not run_button(uci, "text", less, started=True).disabled


def test_ranks_over_uci_are_a_table_with_what_cannot_be_told_apart():
    found = RanksRead(
        number="best_mean",
        title="Best mean loss",
        mean_ranks={"sps": 2.5, "ib": 2.0, "eb": 1.5},
        p=0.01,
        critical_difference=0.61,
        tasks=120,
    )
    words = text_of(ranks_words([found]))
    assert words.index("EB") < words.index("IB") < words.index("SPS")
    assert all(told in words for told in ("1.50", "2.00", "2.50", "120", "Best mean loss: 0.61"))
    assert "nothing to rank" in text_of(ranks_words([]))


def test_no_part_of_the_page_has_the_name_of_something_in_it(page):
    assert not set(paper.PARTS.values()) & set(map(str, vars(ids).values()))
    for name in paper.PARTS.values():
        assert by_id(page, name).open
