"""Benchmarks as programs: ratios of things measured side by side in one run, never timed tests.

| module | holds |
| --- | --- |
| `races` | races in turns, their ratios, and what they were run on; the plain loop people write |
| `steps` | one training step: IB over EB, ours over stock torch |
| `sweeps` | whole sweeps against a plain loop; how cost grows; the edge finder against a grid |
| `peers` | the same grid through Optuna and Ray |
| `gpu` | launches counted without a GPU, and their budget; what only a real one can tell |
| `own_models` | anybody's models: our stacks against a plain loop |

Names are imported when first used: some contestants are installed with the extra `bench` alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ib_core.bench.gpu import (
        LAUNCH_BUDGET,
        count_steps,
        gpu_here,
        measure_gpu,
        missing_here,
    )
    from ib_core.bench.own_models import OwnResult, race_own
    from ib_core.bench.peers import PEER_CASES, PeerResult, race_peers
    from ib_core.bench.races import Ratio, surroundings, with_threads
    from ib_core.bench.steps import race_methods, race_steps
    from ib_core.bench.sweeps import (
        EdgeResult,
        best_split,
        compare_edges,
        measure_growth,
        measure_memory,
        race_sweeps,
    )

__all__ = [
    "LAUNCH_BUDGET",
    "PEER_CASES",
    "EdgeResult",
    "OwnResult",
    "PeerResult",
    "Ratio",
    "best_split",
    "compare_edges",
    "count_steps",
    "gpu_here",
    "measure_gpu",
    "measure_growth",
    "measure_memory",
    "missing_here",
    "race_methods",
    "race_own",
    "race_peers",
    "race_steps",
    "race_sweeps",
    "surroundings",
    "with_threads",
]

_HOMES = {
    "gpu": "LAUNCH_BUDGET count_steps gpu_here measure_gpu missing_here",
    "own_models": "OwnResult race_own",
    "peers": "PEER_CASES PeerResult race_peers",
    "races": "Ratio surroundings with_threads",
    "steps": "race_methods race_steps",
    "sweeps": "EdgeResult best_split compare_edges measure_growth measure_memory race_sweeps",
}


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names.split():
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
