"""The methods the field compares, each against its formula read once more, one model at a time."""

from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from ib_core import METHODS, Member, build_optimizer
from ib_core.methods.proxprop import solved_rows
from ib_core.tasks.networks import StackedMLP

WIDTHS = (4, 6, 5, 3)
STEPS = 6


def batches(steps=STEPS):
    draw = torch.Generator().manual_seed(5)
    for _ in range(steps):
        x = 2 * torch.randn(7, 4, generator=draw, dtype=torch.float64)
        yield x, torch.randint(0, 3, (7,), generator=draw)


def start():
    torch.manual_seed(2)
    return StackedMLP(WIDTHS, "arctan", "linear", 1).double()


def by_the_product(member):
    """Train a stack of one; return its parameters, flat, and the losses before each step."""
    model, losses = start(), []
    optimizer = build_optimizer(model, [member], output_loss="cross_entropy")
    for x, y in batches():

        def closure(x=x, y=y):
            loss = F.cross_entropy(model(x.unsqueeze(0))[0], y)
            loss.backward()
            return loss.detach().unsqueeze(0)

        losses.append(optimizer.step(closure).item())
    return torch.cat([p.detach().flatten() for p in model.parameters()]), losses


def loss_of(flat, x, y):
    """The network written out on one flat vector."""
    at = 0
    for i, (n, m) in enumerate(pairwise(WIDTHS)):
        weight = flat[at : at + n * m].view(m, n)
        at += n * m
        bias = flat[at : at + m]
        at += m
        x = x @ weight.T + bias
        x = torch.atan(x) if i < len(WIDTHS) - 2 else x
    return F.cross_entropy(x, y)


def gradient(theta, x, y):
    flat = theta.clone().requires_grad_()
    loss = loss_of(flat, x, y)
    loss.backward()
    return loss.item(), flat.grad


def sps(theta, lr, _, state):
    f, g = yield theta
    while True:
        theta = theta - min(lr, f / (g @ g).item()) * g
        f, g = yield theta


def ngn(theta, lr, _, state):
    f, g = yield theta
    while True:
        theta = theta - lr / (1 + lr / (2 * f) * (g @ g)) * g
        f, g = yield theta


def ngn_m(theta, lr, m, state):
    old = theta
    f, g = yield theta
    while True:
        rate = lr / (1 + lr / (2 * f) * (g @ g))
        theta, old = theta - (1 - m) * rate * g + m * (theta - old), theta
        f, g = yield theta


def momo(theta, lr, m, state):
    f, g = yield theta
    d, fbar, gbar = g, f, (g @ theta).item()
    while True:
        height = fbar + (d @ theta).item() - gbar
        theta = theta - min(lr, max(height, 0) / (d @ d).item()) * d
        f, g = yield theta
        d, fbar = m * d + (1 - m) * g, m * fbar + (1 - m) * f
        gbar = m * gbar + (1 - m) * (g @ theta).item()


@pytest.mark.parametrize("lr", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("formula", [sps, ngn, ngn_m, momo])
def test_a_method_steps_as_its_paper_writes(formula, lr):
    member = Member(formula.__name__, lr, momentum=0.7)
    ours, losses = by_the_product(member)
    theta = torch.cat([p.detach().flatten() for p in start().parameters()])
    walk = formula(theta, lr, 0.7, {})
    theta = next(walk)
    for (x, y), known in zip(batches(), losses, strict=True):
        f, g = gradient(theta, x, y)
        assert f == pytest.approx(known, rel=1e-9)
        theta = walk.send((f, g))
    torch.testing.assert_close(ours, theta, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("method", ["sps", "ngn"])
def test_what_cuts_its_rate_is_eb_at_a_small_one_and_stays_bounded_at_a_huge_one(method):
    explicit, _ = by_the_product(Member("eb", 1e-6))
    careful, _ = by_the_product(Member(method, 1e-6))
    torch.testing.assert_close(careful, explicit, rtol=1e-4, atol=1e-9)
    _, losses = by_the_product(Member(method, 1e6))
    assert max(losses) < 50


def test_a_loss_of_zero_or_below_is_where_these_methods_stop():
    model = StackedMLP((1, 1), "linear", "linear", 3)
    before = next(model.parameters()).detach().clone()
    optimizer = build_optimizer(model, [Member(name, 1.0) for name in ("ngn", "sps", "sps")])

    def closure():
        out = model(torch.ones(3, 1, 1))
        out.sum().backward()
        return torch.tensor([0.0, 0.0, -2.0])

    optimizer.step(closure)
    assert torch.equal(next(model.parameters()), before)


@pytest.mark.parametrize("momentum", [0.0, 0.8])
def test_implicit_momentum_is_ib_from_a_point_ahead(momentum):
    ours, _ = by_the_product(Member("ib_momentum", 3.0, momentum=momentum))
    model = start()
    optimizer = build_optimizer(model, [Member("ib", 3.0)], output_loss="cross_entropy")
    old = [p.detach().clone() for p in model.parameters()]
    for x, y in batches():
        now = [p.detach().clone() for p in model.parameters()]
        with torch.no_grad():
            for p, then in zip(model.parameters(), old, strict=True):
                p.add_(momentum * (p - then))

        def closure(x=x, y=y):
            loss = F.cross_entropy(model(x.unsqueeze(0))[0], y)
            loss.backward()
            return loss.detach().unsqueeze(0)

        optimizer.step(closure)
        old = now
    theirs = torch.cat([p.detach().flatten() for p in model.parameters()])
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("lr", [0.01, 1.0, 1000.0])
def test_proxprop_minimises_what_it_says(lr):
    """Its hidden layers' weights after one step are where torch finds the objective stationary."""
    x, y = next(batches(1))
    model = start()
    layers = list(model.layers)
    before = [(p.weight.detach()[0].clone(), p.bias.detach()[0].clone()) for p in layers]
    optimizer = build_optimizer(model, [Member("proxprop", lr)], output_loss="cross_entropy")

    def closure():
        loss = F.cross_entropy(model(x.unsqueeze(0))[0], y)
        loss.backward()
        return loss.detach().unsqueeze(0)

    optimizer.step(closure)
    read, tails = x, []
    for i, (weight, bias) in enumerate(before):
        s = (read @ weight.T + bias).detach().requires_grad_()
        tails.append((read, s))
        read = (torch.atan(s) if i < len(before) - 1 else s).detach()
    for i, (z, s) in enumerate(tails[:-1]):
        out = torch.atan(s)
        for weight, bias in before[i + 1 : -1]:
            out = torch.atan(out @ weight.T + bias)
        F.cross_entropy(out @ before[-1][0].T + before[-1][1], y, reduction="sum").backward()
        targets = (s - s.grad).detach()  # a row's own gradient: the loss is summed here
        weight, bias = (p.detach()[0].clone().requires_grad_() for p in _of(layers[i]))
        moved = (weight - before[i][0]).square().sum() + (bias - before[i][1]).square().sum()
        objective = (z @ weight.T + bias - targets).square().sum() / (2 * len(z)) + moved / (2 * lr)
        for part in torch.autograd.grad(objective, (weight, bias)):
            assert part.abs().max().item() < 1e-10 * max(1, 1 / lr)


def _of(layer: nn.Module):
    return layer.weight, layer.bias


@pytest.mark.parametrize(("rows", "inputs"), [(9, 4), (4, 9)])
def test_both_ways_to_solve_proxprops_system_are_the_plain_inverse(rows, inputs):
    torch.manual_seed(1)
    gradient_, z = torch.randn(2, 3, inputs).double(), torch.randn(2, rows, inputs).double()
    lr = torch.tensor([0.5, 200.0], dtype=torch.float64)
    found = solved_rows(gradient_, z, lr)
    for i in range(2):
        system = torch.eye(inputs).double() + lr[i] * z[i].T @ z[i] / rows
        wanted = gradient_[i] @ torch.linalg.inv(system)
        torch.testing.assert_close(found[i], wanted, rtol=1e-9, atol=1e-11)


def test_every_method_says_what_it_costs_and_needs():
    for name, method in METHODS.items():
        assert method.summary.endswith("."), name
        assert method.further.endswith("."), name
