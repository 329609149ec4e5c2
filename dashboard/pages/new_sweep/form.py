"""The form's fields."""

from collections.abc import Mapping, Sequence
from typing import Any

import dash_mantine_components as dmc

from backend.schemas import CatalogRead, MethodRead, PresetRead, TaskRead
from dashboard.components.elements import card, method_swatch
from dashboard.formats import count, counted
from dashboard.ids import NewSweep as ids
from dashboard.markup import Component, html
from dashboard.pages.new_sweep.body import FIELDS

DEBOUNCE = 350


def task_card(catalog: CatalogRead, form: Mapping[str, Any], task: TaskRead | None) -> Component:
    """Return the choice of what is learnt."""
    families: dict[str, list[dict[str, str]]] = {}
    for one in catalog.tasks:
        missing = "" if one.present else " (no data yet)"
        families.setdefault(one.family, []).append(
            {"value": one.name, "label": f"{one.title}{missing}"}
        )
    return card(
        dmc.Select(
            label="Task",
            id=ids.TASK,
            data=[{"group": family, "items": items} for family, items in families.items()],
            value=form["task"],
            searchable=True,
            allowDeselect=False,
            nothingFoundMessage="No such task",
            maxDropdownHeight=360,
        ),
        html.Div(task_facts(task, form["profile"]), id=ids.TASK_FACTS),
        dmc.CheckboxGroup(
            html.Div(
                method_boxes(catalog.methods, task), className="fields", id="new-method-boxes"
            ),
            label="Methods",
            id=ids.METHODS,
            value=form["methods"],
            mt=16,
        ),
        title="What to train",
    )


def task_facts(task: TaskRead | None, profile: str) -> Component | None:
    """Return what a task is, and how to get its data if that is not here."""
    if task is None:
        return None
    own = task.profiles.get(profile) or next(iter(task.profiles.values()))
    words = (
        f"{count(own.parameters)} parameters · {counted(own.epochs, 'epoch')} · "
        f"batch {own.batch_size} · {task.activation} · {task.source}"
    )
    missing = [
        dmc.Alert(
            task.how_to_get, title="Its data is not on this machine yet", color="yellow", mt=8
        )
    ]
    return html.Div(
        [
            html.P(task.summary, style={"margin": "8px 0 2px"}),
            html.P(words, className="history-meta", style={"margin": 0}),
            *([] if task.present else missing),
        ]
    )


def method_boxes(methods: Sequence[MethodRead], task: TaskRead | None) -> list[Component]:
    """Return a box a method; those that cannot train the task are off and say so."""
    able = set(task.methods) if task else {method.name for method in methods}
    return [
        dmc.Checkbox(
            label=html.Span([method_swatch(method.name), method.title]),
            value=method.name,
            disabled=method.name not in able,
            description=method.summary if method.name in able else "cannot train this task",
        )
        for method in methods
    ]


def rates_card(form: Mapping[str, Any]) -> Component:
    """Return the builder of the grid of rates, with a preview."""
    mode = form["rates_mode"]
    return card(
        dmc.SegmentedControl(
            id=ids.RATES_MODE,
            data=[
                {"value": "grid", "label": "Log-spaced grid"},
                {"value": "list", "label": "List"},
                {"value": "own", "label": "The task's own"},
            ],
            value=mode,
            size="xs",
            mb=12,
            **{"aria-label": "How rates are given"},
        ),
        html.Div(
            [
                _number("From", ids.RATE_FROM, form["rate_from"]),
                _number("To", ids.RATE_TO, form["rate_to"]),
                _number("Number of rates", ids.RATE_COUNT, form["rate_count"], decimals=False),
            ],
            className="fields",
            id="new-rates-grid",
            style=None if mode == "grid" else {"display": "none"},
        ),
        html.Div(
            _text("Rates", ids.RATE_LIST, form["rate_list"], "0.1, 1, 10"),
            id="new-rates-list",
            style=None if mode == "list" else {"display": "none"},
        ),
        html.Div(id=ids.RATES, style={"marginTop": "8px"}),
        title="Learning rates",
    )


def seeds_card(form: Mapping[str, Any]) -> Component:
    """Return seeds and the options few sweeps need."""
    return card(
        html.Div(
            [
                _text("Seeds", ids.SEEDS, form["seeds"], "5 means 1 to 5; or 1,2,7"),
                _number(
                    "Epochs", FIELDS["epochs"], form["epochs"], decimals=False, hint="task's own"
                ),
                _choice(
                    "Profile",
                    FIELDS["profile"],
                    [("text", "text: as the paper says"), ("authors", "authors: as they ran it")],
                    form["profile"],
                ),
            ],
            className="fields",
        ),
        title="Seeds and epochs",
    )


def options_card(catalog: CatalogRead, form: Mapping[str, Any]) -> Component:
    """Return the expander."""
    activations = [(one.name, one.name) for one in catalog.activations]
    whole: dict[str, Any] = {"decimals": False, "hint": "default"}
    fields = [
        _number("Batch size", FIELDS["batch_size"], form["batch_size"], **whole),
        _text("Clipping norms", FIELDS["clip"], form["clip"], "none, 1"),
        _number("Ridge mu", FIELDS["mu"], form["mu"], hint="0"),
        _choice(
            "Batch rule",
            FIELDS["batch_rule"],
            [("own", "own: each sample its own step"), ("share", "share: steps summed")],
            form["batch_rule"],
            clearable=True,
        ),
        _choice(
            "Activation", FIELDS["activation"], activations, form["activation"], clearable=True
        ),
        _choice(
            "Device",
            FIELDS["device"],
            [("auto", "auto"), ("cpu", "cpu"), ("cuda", "cuda")],
            form["device"],
        ),
        _number("Width", FIELDS["width"], form["width"], **whole),
        _number("Depth", FIELDS["depth"], form["depth"], **whole),
        _choice(
            "ISGD form",
            FIELDS["isgd_form"],
            [("text", "text"), ("authors", "authors")],
            form["isgd_form"],
            clearable=True,
        ),
        _number("ISGD inner steps", FIELDS["inner_steps"], form["inner_steps"], **whole),
        _number("Momentum", FIELDS["momentum"], form["momentum"], hint="default"),
        _number("Decay: tau", FIELDS["tau"], form["tau"], hint="no decay"),
        _number("Decay: power", FIELDS["power"], form["power"], hint="1"),
        dmc.Switch(
            label="Restart from zero (needs mu > 0)",
            id=FIELDS["restart"],
            checked=bool(form["restart"]),
            mt=28,
        ),
    ]
    return dmc.Accordion(
        dmc.AccordionItem(
            [
                dmc.AccordionControl("More options"),
                dmc.AccordionPanel(
                    [
                        html.Div(fields, className="fields"),
                        dmc.Textarea(
                            label="Note",
                            id=FIELDS["note"],
                            value=form["note"] or "",
                            mt=12,
                            debounce=DEBOUNCE,
                        ),
                    ]
                ),
            ],
            value="options",
        ),
        variant="contained",
        chevronPosition="left",
    )


def preset_card(catalog: CatalogRead, form: Mapping[str, Any]) -> Component:
    """Return the choice of a ready-made study."""
    groups: dict[str, list[dict[str, str]]] = {}
    for preset in catalog.presets:
        group = preset.name.partition("/")[0]
        missing = "" if preset.present else " (no data yet)"
        groups.setdefault(group, []).append(
            {"value": preset.name, "label": f"{preset.title}{missing}"}
        )
    return card(
        dmc.Select(
            label="Preset",
            id=ids.PRESET,
            data=[{"group": name, "items": items} for name, items in groups.items()],
            value=form["preset"],
            searchable=True,
            allowDeselect=False,
            maxDropdownHeight=360,
        ),
        html.Div(preset_facts(_find(catalog, form["preset"])), id=ids.PRESET_FACTS),
        title="Which preset",
    )


def _find(catalog: CatalogRead, name: str | None) -> PresetRead | None:
    return next((preset for preset in catalog.presets if preset.name == name), None)


def preset_facts(preset: PresetRead | None) -> Component | None:
    """Return what a preset stands for."""
    if preset is None:
        return None
    words = f"{counted(len(preset.sweeps), 'sweep')}, {counted(preset.trials, 'trial')}"
    return html.Div(
        [
            html.P(preset.summary, style={"margin": "8px 0 2px"}),
            html.P(words, className="history-meta", style={"margin": 0}),
        ]
    )


def _number(label: str, id: str, value: Any, *, decimals: bool = True, hint: str = "") -> Component:
    return dmc.NumberInput(
        label=label,
        id=id,
        value="" if value is None else value,
        allowDecimal=decimals,
        allowNegative=False,
        hideControls=True,
        debounce=DEBOUNCE,
        placeholder=hint,
        decimalScale=12,
    )


def _text(label: str, id: str, value: Any, hint: str) -> Component:
    return dmc.TextInput(label=label, id=id, value=value or "", placeholder=hint, debounce=DEBOUNCE)


def _choice(
    label: str, id: str, choices: Sequence[tuple[str, str]], value: Any, *, clearable: bool = False
) -> Component:
    return dmc.Select(
        label=label,
        id=id,
        data=[{"value": name, "label": words} for name, words in choices],
        value=value,
        clearable=clearable,
        allowDeselect=clearable,
        placeholder="default",
    )
