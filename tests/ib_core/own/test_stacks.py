"""A member of a stack is the trial alone: for any model, any optimizer, in any way."""

import math

import pytest
import torch
from torch import Tensor

from ib_core.methods import Member, build_optimizer, find_method
from ib_core.tasks import Workload
from tests.ib_core.own.models import MODELS, task_of

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
#: Every model once and every optimizer once: the others are slow tests.
DIAGONAL = [
    (model, OPTIMIZERS[(3 * place + 2) % len(OPTIMIZERS)]) for place, model in enumerate(MODELS)
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


@pytest.mark.parametrize("method", ["torch.optim.AdamW", "torch.optim.Adafactor", "eb", "adam"])
@pytest.mark.parametrize("model", ["batch norm", "dropout"])
def test_a_first_member_that_leaves_changes_nothing(model: str, method: str) -> None:
    for way in ways_of(method):
        whole = Training(model, method, GRID, way).run(8)
        left = Training(model, method, GRID, way).run(4)
        left.keep([1, 2, 3])
        left.run(4, start=4)
        torch.testing.assert_close(
            torch.stack(left.losses[4:]), torch.stack(whole.losses[4:])[:, 1:], rtol=1e-6, atol=1e-7
        )


@pytest.mark.parametrize("method", ["torch.optim.AdamW", "torch.optim.Adafactor", "eb"])
def test_a_member_that_is_not_a_number_changes_its_neighbours_by_nothing(method: str) -> None:
    for way in ways_of(method):
        fine = Training("batch norm", method, GRID, way)
        broken = Training("batch norm", method, GRID, way)
        with torch.no_grad():
            for parameter in broken.model.parameters():
                parameter[0] = math.nan
        fine.run(6)
        broken.run(6)
        assert torch.equal(torch.stack(fine.losses)[:, 1:], torch.stack(broken.losses)[:, 1:])


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
