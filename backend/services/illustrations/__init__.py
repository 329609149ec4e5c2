"""Numbers behind the toy pictures: descent on one-dimensional losses, one node's update."""

from backend.services.illustrations.descent import descent

__all__ = ["descent"]
