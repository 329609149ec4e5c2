"""A sweep as people send it, by JSON or by flags, turned into runnable specs."""

from collections.abc import Mapping
from typing import Any

from ib_core.errors import InvalidSpec, lookup
from ib_core.sweep.grid import count_seeds, log_grid
from ib_core.sweep.presets import PRESETS
from ib_core.sweep.spec import SweepSpec
from ib_core.tasks import find_task


def specs_of(body: Mapping[str, Any]) -> tuple[SweepSpec, ...]:
    """Return the sweeps a body asks for: one, or those of its `preset`.

    What the body says besides the preset's name replaces the preset's own settings, so
    `{"preset": "paper/05_jsb_chorales", "seeds": 1}` is a cheap look at it.

    Raises:
        IBError: With one sentence that names the field.
    """
    given = {key: value for key, value in body.items() if value is not None and key != "preset"}
    name = body.get("preset")
    if name is None:
        return (_spec(given),)
    preset = lookup("preset", name, PRESETS, field="preset")
    return tuple(_spec({**sweep, **given}) for sweep in preset.sweeps(given.get("profile", "text")))


def _spec(body: Mapping[str, Any]) -> SweepSpec:
    if "task" not in body:
        raise InvalidSpec("Name a task or a preset.", field="task")
    settings = {key: value for key, value in body.items() if key not in ("task", "clip", "note")}
    task = find_task(body["task"])
    defaults = task.defaults(settings.get("profile", "text"))
    rates = settings.get("learning_rates", defaults.learning_rates)
    if isinstance(rates, Mapping):
        rates = log_grid(rates["from"], rates["to"], rates["count"])
    seeds = settings.get("seeds", defaults.seeds)
    settings["learning_rates"] = rates
    settings["seeds"] = count_seeds(seeds) if isinstance(seeds, int) else seeds
    clip = body.get("clip")
    settings["clips"] = tuple(clip) if isinstance(clip, list | tuple) else (clip,)
    return SweepSpec.create(body["task"], **settings)
