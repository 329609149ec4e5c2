"""Layers that remember what the implicit step needs.

| module | holds |
| --- | --- |
| `record` | `Record`: what a backward pass leaves behind; `ImplicitLayer`, what all layers share |
| `implicit_linear` | `ImplicitLinear`: `nn.Linear` with its activation |
| `implicit_rnn` | `ImplicitRNN`, and its loop along time, `states` |
"""

from ib_core.layers.implicit_linear import ImplicitLinear
from ib_core.layers.implicit_rnn import ImplicitRNN, states
from ib_core.layers.record import ImplicitLayer, Record, merge

__all__ = ["ImplicitLayer", "ImplicitLinear", "ImplicitRNN", "Record", "merge", "states"]
