"""Sweeps: what to train, in which stacks, the one training loop, and what it returns.

| module | holds |
| --- | --- |
| `request` | a sweep as people write it: the one reader of bodies, command words and forms |
| `settings` | everything a sweep can say, each setting once |
| `values` | what settings take: their limits, and how each value is read |
| `spec` | `SweepSpec`, `TrialSpec`: validated once, frozen afterwards; what is refused |
| `bodies` | `specs_of` a body: its preset's, and one for every combination of listed values |
| `search` | what to find in place of rates, read; what it may take |
| `rounds` | `next_round`: the planner of a search, and what it has found |
| `presets` | sweeps by name: the paper's experiments, and first ones |
| `named_studies` | ten studies of the field, as presets |
| `shard` | which trials train as one stack, cut to their device's memory |
| `cost` | what a stack will take: work counted, divided by speeds |
| `machine` | this machine: its speeds, measured and kept; devices; what a result was made with |
| `on_gpu` | steps on a GPU: launches noted, replayed as a graph where that is right |
| `engine` | `run_trials`: a stack, trained |
| `recorder` | norms and sharpness of a stack while it trains |
| `recording` | what was recorded of a trial, as numbers and bytes |
| `replay` | a trial trained again, alone and watched; why it broke, in words |
| `ways` | stacked or one by one: found out, with the reason |
| `runner` | `run_sweep`, `Results`: a sweep from Python or a notebook; `run_all`: stacks side by side on all cores; `Guard`: a shard in a process of its own |
| `lanes` | training processes forked from this one, guarded where they run a user's code |
| `result` | `TrialResult`, its address and its files; `Observer` |

Names are imported when first used: planning and reading need no torch, training does.
"""  # noqa: E501  a table is a table

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ib_core.sweep.bodies import bodies_of, specs_of
    from ib_core.sweep.cost import stack_memory, stack_seconds
    from ib_core.sweep.engine import run_trials
    from ib_core.sweep.lanes import LaneDied, is_own
    from ib_core.sweep.machine import calibrate, can_fork, choose_device, keep_pages
    from ib_core.sweep.on_gpu import CudaGraph, Graph, Launches, ReplayedSteps
    from ib_core.sweep.presets import PRESETS, Preset
    from ib_core.sweep.recording import Recording, Wish, explodes_above, recording_answer
    from ib_core.sweep.replay import (
        Agreement,
        Replayed,
        Story,
        agreement,
        layer_title,
        replay_trial,
        tell,
    )
    from ib_core.sweep.request import PROFILES, count_seeds, log_grid
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
        options_text,
        write_csv,
        write_json,
    )
    from ib_core.sweep.rounds import (
        Ask,
        Book,
        SeedEdge,
        Seen,
        SeriesFound,
        in_words,
        next_round,
        run_rounds,
        series_found,
        series_of,
        trial_of,
    )
    from ib_core.sweep.runner import Guard, Results, lanes_here, run_all, run_sweep
    from ib_core.sweep.search import Search
    from ib_core.sweep.shard import PlannedShard, plan_shards
    from ib_core.sweep.spec import (
        Options,
        SweepSpec,
        TrialSpec,
        read_options,
    )
    from ib_core.sweep.ways import Way, alone, choose_way, member_of

__all__ = [
    "COLUMNS",
    "ENGINE_VERSION",
    "PRESETS",
    "PROFILES",
    "SILENT",
    "Agreement",
    "Ask",
    "Book",
    "CudaGraph",
    "CurvePoint",
    "Divergence",
    "Graph",
    "Guard",
    "LaneDied",
    "Launches",
    "Observer",
    "Options",
    "Outcome",
    "PlannedShard",
    "Preset",
    "Recording",
    "Replayed",
    "ReplayedSteps",
    "Results",
    "Search",
    "SeedEdge",
    "Seen",
    "SeriesFound",
    "Story",
    "SweepSpec",
    "TrialResult",
    "TrialSpec",
    "Way",
    "Wish",
    "agreement",
    "alone",
    "bodies_of",
    "calibrate",
    "can_fork",
    "choose_device",
    "choose_way",
    "count_seeds",
    "explodes_above",
    "fingerprint",
    "finite_or_none",
    "in_words",
    "is_own",
    "keep_pages",
    "lanes_here",
    "layer_title",
    "log_grid",
    "member_of",
    "next_round",
    "options_text",
    "plan_shards",
    "read_options",
    "recording_answer",
    "replay_trial",
    "run_all",
    "run_rounds",
    "run_sweep",
    "run_trials",
    "series_found",
    "series_of",
    "specs_of",
    "stack_memory",
    "stack_seconds",
    "tell",
    "trial_of",
    "write_csv",
    "write_json",
]

_HOMES = {
    "bodies": "bodies_of specs_of",
    "cost": "stack_memory stack_seconds",
    "engine": "run_trials",
    "presets": "PRESETS Preset",
    "lanes": "LaneDied is_own",
    "machine": "calibrate can_fork choose_device keep_pages",
    "on_gpu": "CudaGraph Graph Launches ReplayedSteps",
    "runner": "Guard Results lanes_here run_all run_sweep",
    "result": (
        "COLUMNS ENGINE_VERSION SILENT CurvePoint Divergence Observer Outcome TrialResult "
        "fingerprint finite_or_none options_text write_csv write_json"
    ),
    "rounds": (
        "Ask Book SeedEdge Seen SeriesFound in_words next_round run_rounds series_found "
        "series_of trial_of"
    ),
    "search": "Search",
    "shard": "PlannedShard plan_shards",
    "recording": "Recording Wish explodes_above recording_answer",
    "replay": "Agreement Replayed Story agreement layer_title replay_trial tell",
    "request": "PROFILES count_seeds log_grid",
    "spec": "Options SweepSpec TrialSpec read_options",
    "ways": "Way alone choose_way member_of",
}


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names.split():
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
