"""Layers that remember what the implicit step needs."""

from ib_core.layers.implicit_linear import ImplicitLinear
from ib_core.layers.implicit_rnn import ImplicitRNN
from ib_core.layers.record import ImplicitLayer, Record, merge

__all__ = ["ImplicitLayer", "ImplicitLinear", "ImplicitRNN", "Record", "merge"]
