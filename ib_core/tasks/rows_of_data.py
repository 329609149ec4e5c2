"""The rows of a user's data: tensors in memory, or a map-style data set that feeds itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Subset, default_collate

from ib_core.errors import MisuseError
from ib_core.tasks.task import IN_MEMORY_BYTES

if TYPE_CHECKING:
    from hashlib import _Hash

#: What a model reads: one tensor, or several as arguments in their order.
Inputs = tuple[Tensor, ...]
#: Rows a loader fetches at once while all of a data set is read.
READ_AT_ONCE = 1000


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
        inputs = tuple(x) if isinstance(x, tuple | list) else (x,)
        tensors = [torch.as_tensor(part) for part in (*inputs, y)]
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
            return part.index_select(0, flat).view(*rows.shape, *part.shape[1:])

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
    x, y = _collated([dataset[0]])
    bytes_a_row = sum(part.numel() * part.element_size() for part in (*x, y))
    if bytes_a_row * len(dataset) > IN_MEMORY_BYTES:
        return FetchedRows(x, y, dataset)
    loader: DataLoader[Any] = DataLoader(dataset, batch_size=READ_AT_ONCE)
    parts = [_pair(batch) for batch in loader]
    columns = zip(*(x for x, _ in parts), strict=True)
    return Rows(tuple(torch.cat(part) for part in columns), torch.cat([y for _, y in parts]))


def _collated(items: Sequence[Any]) -> tuple[Inputs, Tensor]:
    return _pair(default_collate(list(items)))


def _pair(batch: Any) -> tuple[Inputs, Tensor]:
    if not isinstance(batch, tuple | list) or len(batch) != 2:
        raise MisuseError("A data set's items must be pairs (x, y).")
    x, y = batch
    return tuple(x) if isinstance(x, tuple | list) else (x,), torch.as_tensor(y)
