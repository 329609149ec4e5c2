"""From an uploaded file to rows, plain or gzip, CSV or our own JSON export; and a row's cells."""

import csv
import io
import json
import math
import re
import zlib
from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import Any

from backend.errors import InvalidInput, TooLarge
from ib_core.written import FORMULA_STARTS

GZIP = b"\x1f\x8b"
MOST_ROWS = 100_000
#: Every file of ours has a few dozen; a line of commas has as many as it likes.
MOST_COLUMNS = 200
#: Lists and objects of a JSON file, each of which takes far more memory than its two characters.
MOST_CONTAINERS = 20 * MOST_ROWS
#: Points of a run's curve, as of one that is logged live; more are no picture's. And of a file.
MOST_POINTS, MOST_SEPARATORS = 10_000, 3_000_000
#: A packed file may be several in a row; each costs a copy of what follows it.
MOST_MEMBERS = 100
#: Halves of surrogate pairs, which JSON can write as escapes, are no text UTF-8 could answer with.
_PRINTABLE = re.compile(r"[^\x00-\x1f\x7f\ud800-\udfff]*")
_SPACE = re.compile(r"[ \t\n\r]*")
#: So many characters of JSON are read at a time, and no value in a list may be longer.
WINDOW = 1_000_000
NOT_RUNS = 'A JSON file must be a list of runs, or {"trials": [...]} as we export it.'
_TEXT = re.compile(r"[^\x00\ud800-\udfff]*")
LONGEST_TEXT = 10_000
#: What the settings of one run may be; deeper ones could be stored, but not always be read again.
MOST_DEPTH = 8
MOST_VALUES = 1000
MOST_WHOLE = 2**63 - 1


@dataclass(frozen=True, slots=True)
class RawRow:
    """One run as the file has it, by lower-case column name."""

    line: int
    cells: dict[str, Any]


def read_rows(content: bytes, *, most_bytes: int, columns: Container[str]) -> list[RawRow]:
    """Return the rows of a file.

    Args:
        content: The file.
        most_bytes: How large it may be unpacked; a small file can unpack to any size.
        columns: Those to keep; of others there may be millions of cells.

    Raises:
        TooLarge: It is larger than that, or has more rows than we take.
        InvalidInput: It is neither CSV nor our own JSON.
    """
    plain = unpack(content, most_bytes)
    try:
        text = plain.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"The file is not UTF-8 text: byte {error.start} is {plain[error.start]:#04x}.",
            field="body",
            hint="Send CSV or our own JSON export, plain or gzip-compressed.",
        ) from None
    if text.count(";") > MOST_SEPARATORS:
        raise TooLarge("The file's curves have too many points: send every tenth.", field="body")
    read = _json_rows if text.lstrip()[:1] in ("{", "[") else _csv_rows
    rows = read(text, columns)
    if not rows:
        raise InvalidInput("The file holds no runs.", field="body")
    return rows


def unpack(content: bytes, most: int) -> bytes:
    """Return a file without its gzip packing, and never more than `most` bytes of it."""
    found, rest, members = b"", content, 0
    while rest[:2] == GZIP:
        members += 1
        if members > MOST_MEMBERS:
            raise TooLarge(f"The gzip file has more than {MOST_MEMBERS} parts.", field="body")
        member = zlib.decompressobj(wbits=31)
        try:
            found += member.decompress(rest, most + 1 - len(found))
        except zlib.error as error:
            raise InvalidInput(f"The gzip file is damaged: {error}.", field="body") from None
        if len(found) > most:
            raise TooLarge(f"Unpacked, the file exceeds {most:,} bytes.", field="body")
        if not member.eof:
            raise InvalidInput("The gzip file ends too early.", field="body")
        rest = member.unused_data  # several members may follow each other
    return found if content[:2] == GZIP else content


def _json_rows(text: str, columns: Container[str]) -> list[RawRow]:
    if text.count("{") + text.count("[") > MOST_CONTAINERS:
        raise TooLarge(f"The file has more than {MOST_CONTAINERS:,} objects.", field="body")
    rows: list[RawRow] = []
    try:
        for line, run in enumerate(_runs(_Scanner(text)), start=1):
            _check_count(line)
            named = ((name.strip().lower(), value) for name, value in run.items())
            cells = {name: value for name, value in named if name in columns}
            rows.append(RawRow(line, cells))
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"The file is not JSON: {error}.", field="body") from None
    return rows


def _runs(scanner: "_Scanner") -> Iterator[dict[str, Any]]:
    """Yield the runs of a list, or of the list called `trials` in an object."""
    if scanner.take("["):
        yield from _listed(scanner)
    else:
        scanner.need("{")
        found = False
        while not scanner.take("}"):
            name = scanner.value()
            scanner.need(":")
            if name == "trials" and scanner.take("["):
                found = True
                yield from _listed(scanner)
            else:
                scanner.value()
            if not scanner.take(","):
                scanner.need("}")
                break
        if not found:
            raise InvalidInput(NOT_RUNS, field="body")
    scanner.finish()


def _listed(scanner: "_Scanner") -> Iterator[dict[str, Any]]:
    if scanner.take("]"):
        return
    while True:
        run = scanner.value()
        if not isinstance(run, dict):
            raise InvalidInput(NOT_RUNS, field="body")
        yield run
        if not scanner.take(","):
            return scanner.need("]")


class _Scanner:
    """Reads JSON value by value: reading all at once would hold up every other thread meanwhile.

    Python's own keeps the interpreter to itself, so it is given a window of the text at a time.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0  # in the text, where the window begins
        self._window, self._next = text[:WINDOW], 0
        self._scan = json.JSONDecoder().raw_decode

    def value(self) -> Any:
        """Return the next value; a `ValueError` if there is none, or none that fits a window."""
        self._skip()
        try:
            found, end = self._scan(self._window, self._next)
            whole = end < len(self._window) or self._is_last()
        except ValueError:
            whole = False
        if not whole:  # it may go on behind the window's end
            self._move()
            found, end = self._scan_last()
        self._next = end
        return found

    def _scan_last(self) -> tuple[Any, int]:
        """Scan a value at the window's beginning."""
        try:
            found, end = self._scan(self._window, self._next)
        except json.JSONDecodeError as error:
            if not self._is_last():
                raise TooLarge(
                    f"The value at character {self._at} is longer than {WINDOW:,} characters.",
                    field="body",
                ) from None
            raise ValueError(f"{error.msg} at character {self._at + error.pos}") from None
        return found, end

    def take(self, mark: str) -> bool:
        """Return whether the next character is this one, and pass it if so."""
        self._skip()
        found = self._window[self._next : self._next + 1] == mark
        self._next += found
        return found

    def need(self, mark: str) -> None:
        """Pass a character that must come next."""
        if not self.take(mark):
            raise ValueError(f"Expecting {mark!r} at character {self._at + self._next}")

    def finish(self) -> None:
        """Refuse anything behind the last value."""
        self._skip()
        if self._next < len(self._window):
            raise ValueError(f"Extra data at character {self._at + self._next}")

    def _skip(self) -> None:
        """Pass white space."""
        while True:
            self._next = _SPACE.match(self._window, self._next).end()  # type: ignore[union-attr]
            if self._next < len(self._window) or self._is_last():
                return
            self._move()

    def _is_last(self) -> bool:
        return self._at + len(self._window) >= len(self._text)

    def _move(self) -> None:
        """Let the window begin where we are."""
        self._at += self._next
        self._window, self._next = self._text[self._at : self._at + WINDOW], 0


def _csv_rows(text: str, columns: Container[str]) -> list[RawRow]:
    reader = csv.reader(_lines(text), strict=True)
    rows: list[RawRow] = []
    try:
        header = [name.strip().lower() for name in next(reader, [])]
        if len(header) > MOST_COLUMNS:
            raise TooLarge(f"An import takes at most {MOST_COLUMNS} columns.", field="body")
        if len(set(header)) < len(header):
            raise InvalidInput("A column name occurs twice in the first line.", field="body")
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) != len(header):
                raise InvalidInput(
                    f"Line {reader.line_num} has {len(cells)} cells, but the first line names "
                    f"{len(header)} columns.",
                    field="body",
                )
            _check_count(len(rows) + 1)
            named = zip(header, cells, strict=True)
            kept = {name: cell for name, cell in named if name in columns}
            rows.append(RawRow(reader.line_num, kept))
    except csv.Error as error:
        raise InvalidInput(f"Line {reader.line_num} is not CSV: {error}.", field="body") from None
    return rows


def _lines(text: str) -> Iterator[str]:
    """Yield the lines of a file; of an endless one Python would make cells and do nothing else."""
    for number, line in enumerate(io.StringIO(text, newline=""), start=1):
        if len(line) > WINDOW:
            raise TooLarge(f"Line {number} is longer than {WINDOW:,} characters.", field="body")
        yield line


def _check_count(rows: int) -> None:
    if rows > MOST_ROWS:
        raise TooLarge(f"An import takes at most {MOST_ROWS:,} runs.", field="body")


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
        if isinstance(value, dict | list):
            raise self.refuse(names[0], f"text is needed; got {_shown(value)}.")
        found = _unguarded(str(value).strip())
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
            raise self.refuse(names[0], f"a number is needed; got {_shown(value)}.") from None

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

    def prose(self, name: str) -> str | None:
        """Return a cell of free text, which may have several lines, as it is."""
        value = self.raw(name)
        if isinstance(value, dict | list):
            raise self.refuse(name, f"text is needed; got {_shown(value)}.")
        return None if value is None else _unguarded(str(value))

    def numbers(self, name: str) -> list[float]:
        """Return a cell of numbers separated by semicolons."""
        value = self.raw(name)
        if value is None:
            return []
        try:
            parts = _scalar(value).split(";", MOST_POINTS)  # what is behind the last is not read
            numbers = [float(part) for part in parts[:MOST_POINTS] if part.strip()]
        except ValueError:
            raise self.refuse(name, "numbers separated by ; are needed.") from None
        if parts[MOST_POINTS:] not in ([], [""]):
            raise self.refuse(name, f"at most {MOST_POINTS:,} numbers are taken.")
        return numbers

    def mapping(self, name: str) -> dict[str, Any]:
        """Return a cell of JSON settings, of which whatever is taken can be read again."""
        value = self.raw(name)
        try:
            found = json.loads(value) if isinstance(value, str) else value
        except (ValueError, RecursionError):
            raise self.refuse(name, "a JSON object is needed.") from None
        if found is not None and not isinstance(found, dict):
            raise self.refuse(name, "a JSON object is needed.")
        objection = _objection(found, MOST_DEPTH)
        if objection is None and _values(found) > MOST_VALUES:
            objection = f"at most {MOST_VALUES} values"
        if objection is not None:
            raise self.refuse(name, f"{objection}.")
        return found or {}


def _objection(value: Any, depth: int) -> str | None:
    """Return what settings may not hold, if they do; looks no deeper than `depth`."""
    if isinstance(value, dict | list):
        if depth == 0:
            return f"settings are nested at most {MOST_DEPTH} deep"
        inner = [*value, *value.values()] if isinstance(value, dict) else value
        return next((found for one in inner if (found := _objection(one, depth - 1))), None)
    if isinstance(value, str):
        plain = len(value) <= LONGEST_TEXT and _TEXT.fullmatch(value)
        return None if plain else f"at most {LONGEST_TEXT:,} characters of text, none of them NUL"
    if isinstance(value, float) and not math.isfinite(value):
        return "settings are finite numbers"
    if isinstance(value, int) and abs(value) > MOST_WHOLE:
        return f"whole numbers are at most {MOST_WHOLE}"
    return None


def _values(value: Any) -> int:
    """Return how many values settings have in all; they are not nested too deep."""
    if isinstance(value, dict):
        value = list(value.values())
    return sum(map(_values, value), 1) if isinstance(value, list) else 1


def _scalar(value: Any) -> str:
    if isinstance(value, dict | list):
        raise ValueError
    return str(value)


def _unguarded(text: str) -> str:
    """Return a cell without the mark that our own exports put before what looks like a formula."""
    return text[1:] if text[:1] == "'" and text[1:].startswith(FORMULA_STARTS) else text


def _shown(value: Any) -> str:
    """Return a cell as an error may repeat it; lists may be nested deeper than can be printed."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    return repr(str(value)[:40])
