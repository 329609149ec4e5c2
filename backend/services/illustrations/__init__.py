"""Numbers behind the toy pictures: descent on one-dimensional losses, one node's update."""

from backend.services.illustrations.descent import descent
from backend.services.illustrations.node_update import node_update

__all__ = ["descent", "node_update"]
