"""Mean ranks over many tasks, with their critical difference."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import plotly.graph_objects as go

from backend.schemas import AcrossRead, RanksRead
from dashboard.figures.sensitivity import Picture
from dashboard.figures.traces import scatter
from dashboard.figures.wording import literal
from dashboard.theme import (
    METHOD_STYLE,
    PALETTE,
    Palette,
    SeriesStyle,
    counted,
    number,
    series_style,
)

#: Height of a name's row, in pixels.
STEM = 20
#: Share of the ranks' axis kept for names at either end.
ROOM = 0.3
#: On a phone: height of a method's row in pixels, and share of the axis kept for a bar of those
#: that cannot be told apart.
NARROW_ROW, NARROW_BAR = 24, 0.08
#: Letters of a name, with room for it and on a phone.
LONGEST, SHORTEST = 28, 12


class Looks:
    """What each label is called, and what it looks like."""

    def __init__(self, across: AcrossRead, picture: Picture) -> None:
        self.picture = picture
        self.palette: Palette = PALETTE[picture.scheme]
        self.styles: dict[str, SeriesStyle] = {}
        seen: Counter[tuple[str, bool]] = Counter()
        for label in across.methods:
            method, clipped = label.partition(", ")[0], "clip" in label
            variant = seen[method, clipped]
            self.styles[label] = series_style(
                method, picture.scheme, clipped=clipped, variant=variant
            )
            seen[method, clipped] += 1

    def style(self, label: str) -> SeriesStyle:
        """Return a label's style."""
        return self.styles.get(label) or series_style(label, self.picture.scheme)

    def name(self, label: str) -> str:
        """Return what a label is called beside a mark."""
        name = short_name(label)
        longest = SHORTEST if self.picture.narrow else LONGEST
        return literal(name if len(name) <= longest else f"{name[: longest - 1]}…")


def short_name(label: str) -> str:
    """Return a label with its method's short name."""
    method, comma, rest = label.partition(", ")
    style = METHOD_STYLE.get(method)
    return f"{style.short if style else method}{comma}{rest}"


def ranks_heading(ranks: RanksRead) -> str:
    """Return what stands above a diagram."""
    p = "below 0.001" if ranks.p < 0.001 else number(ranks.p, 2)
    return f"Mean ranks: {ranks.title} ({counted(ranks.tasks, 'task')}, Friedman's p {p})"


def ranks_height(ranks: RanksRead, *, narrow: bool = False) -> int:
    """Return how high a diagram is, in pixels."""
    if narrow:
        return NARROW_ROW * (len(ranks.mean_ranks) + 1) + 8
    side = (len(ranks.mean_ranks) + 1) // 2
    return STEM * (side + len(ranks.groups)) + 44


class Ranks:
    """The critical-difference diagram: names at both ends, bars join what cannot be told apart.

    On a phone, where names at both ends would leave nothing between them, a row for each method.
    """

    def __init__(self, ranks: RanksRead, looks: Looks) -> None:
        self.ranks, self.looks = ranks, looks
        self.ordered = sorted(ranks.mean_ranks, key=lambda label: ranks.mean_ranks[label])

    def __call__(self, figure: go.Figure, axis: str, domain: list[float]) -> None:
        """Add the diagram; its y axis counts rows downwards from the line of ranks."""
        place = {"xaxis": f"x{axis}", "yaxis": f"y{axis}"}
        if self.looks.picture.narrow:
            self._rows(figure, axis, domain, place)
            return
        count = len(self.ordered)
        room = ROOM * max(count - 1, 1)
        side, groups = (count + 1) // 2, len(self.ranks.groups)
        hidden = {"visible": False, "fixedrange": True}
        figure.update_layout(
            {
                f"xaxis{axis}": {"range": [1 - room, count + room], "anchor": f"y{axis}", **hidden},
                f"yaxis{axis}": {
                    "domain": domain,
                    "range": [-(side + 0.6 * groups + 0.6), 1.6],
                    "anchor": f"x{axis}",
                    **hidden,
                },
            }
        )
        figure.add_traces([*self._scale(count, place), *self._difference(place)])
        figure.add_traces(list(self._groups(place)))
        figure.add_traces(list(self._stems(place, room)))

    def _rows(
        self, figure: go.Figure, axis: str, domain: list[float], place: dict[str, str]
    ) -> None:
        """Add a row for each method, the best on top; bars at the right join rows."""
        count = len(self.ordered)
        step = NARROW_BAR * count
        high = count + 1.6 * step + step * len(self.ranks.groups)
        figure.update_layout(
            {
                f"xaxis{axis}": {
                    "range": [1 - 0.5 * step, high],
                    "tickvals": list(range(1, count + 1, math.ceil(count / 8))),
                    "title": {"text": "mean rank", "standoff": 4},
                    "fixedrange": True,
                    "anchor": f"y{axis}",
                },
                f"yaxis{axis}": {
                    "domain": domain,
                    "range": [-count + 0.3, 1.6],
                    "tickvals": [-row for row in range(count)],
                    "ticktext": [self.looks.name(label) for label in self.ordered],
                    "fixedrange": True,
                    "automargin": False,
                    "anchor": f"x{axis}",
                },
            }
        )
        for row, label in enumerate(self.ordered):
            rank, style = self.ranks.mean_ranks[label], self.looks.style(label)
            figure.add_trace(
                scatter(
                    x=[rank],
                    y=[-row],
                    mode="markers+text",
                    text=[f"  {rank:.2f}"],
                    textposition="middle right",
                    textfont={"size": 12, "color": style.ink},
                    marker=self._marker(style, 10),
                    hovertext=self._hover(label),
                    hoverinfo="text",
                    meta="rank",
                    **place,
                )
            )
        for index, group in enumerate(self.ranks.groups):
            rows = [-self.ordered.index(label) for label in group]
            across, ink = [count + (1.6 + index) * step] * 2, self.looks.palette.text
            ends = [min(rows) - 0.2, max(rows) + 0.2]
            figure.add_trace(self._line(across, ends, 4, ink, meta="rank group", **place))
        figure.add_traces(list(self._difference(place)))

    def _marker(self, style: SeriesStyle, size: Any) -> dict[str, Any]:
        line = {"color": style.ink, "width": 1}
        return {"symbol": style.marker, "size": size, "color": style.colour, "line": line}

    def _hover(self, label: str) -> str:
        return (
            f"<b>{literal(short_name(label))}</b><br>mean rank {self.ranks.mean_ranks[label]:.2f} "
            f"of {len(self.ordered)}<br>over {counted(self.ranks.tasks, 'task')}"
        )

    def _line(
        self, xs: Sequence[float], ys: Sequence[float], width: float, colour: str, **more: Any
    ) -> Any:
        line = {"color": colour, "width": width}
        return scatter(x=list(xs), y=list(ys), mode="lines", line=line, hoverinfo="skip", **more)

    def _scale(self, count: int, place: dict[str, str]) -> Iterator[Any]:
        palette = self.looks.palette
        yield self._line([1, count], [0, 0], 1.2, palette.axis, meta="rank axis", **place)
        ticks = list(range(1, count + 1))
        yield scatter(
            x=ticks,
            y=[0] * count,
            mode="markers+text",
            marker={"symbol": "line-ns-open", "size": 8, "color": palette.axis},
            text=[str(tick) for tick in ticks],
            textposition="top center",
            textfont={"size": 11, "color": palette.muted},
            hoverinfo="skip",
            meta="rank ticks",
            **place,
        )

    def _difference(self, place: dict[str, str]) -> Iterator[Any]:
        length = self.ranks.critical_difference
        ink = self.looks.palette.muted
        words = "CD" if self.looks.picture.narrow else "critical difference"
        yield self._line(
            [1, 1, 1, 1 + length, 1 + length, 1 + length],
            [1.05, 1.35, 1.2, 1.2, 1.05, 1.35],
            1.4,
            ink,
            meta="critical difference",
            **place,
        )
        yield scatter(
            x=[1 + length],
            y=[1.2],
            mode="text",
            text=[f" {words} {number(length)}"],
            textposition="middle right",
            textfont={"size": 11, "color": ink},
            hoverinfo="skip",
            cliponaxis=False,
            meta="critical difference words",
            **place,
        )

    def _groups(self, place: dict[str, str]) -> Iterator[Any]:
        for index, group in enumerate(self.ranks.groups):
            found = [self.ranks.mean_ranks[label] for label in group]
            height = -0.45 - 0.6 * index
            ends = [min(found) - 0.04, max(found) + 0.04]
            ink = self.looks.palette.text
            yield self._line(ends, [height, height], 5, ink, meta="rank group", **place)

    def _stems(self, place: dict[str, str], room: float) -> Iterator[Any]:
        ordered = self.ordered
        side, count = (len(ordered) + 1) // 2, len(ordered)
        base = 0.6 * len(self.ranks.groups)
        for index, label in enumerate(ordered):
            left = index < side
            depth = -(base + 1 + (index if left else count - 1 - index))
            rank = self.ranks.mean_ranks[label]
            end = 1 - 0.08 * room if left else count + 0.08 * room
            style = self.looks.style(label)
            words = f"{self.looks.name(label)} {rank:.2f}"
            yield self._line([rank, rank, end], [0, depth, depth], 1.2, style.ink, **place)
            yield scatter(
                x=[rank, end],
                y=[0, depth],
                mode="markers+text",
                marker=self._marker(style, [10, 0.1]),
                text=["", f"{words} " if left else f" {words}"],
                textposition="middle left" if left else "middle right",
                textfont={"size": 12, "color": style.ink},
                hovertext=self._hover(label),
                hoverinfo="text",
                cliponaxis=False,
                meta="rank",
                **place,
            )


def rank_words(ranks: RanksRead) -> str:
    """Return mean ranks in a line, the best first."""
    ordered = sorted(ranks.mean_ranks.items(), key=lambda pair: pair[1])
    told = ", ".join(f"{short_name(label)} {rank:.2f}" for label, rank in ordered)
    shouted = ranks.title[:2].isupper()  # "LR sensitivity" begins with a name
    title = ranks.title if shouted else f"{ranks.title[:1].lower()}{ranks.title[1:]}"
    return f"Mean ranks by {title}: {told}"
