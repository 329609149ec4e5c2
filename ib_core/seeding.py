"""Paired random numbers: what is random about a trial depends on its seed and on nothing else.

The method's name, the learning rate and the neighbours in a stack are never ingredients, so EB
and IB with one seed start from the same weights and see the same batches.
"""

import hashlib
from dataclasses import dataclass

import torch
from torch import Tensor

from ib_core.errors import MisuseError


@dataclass(frozen=True, slots=True)
class Streams:
    """Independent generators for the three random parts of a training run."""

    weights: torch.Generator
    order: torch.Generator
    dropout: torch.Generator


def generator(seed: int, purpose: str) -> torch.Generator:
    """Return a CPU generator for one purpose of one seed; different purposes never overlap."""
    digest = hashlib.sha256(f"etascope:{purpose}:{seed}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)


def streams(seed: int) -> Streams:
    """Return the separate generators of the text profile (docs/method.md, section 5)."""
    return Streams(
        weights=generator(seed, "weights"),
        order=generator(seed, "order"),
        dropout=generator(seed, "dropout"),
    )


def hold_out(rows: int, share: float) -> tuple[Tensor, Tensor]:
    """Return which rows are trained on and which are held out for validation, each in order.

    They depend on the number of rows and the share alone: every seed, method and rate is chosen by
    the same rows. At least one is held out.

    Raises:
        MisuseError: If nothing would be left to train on.
    """
    held = max(1, round(share * rows))
    if held >= rows:
        raise MisuseError(f"Validation needs at least 2 training rows; there are {rows}.")
    mixed = torch.randperm(rows, generator=generator(0, "validation"))
    return mixed[held:].sort().values, mixed[:held].sort().values


def tensor_hash(*tensors: Tensor) -> str:
    """Return a short hash of the tensors' bits, the proof of pairing kept in a trial's record."""
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(str(tuple(tensor.shape)).encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]


def evenly(rows: int, most: int) -> Tensor:
    """Return at most so many of the rows, evenly chosen, the first and the last among them."""
    found: Tensor = torch.linspace(0, rows - 1, min(rows, most)).round().long().unique()
    return found
