"""Curves as bytes, and fewer points that tell the same story."""

import math
import zlib

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from backend.services.trials import curves
from ib_core.sweep.result import CurvePoint

numbers = st.floats(allow_nan=True, allow_infinity=True)
losses = st.lists(st.tuples(numbers, numbers), max_size=300)


def columns_of(pairs) -> curves.Floats:
    points = [CurvePoint(i, i / 7, train, test) for i, (train, test) in enumerate(pairs)]
    return curves.to_columns(points)


@given(losses)
def test_every_bit_survives(pairs) -> None:
    columns = columns_of(pairs)
    np.testing.assert_array_equal(curves.unpack(*curves.pack(columns)), columns)


def test_a_missing_accuracy_is_not_zero() -> None:
    columns = curves.to_columns([CurvePoint(0, 0.0, 1.0, 1.0, None, 0.5)])
    read = curves._points_to_read(columns)[0]
    assert (read.train_accuracy, read.test_accuracy) == (None, 0.5)


@given(losses, st.integers(curves.FEWEST_POINTS, 100))
def test_thinning_keeps_the_story(pairs, most) -> None:
    columns = columns_of(pairs)
    thin = curves.thin(columns, most)
    steps = thin[curves.STEP].tolist()
    assert len(steps) == min(len(steps), max(most, 0))
    assert steps == sorted(set(steps))
    if not pairs:
        return
    assert {steps[0], steps[-1]} == {0, len(pairs) - 1} or len(pairs) == 1
    for row in (curves.TRAIN_LOSS, curves.TEST_LOSS):
        finite = columns[row][np.isfinite(columns[row])]
        if finite.size:
            kept = thin[row][np.isfinite(thin[row])]
            assert (kept.min(), kept.max()) == (finite.min(), finite.max())
    broken = [i for i, pair in enumerate(pairs) if not all(map(math.isfinite, pair))]
    assert not broken or broken[0] in steps


def test_a_short_curve_is_left_alone() -> None:
    columns = columns_of([(1.0, 1.0)] * 8)
    assert curves.thin(columns, 8) is columns


def test_a_spike_between_two_kept_points_stays_visible() -> None:
    pairs = [(1.0, 1.0)] * 1000
    pairs[500] = (1.5, 1.0)
    pairs[100] = (2.0, 1.0)
    thin = curves.thin(columns_of(pairs), 50)
    assert {100, 500} <= set(thin[curves.STEP].tolist())


def test_an_empty_curve_is_a_curve() -> None:
    assert curves._points_to_read(curves.unpack(*curves.pack(columns_of([])))) == []


def test_losses_on_held_out_rows_stand_in_a_block_of_their_own() -> None:
    points = [CurvePoint(0, 0.0, 1.0, 1.0), CurvePoint(1, 0.5, 0.5, 0.6, None, None, 0.7, 0.8)]
    without, held_out = (curves.to_columns(some) for some in (points[:1], points))
    assert curves.pack(without)[1] is None
    data, validation = curves.pack(held_out)
    assert validation is not None
    np.testing.assert_array_equal(curves.unpack(data, validation), held_out)
    read = curves._points_to_read(held_out)
    assert [(p.validation_loss, p.validation_accuracy) for p in read] == [(None, None), (0.7, 0.8)]


def test_a_block_of_before_still_opens() -> None:
    """As curves were packed while there were six columns."""
    six = np.arange(12, dtype="<f8").reshape(6, 2)
    found = curves.unpack(zlib.compress(six.tobytes(), level=1))
    np.testing.assert_array_equal(found[:6], six)
    assert np.isnan(found[6:]).all()
