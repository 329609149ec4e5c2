"""A recurrent layer's loops along time: its states forwards, its deltas backwards.

A single piece of music goes through the compiled loops (`time_kernels.py`). Several at once are
left to torch, which reads the matrix once for all of them.
"""

from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor

from ib_core.updates.activations import Activation
from ib_core.updates.compiled import built, compilable

#: Activations that torch can write where the next time step reads them.
_WRITES: dict[str, Callable[..., Tensor]] = {
    "arctan": torch.atan,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
}
#: Up to so many pieces at once the compiled loops are faster: measured at 300 units.
MOST_PIECES = 2


def states(s: Tensor, recurrent: Tensor, activation: Activation) -> Tensor:
    """Return h and complete s, both [time, members, batch, hidden].

    Args:
        s: What the inputs add up to; what the states before add is added in place.
        recurrent: The weights that read the states before, [members, hidden, hidden].
        activation: Its value is the next state.
    """
    h, matrix = torch.empty_like(s), recurrent.mT
    loops = _loops(s, recurrent) if activation.name == "arctan" else None
    if loops is not None:
        matrix = matrix.contiguous()
        loops[0](s.data_ptr(), h.data_ptr(), matrix.data_ptr(), *s.shape)
        return h
    write, before = _WRITES.get(activation.name), None
    for s_t, h_t in zip(s.unbind(), h.unbind(), strict=True):
        if before is not None:
            s_t.baddbmm_(before, matrix)
        if write is None:
            h_t.copy_(activation.value(s_t))
        else:
            write(s_t, out=h_t)
        before = h_t
    return h


def deltas(b: Tensor, slope: Tensor, recurrent: Tensor) -> Tensor:
    """Return delta and complete b: what later time steps send back is added in place.

    Args:
        b: Gradient of the loss at the states, [time, members, batch, hidden].
        slope: The activation's slope, likewise.
        recurrent: As for `states`.
    """
    delta = torch.empty_like(b)
    loops = _loops(b, recurrent)
    if loops is not None:
        slope, matrix = slope.contiguous(), recurrent.contiguous()
        addresses = (part.data_ptr() for part in (b, slope, delta, matrix))
        loops[1](*addresses, *b.shape)
        return delta
    later = None
    steps = zip(b.unbind(), slope.unbind(), delta.unbind(), strict=True)
    for b_t, slope_t, delta_t in reversed(list(steps)):
        if later is not None:
            b_t.baddbmm_(later, recurrent)
        torch.mul(b_t, slope_t, out=delta_t)
        later = delta_t
    return delta


def _loops(s: Tensor, recurrent: Tensor) -> tuple[Callable[..., None], Callable[..., None]] | None:
    """Return the compiled loops if they are to go through these tensors."""
    fits = s.shape[2] <= MOST_PIECES and s.is_contiguous()
    return _build() if fits and compilable(s, recurrent) else None


@cache
def _build() -> tuple[Callable[..., None], Callable[..., None]] | None:
    def build() -> tuple[Callable[..., None], Callable[..., None]]:
        from ib_core.layers import time_kernels

        return time_kernels.states(), time_kernels.deltas()

    return built(build)
