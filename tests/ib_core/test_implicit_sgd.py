import pytest
import torch
import torch.nn.functional as F
from torch import nn

from ib_core import ImplicitLinear, ImplicitRNN, ImplicitSGD
from ib_core.errors import InvalidSpec, MisuseError
from ib_core.updates import ALPHA_RULES


def network(hidden="arctan", output="linear", seed=1):
    torch.manual_seed(seed)
    return nn.Sequential(ImplicitLinear(4, 6, hidden), ImplicitLinear(6, 3, output)).double()


def batch(rows=8, seed=2):
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, 4, dtype=torch.float64, generator=draw)
    return x, torch.randint(0, 3, (rows,), generator=draw)


def weights(model):
    return [p.detach().clone() for p in model.parameters()]


def one_step(model, optimizer, x, y):
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()


def single_row_step(model, x, y, lr, mu, share_of=1):
    """Eq. (7) and (8) for one data point, by hand; returns theta - theta' without shrinkage."""
    z, tape = x, []
    for layer in model:
        s = F.linear(z, layer.weight, layer.bias)
        out = layer.activation.value(s)
        out.retain_grad()
        tape.append((layer, z, s, out))
        z = out
    (F.cross_entropy(z.unsqueeze(0), y.unsqueeze(0)) / share_of).backward()
    steps = []
    with torch.no_grad():
        for layer, z, s, out in tape:
            z_sq = (z @ z + 1).view(1)
            alpha = ALPHA_RULES[layer.activation.name](s, out.grad, z_sq, lr, mu)
            steps += [lr * alpha.unsqueeze(1) * z, lr * alpha]
    model.zero_grad()
    return steps


@pytest.mark.parametrize("hidden", ["arctan", "relu", "smoothstep", "tanh"])
@pytest.mark.parametrize(
    ("rule", "mu"), [("own", 0.0), ("own", 0.3), ("share", 0.0), ("share", 0.3)]
)
def test_own_averages_and_share_sums_a_loop_over_samples(hidden, rule, mu):
    lr, (x, y) = 3.0, batch()
    model, twin = network(hidden), network(hidden)
    one_step(model, ImplicitSGD(model, lr, mu, batch_rule=rule), x, y)
    rows = [
        single_row_step(twin, x[i], y[i], lr, mu, share_of=len(x) if rule == "share" else 1)
        for i in range(len(x))
    ]
    merge = torch.mean if rule == "own" else torch.sum
    for index, (moved, start) in enumerate(zip(model.parameters(), twin.parameters(), strict=True)):
        step = merge(torch.stack([row[index] for row in rows]), dim=0)
        torch.testing.assert_close(moved, start / (1 + lr * mu) - step)


@pytest.mark.parametrize("rule", ["own", "share"])
def test_a_recurrent_layer_treats_time_steps_as_rows(rule):
    lr, torch_seed = 2.0, 5
    torch.manual_seed(torch_seed)
    layer = ImplicitRNN(3, 4).double()
    x = torch.randn(6, 3, dtype=torch.float64)
    targets = torch.randn(6, 4, dtype=torch.float64)
    start = weights(layer)
    optimizer = ImplicitSGD(layer, lr, batch_rule=rule)
    (layer(x) - targets).square().mean(-1).mean().backward()
    (record,) = layer.records
    scale = 6.0 if rule == "own" else 1.0
    moved_weight = start[0].clone()
    for t in range(6):
        z = record.z[t]
        z_sq = (z @ z + 1).view(1)
        alpha = ALPHA_RULES["arctan"](record.s[t], scale * record.b[t], z_sq, lr)
        moved_weight -= lr * alpha.unsqueeze(1) * z / scale
    optimizer.step()
    torch.testing.assert_close(layer.weight.detach(), moved_weight)


def test_at_a_small_rate_it_is_sgd():
    x, y = batch()
    model, twin = network(), network()
    plain = torch.optim.SGD(twin.parameters(), lr=1e-7)
    start = weights(model)
    one_step(model, ImplicitSGD(model, lr=1e-7), x, y)
    one_step(twin, plain, x, y)
    for ours, theirs, before in zip(model.parameters(), twin.parameters(), start, strict=True):
        torch.testing.assert_close(ours - before, theirs - before, rtol=1e-4, atol=1e-15)


def test_a_summed_loss_steps_as_sgd_on_the_sum_at_a_small_rate():
    x, y = batch()
    model, twin = network(), network()
    start = weights(model)
    optimizer = ImplicitSGD(model, lr=1e-8, reduction="sum")
    F.cross_entropy(model(x), y, reduction="sum").backward()
    optimizer.step()
    plain = torch.optim.SGD(twin.parameters(), lr=1e-8)
    F.cross_entropy(twin(x), y, reduction="sum").backward()
    plain.step()
    for ours, theirs, before in zip(model.parameters(), twin.parameters(), start, strict=True):
        torch.testing.assert_close(ours - before, theirs - before, rtol=1e-4, atol=1e-15)


@pytest.mark.parametrize("rule", ["own", "share"])
def test_every_row_of_a_summed_loss_solves_its_own_problem_too(rule):
    lr, (x, y) = 3.0, batch()
    model, twin = network(), network()
    optimizer = ImplicitSGD(model, lr, batch_rule=rule, reduction="sum")
    F.cross_entropy(model(x), y, reduction="sum").backward()
    optimizer.step()
    rows = [
        single_row_step(twin, one, target, lr, mu=0.0) for one, target in zip(x, y, strict=True)
    ]
    for index, (moved, start) in enumerate(zip(model.parameters(), twin.parameters(), strict=True)):
        torch.testing.assert_close(moved, start - sum(row[index] for row in rows))


def test_accumulated_passes_are_one_batch():
    x, y = batch()
    whole, parts = network(), network()
    one_step(whole, ImplicitSGD(whole, lr=3.0), x, y)
    optimizer = ImplicitSGD(parts, lr=3.0)
    for half in (slice(0, 4), slice(4, 8)):
        (F.cross_entropy(parts(x[half]), y[half]) / 2).backward()
    optimizer.step()
    for a, b in zip(whole.parameters(), parts.parameters(), strict=True):
        torch.testing.assert_close(a, b)


def test_a_second_backward_pass_doubles_the_gradient():
    x, y = batch()
    doubled, twice = network(), network()
    first, second = ImplicitSGD(doubled, lr=3.0), ImplicitSGD(twice, lr=3.0)
    (2 * F.cross_entropy(doubled(x), y)).backward()
    first.step()
    loss = F.cross_entropy(twice(x), y)
    loss.backward(retain_graph=True)
    loss.backward()
    second.step()
    for a, b in zip(doubled.parameters(), twice.parameters(), strict=True):
        torch.testing.assert_close(a, b)


def test_evaluation_between_steps_changes_nothing():
    x, y = batch()
    quiet, watched = network(), network()
    one_step(quiet, ImplicitSGD(quiet, lr=3.0), x, y)
    optimizer = ImplicitSGD(watched, lr=3.0)
    optimizer.zero_grad()
    F.cross_entropy(watched(x), y).backward()
    watched(x)
    with torch.no_grad():
        watched(x)
    optimizer.step()
    for a, b in zip(quiet.parameters(), watched.parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_frozen_layer_stays_and_lets_gradients_through():
    x, y = batch()
    model = network()
    model[1].requires_grad_(False)
    start = weights(model)
    one_step(model, ImplicitSGD(model, lr=3.0), x, y)
    after = weights(model)
    assert not torch.equal(after[0], start[0])
    assert torch.equal(after[2], start[2])
    assert torch.equal(after[3], start[3])


def test_a_frozen_bias_stays_and_is_no_part_of_the_problem():
    torch.manual_seed(4)
    lr, layer = 3.0, ImplicitLinear(4, 3, "arctan").double()
    layer.bias.requires_grad_(False).copy_(torch.tensor([1.0, -2.0, 0.5]))
    weight, bias = weights(layer)
    x = batch()[0]
    optimizer = ImplicitSGD(layer, lr)
    layer(x).square().sum(-1).mean().backward()
    (record,) = layer.records
    z_sq = x.square().sum(-1, keepdim=True)  # without the bias's 1
    alpha = ALPHA_RULES["arctan"](record.s, len(x) * record.b, z_sq, lr) / len(x)
    optimizer.step()
    assert torch.equal(layer.bias, bias)
    torch.testing.assert_close(layer.weight.detach(), weight - lr * alpha.mT @ x)


def test_a_layer_used_twice_moves_once_by_both_uses():
    torch.manual_seed(4)
    layer = ImplicitLinear(4, 4, "arctan").double()
    x = torch.randn(5, 4, dtype=torch.float64)
    start = weights(layer)
    twin = [p.clone().requires_grad_() for p in start]
    optimizer = ImplicitSGD(layer, lr=1e-7)
    layer(layer(x)).square().sum(-1).mean().backward()
    optimizer.step()
    h = torch.atan(F.linear(torch.atan(F.linear(x, *twin)), *twin))
    h.square().sum(-1).mean().backward()
    torch.testing.assert_close(layer.weight - start[0], -1e-7 * twin[0].grad, rtol=1e-4, atol=0)


def test_convolutions_take_explicit_steps_in_the_same_model():
    torch.manual_seed(5)
    model = nn.Sequential(
        nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), ImplicitLinear(8, 3, "linear")
    ).double()
    twin = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8, 3)).double()
    twin.load_state_dict(model.state_dict())
    x, y = torch.randn(6, 1, 4, 4, dtype=torch.float64), torch.randint(0, 3, (6,))
    one_step(model, ImplicitSGD(model, lr=0.5, mu=0.1), x, y)
    one_step(twin, torch.optim.SGD(twin.parameters(), lr=0.5, weight_decay=0.1), x, y)
    torch.testing.assert_close(model[0].weight, twin[0].weight)
    assert not torch.equal(model[3].weight, twin[3].weight)


def test_clipping_bounds_the_whole_step():
    x, y = batch()
    model = network()
    start = weights(model)
    one_step(model, ImplicitSGD(model, lr=3.0, clip=0.01), x, y)
    moved = [(a - b).norm() / 3.0 for a, b in zip(weights(model), start, strict=True)]
    assert torch.stack(moved).norm().item() == pytest.approx(0.01, rel=1e-3)


def test_a_step_shorter_than_the_clip_is_left_as_it_is():
    x, y = batch()
    plain, clipped = network(), network()
    one_step(plain, ImplicitSGD(plain, lr=3.0), x, y)
    one_step(clipped, ImplicitSGD(clipped, lr=3.0, clip=1e6), x, y)
    for a, b in zip(plain.parameters(), clipped.parameters(), strict=True):
        torch.testing.assert_close(a, b)


def test_schedulers_groups_and_state_dicts_work():
    model = network()
    optimizer = ImplicitSGD(model, 1.0, groups=[{"params": model[1].parameters(), "lr": 0.1}])
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
    x, y = batch()
    one_step(model, optimizer, x, y)
    scheduler.step()
    assert [group["lr"] for group in optimizer.param_groups] == [0.05, 0.5]
    state = optimizer.state_dict()
    fresh = ImplicitSGD(model, 9.0, groups=[{"params": model[1].parameters(), "lr": 9.0}])
    fresh.load_state_dict(state)
    assert [group["lr"] for group in fresh.param_groups] == [0.05, 0.5]


def test_a_closure_is_called_with_gradients_on():
    model = network()
    optimizer = ImplicitSGD(model, 1.0)
    x, y = batch()

    def closure():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        return loss.item()

    assert optimizer.step(closure) > 0


def test_zero_grad_forgets_what_the_layers_remember():
    model = network()
    optimizer = ImplicitSGD(model, 1.0)
    x, y = batch()
    F.cross_entropy(model(x), y).backward()
    optimizer.zero_grad()
    assert all(not layer.records for layer in model)


@pytest.mark.parametrize(
    ("misuse", "sentence"),
    [
        (lambda m: ImplicitSGD(m.parameters(), 1.0), r"ImplicitSGD\(model, lr\)"),
        (lambda m: ImplicitSGD(nn.Linear(2, 2), 1.0), "no implicit layer"),
        (lambda m: ImplicitSGD(m, 1.0).step(), r"loss\.backward\(\) before"),
        (lambda m: ImplicitSGD(ImplicitLinear(2, 2, members=3), 1.0), "StackOptimizer"),
    ],
)
def test_misuse_is_said_in_a_sentence(misuse, sentence):
    with pytest.raises(MisuseError, match=sentence):
        misuse(network())


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"lr": 0.0}, "lr"),
        ({"lr": float("nan")}, "lr"),
        ({"lr": 1.0, "mu": -1.0}, "mu"),
        ({"lr": 1.0, "clip": 0.0}, "clip"),
        ({"lr": 1.0, "batch_rule": "mine"}, "batch_rule"),
        ({"lr": 1.0, "output_loss": "hinge"}, "output_loss"),
        ({"lr": 1.0, "reduction": "none"}, "reduction"),
    ],
)
def test_settings_out_of_range_are_refused(settings, field):
    with pytest.raises(InvalidSpec) as caught:
        ImplicitSGD(network(), **settings)
    assert caught.value.field == field
