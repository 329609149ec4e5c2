"""`Task` and `Data`: what is learnt, for anybody's model, data and loss.

A task is a value with a few questions: its defaults and options (asked by whoever reads a sweep),
the hash of its data (an ingredient of every trial's address), and the workload of a stack (asked
by the engine). The paper's tasks answer them with networks written as stacks by hand
(`ib_core.tasks.paper`); any other answers with its model, stacked by torch
(`ib_core.tasks.model_workload`).

What tasks are made of: defaults, recipes, and the workload that feeds a stack.
"""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from ib_core.datasets import data_hash
from ib_core.errors import MisuseError
from ib_core.options import RESERVED, Option, read_options, with_defaults

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

    from ib_core.tasks.stacked_model import Rows


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
    validation: float | None = None
    implicit_convolutions: bool = False


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Whole-set numbers of every member, [members] each.

    Accuracies are None without classes, and both of validation where no rows are held out.
    """

    train_loss: Tensor
    test_loss: Tensor
    train_accuracy: Tensor | None = None
    test_accuracy: Tensor | None = None
    validation_loss: Tensor | None = None
    validation_accuracy: Tensor | None = None


class Workload(Protocol):
    """Everything the engine needs to train a stack on one task; it knows no method."""

    steps_per_epoch: int
    seeds: list[int]

    def model(self) -> nn.Module:
        """Return the stack with every member's initial weights."""

    def begin_epoch(self, *, ahead: bool = True) -> None:
        """Draw the next epoch's order for every seed.

        Where training waits for every copy, on a GPU, its chance is drawn as well, unless `ahead`
        is false: then more of it will be drawn in between (`draw_masks`).
        """

    def load_batch(self, step: int) -> None:
        """Make step `step` of the epoch the present batch (and draw its dropout masks)."""

    def draw_masks(self) -> None:
        """Draw the present batch's dropout masks again, where there is dropout."""

    def losses(self, model: nn.Module) -> Tensor:
        """Return every member's loss on the present batch, [members], with its graph."""

    def evaluate(self, model: nn.Module) -> Evaluation:
        """Return whole-set losses in evaluation mode."""

    def sampled_losses(self, model: nn.Module, rows: int) -> Tensor:
        """Return every member's mean loss over so many training rows, or all, [members].

        The same rows for all, evenly chosen, in evaluation mode; the graph may be differentiated
        twice where the model's layers are (`ib_core.layers.twice_differentiable`).
        """

    def loss_at_zero(self) -> float:
        """Return the training set's data loss at theta = 0 (App. C)."""

    def order_hash(self, member: int) -> str:
        """Return the hash of every batch order the member has seen so far."""

    def keep(self, kept: Tensor) -> None:
        """Keep only these members (indices, rising)."""


#: Where nobody says which rates to try.
USUAL_RATES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0)
#: Rows of a map-style data set whose tensors take more than this are fetched batch by batch.
IN_MEMORY_BYTES = 2 * 1024**3


@dataclass(frozen=True, slots=True, eq=False)
class Data:
    """Rows to train on and to test on: pairs of tensors (x, y), or map-style data sets of pairs.

    Attributes:
        train: What the weights are learnt from. `x` may be a tuple of tensors, handed to the model
            as several arguments.
        test: What is never trained on; without one, the training rows.
        validation: Optional; what rates and epochs are chosen on. Without it a sweep may hold out
            a share of the training rows.
    """

    train: Any
    test: Any = None
    validation: Any = None
    _read: dict[str, Rows] = field(default_factory=dict, init=False, repr=False)

    def rows(self, name: str) -> Rows:
        """Return the rows of a part, read once: what is hashed is what is trained on."""
        from ib_core.tasks.stacked_model import Rows

        if name not in self._read:
            self._read[name] = Rows.of(getattr(self, name), name)
        return self._read[name]

    def sha256(self) -> str:
        """Return a hash of every tensor with its type and shape."""
        digest = hashlib.sha256()
        for name in ("train", "test", "validation"):
            if getattr(self, name) is not None:
                self.rows(name).update(digest, name)
        return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Footprint:
    """A model and its data in a few numbers, for planning.

    Attributes:
        rows: Training rows.
        test_rows: Test rows.
        parameters: Of one model.
        row_numbers: Numbers alive a row while a step's gradients are made.
        row_seconds: Of a step, on the machine that was asked.
    """

    rows: int
    test_rows: int
    parameters: int
    row_numbers: int
    row_seconds: float


class Task:
    """What is learnt: a model, data, a loss, and what a sweep may change about them.

    Args:
        model: Any function or class that returns an `nn.Module`; called with the options by name
            after `torch.manual_seed(seed)`.
        data: A function that returns `Data`, called once; or a `Data`.
        loss: `loss(output, target)`, the mean over rows.
        metric: Optional `metric(output, target)`, a share from 0 to 1 averaged over rows; without
            one, accuracy is taken under torch's cross-entropy of classes.
        epochs: Passes over the training rows where a sweep says nothing.
        batch_size: Rows a step; all rows at once are fed in their order, fewer are shuffled.
        options: What of the model's arguments a sweep may change.
        learning_rates: The rates where a sweep names none.
        seeds: How many seeds.
        output_loss: `cross_entropy` or `squared_error` where the loss is torch's of that name in
            other words, so that `ib_plus` may solve a linear `ImplicitLinear` under it.
        name: Set by the file or the package it comes from.
        title: On screens.
        summary: One sentence.
        source: Where it comes from.
        dataset: The name of the data set it reads, where it is one of the catalogue's.
    """

    #: Hash of the code that decides it; None where that is the engine's own version.
    code: str | None = None
    #: Versions of the packages that code uses.
    versions: Mapping[str, str] = MappingProxyType({})
    #: The data, or the function that returns them.
    given_data: Callable[[], Data] | Data | None = None
    family: str
    activation: str
    output: str
    authors: Defaults | None = None
    fixed_batch_size: int | None = None
    evaluate_at: tuple[float, ...] = ()
    sizes: tuple[int, int] | None = None
    name: str
    title: str
    summary: str
    source: str
    dataset: str
    text: Defaults

    def __init__(
        self,
        model: Callable[..., nn.Module],
        data: Callable[[], Data] | Data,
        *,
        loss: Callable[[Tensor, Tensor], Tensor],
        metric: Callable[[Tensor, Tensor], Tensor] | None = None,
        epochs: int = 1,
        batch_size: int = 100,
        options: Mapping[str, Option] | None = None,
        learning_rates: Sequence[float] = USUAL_RATES,
        seeds: int = 3,
        output_loss: str | None = None,
        name: str = "",
        title: str = "",
        summary: str = "",
        source: str = "",
        dataset: str = "",
    ) -> None:
        for what, given in (("model", model), ("loss", loss)):
            if not callable(given):
                raise MisuseError(
                    f"A task's {what} must be a function; got {type(given).__name__}."
                )
        if not callable(data) and not isinstance(data, Data):
            raise MisuseError(
                f"A task's data must be Data or a function that returns it; "
                f"got {type(data).__name__}."
            )
        for what, size in (("epochs", epochs), ("batch_size", batch_size), ("seeds", seeds)):
            if not isinstance(size, Integral) or isinstance(size, bool) or size < 1:
                raise MisuseError(f"A task's {what} must be a whole number from 1; got {size!r}.")
        rates = tuple(map(float, learning_rates))
        if not rates or not all(0 < rate < math.inf for rate in rates):
            raise MisuseError(
                f"A task's learning_rates must be positive numbers, one at least; got {rates}."
            )
        self.model, self.loss, self.metric, self.given_data = model, loss, metric, data
        # A sweep's momentum is its methods'; a model's would never be told of it.
        taken = {*RESERVED, "momentum"}
        self.options: Mapping[str, Option] = with_defaults(options or {}, model, "the task", taken)
        self.text = Defaults(int(epochs), int(batch_size), rates, int(seeds))
        self._output_loss = output_loss
        self.name, self.summary, self.source, self.dataset = name, summary, source, dataset
        self.title = title or name
        self.family, self.activation, self.output = "model", "", ""
        self._loaded: Data | None = None
        self._hash: str | None = None
        self._footprints: dict[Any, Footprint] = {}
        #: Whether models of some values have modules in common; see `build_model`.
        self.shared: dict[Any, bool] = {}

    @property
    def adjustable(self) -> frozenset[str]:
        """Which of `width` and `depth` a sweep may change."""
        return frozenset(self.options) & {"width", "depth"}

    @property
    def has_filters(self) -> bool:
        """Whether `ib_conv` can solve its convolutions."""
        return False

    @property
    def linear_output(self) -> bool:
        """Whether `ib_plus` may be asked to solve the output layer."""
        return self.output_loss is not None

    @property
    def output_loss(self) -> str | None:
        """The name under which `ib_plus` knows the loss."""
        if self._output_loss is not None:
            return self._output_loss
        if "torch" not in sys.modules:  # then its loss is no function of torch's
            return None
        from ib_core.tasks.model_workload import name_of_loss

        return name_of_loss(self.loss)

    def defaults(self, profile: str) -> Defaults:
        """Return the defaults of a profile."""
        return self.authors if profile == "authors" and self.authors is not None else self.text

    def read(self, given: Mapping[str, Any], *, typed: bool = False) -> dict[str, Any]:
        """Return the value of every option, checked, defaults where none is given."""
        return dict(read_options(self.options, given, self.name or "the task", typed=typed))

    def data(self) -> Data:
        """Return the data, made once."""
        if self._loaded is None:
            given = self.given_data
            found = given() if callable(given) else given
            if not isinstance(found, Data):
                raise MisuseError(
                    f"The data function of {self.name or 'the task'} must return "
                    f"Data(train=..., test=...); got {type(found).__name__}."
                )
            self._loaded = found
        return self._loaded

    def data_hash(self) -> str:
        """Return the hash of what is learnt from: an ingredient of every trial's address."""
        if self.dataset:
            return data_hash(self.dataset)
        if self._hash is None:
            self._hash = self.data().sha256()
        return self._hash

    def footprint(self, values: Mapping[str, Any]) -> Footprint:
        """Return its size for planning, found by one pass of one model and remembered.

        Args:
            values: Of the options.
        """
        key = tuple(sorted(values.items()))
        if key not in self._footprints:
            from ib_core.tasks.footprint import footprint_of

            self._footprints[key] = footprint_of(self, values)
        return self._footprints[key]

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
        """Return what feeds and measures a stack of members with these seeds.

        Args:
            seeds: One a member.
            batch_size: Rows a step.
            values: Of the options.
            device: Where.
            profile: Of the paper's tasks.
            activation: Of the paper's tasks.
            validation: Share of the training rows to hold out; rows that the data have for it
                go before.
            way: `stacked`; `plain` for one member in an ordinary model; `bridged` for one in an
                ordinary model whose parameters a stack's optimizer moves.
        """
        del profile, activation
        from ib_core.tasks.model_workload import ModelWorkload

        return ModelWorkload(
            self, seeds, batch_size, values, device, validation=validation, way=way
        )
