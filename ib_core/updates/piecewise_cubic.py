"""The rule for any piecewise-cubic activation, O(pieces) (Sec. 4.4).

With ``c = s/h``, ``h = 1 + lr*mu`` and ``beta = b*lr*|z|^2/h``, eq. (8) asks for the lowest

    phi(q) = beta*sigma(q) + (c - q)^2/2,    alpha = share*b/h,    share = (c - q)/beta,

over the pre-activation q after the step. On one piece phi is a cubic with at most one local
minimum; between pieces a minimum can only sit in a kink. Those few points are compared. Three
things keep this sound in float32, for huge s, for tiny rates and for enormous ones:

* the share is also the slope where the step lands, sigma'(q), and is read off as that slope for
  |beta| < 1, where the difference c - q is inaccurate, and from that difference beyond;
* a piece is a candidate only if phi falls at its left end and not at its right one, or if the
  minimum lies inside it. The values of phi, whose differences drown in rounding at tiny rates,
  then decide only between several minima, and those exist at large steps only;
* everything is divided by 1 + |beta| + |c|, so that nothing overflows.

A piece is measured from its flattest point, an inflection or the flatter end. If phi is concave
there it is concave on the whole piece, which then has no minimum; if not, the distance of the
minimum, ``2G/(P + sqrt(P^2 + 12*f*beta*G))`` with G = -phi', P = phi'' and f the coefficient of
the cube, has no cancellation.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from ib_core.errors import InvalidSpec
from ib_core.updates.node import Scalar, divided_, read_node, reciprocal_travel

#: A curvature that changes a piece's slope by less than this is none.
FLAT = 1e-12


class Knot(NamedTuple):
    """A breakpoint with the function's value there and its slope on either side."""

    x: float
    value: float
    left_slope: float
    right_slope: float


@dataclass(frozen=True)
class PiecewiseCubic:
    """A continuous function of cubic pieces between knots and of straight lines outside them.

    A piece is fixed by the values and slopes at its two ends (Hermite); the two outer lines go on
    with the outermost slopes. A knot whose slopes differ is a kink.
    """

    knots: tuple[Knot, ...]

    def __post_init__(self) -> None:
        xs = [knot.x for knot in self.knots]
        if not xs or any(a >= b for a, b in pairwise(xs)):
            raise InvalidSpec(f"A piecewise cubic needs knots in increasing order, got {xs}.")

    @cached_property
    def slope_range(self) -> tuple[float, float]:
        """The lowest and the highest slope: on a piece those are at its ends or its inflection."""
        slopes = [slope for knot in self.knots for slope in (knot.left_slope, knot.right_slope)]
        slopes += [flattest_point(left, right).m for left, right in pairwise(self.knots)]
        return min(slopes), max(slopes)

    def table(self) -> tuple[tuple[float, ...], ...] | None:
        """Return the pieces as rows of numbers; None with kinks or flat pieces.

        A row is x0, y, m, e, f, low/2, high/2 of the piece's expansion, then x and slope of the
        knot on its right. The first row is the line on the left, of which only y, m and the knot
        count.
        """
        if any(knot.left_slope != knot.right_slope for knot in self.knots):
            return None
        first, last = self.knots[0], self.knots[-1]
        rows: list[tuple[float, ...]] = [
            (0, first.value, first.left_slope, 0, 0, 0, 0, first.x, first.left_slope)
        ]
        for left, right in pairwise(self.knots):
            x0, y, m, e, f, low, high = flattest_point(left, right)
            if abs(e) * (high - low) < FLAT and abs(f) * (high - low) ** 2 < FLAT:
                return None
            rows.append((x0, y, m, e, f, low / 2, high / 2, right.x, right.left_slope))
        rows.append((0, last.value, last.right_slope, 0, 0, 0, 0, last.x, last.right_slope))
        return tuple(rows)

    def value(self, x: Tensor) -> Tensor:
        """Return sigma(x), element by element."""
        y, m, e, f, u = self._expanded_at(x)
        return y + u * (m + u * (e + u * f))

    def slope(self, x: Tensor) -> Tensor:
        """Return sigma'(x), in a kink the slope on its right."""
        _, m, e, f, u = self._expanded_at(x)
        return m + u * (2 * e + u * 3 * f)

    @torch.no_grad()
    def alpha(self, s: Tensor, b: Tensor, z_sq: Tensor, lr: Scalar, mu: Scalar = 0.0) -> Tensor:
        """Return the alpha of the lowest value of eq. (8), in a tie the smaller one.

        Args:
            s: theta^T z before the step, [..., batch, out].
            b: Gradient of the loss at the node's output, [..., batch, out].
            z_sq: Squared norm of the layer's input, bias included, [..., batch, 1].
            lr: Learning rate, a number or a tensor that broadcasts.
            mu: Ridge strength, a number or a tensor that broadcasts.
        """
        s, b, k, shrink = read_node(s, b, z_sq, lr, mu)
        problem = _Problem.scaled(s / shrink, b * (k / shrink))
        best = _Best.nothing_yet(problem)
        for candidate in _candidates(self.knots, problem):
            best.consider(candidate)
        alpha = divided_(best.slope.mul_(b), shrink)
        # The same alpha twice: the slope's share of b, and the step over k. See above for which.
        large = torch.ge(problem.beta.abs(), problem.unit, out=torch.empty_like(alpha))
        alpha.addcmul_(alpha, large, value=-1)
        return alpha.addcmul_(best.step.div_(problem.unit), large.mul_(reciprocal_travel(k)))

    def _expanded_at(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return each element's polynomial coefficients and its distance from their origin."""
        first, last = self.knots[0], self.knots[-1]
        rows = [(first.value, first.left_slope, 0.0, 0.0, first.x)]
        rows += [(a.value, a.right_slope, *_bend(a, b), a.x) for a, b in pairwise(self.knots)]
        rows += [(last.value, last.right_slope, 0.0, 0.0, last.x)]
        edges = torch.tensor([knot.x for knot in self.knots], dtype=torch.float64)
        piece = torch.bucketize(x.detach().contiguous(), edges.to(x), right=True)
        *coefficients, origin = torch.tensor(rows, dtype=torch.float64).to(x)[piece].unbind(-1)
        return (*coefficients, x - origin)


def _bend(left: Knot, right: Knot) -> tuple[float, float]:
    """Return e and f of ``y + m*u + e*u^2 + f*u^3`` between two knots, u measured from the left."""
    width = right.x - left.x
    rise = (right.value - left.value) / width
    e = (3 * rise - 2 * left.right_slope - right.left_slope) / width
    f = (left.right_slope + right.left_slope - 2 * rise) / width**2
    return e, f


class _Expansion(NamedTuple):
    """A piece as ``y + m*u + e*u^2 + f*u^3`` with ``u = x - x0`` between ``low`` and ``high``."""

    x0: float
    y: float
    m: float
    e: float
    f: float
    low: float
    high: float


def flattest_point(left: Knot, right: Knot) -> _Expansion:
    """Return the piece between two knots expanded about the point where it curves least."""
    width = right.x - left.x
    e, f = _bend(left, right)
    if e * (e + 3 * f * width) < 0:
        u = -e / (3 * f)
        m, y = left.right_slope + u * e, left.value + u * (left.right_slope + u * (e + u * f))
        return _Expansion(left.x + u, y, m, 0.0, f, -u, width - u)
    if abs(e) <= abs(e + 3 * f * width):
        return _Expansion(left.x, left.value, left.right_slope, e, f, 0.0, width)
    return _Expansion(right.x, right.value, right.left_slope, e + 3 * f * width, f, -width, 0.0)


class _Problem(NamedTuple):
    """c and beta of every node, divided by 1 + |beta| + |c|; ``unit`` is what 1 became.

    phi is then divided by the square, and beta*sigma becomes ``weight*sigma``.
    """

    c: Tensor
    beta: Tensor
    unit: Tensor
    weight: Tensor

    @classmethod
    def scaled(cls, c: Tensor, beta: Tensor) -> "_Problem":
        largest = torch.finfo(c.dtype).max / 4
        beta.clamp_(-largest, largest)
        # In quarters, because twice the largest number is infinite.
        unit = beta.abs().mul_(0.25).add_(c.abs(), alpha=0.25).add_(0.25).reciprocal_().mul_(0.25)
        beta.mul_(unit)
        return cls(c * unit, beta, unit, beta * unit)

    def step_to(self, x: float) -> Tensor:
        """Return the step c - q that lands on q = x."""
        return torch.add(self.c, self.unit, alpha=-x)

    def end(self, x: float, slope: float) -> "_End":
        """Return -phi' at x, approached along the given slope, and where it is positive."""
        descent = self.step_to(x).add_(self.beta, alpha=-slope)
        return _End(descent, torch.gt(descent, 0, out=torch.empty_like(descent)))

    def phi(self, sigma: Tensor | float, step: Tensor) -> Tensor:
        """Return phi, a little more for the longer of two steps: so ties go to the shorter."""
        half = 0.5 + 4 * torch.finfo(step.dtype).eps
        return (self.weight * sigma).addcmul_(step, step, value=half)


class _End(NamedTuple):
    """One end of a piece: G = -phi' there, and 1 where phi falls to the right, else 0."""

    descent: Tensor
    falls: Tensor


class _Candidate(NamedTuple):
    """A point of every node that may be its minimum.

    Attributes:
        valid: 1 where it is a minimum, else 0.
        phi: Value of phi there.
        step: Scaled displacement c - q that leads there.
        slope: Slope of sigma there.
    """

    valid: Tensor
    phi: Tensor
    step: Tensor
    slope: Tensor


class _Best(NamedTuple):
    """The best candidate so far of every node."""

    phi: Tensor
    step: Tensor
    slope: Tensor

    @classmethod
    def nothing_yet(cls, problem: _Problem) -> "_Best":
        # Not 0 but 0*c: where an input is NaN no candidate is ever better, and NaN it stays.
        nothing = (problem.c + problem.beta).mul_(0)
        highest = torch.full_like(nothing, torch.finfo(nothing.dtype).max / 4)
        return cls(highest, nothing, nothing.clone())

    def consider(self, candidate: _Candidate) -> None:
        """Move to the candidate where it is valid and lower."""
        valid, phi, step, slope = candidate
        better = torch.gt(self.phi, phi, out=torch.empty_like(phi)).mul_(valid)
        self.phi.lerp_(phi, better)
        self.step.lerp_(step, better)
        self.slope.lerp_(slope, better)


def _candidates(knots: tuple[Knot, ...], problem: _Problem) -> Iterator[_Candidate]:
    """Yield the line on the left, then every kink and piece up to the line on the right."""
    first, last = knots[0], knots[-1]
    end = problem.end(first.x, first.left_slope)
    yield _on_line(problem, first, first.left_slope, end, 1 - end.falls)
    for left, right in zip(knots, (*knots[1:], None), strict=True):
        start = end
        if left.left_slope != left.right_slope:
            start = problem.end(left.x, left.right_slope)
            yield _in_kink(problem, left, end, start)
        if right is not None:
            end = problem.end(right.x, right.left_slope)
            yield _on_piece(problem, left, right, start, end)
    yield _on_line(problem, last, last.right_slope, start, start.falls)


def _between(start: _End, end: _End) -> Tensor:
    """Return 1 where phi falls at the start and not at the end, so has a minimum between them."""
    return torch.addcmul(start.falls, start.falls, end.falls, value=-1)


def _on_line(
    problem: _Problem, knot: Knot, slope: float, at_knot: _End, valid: Tensor
) -> _Candidate:
    """Return the minimum of the parabola that phi is on a straight part."""
    # sigma at the landing, in the problem's unit: it may be as large as c.
    sigma = torch.add(problem.unit * knot.value, at_knot.descent, alpha=slope)
    step = problem.beta * slope
    half = 0.5 + 4 * torch.finfo(step.dtype).eps
    phi = sigma.mul_(problem.beta).addcmul_(step, step, value=half)
    return _Candidate(valid, phi, step, step.new_tensor(slope).expand_as(step))


def _in_kink(problem: _Problem, knot: Knot, before: _End, after: _End) -> _Candidate:
    """Return the kink itself: a minimum where phi falls before and not after it."""
    low, high = sorted((knot.left_slope, knot.right_slope))
    step = problem.step_to(knot.x)
    slope = (step / problem.beta).nan_to_num_(nan=0.0).clamp_(low, high)
    return _Candidate(_between(before, after), problem.phi(knot.value, step), step, slope)


def _on_piece(problem: _Problem, left: Knot, right: Knot, start: _End, end: _End) -> _Candidate:
    """Return the one local minimum that phi can have on a piece."""
    x0, y, m, e, f, low, high = flattest_point(left, right)
    if abs(e) * (high - low) < FLAT and abs(f) * (high - low) ** 2 < FLAT:
        return _on_line(problem, left, left.right_slope, start, _between(start, end))
    g = problem.step_to(x0).add_(problem.beta, alpha=-m)
    p = torch.add(problem.unit, problem.beta, alpha=2 * e).clamp_(min=0)
    root = torch.mul(p, p).addcmul_(problem.beta, g, value=12 * f)
    # Half the distance from x0; NaN, which equals nothing, if there is no minimum.
    exact = g.div_(p.addcmul_(root, root.rsqrt()))
    half_u = torch.clamp(exact, low / 2, high / 2, out=root)
    inside = torch.eq(exact, half_u, out=exact)
    valid = torch.maximum(inside, _between(start, end), out=inside)
    half_u.nan_to_num_(nan=0.0)
    one = half_u.new_ones(())
    landing = torch.add(one * x0, half_u, alpha=2)
    step = torch.addcmul(problem.c, problem.unit, landing, value=-1, out=landing)
    bend = torch.add(one * (4 * e), half_u, alpha=12 * f, out=p)
    slope = torch.addcmul(one * m, half_u, bend)
    bend = torch.add(one * (4 * e), half_u, alpha=8 * f, out=bend)
    sigma = torch.addcmul(one * (2 * m), half_u, bend, out=bend)
    torch.addcmul(one * y, half_u, sigma, out=sigma)
    return _Candidate(valid, problem.phi(sigma, step), step, slope)
