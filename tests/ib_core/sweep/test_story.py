"""The story of hand-made recordings, and what is kept of them."""

import math

import numpy as np
import pytest

from ib_core.sweep import Recording, Wish, recording_answer, tell
from ib_core.sweep.recording import MOST_STEPS


def recorded(losses, weights=None, *, rate=1.0, sharp=(), steps=None, damping=None) -> Recording:
    """Return a recording of these losses and of the layers' norms, one list a layer."""
    count = len(losses)
    weights = np.ones((count, 2)) if weights is None else np.array(weights, dtype=float).T
    layers = weights.shape[1]
    nothing = np.full((count, layers), np.nan)
    damped = nothing if damping is None else np.full((count, layers), float(damping))
    steps = range(count) if steps is None else steps
    columns = [np.array([*steps], dtype=float), np.array(losses, dtype=float), np.full(count, rate)]
    rows = np.concatenate([np.stack(columns, axis=1), weights, nothing, nothing, damped], axis=1)
    names = tuple(f"layers.{place}" for place in range(layers))
    return Recording(names, rows, np.array(sharp, dtype=float).reshape(-1, 2))


CALM = [2.0] * 12


def test_an_explosion_is_told_with_its_layer_its_steps_and_its_sharpness() -> None:
    second = [1.0] * 13 + [5.0, 20.0, 40.0]
    found = tell(
        recorded([*CALM, 2.1, 3.0, 50.0, 900.0], [[1.0] * 16, second], sharp=[(0, 1.0), (12, 9.8)])
    )
    assert found.broke_at == 14
    assert "Layer 2's weights grew 40-fold between steps 12 and 15." in found.sentences
    assert "Sharpness 9.8 was above 2/rate = 2 at step 12." in found.sentences
    assert "above 5 times the initial 2 at step 14: 50, after 3 at step 13" in found.text


def test_what_never_breaks_is_told_so() -> None:
    found = tell(recorded([2.0, 1.5, 1.0, 0.5], rate=0.1, sharp=[(0, 3.0)]))
    assert found.broke_at is None
    assert found.growth is None
    assert found.text == (
        "It never broke: the loss went from 2 to 0.5 in 3 steps. No layer's weights doubled. "
        "Sharpness 3 was below 2/rate = 20 at step 0."
    )


def test_what_holds_above_two_over_the_rate_is_told_with_its_damping() -> None:
    found = tell(recorded([2.0, 1.5, 1.0], rate=10.0, sharp=[(2, 4.0)], damping=0.25))
    assert "above 2/rate = 0.2 at step 2, where plain gradient steps grow." in found.text
    assert "damped most: on average to 0.25 of the explicit ones." in found.text


def test_two_over_the_rate_is_said_only_where_steps_are_plain() -> None:
    recording = recorded([2.0, 1.5, 1.0], rate=10.0, sharp=[(2, 4.0)])
    for method in ("eb(schedule=cosine)", "ib", "ib_plus"):
        assert "2/rate = 0.2" in tell(recording, method=method).text
    for method in ("sps", "ngn", "adam(warmup=5)", "momentum", "torch.optim.SGD", "mine.py:sgd"):
        found = tell(recording, method=method)
        assert "2/rate" not in found.text
        assert (found.sharpness, found.edge) == (4.0, None)


def test_nan_at_once_is_told() -> None:
    found = tell(recorded([2.0, math.nan], [[1.0, math.nan], [1.0, 1.0]]))
    assert found.broke_at == 1
    assert "stopped being a finite number at step 1; at step 0 it was 2." in found.text
    assert "Layer 1's weights stopped being finite between steps 0 and 1." in found.text


def test_a_loss_that_was_never_finite_is_told() -> None:
    found = tell(recorded([math.nan, math.nan]))
    assert found.sentences[0] == "Its loss was not a finite number before the first step."


def test_a_slow_growth_is_called_slow() -> None:
    weights = np.geomspace(1, 12, 400)
    losses = np.geomspace(2, 30, 400)
    found = tell(recorded(losses, [weights, np.ones(400)]))
    assert found.growth is not None
    assert not found.growth.quick
    assert "slowly" in found.text


def test_the_layer_that_explodes_first_is_named_though_another_grows_more() -> None:
    losses = [*CALM, 2.0, 2.0, 100.0, 1e4]
    early = [1.0] * 12 + [3.0, 9.0, 20.0, 30.0]
    late = [1.0] * 14 + [50.0, 5e3]
    found = tell(recorded(losses, [late, early]))
    assert found.growth is not None
    assert found.growth.layer == 1


def test_one_bad_batch_is_no_break() -> None:
    losses = [2.0, 1.0, 40.0, *[1.0] * 30]
    assert recorded(losses).break_row() is None
    assert recorded([2.0, 1.0, 40.0, 60.0, 80.0]).break_row() == 2
    assert recorded([-1.0, -2.0, -3.0]).break_row() is None
    assert recorded([-1.0, -2.0, float("nan")]).break_row() == 2


def test_a_trial_that_breaks_and_comes_back_is_told_to_have_come_back() -> None:
    broken = [2.0, 1.0, *[60.0] * 30]
    told = "It came back below the initial loss, to 0.5 in the end."
    assert told in tell(recorded([*broken, *[1.5] * 4, 0.5])).sentences
    for end in ([1.5] * 3 + [0.5], [1.5, 1.5, 2.5, 1.5, 0.5], [1.5] * 4 + [math.nan], []):
        assert "came back" not in tell(recorded([*broken, *end])).text
    assert "came back" not in tell(recorded([2.0, 1.5, 1.0, 0.5, 0.4, 0.3, 0.2])).text


def test_batches_that_were_as_high_before_it_broke_for_good_are_told() -> None:
    early = [2.0, 40.0, *[1.0] * 30, 50.0, 60.0, 70.0]
    found = tell(recorded(early))
    assert found.broke_at == 32
    assert "Single batches' had been as high, the first at step 1." in found.sentences
    assert "had been as high" not in tell(recorded([2.0, 1.0, 50.0, 60.0])).text


def test_what_diverged_between_batches_is_not_called_sound() -> None:
    found = tell(recorded([2.0, 3.0, 4.0]), diverged_at=2)
    assert found.sentences[0].startswith("It diverged")


def test_nothing_recorded_is_told() -> None:
    assert tell(recorded([2.0])).sentences == ("Nothing was recorded of its steps.",)


def test_bytes_give_the_recording_back_and_damaged_ones_are_refused() -> None:
    made = recorded([2.0, 1e39, math.nan, math.inf], sharp=[(0, 3.5)])
    again = Recording.from_bytes(made.to_bytes())
    assert again.layers == made.layers
    assert again.losses.tolist()[0] == 2.0
    assert math.isinf(again.losses[1])  # more than a float32 holds
    assert math.isnan(again.losses[2])
    assert again.sharp.tolist() == [[0.0, 3.5]]
    for bad in (b"", b"nonsense", made.to_bytes()[:-9]):
        with pytest.raises(ValueError, match="no recording"):
            Recording.from_bytes(bad)


def test_a_screen_gets_fewer_rows_with_the_break_among_them() -> None:
    losses = [2.0] * 300 + [1e3] * 100
    thin = recorded(losses).thin(60)
    assert len(thin.rows) <= 60
    assert {0, 299, 300, 399} <= set(thin.steps.tolist())
    answer = recording_answer(thin)
    assert len(answer["weights"]) == 2
    assert len(answer["weights"][0]) == len(answer["steps"])
    assert answer["damping"][0][0] is None


@pytest.mark.parametrize("total", [1, 17, 400, 401, 5000, 10**6])
@pytest.mark.parametrize("around", [None, 1, 200, 900])
def test_at_most_so_many_steps_are_kept_the_last_and_those_around_the_break(total, around) -> None:
    around = None if around is None else min(around, total)
    kept = Wish(around=around).steps(total)
    assert len(kept) <= MOST_STEPS
    assert kept <= set(range(1, total + 1))
    assert total in kept
    if around is not None:
        window = range(max(1, around - 150), min(total, around + 50) + 1)
        assert set(window) <= kept
