"""From an uploaded file to rows: plain or gzip, CSV or our own JSON export."""

import csv
import io
import json
import zlib
from dataclasses import dataclass
from typing import Any

from backend.errors import InvalidInput, TooLarge

GZIP = b"\x1f\x8b"
MOST_ROWS = 100_000
#: Every file of ours has a few dozen; a line of commas has as many as it likes.
MOST_COLUMNS = 200
#: Lists and objects of a JSON file, each of which takes far more memory than its two characters.
MOST_CONTAINERS = 20 * MOST_ROWS
#: A packed file may be several in a row; each costs a copy of what follows it.
MOST_MEMBERS = 100


@dataclass(frozen=True, slots=True)
class RawRow:
    """One run as the file has it, by lower-case column name."""

    line: int
    cells: dict[str, Any]


def read_rows(content: bytes, *, most_bytes: int) -> list[RawRow]:
    """Return the rows of a file.

    Args:
        content: The file.
        most_bytes: How large it may be unpacked; a small file can unpack to any size.

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
    rows = _json_rows(text) if text.lstrip()[:1] in ("{", "[") else _csv_rows(text)
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


def _json_rows(text: str) -> list[RawRow]:
    if text.count("{") + text.count("[") > MOST_CONTAINERS:
        raise TooLarge(f"The file has more than {MOST_CONTAINERS:,} objects.", field="body")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"The file is not JSON: {error}.", field="body") from None
    runs = found.get("trials") if isinstance(found, dict) else found
    if not isinstance(runs, list) or not all(isinstance(run, dict) for run in runs):
        raise InvalidInput(
            'A JSON file must be a list of runs, or {"trials": [...]} as we export it.',
            field="body",
        )
    _check_count(len(runs))
    return [
        RawRow(line, {str(name).strip().lower(): value for name, value in run.items()})
        for line, run in enumerate(runs, start=1)
    ]


def _csv_rows(text: str) -> list[RawRow]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
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
            rows.append(RawRow(reader.line_num, dict(zip(header, cells, strict=True))))
    except csv.Error as error:
        raise InvalidInput(f"Line {reader.line_num} is not CSV: {error}.", field="body") from None
    return rows


def _check_count(rows: int) -> None:
    if rows > MOST_ROWS:
        raise TooLarge(f"An import takes at most {MOST_ROWS:,} runs.", field="body")
