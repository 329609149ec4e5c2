from itertools import pairwise

import pytest

from ib_core.errors import InvalidSpec, UnknownName
from ib_core.metrics.paper import PRINTED_OVERHEADS, LayerShape, overhead_bound

CLASSIFIER = (
    LayerShape(25, 10, None, positions=24 * 24),
    LayerShape(250, 20, None, positions=8 * 8),
    LayerShape(320, 50, "arctan"),
    LayerShape(50, 10, "relu"),
)


@pytest.mark.parametrize(
    ("width", "activation", "percent"),
    [(100, "relu", 4), (100, "arctan", 34), (1000, "relu", 0.4), (1000, "arctan", 3.4)],
)
def test_the_papers_examples(width, activation, percent):
    bound = overhead_bound([LayerShape(width, width, activation)])
    assert 100 * bound.flop_weighted == pytest.approx(percent)


def test_the_printed_classifier_bound_is_the_plain_mean_over_its_layers():
    bound = overhead_bound(CLASSIFIER)
    printed = PRINTED_OVERHEADS["MNIST classification"].bound
    assert round(bound.plain_mean, 4) == printed == 0.0627
    assert bound.layers[:2] == (0.0, 0.0)


def test_weighted_by_flops_the_classifiers_convolutions_dwarf_its_overhead():
    bound = overhead_bound(CLASSIFIER)
    extra = (2 * 320 + 100 * 50) + (2 * 50 + 10 * 10)
    explicit = 3 * (25 * 10 * 576 + 250 * 20 * 64 + 320 * 50 + 50 * 10)
    assert bound.flop_weighted == pytest.approx(extra / explicit)


def test_the_printed_music_bound_is_one_arctan_layer_of_300():
    bound = overhead_bound([LayerShape(300, 300, "arctan", positions=60)])
    assert round(bound.flop_weighted, 4) == PRINTED_OVERHEADS["JSB Chorales"].bound == 0.1133


def test_the_printed_autoencoder_bound_is_neither_of_ours():
    widths = (784, 500, 300, 100, 30, 100, 300, 500, 784)
    bound = overhead_bound([LayerShape(n, m, "relu") for n, m in pairwise(widths)])
    printed = PRINTED_OVERHEADS["MNIST autoencoder"]
    assert printed.bound not in (round(bound.flop_weighted, 4), round(bound.plain_mean, 4))
    assert "Could not be recomputed" in printed.origin


def test_a_linear_layer_costs_nothing_extra():
    assert overhead_bound([LayerShape(50, 10, "linear")]).flop_weighted == 0


def test_an_activation_nobody_counted_is_refused_by_name():
    with pytest.raises(UnknownName, match=r"'gelu'.*arctan"):
        overhead_bound([LayerShape(5, 5, "gelu")])


def test_an_empty_model_or_layer_is_refused():
    with pytest.raises(InvalidSpec, match="at least one layer"):
        overhead_bound([])
    with pytest.raises(InvalidSpec, match="at least 1"):
        LayerShape(0, 5, "relu")
