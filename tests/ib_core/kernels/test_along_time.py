"""The compiled loops along time against torch calls, in float32 and in float64."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ib_core import ImplicitRNN
from ib_core.layers import implicit_rnn
from ib_core.layers.implicit_rnn import MOST_PIECES, deltas, states
from ib_core.updates import ACTIVATIONS

ARCTAN = ACTIVATIONS["arctan"]


def drawn(seed: int, *shape: int, size: float = 1.0) -> torch.Tensor:
    """Heavy tails: a few numbers are a thousand times the others."""
    draw = torch.Generator().manual_seed(seed)
    return size * torch.randn(shape, generator=draw) / torch.rand(shape, generator=draw).clamp(1e-3)


def both_ways(s, grad, recurrent):
    """Return s, h, b and delta of one pass forwards and backwards."""
    s, b = s.clone(), grad.clone()
    h = states(s, recurrent, ARCTAN)
    return s, h, b, deltas(b, ARCTAN.slope(s), recurrent)


def jittered(seed: int, *tensors: torch.Tensor) -> list[torch.Tensor]:
    """Return the tensors in float64, every number moved by up to float32's last bit."""
    draw = torch.Generator().manual_seed(seed)
    last_bit = torch.finfo(torch.float32).eps
    moves = (torch.rand(one.shape, generator=draw, dtype=torch.float64) * 2 - 1 for one in tensors)
    return [one.double() * (1 + last_bit * move) for one, move in zip(tensors, moves, strict=True)]


@given(
    seed=st.integers(0, 2**31),
    time=st.integers(1, 12),
    members=st.integers(1, 3),
    batch=st.integers(1, MOST_PIECES),
    hidden=st.integers(1, 13),
    size=st.sampled_from([1e-3, 0.1, 1.0]),
)
def test_the_loops_give_what_torch_calls_give(seed, time, members, batch, hidden, size):
    s, grad = (drawn(seed + i, time, members, batch, hidden) for i in (0, 1))
    wide = drawn(seed + 2, members, hidden, hidden + 3, size=size)
    ours = both_ways(s, grad, wide[..., 3:])
    wanted = both_ways(s.double(), grad.double(), wide[..., 3:].double())
    moved = [both_ways(*jittered(seed + i, s, grad, wide[..., 3:])) for i in range(4)]
    for part, (found, right) in enumerate(zip(ours, wanted, strict=True)):
        # A chain of products amplifies rounding: inputs that are a last bit apart say how much.
        spread = max((other[part] - right).abs().amax() for other in moved)
        allowed = 32 * spread + 1e-5 * right.abs().amax() + 1e-30
        assert (found - right).abs().amax() <= allowed


@given(st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=50))
def test_its_arctan_is_right_to_two_units_in_the_last_place(numbers):
    s = torch.tensor(numbers).view(1, 1, 1, -1)
    h = states(s, torch.zeros(1, len(numbers), len(numbers)), ARCTAN)
    for x, found in zip(numbers, h.flatten().tolist(), strict=True):
        right = math.atan(x)
        assert abs(found - right) <= max(abs(right) * 2 * 2**-23, 2**-126)
        assert math.copysign(1, found) == math.copysign(1, x)


def test_what_diverged_stays_so():
    s = torch.tensor([math.nan, math.inf, 0.0]).view(1, 1, 1, 3).repeat(2, 1, 1, 1)
    h = states(s, torch.eye(3).unsqueeze(0), ARCTAN)
    assert h[1].isnan().all(), "0 times NaN is NaN, as everywhere"
    assert h[0].isnan().tolist() == [[[True, False, False]]]
    b = torch.full((2, 1, 1, 3), math.inf)
    assert deltas(b, torch.zeros_like(b), torch.eye(3).unsqueeze(0)).isnan().all()


def test_a_member_gets_the_same_bits_in_any_company():
    s, grad, recurrent = drawn(1, 7, 3, 1, 5), drawn(2, 7, 3, 1, 5), drawn(3, 3, 5, 5, size=0.1)
    together = both_ways(s, grad, recurrent)
    for k in range(3):
        alone = both_ways(*(part[:, k : k + 1] for part in (s, grad)), recurrent[k : k + 1])
        for one, among in zip(alone, together, strict=True):
            assert torch.equal(one, among[:, k : k + 1])


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [((4, 1, MOST_PIECES + 1, 3), torch.float32), ((4, 1, 1, 3), torch.float64)],
)
def test_many_pieces_and_float64_are_left_to_torch(shape, dtype):
    assert (
        implicit_rnn._loops(torch.ones(shape, dtype=dtype), torch.ones(1, 3, 3, dtype=dtype))
        is None
    )
    assert implicit_rnn._loops(torch.ones(4, 1, 1, 3), torch.ones(1, 3, 3)) is not None


def test_a_piece_may_be_read_in_parts():
    torch.manual_seed(1)
    layer = ImplicitRNN(4, 5, members=2)
    x = torch.randn(2, 3, 9, 4)
    whole, before, parts = layer(x), None, []
    for part in x.split([2, 1, 6], dim=2):
        parts.append(layer.carry_on(part, before))
        before = parts[-1][..., -1, :]
    torch.testing.assert_close(torch.cat(parts, dim=2), whole)
