"""What a study page can be asked to show, and the address that asks for it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from dash import Input, Output

from backend.schemas import Band, Metric, Reducer, SeriesRead, SweepRead
from dashboard.callbacks import browser_callback
from dashboard.components import controls
from dashboard.components.url_state import Control, keep_in_url
from dashboard.figures.scale import ScaleName
from dashboard.ids import Study as ids
from dashboard.markup import html
from dashboard.pages.study.tasks import ANY, task_control

PATH = r"^/studies/\d+/?$"

CONTROLS = (
    Control("quantity", ids.QUANTITY, "loss", choices=controls.values(controls.QUANTITIES)),
    Control("split", ids.SPLIT, "train", choices=controls.values(controls.SPLITS)),
    Control("reducer", ids.REDUCER, "final", choices=controls.values(controls.REDUCERS)),
    Control("clipping", ids.CLIPPING, "all", choices=controls.values(controls.CLIPPINGS)),
    Control("view", ids.VIEW, "curves", choices=controls.values(controls.VIEWS)),
    Control("band", ids.BAND, "std", choices=controls.values(controls.BANDS)),
    Control("seeds", ids.SEEDS, True, kind="flag", property="checked"),
    Control("y", ids.SCALE, "focus", choices=controls.values(controls.SCALES)),
    Control("task", ids.TASK, ANY),
    Control("zoom", ids.ZOOM, "", property="data"),
    Control("trials", ids.SELECTED, "", property="data"),
)
#: Those that decide what is drawn; how closely one looks at it is the browser's affair.
DRAWN_BY = CONTROLS[:-2]

keep_in_url(PATH, CONTROLS)
browser_callback(
    "function(zoom) { return zoom ? 'inline-block' : 'none'; }",
    Output(ids.ZOOM_OUT, "display"),
    Input(ids.ZOOM, "data"),
)
browser_callback(
    "function() { return ''; }",
    Output(ids.ZOOM, "data", allow_duplicate=True),
    Input(ids.ZOOM_OUT, "n_clicks"),
    prevent_initial_call=True,
)
#: Controls that do nothing in some view, in the order of `idle`.
IDLE = (ids.SPLIT, ids.REDUCER, ids.VIEW, ids.BAND, ids.CLIPPING)
OF_TIME = "Time has no split and no best epoch, and is drawn as curves only."
OF_DIFFERENCES = (
    "Differences show both splits, with 95 % intervals, and pair clipped and unclipped runs."
)
# A control that would do nothing cannot be pressed, and a sentence says why.
browser_callback(
    "function(quantity, view) { const time = quantity === 'seconds', pairs = view !== 'curves';"
    " const idle = time ? [true, true, true, false, false] : [pairs, false, false, pairs, pairs];"
    f" return [...idle, time ? {json.dumps(OF_TIME)} : pairs ? {json.dumps(OF_DIFFERENCES)} : ''];"
    " }",
    *[Output(control, "disabled") for control in IDLE],
    Output(ids.REASON, "children"),
    Input(ids.QUANTITY, "value"),
    Input(ids.VIEW, "value"),
)


@dataclass(frozen=True, slots=True)
class StudyView:
    """The controls' values, in their order."""

    quantity: str
    split: str
    reducer: Reducer
    clipping: str
    view: Literal["curves", "method", "clip", "engine"]
    band: Band
    seeds: bool
    scale: ScaleName
    task: str = ANY

    @property
    def shows_curves(self) -> bool:
        """Whether curves are drawn, not differences; time is never the latter."""
        return self.view == "curves" or self.quantity == "seconds"

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

    def shows(self, line: SeriesRead) -> bool:
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
    shown = {"curves": True, "method": True, "clip": clips, "engine": engines}
    views = [one for one in controls.VIEWS if shown[one[0]] or one[0] == values["view"]]
    data = [
        task_control(tasks, values["task"]),
        controls.segmented("Quantity", ids.QUANTITY, controls.QUANTITIES, values["quantity"]),
        controls.segmented("Split", ids.SPLIT, controls.SPLITS, values["split"]),
        controls.segmented("Epoch", ids.REDUCER, controls.REDUCERS, values["reducer"]),
    ]
    clipping = controls.segmented("Clipping", ids.CLIPPING, controls.CLIPPINGS, values["clipping"])
    clipping.style = None if clips else {"display": "none"}
    return [
        controls.group("Data", *data, clipping),
        controls.group(
            "View",
            controls.segmented("Picture", ids.VIEW, views, values["view"]),
            controls.segmented("Band", ids.BAND, controls.BANDS, values["band"]),
            controls.switch("Seeds", ids.SEEDS, values["seeds"]),
        ),
        controls.group(
            "Axes", controls.segmented("y scale", ids.SCALE, controls.SCALES, values["y"])
        ),
        html.P(id=ids.REASON, className="muted reason", role="status"),
    ]
