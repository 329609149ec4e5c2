"""Sweeps: what to train, in which stacks, the one training loop, and what it returns.

| module | holds |
| --- | --- |
| `body` | a sweep as people send it, turned into specs |
| `spec` | `SweepSpec`, `TrialSpec`: validated once, frozen afterwards |
| `grid` | rates and seeds as people write them |
| `presets` | sweeps by name: the paper's experiments, and first ones |
| `shard` | which trials train as one stack |
| `cost`, `speed` | what a stack will take: work counted, speeds measured on this machine |
| `engine` | `run_trials`: a stack, trained |
| `processes` | `run_all`, `run_sweep`: stacks side by side on all cores |
| `environment` | devices, and what a result was made with |
| `result` | `TrialResult`, its address and its files; `Observer` |

Names are imported when first used: planning and reading need no torch, training does.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ib_core.sweep.body import specs_of
    from ib_core.sweep.cost import stack_memory, stack_seconds
    from ib_core.sweep.engine import member_of, run_trials
    from ib_core.sweep.environment import choose_device
    from ib_core.sweep.grid import (
        MOST_RATES,
        MOST_SEEDS,
        count_seeds,
        log_grid,
        parse_rates,
        parse_seeds,
    )
    from ib_core.sweep.presets import PRESETS, Preset
    from ib_core.sweep.processes import lanes_here, run_all, run_sweep
    from ib_core.sweep.result import (
        ENGINE_VERSION,
        SILENT,
        CurvePoint,
        Divergence,
        Observer,
        Outcome,
        TrialResult,
        fingerprint,
        finite_or_none,
        write_csv,
        write_json,
    )
    from ib_core.sweep.shard import PlannedShard, plan_shards
    from ib_core.sweep.spec import PROFILES, Options, SweepSpec, TrialSpec, read_options
    from ib_core.sweep.speed import calibrate

__all__ = [
    "ENGINE_VERSION",
    "MOST_RATES",
    "MOST_SEEDS",
    "PRESETS",
    "PROFILES",
    "SILENT",
    "CurvePoint",
    "Divergence",
    "Observer",
    "Options",
    "Outcome",
    "PlannedShard",
    "Preset",
    "SweepSpec",
    "TrialResult",
    "TrialSpec",
    "calibrate",
    "choose_device",
    "count_seeds",
    "fingerprint",
    "finite_or_none",
    "lanes_here",
    "log_grid",
    "member_of",
    "parse_rates",
    "parse_seeds",
    "plan_shards",
    "read_options",
    "run_all",
    "run_sweep",
    "run_trials",
    "specs_of",
    "stack_memory",
    "stack_seconds",
    "write_csv",
    "write_json",
]

_HOMES = {
    "body": "specs_of",
    "cost": "stack_memory stack_seconds",
    "engine": "member_of run_trials",
    "environment": "choose_device",
    "grid": "MOST_RATES MOST_SEEDS count_seeds log_grid parse_rates parse_seeds",
    "presets": "PRESETS Preset",
    "processes": "lanes_here run_all run_sweep",
    "result": (
        "ENGINE_VERSION SILENT CurvePoint Divergence Observer Outcome TrialResult "
        "fingerprint finite_or_none write_csv write_json"
    ),
    "shard": "PlannedShard plan_shards",
    "spec": "PROFILES Options SweepSpec TrialSpec read_options",
    "speed": "calibrate",
}


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names.split():
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
