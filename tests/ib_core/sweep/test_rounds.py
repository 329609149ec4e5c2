"""The edge finder: against a dense grid, within its budget, the same again after a kill."""

import math
from itertools import product

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ib_core.errors import InvalidSpec
from ib_core.sweep import Book, run_rounds, run_sweep, series_found, specs_of
from ib_core.sweep.request import body_of, command_words, read_body
from ib_core.sweep.rounds import SeedEdge, Seen, median_edge, next_round, seed_edge
from ib_core.sweep.search import Search

EDGES = st.floats(-3, 4).map(lambda power: 10**power)
SEARCHES = st.builds(
    lambda low, decades, within: Search.of(
        {"find": "edge", "from": low, "to": low * 10**decades, "within": within}, (1, 2), 6
    ),
    st.sampled_from([0.001, 0.01, 0.03]),
    st.floats(0.2, 6),
    st.floats(1.01, 3),
)


def play(search, truth, *, lost=()):
    """Search where `truth[series][seed](rate)` says what breaks; return what was asked, in rounds.

    Args:
        search: What is looked for.
        truth: By series and seed: from a rate to whether it breaks.
        lost: Trials, as (series, seed, rate), that never get a result.
    """
    known = {series: {seed: {} for seed in seeds} for series, seeds in truth.items()}
    rounds = []
    while asked := next_round(search, known):
        assert asked == next_round(search, known), "whoever plans again comes to the same round"
        assert len(set(asked)) == len(asked)
        rounds.append(asked)
        for series, seed, lr in asked:
            assert lr not in known[series][seed], "nothing is asked twice"
            broke = truth[series][seed](lr)
            seen = None if (series, seed, lr) in lost else Seen(broke, 2.0 if broke else 0.5)
            known[series][seed][lr] = seen
    return known, rounds


def thresholds(*edges):
    """Return seeds that break from their edges on."""
    return {seed: (lambda lr, edge=edge: lr >= edge) for seed, edge in enumerate(edges, 1)}


def dense(search, breaks):
    """Return the slow twin's bracket: every rate of a grid twice as fine, from below."""
    count = 2 * search.grid
    step = (search.high / search.low) ** (1 / count)
    rates = [search.low * step**i for i in range(count + 1)]
    first = next((i for i, lr in enumerate(rates) if breaks(lr)), None)
    if first is None:
        return rates[-1], None
    return (rates[first - 1] if first else None), rates[first]


@given(SEARCHES, st.lists(EDGES, min_size=1, max_size=3), st.lists(EDGES, min_size=1, max_size=3))
def test_every_seed_is_bracketed_as_a_dense_grid_brackets_it(search, first, second) -> None:
    truth = {"eb": thresholds(*first), "ib": thresholds(*second)}
    assume(search.most >= sum(map(len, truth.values())) * len(search.coarse))
    known, _ = play(search, truth)
    for series, seeds in truth.items():
        for seed, breaks in seeds.items():
            found = seed_edge(search, seed, known[series][seed])
            low, high = dense(search, breaks)
            if high is None:
                # The twin's last rate may miss the range's end by rounding.
                assert found.where == "above" or found.high == search.high
            elif low is None:
                assert (found.where, found.high) == ("below", search.low)
            else:
                assert found.where == "within"
                assert found.high <= found.low * search.within * (1 + 1e-9)
                assert not breaks(found.low)
                assert breaks(found.high)
                # Both intervals hold the edge, so that their middles are within the factor.
                assert found.low <= high
                assert low <= found.high
                assert max(
                    found.edge / math.sqrt(low * high), math.sqrt(low * high) / found.edge
                ) <= (search.within * 1.001)


@given(SEARCHES, st.lists(EDGES, min_size=1, max_size=6))
def test_a_seed_takes_no_more_than_was_said_beforehand(search, edges) -> None:
    known, rounds = play(search, {"eb": thresholds(*edges)})
    assert all(len(rates) <= search.longest for rates in known["eb"].values())
    assert len(rounds) <= 1 + search.longest - len(search.coarse)


def test_five_decades_within_a_tenth_take_ten_times_fewer_trials_than_a_grid() -> None:
    search = Search.of({"find": "edge", "from": 0.01, "to": 1000}, (1, 2), 5)
    known, rounds = play(search, {"eb": thresholds(0.5, 1.3, 2, 7, 430)})
    used = sum(map(len, known["eb"].values()))
    assert used * 10 <= 5 * search.grid
    assert len(rounds) == 6


@given(
    st.integers(6, 80),
    st.lists(EDGES, min_size=1, max_size=3),
    st.sampled_from(["edge", "best"]),
)
def test_the_budget_is_never_exceeded(most, edges, find) -> None:
    search = Search(find, 0.01, 1000.0, 1.05, most)
    assume(most >= len(edges) * len(search.coarse))
    known, _ = play(search, {"eb": thresholds(*edges)})
    used = sum(map(len, known["eb"].values()))
    assert used <= most
    unsettled = any(
        seed_edge(search, seed, rates).where == "open" for seed, rates in known["eb"].items()
    )
    if find == "edge" and unsettled:
        assert used == most, "nothing is left over while something is left to find"


def test_what_is_left_of_a_budget_goes_to_the_widest_brackets() -> None:
    search = Search("edge", 1.0, 100.0, 1.01, 100)
    fine = {1.0: Seen(False, 0.5), 10.0: Seen(True, 2), 100.0: Seen(True, 2)}
    finer = {**fine, 3.0: Seen(False, 0.5)}
    asked = next_round(Search("edge", 1.0, 100.0, 1.01, 8), {"eb": {1: finer, 2: fine}})
    assert [ask.seed for ask in asked] == [2]
    assert [ask.seed for ask in next_round(search, {"eb": {1: finer, 2: fine}})] == [1, 2]


def test_breaking_that_is_not_monotone_is_flagged_and_its_lowest_edge_found() -> None:
    search = Search("edge", 0.01, 1000.0, 1.1, 300)
    known, _ = play(search, {"eb": {1: lambda lr: 0.3 <= lr < 20 or lr >= 500}})
    found = seed_edge(search, 1, known["eb"][1])
    assert not found.monotone
    assert found.low < 0.3 <= found.high <= found.low * 1.1
    assert not series_found(search, known)[0].monotone


def test_a_seed_without_a_result_stands_still_and_the_others_go_on() -> None:
    search = Search("edge", 0.01, 100.0, 1.1, 300)
    truth = {"eb": thresholds(3, 3)}
    whole, rounds = play(search, truth)
    second = next(ask for ask in rounds[1] if ask.seed == 1)
    known, _ = play(search, truth, lost={second})
    assert seed_edge(search, 1, known["eb"][1]).where == "stuck"
    assert seed_edge(search, 2, known["eb"][2]).where == "within"
    # Once it has been trained after all, the search goes on where it stood.
    known["eb"][1][second.lr] = whole["eb"][1][second.lr]
    while asked := next_round(search, known):
        for ask in asked:
            known["eb"][ask.seed][ask.lr] = Seen(truth["eb"][ask.seed](ask.lr), 1.0)
    assert known["eb"][1].keys() == whole["eb"][1].keys()


@given(st.floats(-1.5, 2.5), st.floats(1.02, 2), st.floats(0.2, 3))
def test_the_best_rate_of_a_valley_is_found_within_the_factor(power, within, steep) -> None:
    search = Search.of({"find": "best", "from": 0.01, "to": 1000, "within": within}, (1, 2), 2)
    known = {"eb": {1: {}, 2: {}}}
    while asked := next_round(search, known):
        for _, seed, lr in asked:
            loss = steep * (math.log10(lr) - power) ** 2 + 0.01 * seed
            known["eb"][seed][lr] = Seen(False, loss)
    found = series_found(search, known)[0]
    assert found.where == "within"
    assert found.low <= 10**power <= found.high
    assert max(found.high / found.value, found.value / found.low) <= within * (1 + 1e-9)
    assert sum(map(len, known["eb"].values())) <= search.most
    assert len(known["eb"][1]) <= search.longest


def test_a_best_rate_at_the_end_of_the_range_is_said_to_lie_there() -> None:
    search = Search.of({"find": "best", "from": 0.01, "to": 1, "within": 1.1}, (1, 2), 1)
    known = {"eb": {1: {}}}
    while asked := next_round(search, known):
        known["eb"][1] |= {ask.lr: Seen(False, 1 / ask.lr) for ask in asked}
    found = series_found(search, known)[0]
    assert (found.where, found.value) == ("above", 1.0)


@pytest.mark.parametrize("n", range(1, 13))
def test_the_interval_covers_the_median_as_often_as_it_says(n) -> None:
    """Against every way in which n seeds can fall on either side of the median."""
    edges = [SeedEdge(i, float(i + 1), i + 1.5, "within", True, 1) for i in range(n)]
    value, low, high, coverage = median_edge(edges)
    rank = int(low)  # of the lowest seed inside
    inside = sum(rank <= sum(sides) <= n - rank for sides in product((0, 1), repeat=n))
    assert coverage == pytest.approx(inside / 2**n)
    assert low <= value <= high
    more = sum(rank + 1 <= sum(sides) <= n - rank - 1 for sides in product((0, 1), repeat=n))
    assert coverage >= 0.95 or rank == 1
    assert more / 2**n < 0.95, "no narrower one would do"


def test_edges_outside_the_range_count_on_their_side() -> None:
    one = SeedEdge(1, None, 0.1, "below", True, 5)
    two = SeedEdge(2, 1.0, 1.1, "within", True, 9)
    three = SeedEdge(3, 10.0, None, "above", True, 5)
    assert median_edge([one, two, three])[:3] == (two.edge, None, None)
    assert median_edge([two, three, three])[0] is None


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("edge", {"find": "edge"}),
        ("edge:0.01:1000", {"find": "edge", "from": 0.01, "to": 1000.0}),
        ("best::100:1.2", {"find": "best", "to": 100.0, "within": 1.2}),
        (
            "edge:0.01:1000:1.1:300",
            {"find": "edge", "from": 0.01, "to": 1000.0, "within": 1.1, "most": 300},
        ),
    ],
)
def test_a_search_is_read_as_text_and_as_an_object_and_written_again(text, canonical) -> None:
    assert read_body({"learning_rates": text})["learning_rates"] == canonical
    assert read_body({"learning_rates": canonical})["learning_rates"] == canonical
    assert command_words({"learning_rates": canonical}) == ["--lrs", text]


@pytest.mark.parametrize(
    ("asked", "field", "said"),
    [
        ("edge:1:2:3:4:5", "learning_rates", "from, to, within, most"),
        ("edge:5:2", "learning_rates", "must rise; got 5 to 2"),
        ("edge:x", "learning_rates.from", "no number"),
        ("edge:1:1000:1.001", "learning_rates.within", "from 1.01 to 10"),
        ("edge:0.01:1000:1.1:3", "learning_rates.most", "alone takes 36 trials"),
        ({"find": "worst"}, "learning_rates.find", "one of edge, best"),
        ({"find": "edge", "count": 3}, "learning_rates.count", "no 'count'"),
    ],
)
def test_what_cannot_be_searched_for_is_refused_in_one_sentence(asked, field, said) -> None:
    with pytest.raises(InvalidSpec, match=said) as refused:
        specs_of({"task": "toy/quadratic", "learning_rates": asked, "seeds": 3})
    assert refused.value.field == field


def test_a_sweep_that_searches_asks_for_itself_again() -> None:
    body = {"task": "toy/quadratic", "learning_rates": "edge:0.01:100:1.2", "seeds": 3}
    (spec,) = specs_of(body)
    assert specs_of(body_of(spec.as_dict())) == (spec,)
    first = [(trial.method, trial.seed, trial.lr) for trial in spec.expand()]
    planned = [(trial.method, trial.seed, trial.lr) for trial in Book(spec).plan()]
    assert sorted(first) == sorted(planned), "what is submitted is the planner's first round"
    assert "search" not in specs_of({**body, "learning_rates": [1]})[0].as_dict()


def test_a_real_search_finds_what_a_dense_grid_of_real_trials_finds() -> None:
    """On the quadratic, where EB breaks at a rate that is known to more digits than asked for."""
    body = {"methods": ["eb"], "seeds": 2, "epochs": 2}
    found = run_sweep("toy/quadratic", learning_rates="edge:0.1:100:1.2", lanes=1, **body)
    (book,) = found.searches
    series = series_found(book.search, book.known)[0]
    assert (len(found), book.trials) == (len(found.rows), len(found))
    assert book.rounds == 5
    grid = {"from": 0.1, "to": 100, "count": book.search.grid}
    tried = run_sweep("toy/quadratic", learning_rates=grid, lanes=1, **body)
    for seed in series.seeds:
        rows = [row for row in tried if row.spec.seed == seed.seed]
        broke = [
            row.spec.lr
            for row in rows
            if row.outcome == "diverged" or row.train_loss > row.initial_loss
        ]
        sound = max(row.spec.lr for row in rows if row.spec.lr < min(broke))
        middle = math.sqrt(sound * min(broke))
        assert max(seed.edge / middle, middle / seed.edge) <= 1.2
    assert len(tried) >= 3 * len(found)


def test_a_trial_that_fails_leaves_its_seed_where_it_was() -> None:
    spec = specs_of({"task": "toy/quadratic", "learning_rates": "edge:0.1:100:1.2", "seeds": 1})[0]
    book = Book(spec)
    run_rounds([book], lambda trials: [None] * len(trials))
    assert book.trials == spec.size
    assert book.rounds == 1
