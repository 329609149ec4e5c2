"""The report's pictures, in every variant a reader may need: light and dark, wide and narrow.

How the dashboard draws is handed in by whoever puts the parts together (`Look`): the report looks
like the pages and knows none of them.

A study's results as the curves of one or more pictures, with their numbers.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from backend.paper import method_numbers, read_point
from backend.schemas import ClipRead, MethodNumbersRead, PaperRead, SeriesRead, UciAccuracyRead
from ib_core.methods import place
from ib_core.metrics import KINDS, RateCurve, SeedResult, score_task
from ib_core.reproduction import TableNumbers
from ib_core.sweep import TrialResult
from ib_core.tasks import find_task

Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
#: By scheme, then by width: plotly's JSON without the template, which all share.
Variants = dict[str, dict[str, Any]]
#: Six digits draw the same picture in half the bytes.
DIGITS = 6


class MethodLook(Protocol):
    """What one method looks like."""

    @property
    def short(self) -> str:
        """What narrow places call it."""

    @property
    def colour(self) -> str:
        """Of lines and markers."""

    def ink(self, scheme: Scheme) -> str:
        """Return the shade for thin outlines."""


#: Series, title, scheme, whether it is narrow, the divergence threshold, the loss before training.
DrawCurves = Callable[
    [Sequence[SeriesRead], str, Scheme, bool, float | None, float | None], go.Figure
]
#: Differences, title, scheme, whether it is narrow.
DrawClipping = Callable[[Sequence[ClipRead], str, Scheme, bool], go.Figure]


@dataclass(frozen=True, slots=True)
class Look:
    """How to draw.

    Attributes:
        curves: Draws loss against learning rate.
        clipping: Draws clipped minus unclipped losses.
        accuracies: Draws UCI's accuracies, EB against IB.
        agreement: Draws which of UCI's printed losses are met.
        template: Returns what all figures of a scheme share.
        methods: What each method looks like, in the order of every picture.
        text_colour: Of words in a figure, by scheme.
    """

    curves: DrawCurves
    clipping: DrawClipping
    accuracies: Callable[[UciAccuracyRead, Scheme, bool], go.Figure]
    agreement: Callable[[PaperRead, Scheme, bool], go.Figure]
    template: Callable[[Scheme], go.layout.Template]
    methods: Mapping[str, MethodLook]
    text_colour: Mapping[Scheme, str]


def clip_picture(look: Look, found: Sequence[ClipRead], title: str) -> Variants:
    """Return clipped minus unclipped losses, as the Paper page draws them."""
    return _variants(lambda scheme, narrow: look.clipping(found, title, scheme, narrow))


def uci_pictures(look: Look, paper: PaperRead) -> dict[str, Variants]:
    """Return UCI's accuracies and printed cells, as the Paper page draws them."""
    found = {}
    if paper.uci_tables:
        found["uci-agreement"] = _variants(
            lambda scheme, narrow: look.agreement(paper, scheme, narrow)
        )
    for one in (one for one in paper.uci_accuracies if not one.of_all):
        found[f"uci-accuracy-{one.source}"] = _accuracy_picture(look, one)
    return found


def _accuracy_picture(look: Look, one: UciAccuracyRead) -> Variants:
    return _variants(lambda scheme, narrow: look.accuracies(one, scheme, narrow))


def curve_picture(
    look: Look,
    series: Sequence[SeriesRead],
    title: str,
    *,
    threshold: float | None = None,
    initial: float | None = None,
) -> Variants:
    """Return loss against learning rate, as the Study page draws it."""
    return _variants(
        lambda scheme, narrow: look.curves(series, title, scheme, narrow, threshold, initial)
    )


def tables_picture(look: Look, rows: Sequence[TableNumbers]) -> Variants:
    """Return every method's LR sensitivity and headroom over all UCI tables."""
    return _variants(lambda scheme, narrow: _tables_figure(look, rows, scheme, narrow))


def templates(look: Look) -> dict[str, Any]:
    """Return what all pictures of a scheme share."""
    return {scheme: _plain(look.template(scheme).to_plotly_json()) for scheme in SCHEMES}


def _variants(draw: Callable[[Scheme, bool], go.Figure]) -> Variants:
    return {
        scheme: {width: _lean(draw(scheme, width == "narrow")) for width in ("wide", "narrow")}
        for scheme in SCHEMES
    }


def _lean(figure: go.Figure) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(figure.to_json())
    content["layout"].pop("template", None)
    for trace in content["data"]:  # what only the dashboard's clicks need
        trace.pop("customdata", None)
        trace.pop("meta", None)
    found: dict[str, Any] = _rounded(content)
    return found


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    return [_rounded(item) for item in value] if isinstance(value, list) else value


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(value, default=lambda item: item.to_plotly_json()))


def methods_of(look: Look, rows: Sequence[TableNumbers]) -> list[str]:
    """Return the methods in the order every picture shows them."""
    return [name for name in look.methods if any(row.method == name for row in rows)]


#: Ticks as the grid of rates goes, 1 and 3 a decade: headroom is a ratio of two of them.
_ONE_AND_THREE = [digit * 10.0**power for power in range(-4, 5) for digit in (1, 3)]


def _tables_figure(
    look: Look, rows: Sequence[TableNumbers], scheme: Scheme, narrow: bool
) -> go.Figure:
    titles = ("LR sensitivity, 0 to 1", "Edge over EB's, times")
    grid = {"rows": 2, "cols": 1} if narrow else {"rows": 1, "cols": 2}
    figure = make_subplots(**grid, subplot_titles=titles, vertical_spacing=0.16)
    for method in methods_of(look, rows):
        own, style = [row for row in rows if row.method == method], look.methods[method]
        figure.add_trace(_box(own, "lr_sensitivity", style, scheme), row=1, col=1)
        if method != "eb":
            place = {"row": 2, "col": 1} if narrow else {"row": 1, "col": 2}
            figure.add_trace(_box(own, "headroom", style, scheme), **place)
    figure.update_layout(
        template=look.template(scheme),
        showlegend=False,
        height=760 if narrow else 460,
        margin={"t": 48, "l": 48, "r": 16, "b": 48},
        yaxis2={"type": "log", "tickvals": _ONE_AND_THREE, "tickformat": "~g"},
    )
    figure.update_annotations(font={"size": 14, "color": look.text_colour[scheme]})
    return figure


def _box(rows: Sequence[TableNumbers], name: str, style: MethodLook, scheme: Scheme) -> go.Box:
    """Return one method's box with a dot a table; a bound is drawn at its value and says so."""
    known = [row for row in rows if row.numbers[name].value is not None]
    return go.Box(
        y=[row.numbers[name].value for row in known],
        x=[style.short] * len(known),
        name=style.short,
        text=[f"{row.dataset}: {KINDS[name].write(row.numbers[name])}" for row in known],
        hovertemplate="%{text}<extra></extra>",
        boxpoints="all",
        jitter=0.6,
        pointpos=0,
        marker={"color": style.colour, "size": 4, "opacity": 0.5},
        line={"color": style.ink(scheme), "width": 1.6},
        fillcolor="rgba(0,0,0,0)",
        showlegend=False,
    )


#: What tells curves of one picture apart.
Label = tuple[str, str | None]


@dataclass(frozen=True, slots=True)
class Panel:
    """One picture: the methods of a task with one activation."""

    title: str
    series: list[SeriesRead]
    numbers: list[MethodNumbersRead]
    initial: float | None


def panels_of(results: Sequence[TrialResult]) -> list[Panel]:
    """Return a study's pictures, one for each task and activation."""
    groups: defaultdict[tuple[str, str], list[TrialResult]] = defaultdict(list)
    for result in results:
        groups[result.spec.task, result.spec.activation].append(result)
    several = len({activation for _, activation in groups}) > 1
    return [
        _panel(f"{find_task(task).title}{f', {activation}' if several else ''}", found)
        for (task, activation), found in groups.items()
    ]


def _panel(title: str, results: Sequence[TrialResult]) -> Panel:
    curves = _curves(results)
    rules = {rule for method, rule in curves if method == "ib"}
    names = {
        label: f"{label[0]}, {label[1]}" if label[1] and len(rules) > 1 else label[0]
        for label in curves
    }
    by_name = {names[label]: curve for label, curve in curves.items()}
    rows = score_task(by_name).rows
    first = results[0].spec
    series = [
        SeriesRead(
            id=names[label],
            label=names[label],
            study_id=0,
            method=label[0],
            task=first.task,
            profile=first.profile,
            batch_rule=label[1],
            activation=first.activation,
            clip=first.clip,
            mu=first.mu,
            epochs=first.epochs,
            batch_size=first.batch_size,
            options={},
            imported=False,
            points=[read_point(point) for point in curve.points],
        )
        for label, curve in curves.items()
    ]
    losses = [result.initial_loss for result in results]
    return Panel(title, series, method_numbers(rows), sum(losses) / len(losses))


def _curves(results: Iterable[TrialResult]) -> dict[Label, RateCurve]:
    """Return the curves by method and batch rule, in the order of legends."""
    found: defaultdict[Label, list[tuple[float, SeedResult]]] = defaultdict(list)
    for result in results:
        spec = result.spec
        seed = SeedResult(spec.seed, result.train_loss, result.initial_loss, result.outcome.value)
        found[spec.method, spec.batch_rule].append((spec.lr, seed))
    order = sorted(found, key=lambda label: (place(label[0]), label[1] or ""))
    return {label: RateCurve.from_results(found[label]) for label in order}
