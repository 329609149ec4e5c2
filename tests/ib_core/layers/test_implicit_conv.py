import pytest
import torch
import torch.nn.functional as F
from torch import nn

from ib_core import ImplicitConv2d, ImplicitLinear, ImplicitSGD, Member, build_optimizer
from ib_core.errors import IBError, InvalidSpec
from ib_core.updates import ALPHA_RULES


class Net(nn.Module):
    """A convolution, pooling, a dense layer; plain, or a stack with the members in front."""

    def __init__(self, members=None, **conv):
        super().__init__()
        self.conv = ImplicitConv2d(2, 3, (3, 2), "arctan", members=members, **conv)
        self.dense = ImplicitLinear(3, 4, "linear", members=members)

    def forward(self, x):
        return self.dense(self.conv(x).mean((-2, -1)))


def data(rows=4, seed=1):
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, 2, 6, 5, generator=draw, dtype=torch.float64)
    return x, torch.randint(0, 4, (rows,), generator=draw)


def plain(seed=2, **conv):
    torch.manual_seed(seed)
    return Net(**conv).double()


@pytest.mark.parametrize(
    "conv",
    [
        {},
        {"stride": 2},
        {"padding": 1},
        {"stride": (2, 1), "padding": (0, 2)},
        {"dilation": (2, 3)},
        *({"padding": (2, 1), "padding_mode": mode} for mode in ("reflect", "circular")),
        {"padding": 1, "padding_mode": "replicate", "dilation": 2, "stride": 2},
    ],
)
def test_it_is_torchs_convolution_with_its_activation_and_state(conv):
    layer = ImplicitConv2d(2, 3, (3, 2), "arctan", dtype=torch.float64, **conv)
    theirs = nn.Conv2d(2, 3, (3, 2), dtype=torch.float64, **conv)
    theirs.load_state_dict(layer.state_dict())
    x, _ = data()
    torch.testing.assert_close(layer(x), torch.atan(theirs(x)))
    layer.implicit = True
    x.requires_grad_()
    recorded = layer(x)
    torch.testing.assert_close(recorded, torch.atan(theirs(x)))
    (ours,) = torch.autograd.grad(recorded.square().sum(), x)
    (wanted,) = torch.autograd.grad(torch.atan(theirs(x)).square().sum(), x)
    torch.testing.assert_close(ours, wanted)


@pytest.mark.parametrize("rule", ["own", "share"])
@pytest.mark.parametrize(
    "conv",
    [
        {},
        {"stride": 2, "padding": 1},
        {"dilation": (1, 2), "padding": 2, "stride": (2, 1), "padding_mode": "circular"},
    ],
)
def test_a_step_is_a_loop_over_samples_and_positions(rule, conv):
    lr, (x, y) = 5.0, data()
    model, twin = plain(**conv), plain(**conv)
    optimizer = ImplicitSGD(model, lr, batch_rule=rule)
    F.cross_entropy(model(x), y).backward()
    optimizer.step()

    layer, pad, (down, across) = twin.conv, twin.conv.padding, twin.conv.dilation
    mode = conv.get("padding_mode", "constant")
    padded = F.pad(x, (pad[1], pad[1], pad[0], pad[0]), mode)
    s = F.conv2d(padded, layer.weight, layer.bias, layer.stride, 0, layer.dilation).detach()
    out = torch.atan(s).requires_grad_()
    F.cross_entropy(twin.dense(out.mean((-2, -1))), y).backward()
    images, filters, height, width = s.shape
    rows = images * height * width
    scale = rows if rule == "own" else 1
    weight, bias = layer.weight.detach().clone(), layer.bias.detach().clone()
    for image in range(images):
        for i in range(height):
            for j in range(width):
                top, left = i * layer.stride[0], j * layer.stride[1]
                patch = padded[
                    image, :, top : top + 2 * down + 1 : down, left : left + across + 1 : across
                ]
                z_sq = (patch.square().sum() + 1).view(1)
                alpha = ALPHA_RULES["arctan"](
                    s[image, :, i, j], scale * out.grad[image, :, i, j], z_sq, lr, 0.0
                )
                for f in range(filters):
                    weight[f] -= lr * alpha[f] / scale * patch
                    bias[f] -= lr * alpha[f] / scale
    torch.testing.assert_close(model.conv.weight.detach(), weight)
    torch.testing.assert_close(model.conv.bias.detach(), bias)


def test_at_a_small_rate_it_is_sgd():
    lr, (x, y) = 1e-7, data()
    model, twin = plain(), plain()
    for one, optimizer in (
        (model, ImplicitSGD(model, lr)),
        (twin, torch.optim.SGD(twin.parameters(), lr)),
    ):
        F.cross_entropy(one(x), y).backward()
        optimizer.step()
    start = plain()
    for ours, theirs, before in zip(
        model.parameters(), twin.parameters(), start.parameters(), strict=True
    ):
        torch.testing.assert_close(ours - before, theirs - before, rtol=1e-5, atol=1e-14)


def test_a_convolution_of_single_pixels_is_a_dense_layer():
    torch.manual_seed(3)
    conv = ImplicitConv2d(5, 4, 1, "relu").double()
    dense = ImplicitLinear(5, 4, "relu").double()
    dense.load_state_dict({"weight": conv.weight[..., 0, 0], "bias": conv.bias})
    x = torch.randn(7, 5, dtype=torch.float64)
    for layer, inputs in ((conv, x[..., None, None]), (dense, x)):
        optimizer = ImplicitSGD(layer, 3.0)
        layer(inputs).square().sum(1).mean().backward()
        optimizer.step()
    torch.testing.assert_close(conv.weight[..., 0, 0], dense.weight)
    torch.testing.assert_close(conv.bias, dense.bias)


def test_every_member_of_a_stack_steps_as_it_would_alone():
    members = [Member("eb", 0.5), Member("ib", 2.0), Member("ib", 8.0, batch_rule="share")]
    x, y = data()
    torch.manual_seed(2)
    stack = Net(members=3).double()
    singles = [Net(members=1).double() for _ in members]
    with torch.no_grad():
        for k, one in enumerate(singles):
            for alone, many in zip(one.parameters(), stack.parameters(), strict=True):
                alone[0].copy_(many[k])

    def train(model, trained):
        optimizer = build_optimizer(model, trained)
        images = x.expand(len(trained), *x.shape)

        def closure():
            scores = model(images)
            losses = torch.stack([F.cross_entropy(part, y) for part in scores])
            losses.sum().backward()
            return losses.detach()

        for _ in range(4):
            optimizer.step(closure)

    train(stack, members)
    for k, (member, one) in enumerate(zip(members, singles, strict=True)):
        train(one, [member])
        for alone, many in zip(one.parameters(), stack.parameters(), strict=True):
            torch.testing.assert_close(many[k], alone[0], rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda: ImplicitConv2d(2, 4, 3, groups=2), "groups=1; got 2"),
        (lambda: ImplicitConv2d(2, 4, 0), "kernel_size must be"),
        (lambda: ImplicitConv2d(2, 4, 3, stride=(1, 0)), "stride must be"),
        (lambda: ImplicitConv2d(2, 4, 3, dilation=0), "dilation must be"),
        (lambda: ImplicitConv2d(2, 4, 3, padding_mode="mirror"), "mirror"),
        (lambda: ImplicitConv2d(2, 4, 3)(torch.zeros(1, 3, 5, 5)), "got a tensor of shape"),
    ],
)
def test_what_it_cannot_do_is_said_in_a_sentence(build, sentence):
    with pytest.raises(IBError, match=sentence):
        build()


def test_filters_larger_than_the_images_are_refused():
    layer = ImplicitConv2d(2, 4, 7)
    layer.implicit = True
    with pytest.raises(InvalidSpec, match="do not fit"):
        layer(torch.zeros(1, 2, 5, 5))
