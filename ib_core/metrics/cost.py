"""What IB costs more than EB, by the paper's count of floating point operations (Sec. 4.5)."""

from collections.abc import Sequence
from dataclasses import dataclass

from ib_core.errors import InvalidSpec, lookup

# Flops to find one alpha, c_sigma: the paper's upper bounds. A linear layer's alpha is
# b/(1 + lr*mu), which needs neither a solve nor |z|^2, so it costs nothing extra at all.
ALPHA_FLOPS: dict[str, int] = {
    "linear": 0,
    "relu": 10,
    "hardtanh": 15,
    "smoothstep": 25,
    "arctan": 100,
}


@dataclass(frozen=True, slots=True)
class LayerShape:
    """A layer as far as its cost goes.

    Attributes:
        inputs: n; for a convolution input channels times kernel area.
        outputs: m; for a convolution output channels.
        activation: A name in `ALPHA_FLOPS`, or None if the layer is trained explicitly.
        positions: How often the layer is applied per example: pixels, or time steps.
    """

    inputs: int
    outputs: int
    activation: str | None
    positions: int = 1

    def __post_init__(self) -> None:
        if min(self.inputs, self.outputs, self.positions) < 1:
            raise InvalidSpec(f"A layer's sizes are at least 1: {self}.", field="layers")

    @property
    def explicit_flops(self) -> int:
        """Flops of an EB step: three products of n by m."""
        return 3 * self.inputs * self.outputs * self.positions

    @property
    def extra_flops(self) -> int:
        """Flops that IB adds: |z|^2 once, and m times an alpha."""
        if self.activation is None or self.activation == "linear":
            return 0
        per_alpha = lookup("flop count for the activation", self.activation, ALPHA_FLOPS)
        return (2 * self.inputs + per_alpha * self.outputs) * self.positions


@dataclass(frozen=True, slots=True)
class OverheadBound:
    """Bounds on IB's run time over EB's, as shares: 0.1133 is 11.33%.

    Attributes:
        flop_weighted: Of the whole model, all extra flops over all explicit ones.
        plain_mean: The paper's number for its classifier: the mean of the layers' bounds.
        layers: Of each layer.
    """

    flop_weighted: float
    plain_mean: float
    layers: tuple[float, ...]


def overhead_bound(layers: Sequence[LayerShape]) -> OverheadBound:
    """Return how much longer an IB step may take than an EB step, counted in flops.

    (2n + c*m) / (3nm) per layer with n inputs and m outputs, c = 10 for relu, 100 arctan, 15
    hardtanh, 25 smoothstep; weighted by flops over the model, layers trained explicitly adding 0.
    """
    if not layers:
        raise InvalidSpec("A model needs at least one layer.", field="layers")
    each = tuple(layer.extra_flops / layer.explicit_flops for layer in layers)
    extra = sum(layer.extra_flops for layer in layers)
    explicit = sum(layer.explicit_flops for layer in layers)
    return OverheadBound(extra / explicit, sum(each) / len(each), each)


@dataclass(frozen=True, slots=True)
class PrintedOverhead:
    """A row of the paper's run time table, as shares.

    Attributes:
        bound: The printed bound; None where the table has a dash.
        measured: What the authors' code measured.
        origin: How the printed bound comes about.
    """

    bound: float | None
    measured: float
    origin: str


_MUSIC = "The bound of one arctan layer with n = m = 300."
PRINTED_OVERHEADS: dict[str, PrintedOverhead] = {
    "MNIST classification": PrintedOverhead(
        0.0627, 0.1682, "The plain mean over its 4 layers, the 2 convolutions counted 0."
    ),
    "MNIST autoencoder": PrintedOverhead(0.0060, 0.9968, "Could not be recomputed."),
    "JSB Chorales": PrintedOverhead(0.1133, 1.5251, _MUSIC),
    "MuseData": PrintedOverhead(0.1133, 2.0748, _MUSIC),
    "Nottingham": PrintedOverhead(0.1133, 2.1585, _MUSIC),
    "Piano-midi.de": PrintedOverhead(0.1133, 2.1398, _MUSIC),
    "UCI classification sum": PrintedOverhead(None, 0.5899, "None is printed."),
}
