"""Small pictures for table cells and forms."""

import re
from urllib.parse import unquote

from backend.schemas import SearchRead, SeedEdgeRead, SeriesFoundRead, Spark, SparkPoint
from dashboard.figures.thumbnails import (
    HEIGHT,
    PAD,
    bracket_bars,
    bracket_words,
    rate_ticks,
    rates_words,
    spark_words,
    sparkline,
)

SPARKS = [
    Spark(
        method="eb",
        points=[SparkPoint(lr=lr, mean=mean) for lr, mean in ((0.1, 1.0), (1, 0.2), (10, None))],
    ),
    Spark(method="ib", points=[SparkPoint(lr=lr, mean=0.3) for lr in (0.1, 1, 10)]),
]


def test_a_sparkline_draws_every_method_in_its_colour():
    svg = unquote(sparkline(SPARKS))
    assert svg.count("<path") == 2
    assert "#D55E00" in svg
    assert "#0072B2" in svg


def test_a_mean_that_is_no_number_is_drawn_at_the_top_not_left_out():
    path = unquote(sparkline(SPARKS)).split('d="')[1].split('"')[0]
    assert path.count("L") == 2
    assert path.endswith(" 4.0")


def test_without_two_rates_there_is_no_line():
    assert sparkline([]) is None
    assert sparkline([Spark(method="eb", points=[SparkPoint(lr=1, mean=1)])]) is None


def test_a_sparkline_has_words():
    assert spark_words(SPARKS) == "Loss against learning rate of EB, IB"


def test_settings_of_one_method_are_lines_one_can_tell_apart():
    points = [[SparkPoint(lr=lr, mean=mean) for lr in (0.1, 1)] for mean in (0.1, 0.2, 0.3)]
    widths = [
        Spark(method="eb", label=f"eb, width {width}", points=line)
        for width, line in zip((8, 32, 128), points, strict=True)
    ]
    paths = unquote(sparkline(widths)).split("<path ")[1:]
    looks = {path.split('stroke="')[1] for path in paths}
    assert len(looks) == 3
    assert spark_words(widths).endswith("of EB, width 8; EB, width 32; EB, width 128")


def test_a_grid_has_a_tick_a_rate_and_a_label_a_decade():
    svg = unquote(rate_ticks([0.01, 0.1, 1, 10]))
    assert svg.count('v18"') == 4
    assert ">0.01<" in svg
    assert ">10<" in svg
    assert rate_ticks([]) is None


def test_a_single_rate_is_a_tick():
    assert rate_ticks([1.0]) is not None


def test_long_grids_are_told_by_their_ends():
    assert rates_words([0.1, 1, 10]) == "0.1, 1, 10"
    assert rates_words([10.0**k for k in range(-8, 4)]).endswith("1000 (12 rates)")


def test_one_that_learns_less_does_not_end_where_the_broken_ones_do():
    means = {"eb": (0.06, 0.5, None), "ib": (0.06, 0.1, 1e30), "ib_plus": (0.07, 0.09, 1.8)}
    sparks = [
        Spark(
            method=method,
            points=[SparkPoint(lr=10.0**k, mean=mean) for k, mean in enumerate(own)],
        )
        for method, own in means.items()
    ]
    paths = [part.split('"')[0] for part in unquote(sparkline(sparks)).split('<path d="')[1:]]
    broken, exploded, learnt = (float(path.split()[-1]) for path in paths)
    assert broken == exploded == PAD
    # 1.8 is half the decades up that 300 times the best are, as on the start page's axis.
    assert HEIGHT / 4 < learnt < 3 * HEIGHT / 4


def seed_edge(seed, low, high, where, last=()):
    return SeedEdgeRead(
        seed=seed, low=low, high=high, where=where, monotone=True, sound=[], broken=[], last=last
    )


def search(*seeds, done=False):
    found = SeriesFoundRead(
        method="eb",
        label="eb",
        value=1.0,
        where="open",
        monotone=True,
        text="1 <sure>",
        seeds=seeds,
    )
    return SearchRead(
        find="edge", low=0.01, high=100, within=1.1, most=80, trials=20, grid_trials=200,
        rounds=[20], done=done, series=[found],
    )  # fmt: skip


def bars(found):
    svg = unquote(bracket_bars(found))
    return svg, [
        tuple(map(float, one)) for one in re.findall(r'<rect x="(\S+)" y="\S+" width="(\S+)"', svg)
    ]


def test_every_seed_has_a_bar_that_narrows_and_the_last_round_is_lit():
    wide = seed_edge(1, 0.1, 10.0, "open", last=[1.0])
    svg, ((left, width), *_) = bars(search(wide, seed_edge(2, 0.9, 1.1, "within")))
    assert svg.count("<rect") == 2
    assert svg.count("<circle") == 1
    _, ((inner, narrow), *_) = bars(search(seed_edge(1, 0.1, 1.0, "open")))
    assert (inner, 2 * narrow) == (left, width), "half as wide in log rate"
    assert "1 &lt;sure&gt;" in svg
    assert "within a factor of 1.1" in bracket_words(search(wide))


def test_an_edge_outside_the_range_stands_at_its_end():
    _, ((below, _), (above, _)) = bars(
        search(seed_edge(1, None, 0.01, "below"), seed_edge(2, 100.0, None, "above"))
    )
    assert below < 30
    assert above > 600
    done = search(seed_edge(1, 0.9, 0.95, "within", last=[0.92]), done=True)
    assert "<circle" not in bars(done)[0]
