"""A dense grid's edges, read off: what the edge finder is compared with."""

import math

import pytest

from ib_core.bench import EdgeResult, best_split, compare_edges, sweeps
from ib_core.sweep import Seen


def grid(text):
    """Return rates 1, 2, 3, ... of which `x` broke."""
    return {float(i): Seen(letter == "x", 1.0) for i, letter in enumerate(text, 1)}


@pytest.mark.parametrize(
    ("text", "edge"),
    [
        ("..xx", math.sqrt(6)),
        ("....", math.inf),
        ("xxxx", 0.0),
        ("..x...xx", math.sqrt(42)),  # one exception below
        ("..xx.xxx", math.sqrt(6)),  # one above
    ],
)
def test_an_edge_is_where_the_fewest_rates_are_exceptions(text, edge) -> None:
    assert best_split(grid(text)) == pytest.approx(edge)


def test_searches_and_grids_of_real_trials_are_compared(monkeypatch) -> None:
    monkeypatch.setattr(sweeps, "CASES", (("toy/quadratic", ("eb",), 1),))
    monkeypatch.setattr(sweeps, "ASKED", {"find": "edge", "from": 0.1, "to": 100, "within": 1.3})
    told: list[str] = []
    (found,) = compare_edges(tell=told.append)
    assert isinstance(found, EdgeResult)
    assert (found.task, found.method, found.seeds, len(told)) == ("toy/quadratic", "eb", 11, 2)
    assert found.grid == 11 * 28
    assert found.apart <= 1.3
    assert found.fewer > 3
