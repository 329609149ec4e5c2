"""A task is a recipe in one value: data, network, loss, defaults, and its place in the paper."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ib_core.datasets import data_card

if TYPE_CHECKING:  # a catalogue of tasks needs no torch
    from torch import Tensor, nn


#: Filters of the two convolutions of the paper's classifier (App. D.3).
CONV_FILTERS = (10, 20)
#: Rows evaluated at once, all members together, and at most so many numbers of the widest layer:
#: of larger tensors the system gives and takes every page anew, which takes as long as the work.
EVALUATION_ROWS, EVALUATION_OUTPUTS = 20_000, 1_000_000
#: Notes and hidden states of music evaluated at once, all members together.
EVALUATION_STATES = 2_000_000


@dataclass(frozen=True, slots=True)
class Defaults:
    """What a sweep of the task uses where the user says nothing.

    Attributes:
        epochs: Passes over the training set.
        batch_size: Rows (or pieces) a step.
        learning_rates: The paper's grid, or a sensible one.
        seeds: How many seeds.
    """

    epochs: int
    batch_size: int
    learning_rates: tuple[float, ...]
    seeds: int = 5


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a sweep may change about a task's network and its feeding."""

    profile: str
    activation: str
    batch_size: int
    width: int | None = None
    depth: int | None = None


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Whole-set numbers of every member, [members] each; accuracies None without classes."""

    train_loss: Tensor
    test_loss: Tensor
    train_accuracy: Tensor | None = None
    test_accuracy: Tensor | None = None


class Workload(Protocol):
    """Everything the engine needs to train a stack on one task; it knows no method."""

    steps_per_epoch: int
    seeds: list[int]

    def model(self) -> nn.Module:
        """Return the stack with every member's initial weights."""

    def begin_epoch(self) -> None:
        """Draw the next epoch's order for every seed."""

    def load_batch(self, step: int) -> None:
        """Make step `step` of the epoch the present batch (and draw its dropout masks)."""

    def draw_masks(self) -> None:
        """Draw the present batch's dropout masks again, where there is dropout."""

    def losses(self, model: nn.Module) -> Tensor:
        """Return every member's loss on the present batch, [members], with its graph."""

    def evaluate(self, model: nn.Module) -> Evaluation:
        """Return whole-set losses in evaluation mode."""

    def loss_at_zero(self) -> float:
        """Return the training set's data loss at theta = 0 (App. C)."""

    def order_hash(self, member: int) -> str:
        """Return the hash of every batch order the member has seen so far."""

    def keep(self, kept: Tensor) -> None:
        """Keep only these members (indices, rising)."""


@dataclass(frozen=True, slots=True)
class Task:
    """What is learnt.

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
    loss: str
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
    def linear_output(self) -> bool:
        """Whether `ib_plus` can solve the output layer."""
        return self.output == "linear"

    def defaults(self, profile: str) -> Defaults:
        """Return the defaults of a profile."""
        return self.authors if profile == "authors" and self.authors is not None else self.text

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
    ) -> Recipe:
        """Return a recipe with the task's own settings where none is given."""
        return Recipe(
            profile=profile,
            activation=activation or self.activation,
            batch_size=batch_size or self.defaults(profile).batch_size,
            width=width,
            depth=depth,
        )
