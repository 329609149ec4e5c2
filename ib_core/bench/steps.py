"""What one training step costs: implicit over explicit, and ours over stock torch.

The paper bounds the overhead of IB by counting flops (Sec. 4.5) and measured much more. Here every
contestant takes the same steps on the same batches in one process, in turns.
"""

import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor, nn

from ib_core.bench.races import PlainTraining, Ratio, race, stock_activation, with_threads
from ib_core.datasets import DATASETS
from ib_core.implicit_sgd import ImplicitSGD
from ib_core.kernels import torch_formulas
from ib_core.layers import ImplicitLinear
from ib_core.methods import METHODS, build_optimizer
from ib_core.metrics import PRINTED_OVERHEADS
from ib_core.sweep import Graph, ReplayedSteps, SweepSpec, TrialSpec, member_of
from ib_core.tasks import find_task
from ib_core.updates import ALPHA_RULES

Steps = Callable[[], object]


@dataclass(frozen=True, slots=True)
class StepResult:
    """One line of the table.

    Attributes:
        name: Network or layer, and how many are stacked.
        method: What is timed.
        over_eb: Its time over our EB's.
        over_stock: Its time over stock torch's, None for stacks.
        uncompiled: Its time over our EB's with torch calls alone, None where nothing is compiled.
        printed: The bound that the paper prints for the ratio, None where it has none.
    """

    name: str
    method: str
    over_eb: Ratio
    over_stock: Ratio | None
    uncompiled: Ratio | None = None
    printed: float | None = None


@dataclass(frozen=True, slots=True)
class StepCase:
    """A network: its task, stack size, methods, steps a round, and its row in the paper."""

    name: str
    task: str
    methods: tuple[str, ...]
    members: int = 1
    steps: int = 20
    printed: str = ""


BOTH = ("eb", "ib")
#: What a network without filters can be trained by in a stack with others.
STACKED = tuple(n for n, method in METHODS.items() if not (method.exact or method.implicit_filters))
CASES = (
    StepCase("MNIST classifier", "mnist_classifier", BOTH, 1, 6, "MNIST classification"),
    StepCase("MNIST autoencoder", "mnist_autoencoder", BOTH, 1, 6, "MNIST autoencoder"),
    StepCase("JSB Chorales RNN", "music/jsb_chorales", BOTH, 1, 4, "JSB Chorales"),
    StepCase("UCI car", "uci/car", ("eb", "ib", "ib_plus"), steps=50),
    StepCase("UCI car, stack of 100", "uci/car", STACKED, members=100, steps=8),
    StepCase("UCI letter, stack of 100", "uci/letter", BOTH, members=100, steps=8),
    StepCase("Digits autoencoder", "digits_autoencoder", BOTH, steps=20),
    StepCase("Digits MLP, 100 inner steps", "digits_mlp", ("eb", "isgd"), steps=4),
)
#: Rows a batch and widths of the single layers.
LAYER_ROWS, LAYER_WIDTHS = 100, (100, 1000)
#: Turns are short and many: neighbours on a shared machine come and go within a second.
MOST_ROUNDS = 200


#: Seconds for one network and for one layer: the quick benchmark takes two minutes, the full ten.
QUICK, FULL = (9.0, 1.0), (40.0, 10.0)


def race_steps(
    *, quick: bool = True, tell: Callable[[str], None] = lambda _: None
) -> Iterator[StepResult]:
    """Race all networks whose data is here, then single layers of every activation."""
    for_network, for_layer = QUICK if quick else FULL
    for case in CASES:
        if DATASETS[find_task(case.task).dataset].present():
            tell(case.name)
            yield from _race_network(case, for_network)
    for width in LAYER_WIDTHS:
        for activation in ALPHA_RULES:
            tell(f"{activation} {width} x {width}")
            yield _race_layer(activation, width, for_layer)


def _race_network(case: StepCase, seconds: float) -> Iterator[StepResult]:
    contestants = {m: engine_steps(trials_of(case, m), case.steps) for m in case.methods}
    if case.members == 1:
        contestants["stock"] = stock_steps(trials_of(case, "eb")[0], case.steps)
    if "ib" in contestants:
        contestants["uncompiled"] = _uncompiled(engine_steps(trials_of(case, "ib"), case.steps))
    # One model keeps all threads.
    with with_threads(1 if case.members > 1 else torch.get_num_threads()):
        measured = race(contestants, rounds=MOST_ROUNDS, seconds=seconds)
    printed = PRINTED_OVERHEADS[case.printed].bound if case.printed else None
    for method in case.methods:
        yield StepResult(
            case.name,
            method,
            measured.ratio(method, "eb"),
            measured.ratio(method, "stock") if case.members == 1 else None,
            measured.ratio("uncompiled", "eb") if method == "ib" else None,
            1 + printed if printed is not None and method == "ib" else None,
        )


def _uncompiled(steps: Steps) -> Steps:
    """Return the same steps, solved by torch calls alone."""

    def run() -> None:
        with torch_formulas():
            steps()

    return run


def trials_of(
    case: StepCase, method: str, options: Mapping[str, int] | None = None
) -> list[TrialSpec]:
    """Return one trial a member, at small rates: the cost of a step does not depend on them."""
    one = SweepSpec.create(
        case.task, methods=(method,), learning_rates=[0.01], seeds=[1], options=options
    )
    (trial,) = one.expand()
    return [replace(trial, seed=seed) for seed in range(1, case.members + 1)]


#: Seconds of a race of methods on one network, and of one turn in it.
METHODS_SECONDS, TURN_SECONDS = 6.0, 0.05
#: Steps of a turn, however short they are.
MOST_STEPS = 50


def race_methods(
    trials: Mapping[str, TrialSpec],
    *,
    baseline: str = "eb",
    device: str = "cpu",
    seconds: float = METHODS_SECONDS,
) -> dict[str, Ratio]:
    """Return how many times longer each method's step takes than the baseline's.

    All take the same steps on one network, one model each, in turns.

    Args:
        trials: What to train, by name; the same but for the method.
        baseline: The name of what they are compared with.
        device: `cpu` or `cuda`.
        seconds: About how long to race.
    """
    one = engine_steps([trials[baseline]], 1, device=device)
    one()  # the first step allocates and compiles
    start = time.perf_counter()
    one()
    took = max(time.perf_counter() - start, 1e-6)
    steps = min(max(round(TURN_SECONDS / took), 1), MOST_STEPS)
    contestants = {n: engine_steps([trial], steps, device=device) for n, trial in trials.items()}
    measured = race(contestants, rounds=MOST_ROUNDS, seconds=seconds)
    return {name: measured.ratio(name, baseline) for name in trials}


def engine_steps(
    trials: Sequence[TrialSpec],
    steps: int,
    *,
    device: str = "cpu",
    graph: Callable[[], Graph] | None = None,
) -> Steps:
    """Return what takes `steps` steps of the engine's own training loop.

    Args:
        trials: Trained as one stack.
        steps: Of one call.
        device: Where.
        graph: Makes what steps are replayed by, where that is right; None takes each anew.
    """
    first, place = trials[0], torch.device(device)
    task = find_task(first.task)
    workload = task.workload(
        seeds=[trial.seed for trial in trials],
        batch_size=first.batch_size,
        values=first.of_task,
        device=place,
        profile=first.profile,
        activation=first.activation,
    )
    model = workload.model()
    restarts = any(trial.options.restart for trial in trials)
    optimizer = build_optimizer(
        model,
        [member_of(trial) for trial in trials],
        output_loss=task.output_loss,
        loss_at_zero=workload.loss_at_zero() if restarts else None,
    )
    workload.begin_epoch()

    def forward_backward() -> Tensor:
        losses = workload.losses(model)
        losses.sum().backward()
        return losses.detach()

    take: Steps = partial(optimizer.step, forward_backward)
    if graph is not None:
        take = ReplayedSteps(workload, optimizer, forward_backward, graph).step

    def run() -> None:
        for step in range(steps):
            workload.load_batch(step % workload.steps_per_epoch)
            take()
        if place.type == "cuda":
            torch.cuda.synchronize(place)

    return run


def stock_steps(trial: TrialSpec, steps: int) -> Steps:
    """Return what takes `steps` steps with stock layers and `torch.optim.SGD`."""
    training = PlainTraining(trial)

    def run() -> None:
        for x, y in itertools.islice(itertools.cycle(training.batches()), steps):
            training.step(x, y)

    return run


def _race_layer(activation: str, width: int, seconds: float) -> StepResult:
    """Race one layer in the middle of a network: it hands a gradient down, too."""
    draw = torch.Generator().manual_seed(1)
    x = torch.randn(LAYER_ROWS, width, generator=draw).requires_grad_()
    gradient = torch.randn(LAYER_ROWS, width, generator=draw) / LAYER_ROWS
    ours = ImplicitLinear(width, width, activation)
    explicit = ImplicitLinear(width, width, activation)
    stock = nn.Sequential(nn.Linear(width, width), stock_activation(activation))
    optimizers: dict[str, tuple[nn.Module, torch.optim.Optimizer]] = {
        "ib": (ours, ImplicitSGD(ours, lr=0.01)),
        "eb": (explicit, torch.optim.SGD(explicit.parameters(), lr=0.01)),
        "stock": (stock, torch.optim.SGD(stock.parameters(), lr=0.01)),
    }

    def steps(name: str) -> Steps:
        model, optimizer = optimizers[name]

        def run() -> None:
            for _ in range(4 if width > 500 else 40):
                optimizer.zero_grad()
                model(x).backward(gradient)
                optimizer.step()

        return run

    contestants = {name: steps(name) for name in optimizers}
    contestants["uncompiled"] = _uncompiled(contestants["ib"])
    measured = race(contestants, rounds=MOST_ROUNDS, seconds=seconds)
    return StepResult(
        f"one layer {width} x {width}, {activation}",
        "ib",
        measured.ratio("ib", "eb"),
        measured.ratio("ib", "stock"),
        measured.ratio("uncompiled", "eb"),
    )
