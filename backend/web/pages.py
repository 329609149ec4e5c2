"""Pages of the API itself: the way in, with the cookies of a login, and its documentation.

The entrance has plain forms without a script, so that they work everywhere and load nothing; only
the first account's link needs one, because its key is behind a `#` and never reaches a log.
"""

import base64
import hashlib
import json
from collections.abc import Iterator
from html import escape
from string import Template
from typing import Annotated, Any
from urllib.parse import parse_qs, urlencode, urlsplit

from anyio import to_thread
from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import Scope

from backend.db import reading, transaction
from backend.deps import EngineDep, SettingsDep, client_address
from backend.errors import status_of
from backend.schemas import CSRF_COOKIE
from backend.services import accounts
from backend.services.accounts import Login, check_name, log_in
from backend.settings import Settings
from ib_core.errors import IBError

router = APIRouter(include_in_schema=False)

Next = Annotated[str, Query(alias="next")]
ENTRANCES = ("/login", "/welcome")
LONGEST_PATH = 2000
#: The login itself, which only we can read; the other cookie only pages of ours can read.
SESSION_COOKIE = "etascope_session"

#: Moves the key from behind the `#` into the form, and out of the address.
SCRIPT = (
    "if(location.hash){document.getElementById('key').value=location.hash.slice(1);"
    "history.replaceState(null,'','/welcome')}"
)
_SCRIPT_HASH = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
POLICY = (
    f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{_SCRIPT_HASH}'; "
    "img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

STYLE = """
:root { color-scheme: light dark; --page: #f8f9fa; --surface: #fff; --line: #dee2e6; --ink: #1a1d21;
  --muted: #545b64; --accent: #3b5bdb; --accent-ink: #fff; --bad: #c92a2a; --focus: #1c7ed6; }
@media (prefers-color-scheme: dark) { :root { --page: #101214; --surface: #17191c; --line: #34393f;
  --ink: #e6e8eb; --muted: #a6adb5; --bad: #ff8787; --focus: #74c0fc; } }
* { box-sizing: border-box; }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; padding: 16px;
  background: var(--page); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { width: 100%; max-width: 380px; padding: 24px; background: var(--surface);
  border: 1px solid var(--line); border-radius: 8px; }
.brand { display: flex; align-items: center; gap: 8px; font-weight: 700; font-size: 1.1rem; }
.mark { display: grid; place-items: center; width: 30px; height: 30px; border-radius: 6px;
  background: var(--accent); color: var(--accent-ink); font: italic 700 18px Georgia, serif; }
h1 { font-size: 1.4rem; margin: 16px 0 4px; }
p { margin: 0 0 16px; color: var(--muted); }
label { display: block; margin-bottom: 16px; font-weight: 600; font-size: .92rem; }
input { display: block; width: 100%; min-height: 44px; margin-top: 4px; padding: 8px 12px;
  font: inherit; font-weight: 400; color: var(--ink); background: var(--page);
  border: 1px solid var(--muted); border-radius: 6px; }
button { width: 100%; min-height: 44px; border: 0; border-radius: 6px; font: inherit;
  font-weight: 600; color: var(--accent-ink); background: var(--accent); cursor: pointer; }
:focus-visible { outline: 2px solid var(--focus); outline-offset: 2px; }
[role="alert"] { padding: 8px 12px; border-left: 4px solid var(--bad); color: var(--ink);
  background: var(--page); }
"""

PAGE = Template(
    '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    '<meta name="referrer" content="no-referrer"><link rel="icon" href="data:,">'
    f"<title>Log in · Etascope</title><style>{STYLE}</style></head><body><main>"
    '<div class="brand"><span class="mark" aria-hidden="true">η</span>Etascope</div>'
    "$form</main></body></html>"
)

LOGIN = Template(
    "<h1>Log in</h1><p>Learning-rate studies of your team.</p>$alert"
    '<form method="post" action="/login"><input type="hidden" name="next" value="$next">'
    '<label>Name<input name="username" value="$username" autocomplete="username" '
    'autocapitalize="none" spellcheck="false" required $first></label>'
    '<label>Password<input type="password" name="password" autocomplete="current-password" '
    "required $again></label><button>Log in</button></form>"
)

WELCOME = Template(
    "<h1>Welcome</h1><p>Choose the name and the password of the first admin.</p>$alert"
    '<form method="post" action="/welcome"><input type="hidden" name="key" id="key" value="$key">'
    '<label>Name<input name="username" value="$username" autocomplete="username" '
    'autocapitalize="none" spellcheck="false" required autofocus></label>'
    '<label>Password, at least 10 characters<input type="password" name="password" '
    'autocomplete="new-password" minlength="10" required></label>'
    f"<button>Create the account</button></form><script>{SCRIPT}</script>"
)


def local_path(wish: str | None) -> str:
    """Return an address on this server; anything that could lead elsewhere becomes the first page.

    Browsers read a backslash as a slash, skip control characters, and take two slashes for the
    start of another server's name.
    """
    text = wish or "/"
    plain = text.isprintable() and "\\" not in text and len(text) <= LONGEST_PATH
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


def put_cookies(response: Response, *, key: str, settings: Settings, scope: Scope) -> None:
    """Let the browser keep a login."""
    values = {SESSION_COOKIE: key, CSRF_COOKIE: accounts.csrf_token(key, secret=settings.secret)}
    for name, value in values.items():
        response.set_cookie(
            name,
            value,
            max_age=int(settings.session_hours * 3600),
            path="/",
            secure=settings.secure_cookies or scope.get("scheme") == "https",
            httponly=name == SESSION_COOKIE,
            samesite="lax",
        )


def drop_cookies(response: Response) -> None:
    """Let the browser forget a login."""
    for name in (SESSION_COOKIE, CSRF_COOKIE):
        response.delete_cookie(name, path="/", samesite="lax")


@router.get("/login")
def show_login(
    request: Request, settings: SettingsDep, engine: EngineDep, to: Next = "/"
) -> Response:
    """Ask for name and password; who is logged in already goes on."""
    key = request.cookies.get(SESSION_COOKIE, "")
    with reading(engine) as session:
        if key and accounts.login_caller(session, key=key, secret=settings.secret):
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
        if accounts.invitation(session, secret=settings.secret) is None:
            return RedirectResponse(login_address("/"), 303)
    return _page(WELCOME, username="admin", key="")


@router.post("/welcome")
async def submit_welcome(request: Request, settings: SettingsDep, engine: EngineDep) -> Response:
    """Create the first admin and log them in."""
    form = await _form(request)
    name = form.get("username", "").strip()

    def create() -> Login:
        with reading(engine) as session:  # before any work is done for a stranger
            accounts.check_invitation(session, secret=settings.secret, key=form.get("key", ""))
        check_name(name)
        password = accounts.choose_password(name, form.get("password", ""))
        with transaction(engine) as session:
            accounts.accept_invitation(
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
    put_cookies(answer, key=login.key, settings=settings, scope=request.scope)
    return answer


def _page(form: Template, error: IBError | None = None, **values: str) -> Response:
    said = f"{error.message} {error.hint or ''}" if error else ""
    alert = f'<p role="alert" id="why">{escape(said)}</p>' if said else ""
    filled = form.substitute({name: escape(text) for name, text in values.items()}, alert=alert)
    headers = {"Content-Security-Policy": POLICY, "Cache-Control": "no-store"}
    status = status_of(error) if error else 200
    return HTMLResponse(PAGE.substitute(form=filled), status, headers)


# --- The API's documentation as one self-contained page: no script, no outside request


Document = dict[str, Any]

DOCS_STYLE = """
:root { color-scheme: light dark; --line: #8884; --accent: #0a6ebd; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { margin-top: 2.5rem; font-size: 1.2rem; text-transform: capitalize; }
details { border: 1px solid var(--line); border-radius: 6px; margin: .5rem 0; }
summary { padding: .5rem .75rem; cursor: pointer; }
summary b { display: inline-block; min-width: 4.5rem; color: var(--accent); }
summary code { font-weight: 600; overflow-wrap: anywhere; }
.body { padding: 0 .75rem .75rem; } h3 { font-size: 1rem; margin: 1rem 0 .25rem; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; vertical-align: top;
padding: .25rem .75rem .25rem 0; border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
pre { overflow-x: auto; padding: .75rem; border: 1px solid var(--line); border-radius: 6px; }
"""


def docs_page(document: Document) -> str:
    """Return an OpenAPI document as HTML.

    Args:
        document: From ``app.openapi()``.
    """
    info = document["info"]
    sections = "".join(_sections(document))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(info['title'])}</title><style>{DOCS_STYLE}</style></head><body><main>"
        f"<h1>{escape(info['title'])} {escape(info['version'])}</h1>"
        f"{_paragraphs(info.get('description', ''))}"
        '<p>Machine-readable: <a href="openapi.json">openapi.json</a>.</p>'
        f"{sections}{_schemas(document)}</main></body></html>"
    )


def _sections(document: Document) -> Iterator[str]:
    by_tag: dict[str, list[str]] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            tag = (operation.get("tags") or ["other"])[0]
            by_tag.setdefault(tag, []).append(_operation(method, path, operation))
    for tag, operations in by_tag.items():
        yield f"<section><h2>{escape(tag)}</h2>{''.join(operations)}</section>"


def _operation(method: str, path: str, operation: Document) -> str:
    summary = operation.get("summary", "")
    body = [_paragraphs(operation.get("description", ""))]
    parameters = operation.get("parameters", [])
    if parameters:
        rows = (
            (
                f"{parameter['name']} ({parameter['in']})",
                _type(parameter["schema"]),
                parameter.get("description", "") or parameter["schema"].get("description", ""),
            )
            for parameter in parameters
        )
        body.append(f"<h3>Parameters</h3>{_table(rows)}")
    for kind, media in operation.get("requestBody", {}).get("content", {}).items():
        body.append(f"<h3>Body: {escape(kind)}</h3><p>{_type(media.get('schema', {}))}</p>")
    answers = (
        (status, _answer_type(answer), answer.get("description", ""))
        for status, answer in operation["responses"].items()
    )
    body.append(f"<h3>Answers</h3>{_table(answers)}")
    return (
        f"<details><summary><b>{escape(method.upper())}</b> <code>{escape(path)}</code> "
        f"{escape(summary)}</summary><div class=body>{''.join(body)}</div></details>"
    )


def _answer_type(answer: Document) -> str:
    kinds = (
        f"{escape(kind)} {_type(media.get('schema', {}))}"
        for kind, media in answer.get("content", {}).items()
    )
    return "<br>".join(kinds)


def _schemas(document: Document) -> str:
    parts = ["<section><h2>Types</h2>"]
    for name, schema in sorted(document.get("components", {}).get("schemas", {}).items()):
        rows = (
            (field, _type(value), value.get("description", ""))
            for field, value in schema.get("properties", {}).items()
        )
        examples = "".join(
            f"<pre>{escape(json.dumps(example, indent=2))}</pre>"
            for example in schema.get("examples", [])
        )
        parts.append(
            f'<details id="{escape(name)}"><summary><code>{escape(name)}</code> '
            f"{escape(schema.get('description', ''))}</summary>"
            f"<div class=body>{_table(rows)}{examples}</div></details>"
        )
    return "".join([*parts, "</section>"])


def _table(rows: Iterator[tuple[str, str, str]]) -> str:
    """Return rows of (plain name, HTML type, plain description)."""
    cells = "".join(
        f"<tr><td><code>{escape(name)}</code></td><td>{kind}</td><td>{escape(text)}</td></tr>"
        for name, kind, text in rows
    )
    return f"<table>{cells}</table>"


def _type(schema: Document) -> str:
    """Return a schema in a few words, with links to named types."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rsplit("/", 1)[-1])
        return f'<a href="#{name}">{name}</a>'
    for key in ("anyOf", "oneOf", "allOf"):
        if key in schema:
            return " or ".join(_type(member) for member in schema[key])
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        return ", ".join(f"<code>{escape(json.dumps(value))}</code>" for value in values)
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return escape(str(schema.get("type", "anything"))) + _bounds(schema)


def _bounds(schema: Document) -> str:
    words = {
        "minimum": "at least",
        "maximum": "at most",
        "exclusiveMinimum": "above",
        "exclusiveMaximum": "below",
        "default": "default",
    }
    found = [f"{word} {schema[key]!r}" for key, word in words.items() if key in schema]
    return escape(f" ({', '.join(found)})") if found else ""


def _paragraphs(text: str) -> str:
    return "".join(f"<p>{escape(part)}</p>" for part in text.split("\n\n") if part.strip())
