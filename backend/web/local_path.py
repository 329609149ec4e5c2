"""Where to go after logging in: pages of ours only."""

from urllib.parse import urlencode, urlsplit

ENTRANCES = ("/login", "/welcome")
LONGEST = 2000


def local_path(wish: str | None) -> str:
    """Return an address on this server; anything that could lead elsewhere becomes the first page.

    Browsers read a backslash as a slash, skip control characters, and take two slashes for the
    start of another server's name.
    """
    text = wish or "/"
    plain = text.isprintable() and "\\" not in text and len(text) <= LONGEST
    if not plain or not text.startswith("/") or text.startswith("//"):
        return "/"
    parts = urlsplit(text)
    if parts.scheme or parts.netloc or parts.path in ENTRANCES:
        return "/"
    return text


def login_address(wish: str) -> str:
    """Return the address of the login page, which leads back to where one wanted to go."""
    back = local_path(wish)
    return "/login" if back == "/" else f"/login?{urlencode({'next': back})}"
