"""A user's model and the rows it is fed: K of them inside one, or one in the clothes of a stack.

Rows are tensors in memory, or a map-style data set that feeds itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Subset, default_collate

from ib_core.errors import MisuseError
from ib_core.layers import ImplicitLayer
from ib_core.tasks.task import IN_MEMORY_BYTES

if TYPE_CHECKING:
    from hashlib import _Hash


#: What a model reads: one tensor, or several as arguments in their order.
Inputs = tuple[Tensor, ...]
#: Rows a loader fetches at once while all of a data set is read, and those that are read twice.
READ_AT_ONCE, READ_TWICE = 1000, 8


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows in memory; see `FetchedRows` for those that are not."""

    x: Inputs
    y: Tensor

    @classmethod
    def of(cls, part: Any, name: str) -> Rows:
        """Return the rows of what a `Data` holds.

        Raises:
            MisuseError: If it is neither a pair of tensors nor a data set of pairs.
        """
        if isinstance(part, tuple | list) and len(part) == 2:
            return cls._of_pair(part[0], part[1], name)
        if hasattr(part, "__getitem__") and hasattr(part, "__len__"):
            return _read(part, name)
        raise MisuseError(
            f"Data's {name} must be a pair of tensors (x, y) or a data set with __getitem__ and "
            f"__len__; got {type(part).__name__}."
        )

    @classmethod
    def _of_pair(cls, x: Any, y: Any, name: str) -> Rows:
        several = isinstance(x, tuple | list) and all(hasattr(part, "shape") for part in x)
        inputs = tuple(x) if several else (x,)
        tensors = [torch.as_tensor(part).detach() for part in (*inputs, y)]
        if not tensors[0].dim() or len({len(part) for part in tensors}) > 1:
            shapes = ", ".join(str(tuple(part.shape)) for part in tensors)
            raise MisuseError(f"Data's {name} must have as many x as y; got shapes {shapes}.")
        if not len(tensors[0]):
            raise MisuseError(f"Data's {name} has no rows.")
        return cls(tuple(tensors[:-1]), tensors[-1])

    def __len__(self) -> int:
        return len(self.y)

    def to(self, device: torch.device) -> Rows:
        """Return the rows on a device."""
        return Rows(tuple(part.to(device) for part in self.x), self.y.to(device))

    def take(self, rows: Tensor) -> tuple[Inputs, Tensor]:
        """Return x and y of some rows, [...] of indices in front."""
        flat = rows.flatten()

        def chosen(part: Tensor) -> Tensor:
            found = part.index_select(0, flat)
            return found if rows.dim() == 1 else found.view(*rows.shape, *part.shape[1:])

        return tuple(chosen(part) for part in self.x), chosen(self.y)

    def part(self, rows: Tensor) -> Rows:
        """Return some of the rows, by their indices."""
        return Rows(*self.take(rows.to(self.y.device)))

    def between(self, start: int, stop: int) -> tuple[Inputs, Tensor]:
        """Return x and y of neighbouring rows."""
        return tuple(part[start:stop] for part in self.x), self.y[start:stop]

    def update(self, digest: _Hash, name: str) -> None:
        """Add every tensor to a hash, with its type and shape, as little-endian bytes."""
        for place, tensor in (*enumerate(self.x), ("y", self.y)):
            if tensor.dtype is torch.bfloat16:  # which NumPy does not know
                digest.update(b"bfloat16 ")
                tensor = tensor.view(torch.int16)
            array = np.ascontiguousarray(tensor.detach().cpu().numpy())
            array = array.astype(array.dtype.newbyteorder("<"), copy=False)
            digest.update(f"{name} {place} {array.dtype.str} {array.shape}\n".encode())
            digest.update(array.data)


@dataclass(frozen=True, slots=True, eq=False)
class FetchedRows(Rows):
    """Rows of a data set too large for memory; `x` and `y` are its first row only."""

    dataset: Any = None
    device: torch.device | None = None

    def __len__(self) -> int:
        return len(self.dataset)

    def to(self, device: torch.device) -> Rows:
        """Return the same rows, to be fetched to a device."""
        return FetchedRows(self.x, self.y, self.dataset, device)

    def take(self, rows: Tensor) -> tuple[Inputs, Tensor]:
        """Fetch rows, each once, and return x and y of them."""
        unique, places = torch.unique(rows, return_inverse=True)
        x, y = _collated([self.dataset[int(i)] for i in unique])
        fetched = Rows(x, y).to(self.device or torch.device("cpu"))
        return fetched.take(places.to(fetched.y.device))

    def part(self, rows: Tensor) -> Rows:
        """Return some of the rows, still to be fetched."""
        return FetchedRows(self.x, self.y, Subset(self.dataset, rows.tolist()), self.device)

    def between(self, start: int, stop: int) -> tuple[Inputs, Tensor]:
        """Fetch neighbouring rows."""
        stop = min(stop, len(self))
        x, y = _collated([self.dataset[i] for i in range(start, stop)])
        return tuple(part.to(self.device) for part in x), y.to(self.device)

    def update(self, digest: _Hash, name: str) -> None:
        """Add the rows to a hash, some at a time."""
        for start in range(0, len(self), READ_AT_ONCE):
            x, y = self.between(start, start + READ_AT_ONCE)
            Rows(x, y).update(digest, name)


def _read(dataset: Any, name: str) -> Rows:
    """Return a data set's rows, in memory if they fit."""
    if not len(dataset):
        raise MisuseError(f"Data's {name} has no rows.")
    few = range(min(READ_TWICE, len(dataset)))
    x, y = _collated([dataset[i] for i in few])
    bytes_a_row = sum(part[0].numel() * part.element_size() for part in (*x, y))
    if bytes_a_row * len(dataset) > IN_MEMORY_BYTES:
        _refuse_other_rows((*x, y), _collated([dataset[i] for i in few]), name)
        return FetchedRows(tuple(part[:1] for part in x), y[:1], dataset)
    loader: DataLoader[Any] = DataLoader(dataset, batch_size=READ_AT_ONCE)
    parts = [_pair(batch) for batch in loader]
    columns = zip(*(x for x, _ in parts), strict=True)
    rows = Rows(tuple(torch.cat(part) for part in columns), torch.cat([y for _, y in parts]))
    _refuse_other_rows((*x, y), rows.between(0, len(few)), name)
    return rows


def _refuse_other_rows(first: Inputs, again: tuple[Inputs, Tensor], name: str) -> None:
    """Refuse a data set that gives other rows when it is read again."""
    for one, other in zip(first, (*again[0], again[1]), strict=True):
        same = one.shape == other.shape and ((one == other) | ((one != one) & (other != other)))
        if not torch.as_tensor(same).all():
            raise MisuseError(
                f"Data's {name} gives other rows when it is read again, as random transforms do, "
                "so that no trial could be repeated: transform the rows once, or at random inside "
                "the model, where chance is the seed's."
            )


def _collated(items: Sequence[Any]) -> tuple[Inputs, Tensor]:
    return _pair(default_collate(list(items)))


def _pair(batch: Any) -> tuple[Inputs, Tensor]:
    if not isinstance(batch, tuple | list) or len(batch) != 2:
        raise MisuseError("A data set's items must be pairs (x, y).")
    x, y = batch
    return tuple(x) if isinstance(x, tuple | list) else (x,), torch.as_tensor(y)


class Stack:
    """The parameters and buffers of K models inside one of them, [members, ...]."""

    def __init__(self, base: nn.Module) -> None:
        self.base = base
        self._places: list[tuple[str, dict[str, Any], str]] = []
        self.tied = False
        self._before: dict[str, Tensor] = {}
        self._taken_at = -1

    def fill(self, models: Sequence[nn.Module], rows: Sequence[int]) -> None:
        """Replace every parameter and buffer by those of the members.

        Args:
            models: One a seed; the first is the base itself.
            rows: Which of them each member starts from.
        """
        new: dict[int, Any] = {}
        others = [dict(model.named_modules()) for model in models]
        for path, module in list(self.base.named_modules()):
            for kind in ("_parameters", "_buffers"):
                for name, old in list(getattr(module, kind).items()):
                    if old is None:
                        continue
                    if id(old) not in new:
                        each = [getattr(other[path], kind)[name].detach() for other in others]
                        stacked = torch.stack(each)[rows].contiguous()
                        new[id(old)] = (
                            nn.Parameter(stacked, requires_grad=old.requires_grad)
                            if kind == "_parameters"
                            else stacked
                        )
                        new[id(new[id(old)])] = new[id(old)]
        self._swap(new)
        every = [
            (f"{path}.{name}".lstrip("."), getattr(module, kind), name)
            for kind in ("_parameters", "_buffers")
            for path, module in self.base.named_modules(remove_duplicate=False)
            for name in getattr(module, kind)
        ]
        there = [(path, held, name) for path, held, name in every if held[name] is not None]
        # To walk through a model takes as long as a layer; the first of a tensor's names is its.
        self._places = list(
            {id(held[name]): (path, held, name) for path, held, name in there[::-1]}.values()
        )
        self.tied = len(there) > len(self._places)

    def _swap(self, new: dict[int, Any]) -> None:
        for module in self.base.modules():
            for kind in ("_parameters", "_buffers"):
                for name, old in list(getattr(module, kind).items()):
                    if old is not None:
                        setattr(module, name, new[id(old)])

    def tensors(self) -> dict[str, Tensor]:
        """Return parameters and buffers by name, the members in front."""
        return {name: held[key] for name, held, key in self._places}

    def remember_buffers(self, step: int) -> None:
        """Keep the buffers a step begins with; a second pass of it begins with them again."""
        buffers = dict(self.base.named_buffers())
        if self._taken_at == step:
            for name, buffer in buffers.items():
                buffer.copy_(self._before[name])
        else:
            self._before = {name: buffer.clone() for name, buffer in buffers.items()}
            self._taken_at = step

    def keep_buffers(self, kept: Tensor, step: int) -> None:
        """Keep only these members' buffers; the optimizer keeps the parameters."""
        del step
        for module in self.base.modules():
            for name, buffer in list(module._buffers.items()):
                if buffer is not None and len(buffer) != len(kept):
                    setattr(module, name, buffer[kept])
        self._before = {name: before[kept] for name, before in self._before.items()}


class Bridge(nn.Module):
    """One ordinary model whose parameters a stack's optimizer moves, as a stack of one.

    Every parameter has a twin [1, ...] in the same memory; a gradient is handed over as soon as it
    is there. Implicit layers know stacks of one themselves.
    """

    def __init__(self, base: nn.Module) -> None:
        super().__init__()
        self.base = base
        self.twins: dict[str, nn.Parameter] = {}
        for module in base.modules():
            if isinstance(module, ImplicitLayer):
                for name in ("weight", "bias"):
                    own = getattr(module, name)
                    if own is not None:
                        twin = nn.Parameter(own.data.unsqueeze(0), own.requires_grad)
                        setattr(module, name, twin)
        implicit = {
            id(p) for m in base.modules() if isinstance(m, ImplicitLayer) for p in m.parameters()
        }
        for name, parameter in base.named_parameters():
            self.twins[name] = parameter if id(parameter) in implicit else _twin(parameter)

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, nn.Parameter]]:
        """Return the twins by their models' names."""
        return iter(self.twins.items())

    def modules(self) -> Iterator[nn.Module]:  # type: ignore[override]
        """Return the modules of the model."""
        return self.base.modules()


def _twin(parameter: nn.Parameter) -> nn.Parameter:
    twin = nn.Parameter(parameter.data.unsqueeze(0), parameter.requires_grad)

    def hand_over(filled: Tensor) -> None:
        assert filled.grad is not None
        twin.grad, filled.grad = filled.grad.unsqueeze(0), None

    if parameter.requires_grad:
        parameter.register_post_accumulate_grad_hook(hand_over)
    return twin
