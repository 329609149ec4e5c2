"""What can be run here: tasks, methods, activations, presets, and the limits of a sweep.

Data sets are described by cards, made by a process of their own, so that the web process stays
small.
"""

import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from threading import Lock

from backend.schemas import (
    ActivationRead,
    CatalogRead,
    DefaultsRead,
    MethodRead,
    MetricDefinitionRead,
    PresetRead,
    TaskRead,
)
from backend.settings import get_settings
from ib_core.datasets import DATASETS, has_card
from ib_core.errors import CorruptData, MissingData
from ib_core.methods import METHODS
from ib_core.metrics import METRICS
from ib_core.sweep import ENGINE_VERSION, PRESETS, Preset, count_seeds, specs_of
from ib_core.sweep.request import PROFILES, RATE_COUNT, SEED_COUNT
from ib_core.tasks import TASKS, Task, find_task, parameter_count
from ib_core.updates import SOLVABLE

#: Reading all data sets there are takes seconds; what takes longer than this is read here.
CARD_SECONDS = 120
_one_at_a_time = Lock()
_prepared: set[str] = set()


def get() -> CatalogRead:
    """Return everything a sweep may name; whether data is present is looked up anew."""
    present = {name: info.present() for name, info in DATASETS.items()}
    prepare_cards(name for name, here in present.items() if here)
    settings = get_settings()
    return CatalogRead(
        engine_version=ENGINE_VERSION,
        tasks=[_task(task, present=present[task.dataset]) for task in TASKS.values()],
        methods=[
            MethodRead(
                name=name,
                title=method.title,
                summary=method.summary,
                implicit=method.implicit,
            )
            for name, method in METHODS.items()
        ],
        activations=[
            ActivationRead(name=name, approximation_error=approximation_error(name))
            for name in SOLVABLE
        ],
        presets=[_preset(preset, present) for preset in PRESETS.values()],
        metrics=[
            MetricDefinitionRead(
                name=metric.name,
                title=metric.title,
                unit=metric.unit,
                better=metric.better,
                definition=metric.definition,
                citation=metric.citation,
            )
            for metric in METRICS.values()
        ],
        limits={
            "trials_per_sweep": settings.max_trials,
            "body_bytes": settings.max_body_bytes,
            "page": settings.page_limit,
            "learning_rates": int(RATE_COUNT.high),
            "seeds": int(SEED_COUNT.high),
        },
    )


def approximation_error(activation: str) -> float | None:
    """Return how far a rule's stand-in is from the activation; None where the rule is exact."""
    bound = SOLVABLE.get(activation)
    return bound.value if bound else None


def _task(task: Task, *, present: bool) -> TaskRead:
    return TaskRead(
        name=task.name,
        title=task.title,
        family=task.family,
        summary=task.summary,
        source=task.source,
        dataset=task.dataset,
        activation=task.activation,
        linear_output=task.linear_output,
        adjustable=sorted(task.adjustable),
        fixed_batch_size=task.fixed_batch_size,
        methods=[
            name
            for name, method in METHODS.items()
            if task.linear_output or not method.implicit_output
        ],
        profiles={profile: _defaults(task, profile, present=present) for profile in PROFILES},
        present=present,
        how_to_get=DATASETS[task.dataset].how_to_get,
    )


def _defaults(task: Task, profile: str, *, present: bool) -> DefaultsRead:
    defaults = task.defaults(profile)
    return DefaultsRead(
        epochs=defaults.epochs,
        batch_size=defaults.batch_size,
        learning_rates=list(defaults.learning_rates),
        seeds=list(count_seeds(defaults.seeds)),
        parameters=_parameters(task.name, profile, present),
    )


@lru_cache(maxsize=1024)
def _parameters(task_name: str, profile: str, present: bool) -> int | None:
    """Return a network's size; that of a UCI network is known only from its data."""
    task = find_task(task_name)
    if task.sizes is None and not present:
        return None
    try:
        return parameter_count(task, task.recipe(profile))
    except (MissingData, CorruptData):
        return None


def _preset(preset: Preset, present: dict[str, bool]) -> PresetRead:
    sweeps = preset.sweeps()
    return PresetRead(
        name=preset.name,
        title=preset.title,
        summary=preset.summary,
        sweeps=[dict(sweep) for sweep in sweeps],
        trials=_trials(preset.name),
        present=all(present[find_task(sweep["task"]).dataset] for sweep in sweeps),
    )


@lru_cache(maxsize=256)
def _trials(preset_name: str) -> int:
    return sum(spec.size for spec in specs_of({"preset": preset_name}))


def prepare_cards(names: Iterable[str]) -> None:
    """See to it that asking for these data sets' cards takes neither time nor memory.

    Data that is missing or broken stays without a card; whoever asks for that one is told why.
    """
    with _one_at_a_time:
        asked = set(names) - _prepared
        unread = sorted(name for name in asked if DATASETS[name].present() and not has_card(name))
        if unread:
            command = [sys.executable, "-P", "-m", "ib_core.datasets", *unread]
            with suppress(subprocess.TimeoutExpired):
                subprocess.run(command, stdin=subprocess.DEVNULL, timeout=CARD_SECONDS, check=False)
        _prepared.update(name for name in asked if DATASETS[name].present())
