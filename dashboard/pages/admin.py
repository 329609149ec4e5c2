"""Accounts, and what everybody did; for admins."""

import asyncio
from collections.abc import Sequence
from typing import Any

import dash
import dash_mantine_components as dmc
from dash import ALL, Input, Output, State, no_update
from pydantic import ValidationError

from backend.client import ApiError, calls
from backend.schemas import AuditRead, UserCreate, UserRead, UserUpdate
from backend.schemas import Page as Listed
from dashboard import ids as shared
from dashboard.api_client import ask, get_visitor, sentence
from dashboard.components import activity, card, local_time, not_found, refused, shown_once
from dashboard.dash_blocks import Component, callback, dcc, html, notice
from dashboard.ids import Admin as ids
from dashboard.router import Page
from dashboard.theme import counted

LOOK_MS = 4000
#: Of what everybody did.
PAGE_SIZE = 30
ROLES = ("viewer", "member", "admin")
QUESTIONS = {
    "password": "Give {name} a new password? Every login of theirs ends, and every token.",
    "delete": "Delete the account of {name}? Tokens and logins end; studies stay, and only "
    "admins can change them then.",
}


async def layout(**_: str) -> Component:
    """Return the page; who is no admin gets the API's refusal instead."""
    visitor = await get_visitor()
    if not visitor.auth:
        return not_found("This installation has no accounts; there is one owner.")
    users, past = await asyncio.gather(ask(calls.users()), ask(calls.audit(limit=PAGE_SIZE)))
    return html.Div(
        [
            html.Div(
                html.Div(
                    [
                        html.H1("Admin"),
                        html.P("Who may come in, and what they did.", className="page-lead"),
                    ]
                ),
                className="page-head",
            ),
            dcc.Store(id=ids.PENDING),
            dcc.Store(id=ids.KNOWN, data=mark(users.items)),
            dcc.Interval(id=ids.INTERVAL, interval=LOOK_MS),
            html.Div(
                [
                    card(
                        *create_form(),
                        html.Div(table(users.items, visitor.username), id=ids.USERS),
                        title="Accounts",
                    ),
                    card(*activity_panel(past), title="Activity"),
                ],
                className="two-thirds",
            ),
            confirmation(),
        ]
    )


def create_form() -> list[Component]:
    """Return the form of a new account."""
    return [
        html.Div(
            [
                dmc.TextInput(label="Name", id=ids.NAME, placeholder="ada", w=180),
                dmc.Select(
                    label="Role",
                    id=ids.ROLE,
                    data=list(ROLES),
                    value="member",
                    allowDeselect=False,
                    w=130,
                ),
                dmc.Button("Create the account", id=ids.CREATE, n_clicks=0),
            ],
            className="form-row",
        ),
        html.Div(id=ids.SHOWN, role="status", style={"marginBottom": "16px"}),
    ]


def table(users: Sequence[UserRead], own_name: str) -> Component:
    """Return every account; one's own cannot be changed by accident."""
    head = ("Account", "Role", "Last login", "")
    return html.Table(
        [
            html.Thead(html.Tr([html.Th(name, scope="col") for name in head])),
            html.Tbody([_row(user, user.username == own_name) for user in users]),
        ],
        className="table responsive",
    )


def _row(user: UserRead, own: bool) -> Component:
    locked = [html.Span("locked out", className="state state-failed")] if user.disabled else []
    role = dmc.Select(
        id=shared.part("user-role", user.id),
        data=list(ROLES),
        value=user.role,
        allowDeselect=False,
        disabled=own,
        size="xs",
        w=110,
        **{"aria-label": f"Role of {user.username}"},
    )
    buttons = [
        _button("lock", user, "Let in" if user.disabled else "Lock out"),
        _button("password", user, "New password"),
        _button("delete", user, "Delete", "danger"),
    ]
    yours = html.Span("that is you", className="history-meta")
    cells = [
        (
            "",
            [
                html.Div([html.B(user.username), *locked], className="row"),
                html.Div(counted(user.studies, "study", "studies"), className="history-meta"),
            ],
        ),
        ("", role),
        ("Last login", local_time(user.last_login_at) if user.last_login_at else "never"),
        ("", yours if own else html.Div(buttons, className="row")),
    ]
    return html.Tr(
        [html.Td(value, **({"data-label": name} if name else {})) for name, value in cells]
    )


def _button(kind: str, user: UserRead, label: str, look: str = "") -> Component:
    return dmc.Button(
        label,
        id=shared.part(f"user-{kind}", user.id),
        size="compact-sm",
        variant="default",
        className=look,
        n_clicks=0,
        **{"aria-label": f"{label}: {user.username}"},
    )


def confirmation() -> Component:
    """Return the question before what cannot be undone."""
    return dmc.Modal(
        [
            html.P(id=ids.CONFIRM_WORDS),
            dmc.Checkbox(label="Leave their tokens as they are", id=ids.KEEP_TOKENS, mb=16),
            dmc.Group(
                [
                    dmc.Button("No", id=ids.CONFIRM_NO, variant="default", n_clicks=0),
                    dmc.Button("Yes", id=ids.CONFIRM_YES, n_clicks=0),
                ],
                justify="end",
            ),
        ],
        id=ids.CONFIRM,
        title="Are you sure?",
        closeButtonProps={"aria-label": "Close"},
    )


def mark(users: Sequence[UserRead]) -> str:
    """Return a text that changes whenever the table would look different."""
    return str([(one.id, one.username, one.role, one.disabled, one.studies) for one in users])


@callback(
    Output(ids.USERS, "children", allow_duplicate=True),
    Output(ids.KNOWN, "data"),
    Input(ids.INTERVAL, "n_intervals"),
    State(ids.KNOWN, "data"),
    prevent_initial_call=True,
)
async def follow(_looks: int, known: str | None) -> tuple[Any, Any]:
    """Show accounts that another admin or the command line made; nothing moves without need."""
    users = (await ask(calls.users())).items
    if mark(users) == known:
        return no_update, no_update
    return table(users, (await get_visitor()).username), mark(users)


async def _table() -> Component:
    return table((await ask(calls.users())).items, (await get_visitor()).username)


@callback(
    Output(ids.SHOWN, "children"),
    Output(ids.USERS, "children"),
    Output(ids.NAME, "value"),
    Input(ids.CREATE, "n_clicks"),
    State(ids.NAME, "value"),
    State(ids.ROLE, "value"),
    prevent_initial_call=True,
)
async def create(clicks: int, name: str | None, role: Any) -> tuple[Any, Any, Any]:
    """Create an account and show its password, this once."""
    if not clicks:
        return no_update, no_update, no_update
    try:
        wanted = UserCreate(username=(name or "").strip().lower(), role=role)
        made = await ask(calls.create_user(wanted))
    except ValidationError:
        words = "A name has up to 100 letters, digits and ._@+- and begins with one of the first."
        return refused(words), no_update, no_update
    except ApiError as error:
        return refused(sentence(error)), no_update, no_update
    words = f"The password of {made.username}. Hand it over now: it is not shown again."
    return shown_once(words, made.password or ""), await _table(), ""


@callback(
    Output(ids.USERS, "children", allow_duplicate=True),
    Output(shared.NOTICES, "sendNotifications", allow_duplicate=True),
    Input(shared.part("user-role", ALL), "value"),
    Input(shared.part("user-lock", ALL), "n_clicks"),
    prevent_initial_call=True,
)
async def change(_roles: list[str], _locks: list[int]) -> tuple[Any, Any]:
    """Give a role, lock out or let in; a refusal puts the table back as it was."""
    pressed = dash.ctx.triggered_id
    value = dash.ctx.triggered[0]["value"] if dash.ctx.triggered else None
    if not pressed or not value:
        return no_update, no_update
    users = {user.id: user for user in (await ask(calls.users())).items}
    user = users.get(pressed["key"])
    if user is None or (pressed["kind"] == "user-role" and value == user.role):
        return no_update, no_update
    if pressed["kind"] == "user-role":
        wanted = UserUpdate(role=value)
    else:
        wanted = UserUpdate(disabled=not user.disabled)
    try:
        await ask(calls.update_user(user.id, wanted))
    except ApiError as error:
        return await _table(), [notice(sentence(error), bad=True)]
    return await _table(), [notice(f"{user.username} is changed; it counts from now on.")]


@callback(
    Output(ids.CONFIRM, "opened"),
    Output(ids.CONFIRM_WORDS, "children"),
    Output(ids.PENDING, "data"),
    Output(ids.KEEP_TOKENS, "display"),
    Output(ids.KEEP_TOKENS, "checked"),
    Input(shared.part("user-password", ALL), "n_clicks"),
    Input(shared.part("user-delete", ALL), "n_clicks"),
    prevent_initial_call=True,
)
async def confirm(_passwords: list[int], _deletes: list[int]) -> tuple[Any, ...]:
    """Ask first."""
    pressed = dash.ctx.triggered_id
    if not pressed or not dash.ctx.triggered[0]["value"]:
        return (no_update,) * 5
    users = {user.id: user.username for user in (await ask(calls.users())).items}
    name, do = users.get(pressed["key"], ""), pressed["kind"].removeprefix("user-")
    pending = {"do": do, "user": pressed["key"], "name": name}
    return (
        True,
        QUESTIONS[do].format(name=name),
        pending,
        None if do == "password" else "none",
        False,
    )


@callback(
    Output(ids.CONFIRM, "opened", allow_duplicate=True),
    Output(ids.SHOWN, "children", allow_duplicate=True),
    Output(ids.USERS, "children", allow_duplicate=True),
    Input(ids.CONFIRM_YES, "n_clicks"),
    Input(ids.CONFIRM_NO, "n_clicks"),
    State(ids.PENDING, "data"),
    State(ids.KEEP_TOKENS, "checked"),
    prevent_initial_call=True,
)
async def act(
    _yes: int, _no: int, pending: dict[str, Any] | None, keep: bool | None
) -> tuple[Any, Any, Any]:
    """Do what was confirmed."""
    if dash.ctx.triggered_id != ids.CONFIRM_YES or not pending:
        return False, no_update, no_update
    try:
        if pending["do"] == "delete":
            await ask(calls.delete_user(pending["user"]))
            return False, None, await _table()
        made = await ask(calls.reset_password(pending["user"], keep_tokens=bool(keep)))
    except ApiError as error:
        return False, refused(sentence(error)), await _table()
    words = f"The new password of {pending['name']}. Hand it over now: it is not shown again."
    if made.tokens_revoked:
        words += f" {counted(made.tokens_revoked, 'token')} of theirs no longer work."
    return False, shown_once(words, made.password or ""), await _table()


def activity_panel(past: Listed[AuditRead]) -> list[Component]:
    """Return the newest deeds, with a button for older ones."""
    return [
        html.Div([activity(past.items, linked=True)], id=ids.ACTIVITY),
        html.Div(_more(past), id=ids.MORE),
    ]


def _more(past: Listed[AuditRead]) -> Component | None:
    if past.next_cursor is None:
        return None
    return dmc.Button(
        "Show more",
        id=shared.part("admin-more", past.next_cursor),
        variant="default",
        size="compact-sm",
        mt=8,
        n_clicks=0,
    )


@callback(
    Output(ids.ACTIVITY, "children"),
    Output(ids.MORE, "children"),
    Input(shared.part("admin-more", ALL), "n_clicks"),
    prevent_initial_call=True,
)
async def show_more(clicks: list[int]) -> tuple[Any, Any]:
    """Add older deeds below."""
    if not any(clicks):
        return no_update, no_update
    cursor = dash.ctx.triggered_id["key"]
    past = await ask(calls.audit(limit=PAGE_SIZE, cursor=cursor))
    older = dash.Patch()
    older.append(activity(past.items, linked=True))
    return older, _more(past)


PAGE = Page("/admin", "Admin", layout, parent=None)
