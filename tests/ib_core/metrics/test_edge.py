import pytest

from ib_core.metrics import RateCurve, SeedResult
from ib_core.metrics.edge import NOT_MONOTONE, bracket, edge_posteriors
from ib_core.metrics.number import Number
from ib_core.metrics.scoring import Row, score_task
from ib_core.metrics.task_table import TaskTable
from tests.ib_core.metrics.slow_twins import edge_quantiles

RATES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
TOP = len(RATES)


def curve(*broke: int, seeds: int = 5, rates: tuple[float, ...] = RATES) -> RateCurve:
    """So many seeds broken at each rate, not always the same ones; others halve their loss."""
    return RateCurve.from_results(
        (lr, SeedResult(seed, 9.0 if (seed + 2 * place) % seeds < broken else 1.0, 2.0))
        for place, (lr, broken) in enumerate(zip(rates, broke, strict=True))
        for seed in range(seeds)
    )


EB = curve(*[0] * 4, *[5] * 7)
IB = curve(*[0] * 5, *[5] * 6)
NEVER, ALWAYS = curve(*[0] * TOP), curve(*[5] * TOP)


def rows_of(**curves: RateCurve) -> dict[str, Row]:
    return score_task(curves).rows


def edge_of(one: RateCurve) -> Number:
    return rows_of(eb=one)["eb"]["edge"]


def test_the_first_study_has_the_edges_that_five_seeds_allow():
    rows = rows_of(eb=EB, ib=IB)
    eb, ib = rows["eb"]["edge"], rows["ib"]["edge"]
    assert (eb.value, eb.low, eb.high) == pytest.approx((0.548, 0.33, 0.90), rel=0.03)
    assert (ib.value, ib.low, ib.high) == pytest.approx((1.73, 1.1, 2.7), rel=0.03)
    assert eb.low < 0.6 < eb.high  # what a fine grid with 25 seeds found
    assert ib.low < 1.3 < ib.high
    assert eb.n == 5
    assert eb.note == "Sound up to 0.3, broken from 1. 10 seeds advised."


@pytest.mark.parametrize(
    "broke",
    [
        [0] * 4 + [5] * 7,
        [0] * 5 + [2] + [5] * 5,
        [0] * 6 + [1, 2, 3, 3, 4],
        [1, 0, 1, 2, 4, 5, 5, 5, 5, 5, 5],
        [0] * 10 + [3],
    ],
)
def test_it_is_the_posterior_that_loops_add_up(broke):
    one = curve(*broke)
    (posterior,) = edge_posteriors(TaskTable.of({"eb": one}))
    slow = edge_quantiles(one, (0.025, 0.5, 0.975))
    assert posterior.quantiles((0.025, 0.5, 0.975)).tolist() == pytest.approx(slow, rel=0.08)


def test_more_seeds_narrow_it():
    few, many = curve(*[0] * 4, 2, *[5] * 6), curve(*[0] * 4, 40, *[100] * 6, seeds=100)
    assert edge_of(many).high / edge_of(many).low < (edge_of(few).high / edge_of(few).low) ** 0.5


def test_seeds_that_break_together_count_for_less():
    apart = curve(*[0] * 6, 2, 2, 2, 2, 2)
    same = RateCurve.from_results(
        (lr, SeedResult(seed, 9.0 if place > 5 and seed < 2 else 1.0, 2.0))
        for place, lr in enumerate(RATES)
        for seed in range(5)
    )
    assert edge_of(same).low < edge_of(apart).low


def test_without_a_broken_seed_it_lies_above_the_highest_rate():
    found = edge_of(NEVER)
    assert (found.value, found.censored, found.low, found.high) == (1000.0, "above", 1000.0, None)
    assert "broken nowhere" in found.note


def test_broken_everywhere_it_lies_below_the_lowest_rate():
    found = edge_of(ALWAYS)
    assert (found.value, found.censored, found.low, found.high) == (0.01, "below", None, 0.01)


def test_where_too_few_break_it_is_a_bound_that_may_be_too_high():
    found = edge_of(curve(*[0] * 10, 1))
    assert (found.value, found.censored, found.high) == (1000.0, "above", None)
    assert 300 < found.low < 1000


@pytest.mark.parametrize(("seeds", "has"), [(1, False), (2, False), (3, True), (9, True)])
def test_an_interval_needs_three_seeds(seeds, has):
    found = edge_of(curve(*[0] * 4, *[seeds] * 7, seeds=seeds))
    assert found.value == pytest.approx(0.55, rel=0.03)
    assert found.has_interval is has
    assert "10 seeds advised" in found.note


def test_ten_seeds_need_no_advice():
    assert "advised" not in edge_of(curve(*[0] * 4, *[10] * 7, seeds=10)).note


@pytest.mark.parametrize(
    ("broke", "monotone"),
    [
        ([0] * 4 + [5] * 7, True),
        ([0] * 4 + [1, 0] + [5] * 5, True),
        ([0] * 4 + [5, 5, 5, 0, 0, 0, 0], False),
        ([5, 5] + [0] * 9, False),
    ],
)
def test_breaking_that_does_not_go_with_the_rate_is_said(broke, monotone):
    assert (NOT_MONOTONE not in edge_of(curve(*broke)).note) is monotone


@pytest.mark.parametrize(
    ("broke", "expected"),
    [
        ([0] * 4 + [5] * 7, (0.3, 1.0, 0.3)),
        ([0] * 4 + [1] + [5] * 6, (0.3, 3.0, 1.0)),
        ([0] * 11, (1000.0, None, None)),
        ([5] * 11, (None, 0.01, None)),
    ],
)
def test_the_bracket_is_what_was_seen(broke, expected):
    found = bracket(TaskTable.of({"eb": curve(*broke)}), 0)
    assert (found.sound_to, found.broken_from, found.before) == expected
    assert ("in between" in found.text) is (broke[4] == 1)


def test_what_is_sound_must_be_so_at_every_lower_rate_as_well():
    found = bracket(TaskTable.of({"eb": curve(0, 0, 1, *[0] * 7, 5)}), 0)
    assert (found.sound_to, found.broken_from, found.before) == (0.03, 1000.0, 300.0)
    assert "some seeds broken in between" in found.text


def test_headroom_is_the_ratio_with_draws_of_both():
    rows = rows_of(eb=EB, ib=IB)
    room = rows["ib"]["headroom"]
    assert room.value == rows["ib"]["edge"].value / rows["eb"]["edge"].value
    assert room.censored == "none"
    # Each edge is known to a factor of 1.65; of a ratio both factors count, but not both at worst.
    assert 2.74 / 0.33 > room.high > 1.7 * room.value
    assert 1.1 / 0.91 < room.low < room.value / 1.7
    assert rows["eb"]["headroom"].value is None


@pytest.mark.parametrize(
    ("eb", "ib", "value", "censored", "open_end"),
    [
        (EB, NEVER, 1000 / 0.548, "above", "high"),
        (NEVER, EB, 0.548 / 1000, "below", "low"),
        (ALWAYS, EB, 0.548 / 0.01, "above", "high"),
        (EB, ALWAYS, 0.01 / 0.548, "below", "low"),
        (ALWAYS, NEVER, 1e5, "above", "high"),
    ],
)
def test_headroom_is_a_bound_where_an_edge_is(eb, ib, value, censored, open_end):
    room = rows_of(eb=eb, ib=ib)["ib"]["headroom"]
    assert room.value == pytest.approx(value, rel=0.03)
    assert room.censored == censored
    assert getattr(room, open_end) is None
    assert getattr(room, "low" if open_end == "high" else "high") is not None


@pytest.mark.parametrize(("one", "where"), [(NEVER, "above the"), (ALWAYS, "below the")])
def test_two_bounds_on_one_side_bound_no_ratio(one, where):
    room = rows_of(eb=one, ib=one)["ib"]["headroom"]
    assert room.value is None
    assert room.note.startswith(f"Both edges lie {where}")


def test_what_ended_above_its_start_or_at_zero_is_broken():
    sound = SeedResult(1, 1.0, 2.0)
    assert not sound.broken
    assert SeedResult(1, 2.5, 2.0).broken
    assert not SeedResult(1, 2.0, 2.0).broken
    assert SeedResult(1, 1.0, 2.0, "diverged").broken
    assert SeedResult(1, None, 2.0).broken
    assert SeedResult(1, 1.0, 2.0, at_zero=True).broken
    # A test loss may rise while the training loss falls, and the other way round.
    assert not SeedResult(1, 2.5, 2.0, above_start=False).broken
    assert SeedResult(1, 1.0, 2.0, above_start=True).broken
    results = [
        (0.1, sound),
        (0.3, SeedResult(1, 1.0, 2.0, at_zero=True)),
        (1.0, SeedResult(1, 1.0, 2.0, above_start=True)),
        (3.0, SeedResult(1, 2.5, 2.0, above_start=False)),
        (10.0, SeedResult(1, None, None)),
    ]
    table = TaskTable.of({"eb": RateCurve.from_results(results)})
    assert table.broke[0].tolist() == [0, 1, 1, 0, 1]
