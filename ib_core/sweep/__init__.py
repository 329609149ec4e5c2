"""Sweeps: what to train, in which stacks, the one training loop, and what it returns.

| module | holds |
| --- | --- |
| `request` | a sweep as people write it: the one reader of bodies, command words and forms |
| `settings` | everything a sweep can say, each setting once |
| `spec` | `SweepSpec`, `TrialSpec`: validated once, frozen afterwards; `specs_of` a body |
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
    from ib_core.sweep.cost import stack_memory, stack_seconds
    from ib_core.sweep.engine import member_of, run_trials
    from ib_core.sweep.environment import choose_device
    from ib_core.sweep.presets import PRESETS, Preset
    from ib_core.sweep.processes import lanes_here, run_all, run_sweep
    from ib_core.sweep.request import PROFILES
    from ib_core.sweep.result import (
        COLUMNS,
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
    from ib_core.sweep.spec import (
        Options,
        SweepSpec,
        TrialSpec,
        count_seeds,
        log_grid,
        read_options,
        specs_of,
    )
    from ib_core.sweep.speed import calibrate

__all__ = [
    "COLUMNS",
    "ENGINE_VERSION",
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
    "cost": "stack_memory stack_seconds",
    "engine": "member_of run_trials",
    "environment": "choose_device",
    "presets": "PRESETS Preset",
    "processes": "lanes_here run_all run_sweep",
    "result": (
        "COLUMNS ENGINE_VERSION SILENT CurvePoint Divergence Observer Outcome TrialResult "
        "fingerprint finite_or_none write_csv write_json"
    ),
    "shard": "PlannedShard plan_shards",
    "request": "PROFILES",
    "spec": "Options SweepSpec TrialSpec count_seeds log_grid read_options specs_of",
    "speed": "calibrate",
}


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names.split():
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
