"""Drawn figures are kept, the latest of them, and drawn once however many ask."""

import time
from concurrent.futures import ThreadPoolExecutor

import plotly.graph_objects as go

from dashboard.figures.kept import KeptFigures


def test_a_figure_is_drawn_once_and_the_longest_unused_is_let_go():
    kept, drawn = KeptFigures(most=2), []

    def get(mark: str) -> go.Figure:
        return kept.get(mark, lambda: drawn.append(mark) or go.Figure())

    first = get("a")
    assert get("a") is first
    get("b")
    get("a")
    get("c")
    assert drawn == ["a", "b", "c"]
    get("a")
    get("b")
    assert drawn == ["a", "b", "c", "b"]


def test_people_who_ask_in_the_same_moment_get_the_same_figure():
    kept, drawn = KeptFigures(), []

    def draw() -> go.Figure:
        time.sleep(0.02)
        drawn.append(1)
        return go.Figure()

    with ThreadPoolExecutor(5) as people:
        found = list(people.map(lambda _: kept.get("a", draw), range(5)))
    assert len(drawn) == 1
    assert all(figure is found[0] for figure in found)
