"""Reading a page's layout without a browser."""

from collections.abc import Iterator
from typing import Any

from dash.development.base_component import Component


def nodes(tree: Any) -> Iterator[Any]:
    """Yield everything in a layout, texts included, from top to bottom."""
    if isinstance(tree, list | tuple):
        for child in tree:
            yield from nodes(child)
    elif tree is not None:
        yield tree
        if isinstance(tree, Component):
            yield from nodes(getattr(tree, "children", None))


def said(tree: Any) -> str:
    """Return a layout's texts."""
    return " ".join(str(node) for node in nodes(tree) if not isinstance(node, Component))


def find(tree: Any, id: str) -> Any:
    """Return the component with an id."""
    return next(node for node in nodes(tree) if getattr(node, "id", None) == id)
