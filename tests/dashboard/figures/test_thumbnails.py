"""Small pictures for table cells and forms."""

from urllib.parse import unquote

from backend.schemas import Spark, SparkPoint
from dashboard.figures.thumbnails import (
    HEIGHT,
    PAD,
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
