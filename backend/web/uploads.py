"""The file in a request: its body, or the first file of a form."""

from dataclasses import dataclass

from anyio import to_thread
from fastapi import Request
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from backend.errors import InvalidInput, TooLarge

LONGEST_NAME = 200
#: A form of ours has a file and a field or two; parts in parts are the file's own business.
MOST_PARTS = 20
MOST_HEADERS = 8
LARGEST_HEADER = 2048
PIECE = 64 * 1024


@dataclass(frozen=True, slots=True)
class Upload:
    """A file as it was sent."""

    content: bytes
    filename: str = ""


async def read_upload(request: Request) -> Upload:
    """Return the file a request carries; the body limit has already been applied."""
    body = await request.body()
    kind = request.headers.get("content-type", "")
    if kind.startswith("multipart/form-data"):
        # Not here: a form may be megabytes, and everybody else's requests share this loop.
        found = await to_thread.run_sync(_from_form, kind, body)
    else:
        found = Upload(body)
    if not found.content:
        raise InvalidInput(
            "The body is empty; send a CSV or JSON file, plain or gzip-compressed.", field="body"
        )
    return found


def _from_form(kind: str, body: bytes) -> Upload:
    boundary = parse_options_header(kind)[1].get(b"boundary", b"")
    form = _Form()
    try:
        parser = MultipartParser(
            boundary,
            {
                "on_part_begin": form.begin,
                "on_header_begin": form.begin_header,
                "on_header_field": form.note_name,
                "on_header_value": form.note_value,
                "on_header_end": form.end_header,
                "on_headers_finished": form.open,
                "on_part_data": form.write,
                "on_part_end": form.close,
            },
            max_header_count=MOST_HEADERS,
            max_header_size=LARGEST_HEADER,
        )
        for start in range(0, len(body), PIECE):
            parser.write(body[start : start + PIECE])
            if form.found is not None:
                return form.found
    except FormParserError as error:
        raise InvalidInput(f"The form cannot be read: {error}.", field="body") from None
    raise InvalidInput("The form holds no file.", field="body")


class _Form:
    """Keeps the first file of a form; other fields are passed over without being kept."""

    def __init__(self) -> None:
        self.found: Upload | None = None
        self._parts = 0
        self._name = self._value = self._disposition = b""
        self._filename: str | None = None
        self._content = bytearray()

    def begin(self) -> None:
        self._parts += 1
        if self._parts > MOST_PARTS:
            raise TooLarge(f"A form has at most {MOST_PARTS} parts.", field="body")
        self._disposition, self._filename = b"", None

    def begin_header(self) -> None:
        self._name = self._value = b""

    def note_name(self, data: bytes, start: int, end: int) -> None:
        self._name += data[start:end]

    def note_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def end_header(self) -> None:
        if self._name.lower() == b"content-disposition":
            self._disposition = self._value

    def open(self) -> None:
        given = parse_options_header(self._disposition)[1].get(b"filename")
        if given is not None and self.found is None:
            self._filename = _printable(given.decode("utf-8", "replace"))[:LONGEST_NAME]

    def write(self, data: bytes, start: int, end: int) -> None:
        if self._filename is not None:
            self._content += data[start:end]

    def close(self) -> None:
        if self._filename is not None and self.found is None:
            self.found = Upload(bytes(self._content), self._filename)


def _printable(name: str) -> str:
    """Return a file's name without what no name of ours may hold."""
    return "".join(character for character in name if character.isprintable()).strip()
