"""Where a member broke: read off the weights and the last step's gradient before it leaves."""

import torch

from ib_core.methods.slots import Slots


def first_bad_layer(slots: Slots, row: int) -> tuple[str, str | None]:
    """Return (`gradient` | `weight` | `loss`, layer).

    The slots still know what made the present weights. If that is not finite,
    the layer nearest the output is named, because gradients flow down from there; if only the
    weights are, the lr-sized step overflowed; if both are finite, the loss itself did.
    """
    bad_weights = [slot.name for slot in slots if not _finite(slot.theta[row])]
    if not bad_weights:
        return "loss", None
    bad_gradients = [slot.name for slot in slots if not slot.has_finite_gradient(row)]
    if bad_gradients:
        return "gradient", _layer(bad_gradients[-1])
    return "weight", _layer(bad_weights[0])


def _finite(values: torch.Tensor) -> bool:
    return bool(torch.isfinite(values).all())


def _layer(parameter: str) -> str:
    """Return `layers.2` for `layers.2.weight`."""
    return parameter.rpartition(".")[0]
