"""What one pass through a layer leaves behind for the implicit step, and nothing more."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ib_core.errors import InvalidSpec, lookup
from ib_core.updates import ACTIVATIONS, Activation


@dataclass(slots=True)
class Record:
    """One backward pass through one layer; stacks have a leading member dimension.

    Attributes:
        z: The layer's input, [..., rows, in].
        s: Its pre-activation, [..., rows, out].
        b: Gradient of the loss at its output (after the activation), [..., rows, out].
        delta: `b * sigma'(s)`, the explicit alpha, [..., rows, out]; None where nobody asks for it.
    """

    z: Tensor
    s: Tensor
    b: Tensor
    delta: Tensor | None = None

    @property
    def rows(self) -> int:
        """How many data points (times time steps) the layer saw."""
        return self.s.shape[-2]

    def z_squared(self, bias: bool) -> Tensor:
        """Return |z|^2, the bias's 1 included where there is a bias, [..., rows, 1]."""
        squared: Tensor = torch.linalg.vecdot(self.z, self.z).unsqueeze(-1)
        return squared.add_(1.0) if bias else squared

    def of(self, members: slice) -> "Record":
        """Return the part of some members of a stack."""
        delta = None if self.delta is None else self.delta[members]
        return Record(self.z[members], self.s[members], self.b[members], delta)

    def add(self, b: Tensor, delta: Tensor | None = None) -> None:
        """Take in a second backward pass through the same forward pass."""
        self.b = self.b + b
        if self.delta is not None and delta is not None:
            self.delta = self.delta + delta


def merge(records: list[Record]) -> Record:
    """Join the records of several passes into one: their rows are one batch."""
    if len(records) == 1:
        return records[0]
    z, s, b = (
        torch.cat([getattr(record, name) for record in records], dim=-2) for name in ("z", "s", "b")
    )
    deltas = [record.delta for record in records if record.delta is not None]
    return Record(z, s, b, torch.cat(deltas, dim=-2) if deltas else None)


class ImplicitLayer(nn.Module):
    """A layer `sigma(weight z + bias)` whose weights can move by the implicit step.

    On its own it is an ordinary differentiable layer. Once an implicit method has taken it over
    (`implicit` is true), its backward pass keeps a `Record` in place of the weight gradient.

    Attributes:
        weight: [out, in], or [members, out, in] in a stack.
        bias: [out], [members, out], or None.
        activation: Its `Activation`: value, slope and name.
        records: What the backward passes since the last step left.
        implicit: Whether a method has asked for records.
        twice: Whether somebody wants second derivatives, which torch's own functions have.
        gives_output: Whether what it returns is what a user's model returns; None where nobody
            has looked.
    """

    bias: nn.Parameter | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        activation: str,
        *,
        bias: bool = True,
        members: int | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if in_features < 1 or out_features < 1:
            raise InvalidSpec(
                f"A layer needs at least one input and one output; "
                f"got {in_features} and {out_features}."
            )
        self.activation: Activation = lookup("activation", activation, ACTIVATIONS)
        self.in_features, self.out_features, self.members = in_features, out_features, members
        stack = () if members is None else (members,)
        weight = torch.empty(*stack, out_features, in_features, device=device, dtype=dtype)
        self.weight = nn.Parameter(weight)
        self.bias = nn.Parameter(torch.empty_like(weight[..., 0])) if bias else None
        self.records: list[Record] = []
        self.implicit = self.twice = False
        self.gives_output: bool | None = None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weights uniform +-sqrt(6/(in+out)) and zero biases, as the paper says (App. D.4)."""
        bound = (6.0 / (self.in_features + self.out_features)) ** 0.5
        nn.init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    @property
    def matrix(self) -> Tensor:
        """The weight as the matrix that multiplies z, [..., out, in]."""
        return self.weight

    @property
    def records_wanted(self) -> bool:
        """Whether the backward pass must keep a record: taken over, and not frozen."""
        return self.implicit and self.weight.requires_grad

    @property
    def bias_moves(self) -> bool:
        """Whether the bias is part of the implicit problem: there is one, and it is not frozen."""
        return self.bias is not None and self.bias.requires_grad

    def extra_repr(self) -> str:
        """Show sizes and activation, as torch's layers do."""
        stack = "" if self.members is None else f", members={self.members}"
        return (
            f"{self.in_features}, {self.out_features}, activation={self.activation.name!r}, "
            f"bias={self.bias is not None}{stack}"
        )


@contextmanager
def twice_differentiable(model: nn.Module) -> Iterator[None]:
    """Let the model's layers be passed so that second derivatives exist; slower, no records.

    Those of ours, that is, which have a `twice`: others are torch's own functions anyway.
    """
    layers = [layer for layer in model.modules() if hasattr(layer, "twice")]
    try:
        for layer in layers:
            setattr(layer, "twice", True)  # noqa: B010  modules of several kinds have it
        yield
    finally:
        for layer in layers:
            setattr(layer, "twice", False)  # noqa: B010


class Outputs:
    """What a model's layers return, looked at now and then: its size, and its way since the start.

    A layer is what has a matrix of its own, an output that shares another's included; the last to
    run stands for what the model returns, with whatever is done to its scores. Sizes are roots of
    mean squares over all rows and units, so that widths can be compared.

    Args:
        model: One, a stack of members, or a bridge.
        alone: Whether its parameters have no members in front.
    """

    def __init__(self, model: nn.Module, *, alone: bool) -> None:
        bridged = hasattr(model, "twins")
        self._base = getattr(model, "base", model) if bridged else model
        sides = 2 if alone or bridged else 3
        self._modules = {
            name: module
            for name, module in self._base.named_modules()
            if name and any(p.dim() >= sides for p in module.parameters(recurse=False))
        } or {"model": self._base}
        self._first: dict[str, Tensor] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The layers, as the model lists them."""
        return tuple(self._modules)

    def look(self, run: Callable[[], object], members: int) -> Tensor:
        """Return the sizes and the ways, [members, 2 * layers].

        Args:
            run: Passes the same rows through the model, without gradients.
            members: How many there are.
        """
        watched = {**self._modules, "": self._base}  # the whole model is done last
        seen: dict[str, list[Tensor]] = {name: [] for name in watched}
        order: list[str] = []

        def keep(name: str) -> Callable[[nn.Module, object, object], None]:
            def hook(_module: nn.Module, _inputs: object, output: object) -> None:
                if isinstance(output, tuple | list):
                    output = output[0]
                assert isinstance(output, Tensor)
                order.append(name)
                seen[name].append(_members_first(output).reshape(members, -1).clone())

            return hook

        hooks = [one.register_forward_hook(keep(name)) for name, one in watched.items()]
        try:
            run()
        finally:
            for hook in hooks:
                hook.remove()
        seen[order[-2]] = seen.pop("")
        empty = torch.full((members, 1), torch.nan)
        now = {name: torch.cat(each, dim=1) if each else empty for name, each in seen.items()}
        self._first = self._first or now
        sizes = [_size(one) for one in now.values()]
        ways = [_size(one - self._first[name]) for name, one in now.items()]
        return torch.stack([*sizes, *ways], dim=1)

    def keep(self, kept: Tensor) -> None:
        """Keep only these members (indices, rising)."""
        self._first = {name: one[kept.to(one.device)] for name, one in self._first.items()}


def _members_first(x: Tensor) -> Tensor:
    """Return a tensor as it is outside of `vmap`, the members in front."""
    functorch = torch._C._functorch
    if not functorch.is_batchedtensor(x):
        return x
    return functorch.get_unwrapped(x).movedim(functorch.maybe_get_bdim(x), 0)


def _size(rows: Tensor) -> Tensor:
    return rows.double().square().mean(dim=1).sqrt().cpu()
