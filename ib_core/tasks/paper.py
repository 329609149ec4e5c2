"""The paper's tasks: networks written as stacks by hand, in one value each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ib_core.datasets import Dataset, data_card, data_hash, load_dataset
from ib_core.errors import lookup
from ib_core.options import Option, choice, whole
from ib_core.tasks.task import CONV_FILTERS, Defaults, Recipe, Task, Workload

if TYPE_CHECKING:
    import torch

#: What feeds and measures each family of networks, by module and class.
FAMILIES = {
    "dense": ("workloads", "RowsWorkload"),
    "conv": ("workloads", "RowsWorkload"),
    "music": ("workloads", "PiecesWorkload"),
}
#: How the filters of the paper's classifier are built; explicit goes without saying.
CONVOLUTIONS = choice(
    "explicit",
    "implicit",
    default="explicit",
    help="Whether filters can take the implicit step (App. B); the paper's are explicit.",
)


@dataclass(frozen=True, slots=True)
class PaperTask(Task):
    """What is learnt, by a network of the paper's.

    Attributes:
        name: Its name in specs and files.
        title: Its name on screens: data, then network.
        dataset: A name in `DATASETS`.
        family: `dense`, `conv` or `music`: what can be stacked and how it is fed.
        loss: A name in `LOSSES`.
        activation: The hidden layers' activation where the user names none.
        output: The output layer's activation.
        layers: Widths from input to output, given the data's own two and a recipe.
        text: Defaults of the paper's text.
        authors: Defaults of its published runs; None where they are the same.
        adjustable: Which of `width` and `depth` a sweep may change.
        fixed_batch_size: Set where the network is fed in one way only.
        evaluate_at: Fractions of the first epoch at which losses are taken as well.
        source: Its place in the paper.
        summary: One sentence for the catalogue.
        targets: `given` by the data, or `input` for an autoencoder.
        filter_sizes: Side of each convolution's filters.
        sizes: Inputs and outputs, where they are known without the data.
    """

    name: str
    title: str
    dataset: str
    family: str
    loss: str  # type: ignore[assignment]
    activation: str
    output: str
    layers: Callable[[int, int, Recipe], tuple[int, ...]]
    text: Defaults
    authors: Defaults | None = None
    adjustable: frozenset[str] = frozenset({"width", "depth"})
    fixed_batch_size: int | None = None
    evaluate_at: tuple[float, ...] = ()
    source: str = ""
    summary: str = ""
    targets: str = "given"
    filter_sizes: tuple[int, ...] = ()
    sizes: tuple[int, int] | None = None

    @property
    def has_filters(self) -> bool:
        """Whether `ib_conv` can solve its convolutions."""
        return self.family == "conv"

    @property
    def linear_output(self) -> bool:
        """Whether `ib_plus` can solve the output layer."""
        return self.output == "linear"

    @property
    def options(self) -> Mapping[str, Option]:  # type: ignore[override]
        """What a sweep may change about the network; 0 stands for the paper's own size."""
        ranges = {"width": whole(0, 4096, 0), "depth": whole(0, 64, 0)}
        found = {name: option for name, option in ranges.items() if name in self.adjustable}
        return {**found, "convolutions": CONVOLUTIONS} if self.has_filters else found

    def unusual(self, own: Sequence[tuple[str, Any]]) -> tuple[tuple[str, Any], ...]:
        """Return what is said of the network and does not go without saying, checked.

        Trials from before something could be said keep their addresses.
        """
        read = ((n, self.options[n].read(n, v) if n in self.options else v) for n, v in own)
        return tuple(
            (name, value)
            for name, value in read
            if name not in self.options or value != self.options[name].default
        )

    @property
    def output_loss(self) -> str | None:
        """The name under which `ib_plus` knows the loss, where the output is linear."""
        from ib_core.tasks.losses import LOSSES

        return LOSSES[self.loss].output if self.linear_output else None

    def data_hash(self) -> str:
        """Return the hash of its data set."""
        return data_hash(self.dataset)

    def workload(
        self,
        *,
        seeds: Sequence[int],
        batch_size: int,
        values: Mapping[str, Any],
        device: torch.device,
        profile: str = "text",
        activation: str = "",
        validation: float | None = None,
        way: str = "stacked",
    ) -> Workload:
        """Return what feeds and measures a stack of members with these seeds."""
        del way  # a stack of one is as quick as a plain model
        recipe = self.recipe(
            profile,
            activation=activation or None,
            batch_size=batch_size,
            width=values.get("width"),
            depth=values.get("depth"),
            validation=validation,
            implicit_convolutions=values.get("convolutions") == "implicit",
        )
        return build_workload(self, load_dataset(self.dataset), recipe, seeds, device)

    def widths(self, recipe: Recipe) -> tuple[int, ...]:
        """Return the network's layer widths."""
        if self.sizes is not None:
            return self.layers(*self.sizes, recipe)
        card = data_card(self.dataset)
        return self.layers(card.inputs, card.outputs, recipe)

    def feature_maps(self) -> tuple[int, ...]:
        """Return the outputs of every convolution, a row; none without convolutions."""
        side, maps = {"mnist": 28}.get(self.dataset, 8), []
        for filters, size in zip(CONV_FILTERS, self.filter_sizes, strict=False):
            side = side - size + 1
            maps.append(side * side * filters)
            side //= 2
        return tuple(maps)

    def recipe(
        self,
        profile: str = "text",
        *,
        activation: str | None = None,
        batch_size: int | None = None,
        width: int | None = None,
        depth: int | None = None,
        validation: float | None = None,
        implicit_convolutions: bool = False,
    ) -> Recipe:
        """Return a recipe with the task's own settings where none is given."""
        return Recipe(
            profile=profile,
            activation=activation or self.activation,
            batch_size=batch_size or self.defaults(profile).batch_size,
            width=width,
            depth=depth,
            validation=validation,
            implicit_convolutions=implicit_convolutions,
        )


def build_workload(
    task: PaperTask, dataset: Dataset, recipe: Recipe, seeds: Sequence[int], device: torch.device
) -> Workload:
    """Return what feeds and measures a stack of members with these seeds."""
    # Imported here, because whoever only looks tasks up need not carry torch.
    home, kind = lookup("family of tasks", task.family, FAMILIES, field="task")
    build = getattr(import_module(f"ib_core.tasks.{home}"), kind)
    workload: Workload = build(task, dataset, recipe, seeds, device)
    return workload


def parameter_count(task: PaperTask, recipe: Recipe) -> int:
    """Return the number of weights and biases of one network (docs/method.md, section 5)."""
    widths = task.widths(recipe)
    if task.family == "music":
        notes, hidden, outputs = widths
        read = notes + hidden if recipe.profile == "authors" else hidden
        return hidden * (notes + hidden + 1) + outputs * (read + 1)
    if widths == (1, 1):
        return 1
    dense = sum(m * (n + 1) for n, m in pairwise(widths))
    channels = (1, *CONV_FILTERS[:-1])
    convolutions = zip(channels, CONV_FILTERS, task.filter_sizes, strict=False)
    return dense + sum(m * (n * size * size + 1) for n, m, size in convolutions)
