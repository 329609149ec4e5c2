"""The form's fields."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import dash_mantine_components as dmc

from backend.schemas import CatalogRead, MethodRead, PresetRead, TaskRead
from dashboard import ids as shared
from dashboard.components import card, method_swatch, number_field
from dashboard.dash_blocks import Component, html
from dashboard.ids import NewSweep as ids
from dashboard.pages.new_sweep.body import (
    FAMILIES,
    FIELDS,
    KINDS,
    LABELS,
    PARTS,
    chosen_in,
    own_texts,
)
from dashboard.theme import count, counted
from ib_core.sweep.request import RECORDABLE
from ib_core.written import written


def task_card(catalog: CatalogRead, form: Mapping[str, Any], task: TaskRead | None) -> Component:
    """Return the choice of what is learnt."""
    families: dict[str, list[dict[str, str]]] = {}
    for one in catalog.tasks:
        missing = "" if one.present else " (no worker now)" if one.version else " (no data yet)"
        families.setdefault(one.family, []).append(
            {"value": one.name, "label": f"{one.title}{missing}"}
        )
    return card(
        dmc.Select(
            label=LABELS["task"],
            id=ids.TASK,
            data=[{"group": family, "items": items} for family, items in families.items()],
            value=form["task"],
            searchable=True,
            allowDeselect=False,
            nothingFoundMessage="No such task",
            maxDropdownHeight=360,
        ),
        html.Div(task_facts(task, form["profile"]), id=ids.TASK_FACTS),
        html.Div(own_fields(task, form["vary"]), id=ids.OWN),
        dmc.TextInput(id=FIELDS["vary"], value=form["vary"] or "", display="none"),
        dmc.CheckboxGroup(
            html.Div(
                method_boxes(catalog.methods, task), className="fields", id="new-method-boxes"
            ),
            label=LABELS["methods"],
            id=ids.METHODS,
            value=form["methods"],
            mt=16,
        ),
        dmc.TextInput(
            label=LABELS["other_methods"],
            id=FIELDS["other_methods"],
            value=form["other_methods"] or "",
            placeholder="torch.optim.AdamW(weight_decay=0.1), torch.optim.RAdam",
            debounce=400,
            mt=12,
        ),
        title="What to train",
    )


def task_facts(task: TaskRead | None, profile: str) -> Component | None:
    """Return what a task is, and how to get its data if that is not here."""
    if task is None:
        return None
    own = task.profiles.get(profile) or next(iter(task.profiles.values()))
    parts = (
        f"{count(own.parameters)} parameters" if own.parameters else "",
        counted(own.epochs, "epoch"),
        f"batch {own.batch_size}",
        task.activation,
        task.source,
    )
    words = " · ".join(part for part in parts if part)
    absent = "No worker has it now" if task.version else "Its data is not on this machine yet"
    missing = [dmc.Alert(task.how_to_get, title=absent, color="yellow", mt=8)]
    return html.Div(
        [
            html.P(task.summary, style={"margin": "8px 0 2px"}),
            html.P(words, className="history-meta", style={"margin": 0}),
            *([] if task.present else missing),
        ]
    )


def own_fields(task: TaskRead | None, text: str | None) -> Component | None:
    """Return a field for each of a task's own options, as its schema says.

    Args:
        task: With the JSON schema that its worker announced.
        text: What the fields hold, see `own_texts`.
    """
    options: Mapping[str, Any] = task.options.get("properties", {}) if task else {}
    if not options:
        return None
    held = own_texts(text)
    fields = [_own_field(name, schema, held.get(name, "")) for name, schema in options.items()]
    return html.Div(fields, className="fields", style={"marginTop": "12px"})


def _own_field(name: str, schema: Mapping[str, Any], held: str) -> Component:
    help = schema.get("description", "")
    if "enum" in schema:
        return dmc.MultiSelect(
            label=name,
            id=shared.part("own-choice", name),
            data=[{"value": json.dumps(one), "label": _plain(one)} for one in schema["enum"]],
            value=[json.dumps(one) for one in chosen_in(held)],
            placeholder=f"{_plain(schema['default'])}, the default",
            description=help or None,
            clearable=True,
        )
    hint = f"{written(schema['default'])}, the default"
    field = number_field(shared.part("own-number", name), None, text=held, label=name, hint=hint)
    return html.Div([field, html.Div(help, className="history-meta")]) if help else field


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else str(value).lower()


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
                {"value": "edge", "label": "Find the edge"},
            ],
            value=mode,
            size="xs",
            mb=12,
            style={"flexWrap": "wrap"},
            **{"aria-label": LABELS["rates_mode"]},
        ),
        html.Div(
            [
                _number("rate_from", form),
                _number("rate_to", form),
                _part("grid", mode, _number("rate_count", form)),
                _part("edge", mode, _number("rate_within", form, "1.1")),
                _part("edge", mode, _number("rate_most", form, "as many as it takes"), "most"),
            ],
            className="fields",
            id="new-rates-grid",
            style=None if mode in PARTS else {"display": "none"},
        ),
        html.Div(
            "Every seed's edge is found in rounds: coarse over the range, then halving the "
            "interval between its last sound and its first broken rate. No grid is needed.",
            id="new-rates-search",
            className="history-meta",
            style=None if mode == "edge" else {"display": "none"},
        ),
        html.Div(
            _number("rate_list", form, "0.1, 1, 10, or a grid: 0.01:100:9"),
            id="new-rates-list",
            style=None if mode == "list" else {"display": "none"},
        ),
        html.Div(id=ids.RATES, style={"marginTop": "8px"}),
        title="Learning rates",
    )


def _part(of: str, mode: str, field: Component, name: str = "") -> Component:
    """Return a field that only one way to give rates has."""
    shown = None if mode == of else {"display": "none"}
    return html.Div(field, id=f"new-rates-{name or of}-part", style=shown)


def seeds_card(form: Mapping[str, Any]) -> Component:
    """Return seeds and the options few sweeps need."""
    return card(
        html.Div(
            [
                _number("seeds", form, "5 means 1 to 5; or 1,2,7"),
                _number("epochs", form, "task's own"),
                _choice(
                    "profile",
                    form,
                    [("text", "text: as the paper says"), ("authors", "authors: as they ran it")],
                ),
            ],
            className="fields",
        ),
        title="Seeds and epochs",
    )


def options_card(catalog: CatalogRead, form: Mapping[str, Any]) -> Component:
    """Return the expander."""
    activations = [(one.name, one.name) for one in catalog.activations]
    fields = [
        _number("batch_size", form, "default; or 8, 32"),
        _number("clip", form, "none, 1"),
        _number("mu", form, "0"),
        _choices(
            "batch_rule",
            form,
            [("own", "own: each sample its own step"), ("share", "share: steps summed")],
        ),
        _choices("activation", form, activations),
        _choices("schedule", form, [(one, one) for one in FAMILIES["schedule"].choices]),
        _number("warmup", form, "0"),
        _choice("device", form, [("auto", "auto"), ("cpu", "cpu"), ("cuda", "cuda")]),
        _number("width", form, "default; or 16, 64"),
        _number("depth", form, "default"),
        _choices("isgd_form", form, [("text", "text"), ("authors", "authors")]),
        _number("inner_steps", form, "default"),
        _number("momentum", form, "default"),
        _number("validation", form, "none held out"),
        _choices("record", form, [(one, one) for one in RECORDABLE], unsaid="nothing"),
        _number("tau", form, "no decay"),
        _number("power", form, "1"),
        dmc.Switch(
            label=f"{LABELS['restart']} (needs mu > 0)",
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
                            label=LABELS["note"],
                            id=FIELDS["note"],
                            value=form["note"] or "",
                            mt=12,
                            debounce=True,
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
            label=LABELS["preset"],
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


def _number(name: str, form: Mapping[str, Any], hint: str = "") -> Component:
    return number_field(
        FIELDS[name], KINDS.get(name), text=form[name] or "", label=LABELS[name], hint=hint
    )


def _choice(name: str, form: Mapping[str, Any], choices: Sequence[tuple[str, str]]) -> Component:
    return dmc.Select(
        label=LABELS[name],
        id=FIELDS[name],
        data=[{"value": value, "label": words} for value, words in choices],
        value=form[name],
        allowDeselect=False,
    )


def _choices(
    name: str,
    form: Mapping[str, Any],
    choices: Sequence[tuple[str, str]],
    *,
    unsaid: str = "default",
) -> Component:
    """Return a field of one value or several: a family, or a list."""
    return dmc.MultiSelect(
        label=LABELS[name],
        id=FIELDS[name],
        data=[{"value": value, "label": words} for value, words in choices],
        value=form[name] or [],
        clearable=True,
        placeholder=None if form[name] else unsaid,
    )
