import pytest

from backend.schemas import ScorecardRead
from backend.services.analysis.unstored import stored_tables
from dashboard.api_client import task_names
from dashboard.ids import Bundle
from dashboard.ids import WhichMethod as ids
from dashboard.pages import which_method
from ib_core.methods import METHODS
from tests.coroutines import run
from tests.dashboard.dispatch import by_id, names, text_of
from tests.dashboard.scored_answers import across, answers_of, rows_of, score_losses

RATES = (0.1, 1.0, 10.0)


@pytest.fixture
def compared(api):
    """An API whose first study is the comparison."""
    api.studies[1] = api.studies[1].model_copy(update={"tags": ["paper", *which_method.TAGS]})
    return api


def scorecard(best: str) -> ScorecardRead:
    """Return a scorecard in which one method ends lowest at every rate."""
    methods = ("eb", "ib", "sps", "adam")
    losses = {
        method: {lr: [0.1 if method == best else 0.8] * 5 for lr in RATES} for method in methods
    }
    return ScorecardRead(
        study_id=1,
        metric="test_loss",
        reducer="final",
        answers=answers_of("digits_mlp"),
        rows=rows_of(score_losses(losses)),
    )


def test_without_the_study_the_page_offers_to_load_it(api):
    page = run(which_method.layout())
    assert "not loaded" in text_of(page)
    assert by_id(page, Bundle.BUTTON).children == "Load the comparison"


def test_with_it_the_page_says_what_its_trials_say(compared):
    page = run(which_method.layout())
    words = text_of(page)
    assert "With its rate chosen with care" in words
    assert "2 methods, 1 task" in words
    (table,) = (one for one in names(page) if type(one).__name__ == "Table")
    assert METHODS["ib"].title in text_of(table)
    assert METHODS["muon"].title not in text_of(table)  # nobody trained it there
    labels = [getattr(one, "data-label", None) for one in names(page)]
    assert "Step" in labels
    assert "" not in labels  # a phone would write ": " before it


def test_what_all_methods_do_on_every_table_is_there_whether_the_study_is_or_not(api):
    words = text_of(run(which_method.layout()))
    assert "not loaded" in words
    assert "On every UCI table" in words
    assert "18 methods, 120 tables, 11 rates from 0.001 to 1000, 5 seeds each" in words
    assert "Mean rank over 120 tables, each at its best rate" in words
    assert "etascope import-bundle tables" in words
    study = api.studies[1].model_copy(
        update={"id": 2, "name": "All tables", "tags": list(which_method.TABLES_TAGS)}
    )
    api.studies[2] = study
    words = text_of(run(which_method.layout()))
    assert "Every trial:  All tables ." in words
    assert "import-bundle" not in words
    assert "not loaded" in words  # the other comparison still is not


def test_tables_are_counted_as_their_numbers_are(compared):
    words = text_of(run(which_method.layout()))
    best = {(one.table, one.method): one.metrics["best_mean"].value for one in stored_tables().rows}
    pairs = [(best[table, "ib"], best[table, "eb"]) for table, method in best if method == "ib"]
    lower, higher = sum(ib < eb for ib, eb in pairs), sum(ib > eb for ib, eb in pairs)
    assert lower + higher > 100
    told = f"at its best rate it ends lower on {lower} of 120 tables, and ends higher on {higher};"
    assert told in words


def test_of_every_table_it_says_which_are_not_there_and_asks_once(api):
    known = api.catalog.tasks[0]
    uci = [known.model_copy(update={"name": f"uci/{name}"}) for name in ("iris", "miniboone")]
    api.catalog = api.catalog.model_copy(update={"tasks": [*api.catalog.tasks, *uci]})
    words = text_of(run(which_method.layout()))
    assert "Not among them: miniboone." in words
    run(which_method.draw_tables("light", False))
    run(which_method.layout())
    assert [call.path for call in api.sent].count("/api/bundle/tables") == 1


def test_the_ranks_over_all_tables_are_drawn():
    figure, style = run(which_method.draw_tables("dark", True))
    assert style == {"height": f"{figure.layout.height}px"}
    named = {one.text for one in figure.layout.annotations}
    assert any("120 tasks" in name for name in named)


@pytest.mark.parametrize(
    ("best", "family"), [("ib", "IB"), ("sps", "SPS and NGN"), ("adam", "Adam and its kin")]
)
def test_whoever_wins_in_the_trials_wins_in_words(best, family):
    first, _, tuned, untuned, *_ = which_method.sentences(scorecard(best), {})
    here = f"digits_mlp ({METHODS[best].short})"
    assert "lowest of all on" in first.told if best == "ib" else here in first.behind
    for one in (tuned, untuned):
        assert one.told.startswith(f"{family} on 1 of 1 task, clearly on {here}")


def test_a_task_that_is_in_no_rank_is_named_with_what_it_lacks():
    tasks = {"one": ("eb", "ib", "ib_plus"), "two": ("eb", "ib", "ib_plus"), "songs": ("eb", "ib")}
    rows = []
    for task, methods in tasks.items():
        losses = {method: {lr: [0.5] * 5 for lr in RATES} for method in methods}
        rows += rows_of(score_losses(losses), task=task)
    found = scorecard("ib")
    over_all = across().model_copy()
    over_all.ranks = [one.model_copy(update={"tasks": 2}) for one in over_all.ranks]
    update = {"rows": rows, "answers": answers_of(*tasks), "across": over_all}
    told = which_method.sentences(found.model_copy(update=update), {})
    ranked = next(one for one in told if one.asked.startswith("Mean rank over 2 of 3 tasks, each"))
    left_out = "Not ranked on songs, for want of IB+ (it needs a linear last layer)."
    assert ranked.behind.endswith(left_out)
    over_all.ranks = [one.model_copy(update={"tasks": 3}) for one in over_all.ranks]
    told = which_method.sentences(found.model_copy(update={**update, "rows": rows[:6]}), {})
    assert not any("want of" in one.behind for one in told)


def test_tasks_on_the_same_data_stay_apart(compared, monkeypatch):
    networks = ("digits_mlp", "digits_conv")
    each = [scorecard("ib"), scorecard("sps")]
    rows = [
        row.model_copy(update={"task": task})
        for task, one in zip(networks, each, strict=True)
        for row in one.rows
    ]

    async def read(asked):
        found = await ask(asked)
        is_scorecard = isinstance(found, ScorecardRead)
        return found.model_copy(update={"rows": rows}) if is_scorecard else found

    ask = which_method.ask
    monkeypatch.setattr(which_method, "ask", read)
    words = text_of(run(which_method.layout()))
    assert "1 of 2 tasks" in words
    assert "(SPS)" in words
    assert "IB against EB" in words
    assert "All methods but exact ISGD" in words
    called = run(task_names(networks))
    for task in networks:
        assert called.get(task, task) in words


def test_every_method_of_the_catalogue_belongs_to_a_family():
    kin = [name for family in which_method.FAMILIES.values() for name in family]
    assert len(kin) == len(set(kin))
    assert set(kin) == {name for name, method in METHODS.items() if not method.exact}


def test_a_study_of_too_few_tasks_has_no_picture(compared):
    figure, style = run(which_method.draw("light", False, 1))
    assert style == {"display": "none"}
    assert by_id(run(which_method.layout()), ids.GRAPH) is not None
    assert figure is not None
