"""Layers that remember what the implicit step needs.

| module | holds |
| --- | --- |
| `record` | `Record`: what a backward pass leaves; `ImplicitLayer`, what all share; `Outputs` |
| `implicit_linear` | `nn.Linear` and `nn.Conv2d` with their activation; a position is a row |
| `implicit_rnn` | `ImplicitRNN`, and its loop along time, `states` |
"""

from ib_core.layers.implicit_linear import ImplicitConv2d, ImplicitLinear
from ib_core.layers.implicit_rnn import ImplicitRNN, states
from ib_core.layers.record import ImplicitLayer, Outputs, Record, merge, twice_differentiable

__all__ = [
    "ImplicitConv2d",
    "ImplicitLayer",
    "ImplicitLinear",
    "ImplicitRNN",
    "Outputs",
    "Record",
    "merge",
    "states",
    "twice_differentiable",
]
