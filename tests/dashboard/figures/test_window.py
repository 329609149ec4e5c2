"""What of a path stays in the picture."""

import pytest

from dashboard.figures.window import Window, visible_path

UNIT = Window(left=0.0, right=1.0, bottom=0.0, top=1.0)


def test_a_line_that_stays_inside_is_not_cut() -> None:
    assert UNIT.cut((0.1, 0.2), (0.9, 0.8)) == ((0.1, 0.2), (0.9, 0.8))


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        ((0.5, 0.5), (2.5, 0.5), ((0.5, 0.5), (1.0, 0.5))),
        ((-1.0, 0.5), (2.0, 0.5), ((0.0, 0.5), (1.0, 0.5))),
        ((0.5, 0.5), (0.5, -1.0), ((0.5, 0.5), (0.5, 0.0))),
        ((0.0, 0.0), (2.0, 4.0), ((0.0, 0.0), (0.5, 1.0))),
        ((-1.0, 2.0), (2.0, 2.0), None),
        ((-1.0, 0.5), (0.5, 3.0), None),
    ],
)
def test_a_line_is_cut_at_the_edge(
    start: tuple[float, float],
    end: tuple[float, float],
    expected: tuple[tuple[float, float], tuple[float, float]] | None,
) -> None:
    assert UNIT.cut(start, end) == expected


def test_a_flat_line_gets_some_height() -> None:
    window = Window.around([0.0, 1.0], [2.0, None, 2.0][:2])
    assert window.bottom < 2.0 < window.top


def test_a_path_that_leaves_says_when_and_is_drawn_to_the_edge() -> None:
    path = visible_path(UNIT, [0.5, 0.8, 1.4, 9.0], [0.5, 0.5, 0.5, 0.5])
    assert [step for step, _ in path.dots] == [0, 1]
    assert path.exits == [(2, (0.8, 0.5), pytest.approx((1.0, 0.5)))]
    assert (path.left_at, path.returns) == (2, False)


def test_a_path_that_comes_back_is_drawn_again() -> None:
    path = visible_path(UNIT, [0.5, 1.5, 0.6], [0.5, 0.5, 0.5])
    assert [step for step, _ in path.dots] == [0, 2]
    assert [step for step, _, _ in path.lines] == [1, 2]
    assert (path.left_at, path.returns) == (1, True)


def test_a_leap_across_the_picture_between_two_points_outside_is_not_drawn() -> None:
    path = visible_path(UNIT, [0.5, 1.5, -1.5, 2.5], [0.5] * 4)
    assert [step for step, _, _ in path.lines] == [1]


def test_a_step_to_infinity_leaves_the_picture() -> None:
    path = visible_path(UNIT, [0.5, None, None], [0.5, None, None])
    assert path.left_at == 1
    assert path.lines == []
