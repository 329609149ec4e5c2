"""What a study page can be asked to show: its controls, the address, the one task of many."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar, cast

import dash_mantine_components as dmc
from dash import Input, Output, State

from backend.schemas import (
    Band,
    Metric,
    PairedRead,
    Reducer,
    ScorecardRow,
    SeriesRead,
    StudyRead,
    SweepRead,
)
from dashboard import ids as shared
from dashboard.components import (
    BANDS,
    QUANTITIES,
    REDUCERS,
    SCALES,
    SPLITS,
    VALIDATION,
    Choice,
    Control,
    arrange_from,
    control_group,
    family_controls,
    family_of,
    family_panel,
    keep_in_url,
    segmented,
    switch,
    values_of,
    view_control,
    zoom_from,
    zoom_out_from,
)
from dashboard.dash_blocks import Component, browser_callback, html
from dashboard.figures import COORDINATES, STEPS, Family, ScaleName
from dashboard.ids import Study as ids

#: So many tasks are drawn together unless one is chosen.
MOST_TOGETHER = 4
#: So many series the API tells at once.
MOST_AT_ONCE = 1000
#: Fewer tasks are not compared as a whole.
LEAST_TASKS = 3
#: What the control says while nobody has chosen.
ANY = "all"

ALL_VIEWS: tuple[Choice, ...] = (
    ("curves", "Curves"),
    ("map", "Map"),
    ("against", "Against a setting"),
    ("learning", "Learning curves"),
    ("box", "Box plot"),
    (STEPS, "Step by step"),
    (COORDINATES, "Coordinate check"),
    ("best_of", "Best of k"),
    ("across", "Tasks"),
    ("method", "Minus EB"),
    ("clip", "Clipping"),
    ("engine", "Engines"),
)
CLIPPINGS: tuple[Choice, ...] = (("all", "Both"), ("off", "Without"), ("on", "With"))

PATH = r"^/studies/\d+/?$"

CONTROLS = (
    Control("quantity", ids.QUANTITY, "loss", choices=values_of(QUANTITIES)),
    Control("split", ids.SPLIT, "train", choices=values_of((*SPLITS, VALIDATION))),
    Control("reducer", ids.REDUCER, "final", choices=values_of(REDUCERS)),
    Control("clipping", ids.CLIPPING, "all", choices=values_of(CLIPPINGS)),
    Control("view", ids.VIEW, "curves", choices=values_of(ALL_VIEWS), said_by=ids.CONTROLS),
    Control("band", ids.BAND, "std", choices=values_of(BANDS)),
    Control("seeds", ids.SEEDS, True, kind="flag", property="checked"),
    Control("y", ids.SCALE, "focus", choices=values_of(SCALES)),
    Control("task", ids.TASK, ANY),
    *family_controls(ids),
    Control("numbers", ids.NUMBERS, "short", property="data", choices=("short", "all")),
    Control("zoom", ids.ZOOM, "", property="data"),
    Control("trials", ids.SELECTED, "", property="data", quiet=True),
)
#: Those that decide what is drawn; how closely one looks at it is the browser's affair.
DRAWN_BY = CONTROLS[:-3]

keep_in_url(PATH, CONTROLS)
arrange_from(ids)
zoom_out_from(ids)
#: What decides which picture is shown.
ASKED = [
    Input(ids.VERSION, "data"),
    *(Input(control.id, control.property) for control in DRAWN_BY),
    Input(shared.SCHEME, "data"),
    Input(shared.NARROW, "data"),
]
# What was shown for these controls before is there at once. The server has the last word: a mark,
# and the figure unless the browser has the one of this mark.
browser_callback(
    "function(...asked) { const zoom = asked.pop(); window.etascope.recall("
    f"{json.dumps(ids.GRAPH)}, {json.dumps(ids.ZOOM)}, zoom, asked); "
    "return window.dash_clientside.no_update; }",
    # Never written: an output on the page keeps the callback quiet while the page is not there.
    Output(ids.KEPT, "data", allow_duplicate=True),
    *ASKED,
    State(ids.ID, "data"),
    State(ids.ZOOM, "data"),
    prevent_initial_call=True,
)
browser_callback(
    "function(sent, mark, zoom, ...asked) { return window.etascope.settle("
    f"{json.dumps(ids.GRAPH)}, {json.dumps(ids.DRAWN)}, sent, mark, zoom, asked); }}",
    Output(ids.GRAPH, "figure"),
    Output(ids.GRAPH, "style"),
    Output(ids.ZOOM, "data", allow_duplicate=True),
    Output(ids.KEPT, "data"),
    Input(ids.DRAWN, "data"),
    Input(ids.MARK, "data"),
    State(ids.ZOOM, "data"),
    *(State(one.component_id, one.component_property) for one in ASKED),
    State(ids.ID, "data"),
    prevent_initial_call=True,
)
zoom_from(ids.GRAPH, ids.ZOOM)
#: Controls that do nothing in some view, in the order of `idle`.
IDLE = (ids.SPLIT, ids.REDUCER, ids.VIEW, ids.BAND, ids.CLIPPING)
OF_TIME = (
    "A share of the time a stack of trials took, and no cost of a method: “Measure” finds that. It "
    "has no split and no best epoch, and is drawn as curves only."
)
OF_DIFFERENCES = (
    "Differences show both splits, with 95 % intervals, and pair clipped and unclipped runs."
)
OF_NUMBERS = "Here the interval is the number's own, from the scorecard."
OF_LEARNING = "Curves over training show every epoch and every seed; there is no band."
OF_SEEDS = "Boxes show the seeds at one rate; there is no band."
OF_STEPS = "Steps were recorded of one seed; there is no band. The slider chooses the rate below."
OF_OUTPUTS = (
    "Outputs were looked at of one seed; there is no band. The slider chooses the rate, at first "
    "the best of each panel's narrowest network."
)
OF_CELLS = "A map's cells are means; there is no band."
OF_TASKS = "Tasks are compared by the scorecard's numbers, with all curves that they share."
WORDS = {
    "best_of": OF_NUMBERS,
    "against": OF_NUMBERS,
    "across": OF_TASKS,
    "learning": OF_LEARNING,
    "box": OF_SEEDS,
    STEPS: OF_STEPS,
    COORDINATES: OF_OUTPUTS,
    "map": OF_CELLS,
}
# A control that would do nothing cannot be pressed, and a sentence says why.
browser_callback(
    "function(quantity, view) { const words = "
    f"{json.dumps(WORDS)};"
    " if (quantity === 'seconds') {"
    f" return [true, true, true, false, false, {json.dumps(OF_TIME)}]; }}"
    " if (view === 'curves') { return [false, false, false, false, false, '']; }"
    " if (words[view]) { return [false, false, false, true, view === 'across', words[view]]; }"
    f" return [true, false, false, true, true, {json.dumps(OF_DIFFERENCES)}]; }}",
    *[Output(control, "disabled") for control in IDLE],
    Output(ids.REASON, "children"),
    Input(ids.QUANTITY, "value"),
    Input(ids.VIEW, "value"),
)


# fmt: off
ViewName = Literal[
    "curves", "map", "against", "learning", "box", "steps", "coordinates", "best_of", "across",
    "method", "clip", "engine",
]
# fmt: on
#: How many of them are no controls of families.
OWN = len(DRAWN_BY) - len(family_controls(ids))


#: Their names below.
FIELDS = (
    *("quantity", "split", "reducer", "clipping", "view"),
    *("band", "seeds", "scale", "task"),
)


@dataclass(frozen=True, slots=True)
class StudyView:
    """The controls' values, in their order."""

    quantity: str
    split: str
    reducer: Reducer
    clipping: str
    view: ViewName
    band: Band
    seeds: bool
    scale: ScaleName
    task: str = ANY
    family: Family = field(default_factory=Family)

    @classmethod
    def of(cls, values: Sequence[Any]) -> "StudyView":
        """Return what the controls in `DRAWN_BY` say."""
        own = dict(zip(FIELDS, values[:OWN], strict=True))
        return cls(**own, family=family_of(values[OWN:], own["view"]))

    @property
    def picture(self) -> str:
        """What is drawn; time is drawn as curves only."""
        return "curves" if self.quantity == "seconds" else self.view

    @property
    def metric(self) -> Metric:
        """What the API calls what is drawn."""
        return metric_of(self.quantity, self.split)

    @property
    def both_splits(self) -> tuple[Metric, Metric]:
        """What differences are drawn of; time is no loss."""
        quantity = "loss" if self.quantity == "seconds" else self.quantity
        return metric_of(quantity, "train"), metric_of(quantity, "test")

    @property
    def scored(self) -> Metric:
        """What the scorecard is about."""
        return metric_of("loss" if self.quantity == "seconds" else self.quantity, self.split)

    def shows(self, line: SeriesRead | ScorecardRow) -> bool:
        """Whether a curve is wanted."""
        return self.clipping == "all" or (self.clipping == "on") == (line.clip is not None)


def metric_of(quantity: str, split: str) -> Metric:
    """Return the API's name of a quantity on a split."""
    return cast(Metric, "seconds" if quantity == "seconds" else f"{split}_{quantity}")


def control_panel(
    values: dict[str, Any], sweeps: Sequence[SweepRead], tasks: Sequence[str]
) -> list[Any]:
    """Return the controls, set to an address's values; what would show nothing is left out.

    Args:
        values: By query parameter.
        sweeps: The study's.
        tasks: The study's.
    """
    clips = any(clip is not None for sweep in sweeps for clip in sweep.spec.get("clips", ()))
    engines = len({sweep.engine_version for sweep in sweeps if sweep.engine_version}) > 1
    shown = {"clip": clips, "engine": engines, "across": len(tasks) >= LEAST_TASKS}
    kept = {what for sweep in sweeps for what in sweep.spec.get("record") or ()}
    shown |= {STEPS: bool(kept - {"activations"}), COORDINATES: "activations" in kept}
    views = [one for one in ALL_VIEWS if shown.get(one[0], True) or one[0] == values["view"]]
    held_out = values["split"] == VALIDATION[0] or any(_may_hold_out(one.spec) for one in sweeps)
    splits = (*SPLITS, VALIDATION) if held_out else SPLITS
    data = [
        task_control(tasks, values["task"]),
        segmented("Quantity", ids.QUANTITY, QUANTITIES, values["quantity"]),
        segmented("Split", ids.SPLIT, splits, values["split"]),
        segmented("Epoch", ids.REDUCER, REDUCERS, values["reducer"]),
    ]
    clipping = segmented("Clipping", ids.CLIPPING, CLIPPINGS, values["clipping"])
    clipping.style = None if clips else {"display": "none"}
    return [
        control_group("Data", *data, clipping),
        control_group(
            "View",
            view_control(ids.VIEW, views, values["view"]),
            segmented("Band", ids.BAND, BANDS, values["band"]),
            switch("Seeds", ids.SEEDS, values["seeds"]),
        ),
        family_panel(ids, values),
        control_group("Axes", segmented("y scale", ids.SCALE, SCALES, values["y"])),
        html.P(id=ids.REASON, className="muted reason", role="status"),
    ]


def _may_hold_out(spec: Mapping[str, Any]) -> bool:
    """Return whether trials may have validation losses: asked for, or by somebody's own task."""
    options = spec.get("options") or {}
    own = "code" in options or spec.get("where") == "agents" or spec.get("imported")
    return bool("validation" in options or own)


def one_control_away(
    view: StudyView, choices: Mapping[str, Any] | None = None
) -> Iterator[StudyView]:
    """Yield the views that differ from one in one control, the likeliest first.

    Args:
        view: What is looked at.
        choices: What its series can be arranged by, as `choices_of` has it.
    """
    yield replace(view, split="test" if view.split == "train" else "train")
    yield replace(view, quantity="accuracy" if view.quantity == "loss" else "loss")
    yield replace(view, reducer="best" if view.reducer == "final" else "final")
    yield from (replace(view, scale=name) for name in ("log", "focus") if name != view.scale)
    yield from (replace(view, band=name) for name in ("quantile", "std", "se") if name != view.band)
    yield replace(view, view="method" if view.view == "curves" else "curves")
    yield from (replace(view, view=name) for name in ("map", "best_of"))
    if choices and choices["many"]:
        yield from _arranged(view, choices)


def _arranged(view: StudyView, choices: Mapping[str, Any]) -> Iterator[StudyView]:
    """Yield the other pictures of many series, and the curves in other colours and panels."""
    yield from (replace(view, view=name) for name in ("against", "learning", "box"))
    if view.view != "curves":
        return
    for name in ("panel", "colour"):
        for one in choices[name]:
            if one["value"] != getattr(view.family, name):
                yield replace(view, family=replace(view.family, **{name: one["value"]}))


Line = TypeVar("Line", SeriesRead, ScorecardRow)


def task_shown(wanted: str, tasks: Sequence[str]) -> str | None:
    """Return the task that is shown alone; None: all of them."""
    if wanted in tasks:
        return wanted
    return tasks[0] if len(tasks) > MOST_TOGETHER else None


def asked_alone(study: StudyRead, task: str | None) -> str | None:
    """Return the task to ask for alone; None: all at once, so that another is shown at once.

    Of very many series the API tells the first only, and those of most tasks would be missing.
    """
    return task if len(study.tasks) * len(study.methods) > MOST_AT_ONCE else None


def of_task(lines: Sequence[Line], task: str | None) -> list[Line]:
    """Return a task's curves or rows, named by what still tells them apart."""
    if task is None:
        return list(lines)
    return named_apart([line for line in lines if line.task == task])


def named_apart(lines: Sequence[Line]) -> list[Line]:
    """Return curves or rows, named by what tells those that are left apart."""
    labels = without_common([line.label for line in lines])
    return [
        line.model_copy(update={"label": label}) for line, label in zip(lines, labels, strict=True)
    ]


def pairs_of_task(items: Sequence[PairedRead], task: str | None) -> list[PairedRead]:
    """Return a task's differences, or all; labels say only what tells those apart."""
    own = [item for item in items if task is None or task in item.first_label.split(", ")]
    labels = without_common([one for item in own for one in (item.first_label, item.second_label)])
    return [
        item.model_copy(update={"first_label": first, "second_label": second})
        for item, first, second in zip(own, labels[::2], labels[1::2], strict=True)
    ]


def without_common(labels: Sequence[str]) -> list[str]:
    """Return labels without the words that all of them have; a method is always named."""
    split = [label.split(", ") for label in labels]
    common = set.intersection(*map(set, split)) if split else set()
    return [
        ", ".join([first, *(part for part in rest if part not in common)]) for first, *rest in split
    ]


def task_control(tasks: Sequence[str], wanted: str) -> Component:
    """Return the choice of a task; one that is the only one needs no choice."""
    together = len(tasks) <= MOST_TOGETHER
    first = {"value": ANY, "label": "all" if together else tasks[0]}
    rest = [{"value": task, "label": task} for task in (tasks if together else tasks[1:])]
    return html.Div(
        [
            html.Span("Task", id=f"{ids.TASK}-label"),
            dmc.Select(
                id=ids.TASK,
                data=[first, *rest],
                value=wanted if wanted in tasks and (together or wanted != tasks[0]) else ANY,
                allowDeselect=False,
                searchable=True,
                size="xs",
                **{"aria-labelledby": f"{ids.TASK}-label"},
            ),
        ],
        className="control",
        style=None if len(tasks) > 1 else {"display": "none"},
    )
