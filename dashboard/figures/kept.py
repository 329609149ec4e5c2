"""Figures that were drawn, kept for the next person who looks at the same."""

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock

import plotly.graph_objects as go

MOST = 16


class KeptFigures:
    """The most recently drawn figures; safe for threads.

    Only one is drawn at a time: five people who watch a study ask for the same figure in the same
    moment, and four of them shall find it drawn.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._figures: OrderedDict[str, go.Figure] = OrderedDict()
        self._lock = Lock()

    def get(self, mark: str, draw: Callable[[], go.Figure]) -> go.Figure:
        """Return the figure of a mark; `draw` makes it unless it is there."""
        with self._lock:
            figure = self._figures.pop(mark, None) or draw()
            self._figures[mark] = figure
            while len(self._figures) > self._most:
                self._figures.popitem(last=False)
            return figure
