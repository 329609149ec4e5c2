"""The part of the plane a picture shows, and what to draw of a path that leaves it.

A diverging path would stretch its axes until nothing else is visible. So the axes are chosen
first, and the path is cut at their edge: what leaves is drawn up to the edge and said in words.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

Point = tuple[float, float]
Maybe = float | None


@dataclass(frozen=True, slots=True)
class Window:
    """What is visible.

    Attributes:
        left: Lowest x.
        right: Highest x.
        bottom: Lowest y.
        top: Highest y.
    """

    left: float
    right: float
    bottom: float
    top: float

    @classmethod
    def around(cls, xs: Sequence[float], ys: Sequence[Maybe], *, room: float = 0.06) -> "Window":
        """Return the window that shows a line whole, with some room above and below it."""
        heights = [y for y in ys if y is not None]
        spare = room * ((max(heights) - min(heights)) or 1.0)
        return cls(xs[0], xs[-1], min(heights) - spare, max(heights) + spare)

    @property
    def width(self) -> float:
        """From left to right."""
        return self.right - self.left

    @property
    def height(self) -> float:
        """From bottom to top."""
        return self.top - self.bottom

    def holds(self, point: Point) -> bool:
        """Whether a point is visible."""
        x, y = point
        return self.left <= x <= self.right and self.bottom <= y <= self.top

    def near(self, one: Point, other: Point, share: float) -> bool:
        """Whether two points are closer than a share of the picture, in both directions."""
        return (
            abs(one[0] - other[0]) < share * self.width
            and abs(one[1] - other[1]) < share * self.height
        )

    def cut(self, start: Point, end: Point) -> tuple[Point, Point] | None:
        """Return the visible part of a straight line, None if there is none (Liang-Barsky)."""
        enters, leaves = 0.0, 1.0
        for along, inside in self._edges(start, end):
            if along == 0:
                if inside < 0:
                    return None
            elif along < 0:
                enters = max(enters, inside / along)
            else:
                leaves = min(leaves, inside / along)
        if enters > leaves:
            return None
        return _between(start, end, enters), _between(start, end, leaves)

    def _edges(self, start: Point, end: Point) -> Iterator[tuple[float, float]]:
        # Per edge: how fast the line moves outwards, and how far inside it starts.
        dx, dy = end[0] - start[0], end[1] - start[1]
        yield -dx, start[0] - self.left
        yield dx, self.right - start[0]
        yield -dy, start[1] - self.bottom
        yield dy, self.top - start[1]


def _between(start: Point, end: Point, share: float) -> Point:
    if share in (0.0, 1.0):
        return end if share else start
    return start[0] + share * (end[0] - start[0]), start[1] + share * (end[1] - start[1])


@dataclass(frozen=True, slots=True)
class VisiblePath:
    """What of a path can be drawn.

    Attributes:
        dots: Visible points, each with its step.
        lines: Visible parts of the connections of a visible point, each with the step it leads
            to. What merely crosses the picture between two invisible points is left out.
        exits: Those of the lines that end at the window's edge, on their way out.
        left_at: The first step that is not visible, None if all are.
        returns: Whether a later step is visible again.
    """

    dots: list[tuple[int, Point]]
    lines: list[tuple[int, Point, Point]]
    exits: list[tuple[int, Point, Point]]
    left_at: int | None
    returns: bool


def visible_path(window: Window, xs: Sequence[Maybe], ys: Sequence[Maybe]) -> VisiblePath:
    """Cut a path at the window's edge; a missing coordinate is a step to infinity."""
    points = [None if x is None or y is None else (x, y) for x, y in zip(xs, ys, strict=True)]
    dots = [(step, at) for step, at in enumerate(points) if at is not None and window.holds(at)]
    shown = {step for step, _ in dots}
    lines = []
    for step, (start, end) in enumerate(pairwise(points), start=1):
        touched = start is not None and end is not None and {step - 1, step} & shown
        part = window.cut(start, end) if touched and start and end else None
        lines += [] if part is None else [(step, *part)]
    exits = [line for line in lines if line[0] not in shown]
    left_at = next((step for step in range(len(points)) if step not in shown), None)
    returns = left_at is not None and any(step > left_at for step in shown)
    return VisiblePath(dots, lines, exits, left_at, returns)
