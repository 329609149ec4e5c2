"""One row's cells, read with errors that name line and column."""

import json
import math
import re
from collections.abc import Sequence
from typing import Any

from backend.errors import InvalidInput
from backend.services.exporting import FORMULA_STARTS
from backend.services.importing.files import RawRow

_PRINTABLE = re.compile(r"[^\x00-\x1f\x7f]*")


class Cells:
    """Reads a row by any of a column's names."""

    def __init__(self, row: RawRow) -> None:
        self._row = row

    def refuse(self, column: str, reason: str) -> InvalidInput:
        """Return the error of a cell."""
        return InvalidInput(f"Line {self._row.line}, {column}: {reason}", field=column)

    def has(self, column: str) -> bool:
        """Return whether the file has the column at all."""
        return column in self._row.cells

    def raw(self, *names: str) -> Any:
        """Return the first of these cells that is not empty; None if none is."""
        for name in names:
            value = self._row.cells.get(name)
            if value is not None and (not isinstance(value, str) or value.strip()):
                return value
        return None

    def text(self, *names: str, longest: int) -> str | None:
        """Return a cell as text."""
        value = self.raw(*names)
        if value is None:
            return None
        found = str(value).strip()
        if found[:1] == "'" and found[1:].startswith(FORMULA_STARTS):
            found = found[1:]  # our own exports guard such cells
        if len(found) > longest or not _PRINTABLE.fullmatch(found):
            raise self.refuse(
                names[0], f"at most {longest} printable characters; got {found[:40]!r}."
            )
        return found

    def number(self, *names: str) -> float | None:
        """Return a cell as a number, which may be NaN or infinite; None if it is empty."""
        value = self.raw(*names)
        if value is None or isinstance(value, bool):
            return None
        try:
            return float(value)
        except (TypeError, ValueError, OverflowError):
            raise self.refuse(names[0], f"a number is needed; got {str(value)[:40]!r}.") from None

    def within(self, low: float, high: float, *names: str) -> float | None:
        """Return a cell as a finite number in a range."""
        value = self.number(*names)
        if value is not None and not low <= value <= high:
            raise self.refuse(names[0], f"a number from {low:g} to {high:g}; got {value:g}.")
        return value

    def whole(self, low: int, high: int, *names: str) -> int | None:
        """Return a cell as a whole number in a range."""
        value = self.within(low, high, *names)
        if value is not None and value != int(value):
            raise self.refuse(names[0], f"a whole number is needed; got {value:g}.")
        return None if value is None else int(value)

    def numbers(self, name: str) -> list[float]:
        """Return a cell of numbers separated by semicolons."""
        value = self.raw(name)
        if value is None:
            return []
        try:
            return [float(part) for part in str(value).split(";") if part.strip()]
        except ValueError:
            raise self.refuse(name, "numbers separated by ; are needed.") from None

    def mapping(self, name: str) -> dict[str, Any]:
        """Return a cell of JSON settings."""
        value = self.raw(name)
        try:
            found = json.loads(value) if isinstance(value, str) else value
            json.dumps(found, allow_nan=False)
        except (ValueError, RecursionError):
            raise self.refuse(name, "a JSON object is needed.") from None
        if found is not None and not isinstance(found, dict):
            raise self.refuse(name, "a JSON object is needed.")
        return found or {}


def not_finite(values: Sequence[float | None]) -> bool:
    """Return whether one of the numbers that were given is NaN or infinite."""
    return any(value is not None and not math.isfinite(value) for value in values)
