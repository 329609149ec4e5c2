import itertools
import re

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from ib_core import METHODS, Member, build_optimizer
from ib_core.errors import MisuseError
from ib_core.tasks.losses import LOSSES
from ib_core.tasks.networks import StackedMLP

WIDTHS = (4, 6, 5, 3)


def stack(members, seed=1, dtype=torch.float64):
    torch.manual_seed(seed)
    one = StackedMLP(WIDTHS, "arctan", "linear", 1).to(dtype)
    model = StackedMLP(WIDTHS, "arctan", "linear", len(members)).to(dtype)
    with torch.no_grad():
        for many, single in zip(model.parameters(), one.parameters(), strict=True):
            many.copy_(single.expand_as(many))
    return model, build_optimizer(model, members, output_loss="cross_entropy", loss_at_zero=1.0986)


def train(model, optimizer, steps=8, seed=3, rows=7):
    draw = torch.Generator().manual_seed(seed)
    dtype = next(model.parameters()).dtype
    members = len(optimizer.members)
    for _ in range(steps):
        x = torch.randn(rows, 4, generator=draw, dtype=dtype).expand(members, rows, 4)
        y = torch.randint(0, 3, (rows,), generator=draw).expand(members, rows)

        def closure(x=x, y=y):
            losses = LOSSES["cross_entropy"].per_row(model(x), y).mean(-1)
            losses.sum().backward()
            return losses.detach()

        losses = optimizer.step(closure)
    return losses


EVERY_KIND = [
    Member("adam", 0.01),
    Member("eb", 0.3),
    Member("eb", 2.0, clip=0.5),
    Member("eb", 0.5, mu=0.1),
    Member("ib", 0.3),
    Member("ib", 30.0, clip=1.0, batch_rule="share"),
    Member("ib", 3.0, mu=0.2, batch_rule="share"),
    Member("ib", 3.0, decay_tau=4.0, decay_power=0.7),
    Member("ib_plus", 10.0),
    Member("ib_plus", 10.0, mu=0.1, batch_rule="share"),
    Member("ib_plus", 100.0, mu=0.5, restart=True),
    Member("momentum", 0.1, momentum=0.8),
    Member("sps", 10.0),
    Member("sps", 1.0, mu=0.1, clip=0.5, options=(("f_star", -0.5),)),
    Member("ngn", 10.0),
    Member("ngn", 1.0, mu=0.1, options=(("f_star", -1.0),)),
    Member("ngn_m", 10.0, momentum=0.5),
    Member("momo", 10.0, momentum=0.5),
    Member("ib_momentum", 1.0, momentum=0.5),
    Member("ib_momentum", 3.0, mu=0.1, momentum=0.9, batch_rule="share"),
    Member("ib_conv", 1.0),
    Member("proxprop", 3.0),
    Member("proxprop", 0.3, mu=0.1, clip=1.0),
    Member("adamw", 0.01, options=(("weight_decay", 0.5),)),
    Member("adamw", 0.05),
    Member("nadam", 0.02),
    Member("rmsprop", 0.01),
    Member("lion", 0.003, options=(("weight_decay", 0.1),)),
    Member("muon", 0.02, options=(("weight_decay", 0.1),)),
    Member("muon", 0.1, clip=0.5),
    Member("schedule_free", 0.03, options=(("weight_decay", 0.1),)),
    Member("prodigy", 1.0),
    Member("prodigy", 10.0, mu=0.1),
]


def test_every_method_is_among_the_cases():
    alone = {name for name, method in METHODS.items() if method.exact}  # test_isgd.py
    assert {member.method for member in EVERY_KIND} | alone == set(METHODS)


def test_a_stack_of_k_equals_k_single_runs():
    together, optimizer = stack(EVERY_KIND)
    train(together, optimizer)
    for row, member in enumerate(EVERY_KIND):
        alone, single = stack([member])
        train(alone, single)
        for many, one in zip(together.parameters(), alone.parameters(), strict=True):
            torch.testing.assert_close(many[row], one[0], rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("broken", range(0, len(EVERY_KIND), 3))
def test_a_member_that_becomes_nan_leaves_the_others_bitwise_as_they_were(broken):
    healthy, first = stack(EVERY_KIND, dtype=torch.float32)
    train(healthy, first)
    model, optimizer = stack(EVERY_KIND, dtype=torch.float32)
    with torch.no_grad():
        next(iter(model.parameters()))[broken, 0, 0] = float("nan")
    train(model, optimizer)
    for many, other in zip(model.parameters(), healthy.parameters(), strict=True):
        for row in range(len(EVERY_KIND)):
            if row != broken:
                assert torch.equal(many[row], other[row])
    assert any(bool(many[broken].isnan().any()) for many in model.parameters())


def test_dropping_a_member_leaves_the_others_to_rounding_and_their_state_with_them():
    whole, first = stack(EVERY_KIND)
    train(whole, first)
    train(whole, first, seed=4)
    model, optimizer = stack(EVERY_KIND)
    train(model, optimizer)
    kept = [0, 2, 3, 5, 8, 11]
    optimizer.keep(torch.tensor(kept))
    train(model, optimizer, seed=4)
    for many, other in zip(model.parameters(), whole.parameters(), strict=True):
        torch.testing.assert_close(many, other[kept], rtol=1e-9, atol=1e-11)


#: Two of every kind that remembers something, so that a kind can lose its first and go on.
TWO_OF_EACH = [
    Member("adam", 0.01),
    Member("adam", 0.05),
    Member("eb", 0.3),
    Member("eb", 0.5),
    Member("ib", 0.3),
    Member("ib", 3.0),
    Member("momentum", 0.1, momentum=0.8),
    Member("momentum", 0.05, momentum=0.9),
    Member("ngn_m", 1.0, momentum=0.8),
    Member("ngn_m", 10.0, momentum=0.9),
    Member("momo", 1.0, momentum=0.8),
    Member("momo", 10.0, momentum=0.9),
    Member("ib_momentum", 1.0, momentum=0.8),
    Member("ib_momentum", 0.5, momentum=0.9),
    Member("proxprop", 1.0),
    Member("proxprop", 10.0),
    Member("adamw", 0.01),
    Member("adamw", 0.03, options=(("weight_decay", 0.5),)),
    Member("nadam", 0.02),
    Member("nadam", 0.05),
    Member("rmsprop", 0.01),
    Member("rmsprop", 0.03),
    Member("lion", 0.01),
    Member("lion", 0.003, options=(("weight_decay", 0.1),)),
    Member("muon", 0.02),
    Member("muon", 0.1, options=(("weight_decay", 0.1),)),
    Member("schedule_free", 0.01),
    Member("schedule_free", 0.1, options=(("weight_decay", 0.1),)),
    Member("prodigy", 1.0),
    Member("prodigy", 30.0),
]


def test_who_stays_goes_on_with_its_own_moments_when_the_first_of_its_kind_leaves():
    whole, first = stack(TWO_OF_EACH)
    train(whole, first)
    train(whole, first, seed=4)
    model, optimizer = stack(TWO_OF_EACH)
    train(model, optimizer)
    kept = list(range(1, len(TWO_OF_EACH), 2))
    optimizer.keep(torch.tensor(kept))
    train(model, optimizer, seed=4)
    for many, other in zip(model.parameters(), whole.parameters(), strict=True):
        torch.testing.assert_close(many, other[kept], rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("hidden", ["arctan", "linear"])
@pytest.mark.parametrize("mu", [0.0, 0.1])
def test_only_the_last_layer_is_solved_under_the_loss_however_linear_the_others_are(hidden, mu):
    torch.manual_seed(1)
    model = StackedMLP(WIDTHS, hidden, "linear", 2).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter[1] = parameter[0]
    members = [Member("ib", 10.0, mu=mu), Member("ib_plus", 10.0, mu=mu)]
    train(model, build_optimizer(model, members, output_loss="cross_entropy"), steps=1)
    *below, weight, bias = model.parameters()
    for parameter in below:
        torch.testing.assert_close(parameter[1], parameter[0], rtol=1e-12, atol=1e-14)
    for parameter in (weight, bias):
        assert not torch.allclose(parameter[1], parameter[0], rtol=0.01)


class CountCalls(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.calls += 1
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("kinds", [["eb"], ["ib"], ["ib_plus"], ["eb", "ib", "adam", "momentum"]])
def test_the_number_of_torch_calls_does_not_grow_with_the_members(kinds):
    counts = []
    for repeat in (2, 16):  # a stack of one is an ordinary layer and takes other calls
        members = [Member(kind, 0.1) for kind in kinds for _ in range(repeat)]
        model, optimizer = stack(members)
        with CountCalls() as counter:
            train(model, optimizer, steps=2)
        counts.append(counter.calls)
    assert abs(counts[1] - counts[0]) <= 4  # a reshape may be a view for one and a copy for many


@pytest.mark.parametrize(
    ("member", "build"),
    [
        (Member("eb", 0.3, mu=0.1), lambda p: torch.optim.SGD(p, lr=0.3, weight_decay=0.1)),
        (Member("momentum", 0.1), lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9)),
        (Member("adam", 0.01), lambda p: torch.optim.Adam(p, lr=0.01)),
        (Member("adamw", 0.01), lambda p: torch.optim.AdamW(p, lr=0.01)),
        (
            Member("adamw", 0.1, options=(("weight_decay", 0.7),)),
            lambda p: torch.optim.AdamW(p, lr=0.1, weight_decay=0.7),
        ),
        (Member("nadam", 0.02), lambda p: torch.optim.NAdam(p, lr=0.02)),
        (Member("rmsprop", 0.01), lambda p: torch.optim.RMSprop(p, lr=0.01)),
    ],
)
def test_explicit_methods_are_torchs_own(member, build):
    model, optimizer = stack([member])
    layers = [nn.Linear(n, m) for n, m in itertools.pairwise(WIDTHS)]
    plain = nn.ModuleList(layers).double()
    with torch.no_grad():
        for ours, theirs in zip(model.parameters(), plain.parameters(), strict=True):
            theirs.copy_(ours[0])
    theirs = build(plain.parameters())
    train(model, optimizer)
    draw = torch.Generator().manual_seed(3)
    for _ in range(8):
        x = torch.randn(7, 4, generator=draw, dtype=torch.float64)
        y = torch.randint(0, 3, (7,), generator=draw)
        for layer in plain[:-1]:
            x = torch.atan(layer(x))
        theirs.zero_grad()
        F.cross_entropy(plain[-1](x), y).backward()
        theirs.step()
    close = 1e-6 if member.method == "nadam" else 1e-9  # torch's keeps a product in float32
    for ours, other in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(ours[0], other, rtol=close, atol=close / 100)


def test_clipping_is_torchs_norm_over_all_parameters_together():
    model, optimizer = stack([Member("eb", 1.0, clip=0.05)])
    before = [p.detach().clone() for p in model.parameters()]
    train(model, optimizer, steps=1)
    moved = [(p - q).norm() for p, q in zip(model.parameters(), before, strict=True)]
    assert torch.stack(moved).norm().item() == pytest.approx(0.05, rel=1e-4)


@pytest.mark.parametrize("method", ["eb", "ib", "ib_plus", "momentum", "adam"])
def test_a_clip_never_makes_a_step_longer(method):
    model, optimizer = stack([Member(method, 0.1), Member(method, 0.1, clip=1e6)])
    train(model, optimizer, steps=3)
    for parameter in model.parameters():
        torch.testing.assert_close(parameter[1], parameter[0], rtol=1e-9, atol=1e-12)


def test_restarts_return_to_zero_outside_the_level_set():
    model, optimizer = stack([Member("eb", 0.1, mu=2.0, restart=True)])
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(10.0)
    train(model, optimizer, steps=1)
    assert all(bool((parameter == 0).all()) for parameter in model.parameters())


def test_every_member_counts_its_own_restarts():
    members = [Member("eb", 0.1, mu=2.0), *[Member("eb", 0.1, mu=2.0, restart=True)] * 2]
    model, optimizer = stack(members)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter[:2].fill_(10.0)
            parameter[2:].mul_(1e-3)
    train(model, optimizer, steps=1)
    assert optimizer.restarts.tolist() == [0, 1, 0]
    assert optimizer.left_at_zero() == [False, True, False]
    optimizer.keep(torch.tensor([1, 2]))
    train(model, optimizer, steps=1)
    assert optimizer.restarts.tolist() == [1, 0]
    assert optimizer.left_at_zero() == [False, False]  # it has moved on since


@pytest.mark.parametrize(("inside", "restarts"), [(0.99, False), (1.01, True)])
def test_the_level_set_ends_at_twice_the_loss_at_zero_over_mu(inside, restarts):
    mu, lr = 2.0, 1e-9  # so small a step moves nothing that counts
    model, optimizer = stack([Member("eb", lr, mu=mu, restart=True)])
    squared = sum(parameter.square().sum() for parameter in model.parameters())
    with torch.no_grad():
        scale = (inside * 2 * optimizer.loss_at_zero / mu / squared).sqrt()
        for parameter in model.parameters():
            parameter.mul_(scale)
    train(model, optimizer, steps=1)
    assert all(bool((parameter == 0).all()) for parameter in model.parameters()) == restarts


def test_restarts_without_the_loss_at_zero_are_refused():
    model = StackedMLP(WIDTHS, "arctan", "linear", 1)
    with pytest.raises(MisuseError, match="loss_at_zero"):
        build_optimizer(model, [Member("eb", 0.1, mu=1.0, restart=True)])


def test_rates_decay_as_the_formula_says():
    model, optimizer = stack([Member("eb", 1.0, decay_tau=2.0, decay_power=0.8), Member("eb", 1.0)])
    train(model, optimizer, steps=3)
    rates = optimizer.current_lr()
    assert rates[0].item() == pytest.approx((1 + 3 / 2.0) ** -0.8)
    assert rates[1].item() == 1.0


def test_exact_isgd_does_not_share_a_stack():
    model = StackedMLP(WIDTHS, "arctan", "linear", 2)
    with pytest.raises(MisuseError, match="stack of its own"):
        build_optimizer(model, [Member("isgd", 0.1), Member("eb", 0.1)])


def test_every_method_says_what_it_costs_and_needs():
    for name, method in METHODS.items():
        assert method.summary.endswith("."), name
        assert method.further.endswith("."), name
        if name != "eb":
            assert re.search(r"\bcosts?\b|[Cc]heaper|step takes|pay for", method.further), name
        if method.copies and not method.exact:
            assert "a weight" in method.further, name


def test_muon_remembers_one_number_a_weight_of_a_matrix_and_two_of_the_rest():
    model, optimizer = stack([Member("muon", 0.1)] * 2)
    train(model, optimizer, steps=2)
    kept = [one for one in tree_leaves(optimizer.remembered()) if isinstance(one, torch.Tensor)]
    matrices, rest = (
        sum(p.numel() for p in model.parameters() if (p.dim() > 2) is is_matrix)
        for is_matrix in (True, False)
    )
    assert sum(one.numel() for one in kept if one.is_floating_point()) == matrices + 2 * rest + 2


def test_a_batch_of_one_row_is_multiplied_to_the_bits_of_a_sum_of_one(monkeypatch):
    plain, sums = torch.mul, []

    def summed(one, other, *, out=None):
        if out is None or one.dim() != 3 or one.shape[-1] != 1 or other.shape[-2] != 1:
            return plain(one, other, out=out)
        sums.append(out.shape)
        return torch.bmm(one, other, out=out)

    def ends():
        model, optimizer = stack(EVERY_KIND, dtype=torch.float32)
        train(model, optimizer, rows=1)
        return [parameter.detach().clone() for parameter in model.parameters()]

    ours = ends()
    monkeypatch.setattr(torch, "mul", summed)
    theirs = ends()
    assert sums
    assert all(torch.equal(*pair) for pair in zip(ours, theirs, strict=True))
