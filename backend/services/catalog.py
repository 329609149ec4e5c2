"""What can be run here: tasks, methods, activations, presets, and the limits of a sweep.

Data sets are described by cards, made by a process of their own, so that the web process stays
small.
"""

import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from threading import Lock

from sqlalchemy.orm import Session

from backend.schemas import (
    ActivationRead,
    CatalogRead,
    DefaultsRead,
    MethodRead,
    MetricDefinitionRead,
    OfferRead,
    PresetRead,
    TaskRead,
)
from backend.services import offers
from backend.settings import get_settings
from ib_core.datasets import DATASETS, has_card
from ib_core.errors import CorruptData, MissingData
from ib_core.methods import METHODS
from ib_core.metrics import NUMBERS, PAPER
from ib_core.sweep import ENGINE_VERSION, PRESETS, Preset, count_seeds, specs_of
from ib_core.sweep.request import PROFILES, RATE_COUNT, SEED_COUNT
from ib_core.tasks import TASKS, PaperTask, Task, find_task, parameter_count
from ib_core.updates import SOLVABLE

#: Reading all data sets there are takes seconds; what takes longer than this is read here.
CARD_SECONDS = 120
#: What tasks that workers bring along are called together.
OWN_FAMILY = "yours"
_one_at_a_time = Lock()
_prepared: set[str] = set()


def get(session: Session) -> CatalogRead:
    """Return everything a sweep may name; whether data is present is looked up anew."""
    brought = offers.list_all(session)
    present = {name: info.present() for name, info in DATASETS.items()}
    prepare_cards(name for name, here in present.items() if here)
    settings = get_settings()
    own = own_methods(brought)
    return CatalogRead(
        engine_version=ENGINE_VERSION,
        tasks=[
            *(
                _task(task, present=present.get(task.dataset, True), own=own)
                for task in TASKS.values()
            ),
            *own_tasks(brought),
        ],
        methods=[
            *(
                MethodRead(
                    name=name,
                    title=method.title,
                    summary=method.summary,
                    implicit=method.implicit,
                )
                for name, method in METHODS.items()
            ),
            *own,
        ],
        offers=brought,
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
                citation=PAPER if metric.paper else "",
            )
            for metric in NUMBERS
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


def own_methods(brought: Iterable[OfferRead]) -> list[MethodRead]:
    """Return the methods that workers bring along."""
    return [
        MethodRead(
            name=name,
            title=_title(offer, name),
            summary=offer.summary,
            implicit=False,
            options=offer.options,
            version=offer.version,
            workers=offer.workers,
        )
        for name, offer in _sayable(brought, "method")
    ]


def own_tasks(brought: Sequence[OfferRead]) -> list[TaskRead]:
    """Return the tasks that workers bring along."""
    own = [name for name, _ in _sayable(brought, "method")]
    return [_own_task(name, offer, own) for name, offer in _sayable(brought, "task")]


def _own_task(name: str, offer: OfferRead, own: Sequence[str]) -> TaskRead:
    able = [
        one
        for one, method in METHODS.items()
        if (offer.implicit or not method.implicit)
        and (offer.linear_output or not method.implicit_output)
        and not method.implicit_filters
    ]
    given = offer.defaults
    defaults = DefaultsRead(
        epochs=given["epochs"],
        batch_size=given["batch_size"],
        learning_rates=given["learning_rates"],
        seeds=list(count_seeds(given["seeds"])),
        parameters=given.get("parameters"),
    )
    return TaskRead(
        name=name,
        title=_title(offer, name),
        family=OWN_FAMILY,
        summary=offer.summary,
        source=f"version {offer.version} on {', '.join(offer.workers) or 'no living worker'}",
        dataset="",
        activation="",
        linear_output=offer.linear_output,
        adjustable=sorted({"width", "depth"} & set(offer.options.get("properties", ()))),
        fixed_batch_size=None,
        options=offer.options,
        version=offer.version,
        workers=offer.workers,
        methods=[*able, *own],
        profiles=dict.fromkeys(PROFILES, defaults),
        present=bool(offer.workers),
        how_to_get=f"No living worker has it: {offers.how_to_start(offer.name)}.",
    )


def _sayable(brought: Iterable[OfferRead], kind: str) -> Iterator[tuple[str, OfferRead]]:
    """Return offers by how a sweep says them: the version a plain name means, others with theirs.

    What no living worker has is named only if nothing else has its name.
    """
    named: set[str] = set()
    for offer in brought:
        if offer.kind != kind or (offer.name in named and not offer.workers):
            continue
        plain = offer.name not in named
        named.add(offer.name)
        yield (offer.name if plain else f"{offer.name}@{offer.version}"), offer


def _title(offer: OfferRead, name: str) -> str:
    return offer.title if name == offer.name else f"{offer.title}, version {offer.version}"


def _task(task: Task, *, present: bool, own: Iterable[MethodRead] = ()) -> TaskRead:
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
            *(
                name
                for name, method in METHODS.items()
                if (task.linear_output or not method.implicit_output)
                and (task.has_filters or not method.implicit_filters)
            ),
            *(method.name for method in own),
        ],
        profiles={profile: _defaults(task, profile, present=present) for profile in PROFILES},
        present=present,
        how_to_get=DATASETS[task.dataset].how_to_get if task.dataset in DATASETS else "",
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
    if not isinstance(task, PaperTask) or (task.sizes is None and not present):
        return None  # to count the parameters of anybody's model one has to make it
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
        picture=preset.picture,
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
        here = [name for name in asked if name in DATASETS and DATASETS[name].present()]
        unread = sorted(name for name in here if not has_card(name))
        if unread:
            command = [sys.executable, "-P", "-m", "ib_core.datasets", *unread]
            with suppress(subprocess.TimeoutExpired):
                subprocess.run(command, stdin=subprocess.DEVNULL, timeout=CARD_SECONDS, check=False)
        _prepared.update(name for name in asked if name in DATASETS and DATASETS[name].present())
