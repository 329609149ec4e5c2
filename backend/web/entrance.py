"""The pages one sees without being logged in: log in, and make the first account.

Plain forms without a script, so that they work everywhere and load nothing; only the first
account's link needs one, because its key is behind a `#` and never reaches a log.
"""

from html import escape
from string import Template
from typing import Annotated
from urllib.parse import parse_qs

from anyio import to_thread
from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from backend.db import reading, transaction
from backend.deps import EngineDep, SettingsDep, client_address
from backend.errors import status_of
from backend.services.accounts import first_admin, passwords
from backend.services.accounts.login import Login, log_in
from backend.services.accounts.names import check_name
from backend.services.accounts.sessions import find
from backend.settings import Settings
from backend.web import cookies
from backend.web.entrance_page import LOGIN, PAGE, POLICY, WELCOME
from backend.web.local_path import local_path, login_address
from ib_core.errors import IBError

router = APIRouter(include_in_schema=False)

Next = Annotated[str, Query(alias="next")]


@router.get("/login")
def show_login(
    request: Request, settings: SettingsDep, engine: EngineDep, to: Next = "/"
) -> Response:
    """Ask for name and password; who is logged in already goes on."""
    key = request.cookies.get(cookies.SESSION, "")
    with reading(engine) as session:
        if key and find(session, key=key, secret=settings.secret):
            return RedirectResponse(local_path(to), 303)
    return _page(LOGIN, next=local_path(to), username="", first="autofocus", again="")


@router.post("/login")
async def submit_login(request: Request, settings: SettingsDep, engine: EngineDep) -> Response:
    """Begin a login and go where one wanted to go, or say what was wrong."""
    form = await _form(request)
    to, name = local_path(form.get("next")), form.get("username", "")

    def begin() -> Login:
        return log_in(
            engine,
            username=name,
            password=form.get("password", ""),
            address=client_address(request),
            secret=settings.secret,
            hours=settings.session_hours,
        )

    try:
        login = await to_thread.run_sync(begin)
    except IBError as error:
        return _page(LOGIN, error, next=to, username=name, first="", again="autofocus")
    return _enter(login, to, settings, request)


@router.get("/welcome")
def show_welcome(engine: EngineDep, settings: SettingsDep) -> Response:
    """Let the first admin choose a name and a password."""
    with reading(engine) as session:
        if first_admin.invitation(session, secret=settings.secret) is None:
            return RedirectResponse(login_address("/"), 303)
    return _page(WELCOME, username="admin", key="")


@router.post("/welcome")
async def submit_welcome(request: Request, settings: SettingsDep, engine: EngineDep) -> Response:
    """Create the first admin and log them in."""
    form = await _form(request)
    name = form.get("username", "").strip()

    def create() -> Login:
        with reading(engine) as session:  # before any work is done for a stranger
            first_admin.check(session, secret=settings.secret, key=form.get("key", ""))
        check_name(name)
        password = passwords.choose(name, form.get("password", ""))
        with transaction(engine) as session:
            first_admin.accept(
                session,
                secret=settings.secret,
                key=form.get("key", ""),
                name=name,
                password_digest=password.digest,
            )
        return log_in(
            engine,
            username=name,
            password=password.text,
            address=client_address(request),
            secret=settings.secret,
            hours=settings.session_hours,
        )

    try:
        login = await to_thread.run_sync(create)
    except IBError as error:
        return _page(WELCOME, error, username=name, key=form.get("key", ""))
    return _enter(login, "/", settings, request)


async def _form(request: Request) -> dict[str, str]:
    """Return a form's fields; the body limit has already been applied."""
    text = (await request.body()).decode("utf-8", "replace")
    try:
        found = parse_qs(text, keep_blank_values=True, max_num_fields=20)
    except ValueError:
        return {}
    return {name: values[0] for name, values in found.items()}


def _enter(login: Login, to: str, settings: Settings, request: Request) -> Response:
    answer = RedirectResponse(to, 303)
    cookies.put(answer, key=login.key, settings=settings, scope=request.scope)
    return answer


def _page(form: Template, error: IBError | None = None, **values: str) -> Response:
    said = f"{error.message} {error.hint or ''}" if error else ""
    alert = f'<p role="alert" id="why">{escape(said)}</p>' if said else ""
    filled = form.substitute({name: escape(text) for name, text in values.items()}, alert=alert)
    headers = {"Content-Security-Policy": POLICY, "Cache-Control": "no-store"}
    status = status_of(error) if error else 200
    return HTMLResponse(PAGE.substitute(form=filled), status, headers)
