"""A member of a stack is the trial alone: for any model, any optimizer, in any way."""

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.utils._python_dispatch import TorchDispatchMode

from ib_core.kernels import torch_formulas
from ib_core.methods import Member, build_optimizer, find_method
from ib_core.tasks import Workload
from ib_core.tasks import losses as losses_of_stacks
from ib_core.tasks.losses import MappedLosses
from ib_core.tasks.twins import make_stackable
from tests.ib_core.own.models import MODELS, task_of, task_with

OPTIMIZERS = (
    "torch.optim.SGD",
    "torch.optim.SGD(momentum=0.9,nesterov=true)",
    "torch.optim.Adam",
    "torch.optim.Adam(amsgrad=true)",
    "torch.optim.AdamW(weight_decay=0.1)",
    "torch.optim.RMSprop",
    "torch.optim.NAdam",
    "torch.optim.RAdam",
    "torch.optim.Adagrad",
    "torch.optim.Adamax",
    "torch.optim.Adafactor",
    "torch.optim.Rprop",
    "torch.optim.ASGD",
    "eb",
    "momentum",
    "adam",
)
SCALED = {name for name in OPTIMIZERS if not name.endswith(("Adafactor", "Rprop", "ASGD"))}
#: Seed and rate of every member: two of each, and both ends of a grid.
GRID = ((1, 0.02), (2, 0.02), (1, 0.0005), (2, 0.0005))
EVERY = [(model, optimizer) for model in MODELS for optimizer in OPTIMIZERS]
#: Every model and every optimizer at least once: the others are slow tests.
DIAGONAL = [
    (list(MODELS)[(3 * place) % len(MODELS)], method) for place, method in enumerate(OPTIMIZERS)
]
SLOW = [pytest.param(*one, marks=pytest.mark.slow) for one in EVERY if one not in DIAGONAL]


class Training:
    """Steps of some members, with the losses of every step."""

    def __init__(self, model: str, method: str, grid: tuple[tuple[int, float], ...], way: str):
        task, found = task_of(model), find_method(method)
        own = found.factory is not None
        members = [
            Member(
                method,
                lr,
                factory=found.factory,
                options=tuple(sorted(found.values.items())),
            )
            for _, lr in grid
        ]
        if way == "plain" and not own:
            way = "bridged"
        stacked = way in ("scaled", "member")
        self.workload: Workload = task.workload(
            seeds=[seed for seed, _ in grid],
            batch_size=12,
            values={},
            device=torch.device("cpu"),
            way="stacked" if stacked else way,
        )
        self.model = self.workload.model()
        self.optimizer = build_optimizer(
            self.model,
            members,
            output_loss="cross_entropy",
            total_steps=20,
            way=way if own else "member",
        )
        self.losses: list[Tensor] = []

    def run(self, steps: int, start: int = 0) -> "Training":
        for step in range(start, start + steps):
            if step % self.workload.steps_per_epoch == 0:
                self.workload.begin_epoch()
            self.workload.load_batch(step % self.workload.steps_per_epoch)
            self.losses.append(self.optimizer.step(self.forward_backward))
        return self

    def forward_backward(self) -> Tensor:
        losses = self.workload.losses(self.model)
        losses.sum().backward()
        return losses.detach()

    def keep(self, rows: list[int]) -> None:
        self.optimizer.keep(torch.tensor(rows))
        self.workload.keep(torch.tensor(rows))


def ways_of(method: str) -> list[str]:
    if find_method(method).factory is None:
        return ["member"]
    return ["scaled", "member"] if method in SCALED else ["member"]


@pytest.mark.parametrize(("model", "method"), [*DIAGONAL, *SLOW])
def test_every_member_has_the_losses_of_the_trial_alone(model: str, method: str) -> None:
    alone = [torch.cat(Training(model, method, (one,), "plain").run(20).losses) for one in GRID]
    for way in ways_of(method):
        together = torch.stack(Training(model, method, GRID, way).run(20).losses, dim=1)
        torch.testing.assert_close(together, torch.stack(alone), rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize(("model", "method"), [*DIAGONAL, *SLOW])
def test_a_first_member_that_breaks_and_leaves_changes_nothing(model: str, method: str) -> None:
    for way in ways_of(method):
        fine = Training(model, method, GRID, way).run(8)
        broken = Training(model, method, GRID, way)
        with torch.no_grad():
            for parameter in broken.model.parameters():
                parameter[0] = math.nan
        broken.run(4)
        losses = torch.stack(fine.losses)[:, 1:]
        assert torch.equal(losses[:4], torch.stack(broken.losses)[:, 1:])  # to the last bit
        broken.keep([1, 2, 3])
        broken.run(4, start=4)
        torch.testing.assert_close(torch.stack(broken.losses[4:]), losses[4:], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("size", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("hidden", [7, 16, 48])  # the kernel's are multiples of sixteen
@pytest.mark.parametrize(
    "more", [{"batch_first": True}, {"num_layers": 2, "bidirectional": True}, {"bias": False}]
)
def test_an_lstms_steps_are_torchs_own(more: dict[str, Any], hidden: int, size: float) -> None:
    torch.manual_seed(3)
    models = [nn.LSTM(5, hidden, **more) for _ in range(3)]
    x = (size * torch.randn(3, 4, 6, 5)).requires_grad_()

    def loss(output: Any) -> Tensor:
        out, (h, c) = output
        return out.sin().sum() + (h * c).sum()

    apart = torch.stack([loss(model(one)) for model, one in zip(models, x, strict=True)])
    apart.sum().backward()
    base = nn.LSTM(5, hidden, **more)
    make_stackable(base)
    tensors = {
        name: torch.stack([model.get_parameter(name).detach() for model in models]).requires_grad_()
        for name, _ in base.named_parameters()
    }
    by_x, x.grad = x.grad, None
    together = vmap(lambda own, x: loss(functional_call(base, own, (x,))))(tensors, x)
    together.sum().backward()
    torch.testing.assert_close(together, apart)
    torch.testing.assert_close(x.grad, by_x)
    for name, found in tensors.items():
        each = [model.get_parameter(name).grad for model in models]
        right = torch.stack([one for one in each if one is not None])
        rounding = 1e-5 * max(1.0, right.abs().max().item())
        torch.testing.assert_close(found.grad, right, rtol=1.3e-6, atol=rounding)


@pytest.mark.parametrize("method", ["ib", "ib_plus"])
@pytest.mark.parametrize("model", ["convolution", "implicit rnn"])
def test_implicit_layers_inside_a_users_model_are_solved_in_a_stack(
    model: str, method: str
) -> None:
    grid = tuple((seed, 200 * lr) for seed, lr in GRID)
    alone = [torch.cat(Training(model, method, (one,), "plain").run(20).losses) for one in grid]
    together = torch.stack(Training(model, method, grid, "member").run(20).losses, dim=1)
    explicit = torch.stack(Training(model, "eb", grid, "member").run(20).losses, dim=1)
    torch.testing.assert_close(together, torch.stack(alone), rtol=1e-4, atol=1e-5)
    if (model, method) != ("convolution", "ib"):  # whose only solved layer is linear: EB's step
        assert (together - explicit).abs().max() > 1e-3


@pytest.mark.parametrize("at_once", [4, 65_536])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(
    ("loss", "x_of", "y_of"),
    [
        (F.cross_entropy, (7, 3), "classes"),
        (nn.CrossEntropyLoss(), (7, 3), "classes"),
        (F.cross_entropy, (7, 3), "classes, some ignored"),
        (nn.CrossEntropyLoss(label_smoothing=0.1), (7, 3), "classes"),
        (lambda x, y: F.cross_entropy(x, y, ignore_index=1), (7, 3), "classes"),
        (lambda x, y: F.cross_entropy(target=y, input=x), (7, 40), "classes"),
        (F.cross_entropy, (7, 40), "classes, some ignored"),
        (F.cross_entropy, (7, 3), "shares"),
        (F.binary_cross_entropy_with_logits, (7, 2, 3), "shares"),
        (nn.BCEWithLogitsLoss(), (7, 3), "shares"),
        (nn.BCEWithLogitsLoss(pos_weight=torch.tensor([1.0, 2.0, 3.0])), (7, 3), "shares"),
    ],
)
def test_losses_made_for_the_whole_stack_are_each_members_own(
    loss: Any, x_of: tuple[int, ...], y_of: str, shared: bool, at_once: int, monkeypatch: Any
) -> None:
    monkeypatch.setattr(losses_of_stacks, "CACHED", at_once)
    torch.manual_seed(4)
    x = torch.randn(5, *x_of, requires_grad=True)
    y = torch.rand(5, *x_of) if y_of == "shares" else torch.randint(3, (5, 7))
    if y_of.endswith("ignored"):
        y[:, 2:4] = -100
    if shared:
        y = y[:1].expand(y.shape)

    def mapped(x: Tensor, y: Tensor) -> Tensor:
        with MappedLosses():
            return loss(x, y)  # type: ignore[no-any-return]

    apart = torch.stack([loss(one, two) for one, two in zip(x, y, strict=True)])
    (by_x,) = torch.autograd.grad(apart.sum(), x, retain_graph=True)
    together = vmap(mapped, (0, None if shared else 0))(x, y[0] if shared else y)
    torch.testing.assert_close(together, apart)
    (found,) = torch.autograd.grad(together.sum(), x, retain_graph=True)
    torch.testing.assert_close(found, by_x)
    # Whatever is made of the members' losses, and once more.
    weights = torch.arange(5.0) - 1
    (by_x,) = torch.autograd.grad((weights * apart).sum(), x)
    torch.testing.assert_close(torch.autograd.grad((weights * together).sum(), x)[0], by_x)


def test_a_class_that_is_none_is_refused_in_a_stack_as_elsewhere() -> None:
    def mapped(x: Tensor, y: Tensor) -> Tensor:
        with MappedLosses():
            return F.cross_entropy(x, y)

    with pytest.raises((IndexError, RuntimeError)):
        vmap(mapped)(torch.randn(2, 3, 40), torch.full((2, 3), 40))


def test_what_a_stack_computes_does_not_grow_by_repeating_weights() -> None:
    task = task_with(lambda: nn.Sequential(nn.Unflatten(1, (4, 4)), nn.Linear(4, 3), nn.Flatten()))
    workload = task.workload(seeds=[1, 2], batch_size=12, values={}, device=torch.device("cpu"))
    model = workload.model()
    workload.begin_epoch()
    workload.load_batch(0)
    with Sizes() as sizes:
        workload.losses(model).sum().backward()
    assert sizes.products
    assert {shape[0] for shape in sizes.products} == {2}  # members, not members times rows


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("rows", "sides"), [(20, (13, 13)), (20, (3, 40)), (5, (13, 13))])
def test_a_narrow_layers_products_are_torchs_own(
    rows: int, sides: tuple[int, int], bias: bool, shared: bool
) -> None:
    torch.manual_seed(5)
    models = [nn.Linear(*sides, bias=bias) for _ in range(3)]
    x = torch.randn(3, rows, sides[0], requires_grad=True)
    if shared:
        x = x[:1].detach().expand(x.shape).requires_grad_()
    apart = torch.stack([model(one).sin().sum() for model, one in zip(models, x, strict=True)])
    apart.sum().backward()
    base = nn.Linear(*sides, bias=bias)
    make_stackable(base)
    assert base.rows_last
    tensors = {
        name: torch.stack([model.get_parameter(name).detach() for model in models]).requires_grad_()
        for name, _ in base.named_parameters()
    }
    by_x, x.grad = x.grad, None
    told = x[0] if shared else x
    together = vmap(
        lambda own, x: functional_call(base, own, (x,)).sin().sum(), (0, None if shared else 0)
    )(tensors, told)
    together.sum().backward()
    torch.testing.assert_close(together, apart)
    torch.testing.assert_close(x.grad.sum(0), by_x.sum(0))
    for name, found in tensors.items():
        each = [model.get_parameter(name).grad for model in models]
        right = torch.stack([one for one in each if one is not None])
        rounding = 1e-5 * max(1.0, right.abs().max().item())
        torch.testing.assert_close(found.grad, right, rtol=1.3e-6, atol=rounding)


@pytest.mark.parametrize(
    ("model", "last"),
    [
        (lambda: nn.Sequential(nn.Linear(16, 13), nn.ReLU(), nn.Linear(13, 3)), {24}),
        # Wide sides gain nothing, and BatchNorm would turn everything around.
        (lambda: nn.Sequential(nn.Linear(16, 48), nn.ReLU(), nn.Linear(48, 48)), {48}),
        (lambda: nn.Sequential(nn.Linear(16, 13), nn.BatchNorm1d(13), nn.Linear(13, 3)), {13, 3}),
    ],
)
def test_few_features_are_multiplied_with_the_rows_last(model: Any, last: set[int]) -> None:
    task = task_with(model)
    workload = task.workload(seeds=[1, 2], batch_size=24, values={}, device=torch.device("cpu"))
    stack = workload.model()
    workload.begin_epoch()
    workload.load_batch(0)
    with Sizes() as sizes, torch.no_grad(), torch_formulas():
        workload.losses(stack)
    assert sizes.made == last


class Sizes(TorchDispatchMode):
    """Notes what batched products multiply, and the last side of what they make."""

    def __init__(self) -> None:
        super().__init__()
        self.products: set[tuple[int, ...]] = set()
        self.made: set[int] = set()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func in (torch.ops.aten.bmm.default, torch.ops.aten.baddbmm.default):
            self.products |= {tuple(one.shape) for one in args[-2:]}
            self.made.add(args[-1].shape[-1])
        return func(*args, **(kwargs or {}))
