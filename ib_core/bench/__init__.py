"""Benchmarks as programs: ratios of things measured side by side in one run, never timed tests.

| module | holds |
| --- | --- |
| `measure` | races in turns, their ratios, and what they were run on |
| `steps` | one training step: IB over EB, ours over stock torch |
| `sweeps` | whole sweeps: our engine against a loop |
| `peers` | the same grid through Optuna and Ray |
| `growth` | how time and memory grow with trials, width and time steps |
| `launches` | what a step asks of a GPU, counted without one, and its budget |
| `gpu` | what needs a real GPU to be known |
| `own_models` | anybody's models: our stacks against a plain loop |
| `edges` | the edge finder against a dense grid: edges and numbers of trials |
| `plain` | what people do today: one model, one loop, stock layers |

Names are imported when first used: some contestants are installed with the extra `bench` alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ib_core.bench.edges import EdgeResult, best_split, compare_edges
    from ib_core.bench.gpu import measure_gpu
    from ib_core.bench.growth import measure_growth, measure_memory
    from ib_core.bench.launches import LAUNCH_BUDGET, count_steps
    from ib_core.bench.measure import surroundings
    from ib_core.bench.own_models import OwnResult, race_own
    from ib_core.bench.peers import PEER_CASES, PeerResult, race_peers
    from ib_core.bench.steps import race_methods, race_steps
    from ib_core.bench.sweeps import race_sweeps

__all__ = [
    "LAUNCH_BUDGET",
    "PEER_CASES",
    "EdgeResult",
    "OwnResult",
    "PeerResult",
    "best_split",
    "compare_edges",
    "count_steps",
    "measure_gpu",
    "measure_growth",
    "measure_memory",
    "race_methods",
    "race_own",
    "race_peers",
    "race_steps",
    "race_sweeps",
    "surroundings",
]

_HOMES = {
    "edges": "EdgeResult best_split compare_edges",
    "gpu": "measure_gpu",
    "launches": "LAUNCH_BUDGET count_steps",
    "growth": "measure_growth measure_memory",
    "measure": "surroundings",
    "own_models": "OwnResult race_own",
    "peers": "PEER_CASES PeerResult race_peers",
    "steps": "race_methods race_steps",
    "sweeps": "race_sweeps",
}


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names.split():
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
