"""The file in a request: its body, or the first file of a form."""

from dataclasses import dataclass
from email import message_from_bytes
from email.policy import HTTP

from fastapi import Request

from backend.errors import InvalidInput

LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Upload:
    """A file as it was sent."""

    content: bytes
    filename: str = ""


async def read_upload(request: Request) -> Upload:
    """Return the file a request carries; the body limit has already been applied."""
    body = await request.body()
    kind = request.headers.get("content-type", "")
    found = _from_form(kind, body) if kind.startswith("multipart/form-data") else Upload(body)
    if not found.content:
        raise InvalidInput(
            "The body is empty; send a CSV or JSON file, plain or gzip-compressed.", field="body"
        )
    return found


def _from_form(kind: str, body: bytes) -> Upload:
    header = f"Content-Type: {kind}\r\n\r\n".encode("latin-1", "replace")
    form = message_from_bytes(header + body, policy=HTTP)
    for part in form.iter_parts() if form.is_multipart() else ():
        content = part.get_payload(decode=True)
        name = part.get_filename()
        if name is not None and isinstance(content, bytes):
            return Upload(content, _printable(name)[:LONGEST_NAME])
    raise InvalidInput("The form holds no file.", field="body")


def _printable(name: str) -> str:
    """Return a file's name without what no name of ours may hold."""
    return "".join(character for character in name if character.isprintable()).strip()
