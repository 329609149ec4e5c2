"""The two cookies of a login: one only we can read, one that only pages of ours can read."""

from starlette.responses import Response
from starlette.types import Scope

from backend.schemas import CSRF_COOKIE
from backend.services.accounts import sessions
from backend.settings import Settings

SESSION = "etascope_session"


def put(response: Response, *, key: str, settings: Settings, scope: Scope) -> None:
    """Let the browser keep a login."""
    values = {SESSION: key, CSRF_COOKIE: sessions.csrf_token(key, secret=settings.secret)}
    for name, value in values.items():
        response.set_cookie(
            name,
            value,
            max_age=int(settings.session_hours * 3600),
            path="/",
            secure=settings.secure_cookies or scope.get("scheme") == "https",
            httponly=name == SESSION,
            samesite="lax",
        )


def drop(response: Response) -> None:
    """Let the browser forget a login."""
    for name in (SESSION, CSRF_COOKIE):
        response.delete_cookie(name, path="/", samesite="lax")
