"""The methods the field compares, each against its formula read once more, one model at a time."""

from dataclasses import replace
from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from ib_core import METHODS, Member, build_optimizer
from ib_core.errors import InvalidSpec
from ib_core.methods.proximal import solved_rows
from ib_core.sweep import SweepSpec, member_of
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


def lion(theta, lr, w, state):
    m = torch.zeros_like(theta)
    _, g = yield theta
    while True:
        theta = theta - lr * (torch.sign(0.9 * m + 0.1 * g) + w * theta)
        m = 0.99 * m + 0.01 * g
        _, g = yield theta


def schedule_free(theta, lr, w, state):
    """Yields y, where gradients are taken; the last x is in `state`."""
    x, z, v, t = theta, theta, 0, 0
    while True:
        y = 0.1 * z + 0.9 * x
        _, g = yield y
        t += 1
        v = 0.999 * v + 0.001 * g**2
        z = z - lr * (g / ((v / (1 - 0.999**t)).sqrt() + 1e-8) + w * y)
        x = (1 - 1 / t) * x + z / t
        state["x"] = x


def prodigy(theta, lr, _, state):
    start, d, m, v, r, s, q = theta, 1e-6, 0, 0, 0, 0, 0.999**0.5
    _, g = yield theta
    while True:
        m, v = 0.9 * m + 0.1 * d * g, 0.999 * v + 0.001 * d**2 * g**2
        r = q * r + (1 - q) * lr * d**2 * (g @ (start - theta)).item()
        s = q * s + (1 - q) * lr * d**2 * g
        theta = theta - lr * d * m / (v.sqrt() + d * 1e-8)
        d = max(d, r / s.abs().sum().item())
        _, g = yield theta


def muon(theta, lr, w, state):
    """Its polynomial acts on singular values alone, so here they are found and it is scalar."""
    u = m = v = torch.zeros_like(theta)
    t = 0
    while True:
        _, g = yield theta
        t += 1
        u, m, v = 0.95 * u + g, 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        move = m / (1 - 0.9**t) / ((v / (1 - 0.999**t)).sqrt() + 1e-8)
        at = 0
        for n, k in pairwise(WIDTHS):
            ahead = (g + 0.95 * u)[at : at + n * k].view(k, n)
            left, sizes, right = torch.linalg.svd(ahead, full_matrices=False)
            sizes = sizes / (sizes.square().sum().sqrt() + 1e-7)
            for _ in range(5):
                sizes = 3.4445 * sizes - 4.7750 * sizes**3 + 2.0315 * sizes**5
            orthogonal = left @ torch.diag(sizes) @ right
            move[at : at + n * k] = 0.2 * max(n, k) ** 0.5 * orthogonal.flatten()
            at += n * k + k
        theta = theta - lr * (move + w * theta)


@pytest.mark.parametrize("lr", [0.001, 0.1, 1.0])
@pytest.mark.parametrize("formula", [lion, schedule_free, prodigy, muon])
def test_an_optimizer_of_today_steps_as_its_paper_writes(formula, lr):
    name, decay = formula.__name__, 0.3
    member = Member(name, lr)
    if "weight_decay" in METHODS[name].options:
        member = replace(member, options=(("weight_decay", decay),))
    ours, losses = by_the_product(member)
    theta = torch.cat([p.detach().flatten() for p in start().parameters()])
    state = {}
    walk = formula(theta, lr, decay, state)
    theta = next(walk)
    for (x, y), known in zip(batches(), losses, strict=True):
        f, g = gradient(theta, x, y)
        assert f == pytest.approx(known, rel=1e-8)
        theta = walk.send((f, g))
    torch.testing.assert_close(ours, state.get("x", theta), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(("rows", "columns"), [(5, 9), (9, 5)])
def test_muons_step_is_torchs_muon_up_to_the_precision_that_one_works_in(rows, columns):
    torch.manual_seed(4)
    theirs = nn.Parameter(torch.randn(rows, columns))
    model = StackedMLP((columns, rows), "linear", "linear", 1)
    with torch.no_grad():
        model.layers[0].weight[0] = theirs
    ours = build_optimizer(model, [Member("muon", 0.1)])
    optimizer = torch.optim.Muon(
        [theirs], lr=0.1, weight_decay=0.0, momentum=0.95, adjust_lr_fn="match_rms_adamw"
    )
    before = theirs.detach().clone()
    gradients = torch.randn(3, rows, columns)
    for gradient_ in gradients:
        theirs.grad = gradient_.clone()
        optimizer.step()

        def closure(gradient_=gradient_):
            model.layers[0].weight.grad = gradient_.unsqueeze(0).clone()
            model.layers[0].bias.grad = torch.zeros(1, rows)
            return torch.ones(1)

        ours.step(closure)
    moved, wanted = model.layers[0].weight.detach()[0] - before, theirs.detach() - before
    assert (moved - wanted).norm() < 0.03 * wanted.norm()  # torch's works in bfloat16


def test_a_method_of_the_catalogue_may_be_told_its_decay():
    spec = SweepSpec.create(
        "digits_mlp",
        methods=["adamw(weight_decay=0.25)", "adamw(weight_decay=0.01)"],
        learning_rates=[0.1],
    )
    assert spec.methods == ("adamw(weight_decay=0.25)", "adamw")
    members = [member_of(trial) for trial in spec.expand()]
    assert members[0].options == (("weight_decay", 0.25),)
    assert members[-1].options == ()


def test_a_lowest_value_that_goes_without_saying_moves_no_address():
    spec = SweepSpec.create("digits_mlp", methods=["sps(f_star=0)"], learning_rates=[0.1])
    assert spec.methods == ("sps",)
    other = SweepSpec.create("digits_mlp", methods=["momo(f_star=-2)"], learning_rates=[0.1])
    assert member_of(other.expand()[0]).options == (("f_star", -2.0),)


def test_momentum_reaches_every_method_that_has_one_and_the_usual_one_moves_no_address():
    def trial(method, momentum):
        spec = SweepSpec.create(
            "digits_mlp",
            methods=[method],
            learning_rates=[1.0],
            options={} if momentum is None else {"momentum": momentum},
        )
        return spec.expand()[0]

    for method in ("momentum", "ngn_m", "momo", "ib_momentum"):
        assert member_of(trial(method, 0.5)).momentum == 0.5
        assert member_of(trial(method, None)).momentum == 0.9
        assert trial(method, None) == trial(method, 0.9)
    assert trial("momentum", None).options.momentum == 0.9
    assert trial("ngn_m", None).options.momentum is None
    with pytest.raises(InvalidSpec, match="None of the methods has a momentum"):
        trial("eb", 0.5)
    with pytest.raises(InvalidSpec, match=r"setting of the whole sweep.* say --momentum 0\.5"):
        trial("ngn_m(momentum=0.5)", None)


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


@pytest.mark.parametrize("method", ["sps", "ngn", "ngn_m", "momo"])
def test_a_loss_with_another_lowest_value_is_read_above_it(method):
    """A loss lowered by 3 whose f* is -3 takes the steps of the loss itself."""
    usual, _ = by_the_product(Member(method, 30.0))
    model = start()
    optimizer = build_optimizer(model, [Member(method, 30.0, options=(("f_star", -3.0),))])
    for x, y in batches():

        def closure(x=x, y=y):
            loss = F.cross_entropy(model(x.unsqueeze(0))[0], y) - 3
            loss.backward()
            return loss.detach().unsqueeze(0)

        optimizer.step(closure)
    shifted = torch.cat([p.detach().flatten() for p in model.parameters()])
    torch.testing.assert_close(shifted, usual, rtol=1e-9, atol=1e-11)


def test_members_of_one_stack_keep_lowest_values_of_their_own():
    def trained(lowest, kept):
        model = StackedMLP(WIDTHS, "arctan", "linear", len(lowest)).double()
        with torch.no_grad():
            for p, one in zip(model.parameters(), start().parameters(), strict=True):
                p.copy_(one.expand_as(p))
        members = [Member("ngn", 1.0, options=(("f_star", one),)) for one in lowest]
        optimizer = build_optimizer(model, members)
        for x, y in batches(2):

            def closure(x=x, y=y):
                out = model(x.expand(len(optimizer.members), *x.shape))
                losses = torch.stack([F.cross_entropy(one, y) for one in out])
                losses.sum().backward()
                return losses.detach()

            optimizer.step(closure)
            optimizer.keep(torch.tensor(kept))
            kept = [0]
        return torch.cat([p.detach().flatten() for p in model.parameters()])

    torch.testing.assert_close(trained([0.5, -2.0], [1]), trained([-2.0], [0]))
    assert not torch.allclose(trained([0.5], [0]), trained([-2.0], [0]))


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
