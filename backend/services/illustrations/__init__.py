"""Numbers behind the toy pictures of the guide.

| module | for |
| --- | --- |
| `toy_descent` | explicit against implicit descent on one-dimensional losses |
| `node_step` | one node's explicit and implicit update |
"""

from typing import TYPE_CHECKING, Any

from backend.services.illustrations.toy_descent import descent

if TYPE_CHECKING:
    from backend.services.illustrations.node_step import node_update

__all__ = ["descent", "node_update"]


def __getattr__(name: str) -> Any:
    """Import `node_step` when first asked for: torch takes seconds and much of a web process."""
    if name == "node_update":
        from backend.services.illustrations.node_step import node_update

        return node_update
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
