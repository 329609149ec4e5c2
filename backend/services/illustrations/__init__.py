"""Numbers behind the toy pictures: descent on one-dimensional losses, one node's update, a race."""

from backend.services.illustrations.descent import descent
from backend.services.illustrations.race import race

__all__ = ["descent", "race"]
