"""First and best values of packed curves, all at once."""

import math

import numpy as np
import pytest

from backend.services.trials import first_and_best, first_and_chosen
from backend.services.trials.curves import pack, to_columns
from ib_core.sweep.result import CurvePoint

NAN, INF = math.nan, math.inf


def block(*losses: float, first_step: int = 0) -> bytes:
    points = [CurvePoint(first_step + i, i, loss, loss * 2) for i, loss in enumerate(losses)]
    return pack(to_columns(points))[0]


@pytest.mark.parametrize(
    ("losses", "first", "best"),
    [
        ((5.0, 3.0, 4.0), 5.0, 3.0),
        ((1.0, 3.0, 2.0), 1.0, 2.0),  # the initial weights are no result
        ((5.0, NAN, 4.0, INF), 5.0, 4.0),
        ((5.0, NAN, NAN), 5.0, NAN),
        ((5.0, INF), 5.0, NAN),
        ((5.0,), 5.0, NAN),
        ((NAN, 3.0), NAN, 3.0),
    ],
)
def test_one_curve(losses: tuple[float, ...], first: float, best: float) -> None:
    found = first_and_best([block(*losses)], "train_loss", highest=False)
    assert [one.item() for one in found] == pytest.approx([first, best], nan_ok=True)


def test_many_curves_of_different_length_do_not_mix() -> None:
    blocks = [block(9.0, 8.0), None, block(7.0, 1.0, 2.0, 3.0), block(4.0), block(6.0, 5.0)]
    first, best = first_and_best(blocks, "test_loss", highest=False)
    assert first.tolist() == pytest.approx([18, NAN, 14, 8, 12], nan_ok=True)
    assert best.tolist() == pytest.approx([16, NAN, 2, NAN, 10], nan_ok=True)


def test_the_best_may_be_the_highest() -> None:
    _, best = first_and_best([block(9.0, 1.0, 3.0, 2.0)], "train_loss", highest=True)
    assert best.tolist() == [3.0]


def test_a_curve_without_initial_point_has_no_first() -> None:
    first, best = first_and_best([block(4.0, 5.0, first_step=1)], "train_loss", highest=False)
    assert np.isnan(first[0])
    assert best[0] == 4.0


def test_no_curves_at_all() -> None:
    for blocks in ([], [None]):
        first, best = first_and_best(blocks, "train_loss", highest=False)
        assert len(first) == len(best) == len(blocks)


@pytest.mark.parametrize(
    ("held_out", "chosen", "best"),
    [
        ((0.1, 3.0, 1.0, 2.0), 20.0, 1.0),  # the initial weights are no result
        ((9.0, NAN, INF, 2.0), 30.0, 2.0),
        ((9.0, NAN, NAN, NAN), NAN, NAN),
    ],
)
def test_a_value_is_taken_where_the_validation_loss_is_lowest(
    held_out: tuple[float, ...], chosen: float, best: float
) -> None:
    points = [
        CurvePoint(i, i, 1.0, 10.0 * i, validation_loss=loss) for i, loss in enumerate(held_out)
    ]
    blocks = [(None, None), pack(to_columns(points))]
    found = first_and_chosen(blocks, "test_loss", by="validation_loss", highest=False)
    assert [one[1].item() for one in found] == pytest.approx([0.0, chosen, best], nan_ok=True)
    assert all(np.isnan(one[0]) for one in found)
