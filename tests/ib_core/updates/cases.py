"""The family of cases every rule is tried on: one row an activation, one strategy of nodes."""

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from hypothesis import strategies as st
from torch import Tensor

from ib_core.updates import ACTIVATIONS, ALPHA_RULES, APPROXIMATION_ERROR, APPROXIMATIONS, AlphaRule

Function = Callable[[Tensor], Tensor]

DTYPES = (torch.float32, torch.float64)


class RuleCase(NamedTuple):
    """A rule and the function it minimises eq. (8) for: the activation or its approximation."""

    name: str
    rule: AlphaRule
    sigma: Function
    slope_range: tuple[float, float]
    #: The activation as torch has it, or in the plainest words.
    torchs: Function
    kinks: tuple[float, ...] = ()
    #: How far the slopes are from the activation's own, and the size of the numbers that the
    #: pieces' values are made of; both 0 if the rule is the activation's own.
    slope_error: float = 0.0
    height: float = 0.0


def _case(name: str, torchs: Function, kinks: tuple[float, ...] = ()) -> RuleCase:
    if name in APPROXIMATIONS:
        curve, error = APPROXIMATIONS[name], APPROXIMATION_ERROR[name]
        rule, slopes = ALPHA_RULES[name], curve.slope_range
        return RuleCase(
            name, rule, curve.value, slopes, torchs, slope_error=error.slope, height=1.0
        )
    activation = ACTIVATIONS[name]
    return RuleCase(
        name, ALPHA_RULES[name], activation.value, activation.slope_range, torchs, kinks
    )


#: Rules that reach the lowest value of eq. (8); arctan's takes the root nearest zero instead.
LOWEST = (
    _case("linear", lambda s: s),
    _case("relu", F.relu, kinks=(0.0,)),
    _case("leaky_relu", F.leaky_relu, kinks=(0.0,)),
    _case("hardtanh", F.hardtanh, kinks=(-1.0, 1.0)),
    _case("smoothstep", lambda s: (3 * s.clamp(-1, 1) - s.clamp(-1, 1) ** 3) / 2),
    _case("tanh", F.tanh),
    _case("sigmoid", F.sigmoid),
    _case("gelu", F.gelu),
    _case("silu", F.silu),
    _case("softplus", F.softplus),
    _case("elu", F.elu),
)
EVERY = (*LOWEST, _case("arctan", torch.arctan))


class Nodes(NamedTuple):
    """Flat tensors of nodes, in the order of a rule's arguments."""

    s: Tensor
    b: Tensor
    z_sq: Tensor
    lr: Tensor
    mu: Tensor

    def to(self, dtype: torch.dtype) -> "Nodes":
        return Nodes(*(x.to(dtype) for x in self))

    @property
    def shrink(self) -> Tensor:
        return 1 + self.lr * self.mu

    @property
    def k(self) -> Tensor:
        return self.lr * self.z_sq


def _signed(magnitudes: st.SearchStrategy[float]) -> st.SearchStrategy[float]:
    return st.builds(lambda size, sign: sign * size, magnitudes, st.sampled_from([-1.0, 1.0]))


def _decades(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high).map(lambda exponent: 10.0**exponent)


#: Numbers near zero and zero, but none so small that float32 would lose digits of it.
SMALL = st.floats(-6, 6).map(lambda x: round(x, 6))
RATES = _decades(-8, 8)
RIDGES = st.one_of(st.just(0.0), st.floats(0, 10))
NORMS = _decades(-3, 4)
# Made once: a strategy that is made anew for every number costs more than the rule under test.
ANY_S = st.one_of(st.just(0.0), SMALL, _signed(_decades(-6, 30)))
ANY_B = st.one_of(st.just(0.0), SMALL, _signed(_decades(-6, 10)))
TELLING_B = _signed(_decades(-2, 3))


@st.composite
def _any_node(draw: st.DrawFn) -> tuple[float, ...]:
    """A node of heavy-tailed s and b at any rate; s may be huge, s and b may be 0."""
    return draw(ANY_S), draw(ANY_B), draw(NORMS), draw(RATES), draw(RIDGES)


@st.composite
def _telling_node(draw: st.DrawFn) -> tuple[float, ...]:
    """A node whose longest step, at whatever rate, is about as long as sigma's bends are wide."""
    c = draw(SMALL)
    beta = draw(TELLING_B)
    z_sq, lr, mu = draw(NORMS), draw(RATES), draw(RIDGES)
    shrink = 1 + lr * mu
    return c * shrink, beta * shrink / (lr * z_sq), z_sq, lr, mu


def _as_nodes(rows: list[tuple[float, ...]]) -> Nodes:
    """Columns of numbers that float32 holds exactly, so that every dtype solves the same nodes."""
    return Nodes(*torch.tensor(rows, dtype=torch.float32).double().unbind(-1))


def nodes(max_size: int = 8) -> st.SearchStrategy[Nodes]:
    """Between one and ``max_size`` nodes."""
    row = st.one_of(_any_node(), _telling_node())
    return st.lists(row, min_size=1, max_size=max_size).map(_as_nodes)


def ordinary_nodes(count: int, seed: int = 0) -> Nodes:
    """Many nodes as training meets them: s and b of order one, rates from 1e-3 to 1e3."""
    generator = torch.Generator().manual_seed(seed)

    def normal() -> Tensor:
        return torch.randn(count, generator=generator, dtype=torch.float64)

    lr = 10 ** (6 * torch.rand(count, generator=generator, dtype=torch.float64) - 3)
    return (
        Nodes(2 * normal(), normal(), normal() ** 2 + 1, lr, normal() ** 2)
        .to(torch.float32)
        .to(torch.float64)
    )
