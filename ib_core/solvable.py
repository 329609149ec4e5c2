"""Activations for which eq. (8) can be solved, and how exactly: all a catalogue must know of them.

The rules themselves are `ib_core.updates.ALPHA_RULES`, one for every name here; they need torch,
this list does not.
"""

from typing import NamedTuple


class ErrorBound(NamedTuple):
    """The largest error of a rule's stand-in for its activation, on the whole line."""

    value: float
    slope: float


#: By activation; None where the rule solves for the activation itself.
SOLVABLE: dict[str, ErrorBound | None] = {
    "linear": None,
    "relu": None,
    "leaky_relu": None,
    "arctan": None,
    "hardtanh": None,
    "smoothstep": None,
    "tanh": ErrorBound(value=5.2e-4, slope=5.6e-3),
    "sigmoid": ErrorBound(value=5.8e-4, slope=5.7e-3),
    "gelu": ErrorBound(value=7.2e-4, slope=5.4e-3),
    "silu": ErrorBound(value=6.7e-4, slope=6.9e-3),
    "softplus": ErrorBound(value=8.4e-4, slope=4.2e-3),
    "elu": ErrorBound(value=8.1e-4, slope=4.8e-3),
}
