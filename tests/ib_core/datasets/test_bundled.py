import numpy as np
import pytest
import torch

from ib_core.datasets import load_dataset
from ib_core.datasets.bundled import standardised

SHAPES = {
    "digits": (1437, 360, 64, 10),
    "iris": (120, 30, 4, 3),
    "wine": (142, 36, 13, 3),
    "breast_cancer": (455, 114, 30, 2),
}


@pytest.mark.parametrize("name", SHAPES)
def test_sizes_and_types(name):
    loaded = load_dataset(name)
    train, test, features, classes = SHAPES[name]
    assert loaded.train.x.shape == (train, features)
    assert loaded.test.x.shape == (test, features)
    assert loaded.classes == classes
    assert loaded.train.x.dtype == torch.float32
    assert loaded.train.y.dtype == torch.int64


def test_digits_are_ink_between_zero_and_one():
    digits = load_dataset("digits")
    assert digits.train.x.min() == 0
    assert digits.train.x.max() == 1


@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer"])
def test_the_whole_table_is_standardised_as_the_uci_tables_are(name):
    loaded = load_dataset(name)
    x = torch.cat([loaded.train.x, loaded.test.x]).double()
    assert x.mean(0).abs().max() < 1e-6
    assert (x.std(0) - 1).abs().max() < 1e-6  # torch divides by n-1


def test_standardising_agrees_with_numpy():
    table = np.random.default_rng(0).normal(50, 7, (30, 3))
    expected = (table - table.mean(0)) / table.std(0, ddof=1)
    assert standardised(table) == pytest.approx(expected, rel=1e-12)


def test_no_row_is_both_trained_and_tested_on():
    digits = load_dataset("digits")
    rows = [tuple(row) for row in torch.cat([digits.train.x, digits.test.x]).tolist()]
    assert len(set(rows)) == len(rows)
