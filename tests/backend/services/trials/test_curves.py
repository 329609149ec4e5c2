"""Curves as bytes, and fewer points that tell the same story."""

import math
import zlib

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select

from backend.models import TrialRow
from backend.services import trials
from backend.services.trials import curves
from ib_core.sweep.result import CurvePoint
from tests.factories import submit, train_all

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


def test_only_methods_on_the_same_network_stand_beside_a_trial(session) -> None:
    """A width or a held-out share makes another network; a momentum is the method's own."""
    one = {"task": "digits_mlp", "learning_rates": (0.1,), "seeds": (1,)}
    methods = ("eb", "eb(schedule=cosine)", "adam(schedule=cosine)", "ib", "momentum")
    for options in ({"width": 8}, {"width": 8, "validation": 0.2}, {"width": 16}):
        train_all(session, submit(session, **one, methods=methods, options=options))
    nested = {"width": 8, "momentum": 0.5}
    train_all(session, submit(session, **one, methods=("momentum",), options=nested))
    train_all(
        session, submit(session, **one, methods=("ib",), batch_rule="share", options={"width": 8})
    )
    wide = select(TrialRow).where(TrialRow.options["width"].as_integer() == 8)
    narrow = [row for row in session.scalars(wide) if not row.options.get("validation")]
    ids = {(row.method, row.batch_rule, row.options["momentum"]): row.id for row in narrow}
    cosine = next(row for row in narrow if row.method == "eb(schedule=cosine)")
    found = trials.recording(session, trial_id=cosine.id).beside
    assert {one.trial_id for one in found} == {row.id for row in narrow} - {cosine.id}
    assert [one.method for one in found] == [
        "adam(schedule=cosine)",
        *("ib", "ib", "momentum", "momentum"),
        "eb",
    ]
    beside_ib = trials.recording(session, trial_id=ids["ib", "own", None]).beside
    assert beside_ib[0].method == "eb"
    assert beside_ib[-1].trial_id == ids["ib", "share", None]
