"""One's own account: the password, and tokens for programs."""

from collections.abc import Sequence
from typing import Any

import dash
import dash_mantine_components as dmc
from dash import ALL, Input, Output, State, no_update
from pydantic import ValidationError

from backend.client import ApiError, calls
from backend.schemas import MeRead, PasswordChange, TokenCreate, TokenRead
from dashboard import ids as shared
from dashboard.api_client import ask, get_visitor, sentence
from dashboard.components import card, local_time, not_found, refused, shown_once
from dashboard.dash_blocks import Component, callback, html
from dashboard.ids import Account as ids
from dashboard.router import Page

SCOPES = (
    ("read", "read"),
    ("write", "read and write"),
    ("agent", "report on cells of my sweeps"),
    ("admin", "all that I may"),
)
LIFETIMES = (("7", "a week"), ("30", "a month"), ("90", "three months"), ("365", "a year"))
FOR_EVER = ("0", "until revoked")


async def layout(**_: str) -> Component:
    """Return one's account."""
    visitor = await get_visitor()
    if not visitor.auth:
        return not_found("This installation has no accounts; there is one owner.")
    tokens = await ask(calls.tokens())
    return html.Div(
        [
            _head(visitor),
            html.Div(
                [
                    card(*_token_form(), _tokens(tokens.items), title="Tokens"),
                    card(*_password_form(visitor), title="Password"),
                ],
                className="two-thirds",
            ),
        ]
    )


def _head(visitor: MeRead) -> Component:
    return html.Div(
        html.Div(
            [
                html.H1(visitor.username),
                html.P(f"You are logged in as {visitor.role}.", className="page-lead"),
            ]
        ),
        className="page-head",
    )


def _password_form(visitor: MeRead) -> list[Component]:
    return [
        dmc.PasswordInput(
            label="Current password", id=ids.CURRENT, autoComplete="current-password", mb=12
        ),
        dmc.PasswordInput(
            label="New password",
            id=ids.NEW,
            description="At least 10 characters.",
            autoComplete="new-password",
            mb=12,
        ),
        dmc.PasswordInput(
            label="New password again", id=ids.REPEAT, autoComplete="new-password", mb=12
        ),
        dmc.Checkbox(label="Revoke my tokens, too", id=ids.TOKENS_END, checked=False, mb=12),
        dmc.Button("Change the password", id=ids.CHANGE, n_clicks=0),
        html.P("Every other browser you are logged in with is logged out.", className="muted"),
        html.Div(id=ids.CHANGED, role="status"),
    ]


def _token_form() -> list[Component]:
    return [
        html.P(
            "A token lets a program act for you: etascope submit reads it from ETASCOPE_TOKEN.",
            className="muted",
        ),
        html.Div(
            [
                dmc.TextInput(label="What for", id=ids.TOKEN_NAME, placeholder="laptop", w=180),
                dmc.Select(
                    label="It may",
                    id=ids.TOKEN_SCOPE,
                    data=[{"value": value, "label": words} for value, words in SCOPES],
                    value="write",
                    allowDeselect=False,
                    w=160,
                ),
                dmc.Select(
                    label="It lasts",
                    id=ids.TOKEN_DAYS,
                    data=[{"value": v, "label": words} for v, words in (*LIFETIMES, FOR_EVER)],
                    value="90",
                    allowDeselect=False,
                    w=160,
                ),
                dmc.Button("Make a token", id=ids.TOKEN_CREATE, n_clicks=0),
            ],
            className="form-row",
        ),
        html.Div(id=ids.TOKEN_SHOWN, role="status"),
    ]


def _tokens(tokens: Sequence[TokenRead]) -> Component:
    return html.Div(token_table(tokens), id=ids.TOKENS, style={"marginTop": "16px"})


def token_table(tokens: Sequence[TokenRead]) -> Component:
    """Return one's tokens, those that still work first."""
    if not tokens:
        return html.P("No tokens yet.", className="muted")
    head = ("Token", "May", "Last used", "Expires", "")
    ordered = sorted(tokens, key=lambda token: token.revoked)
    return html.Table(
        [
            html.Thead(html.Tr([html.Th(name, scope="col") for name in head])),
            html.Tbody([_row(token) for token in ordered]),
        ],
        className="table responsive",
    )


def _row(token: TokenRead) -> Component:
    revoke = dmc.Button(
        "Revoke",
        id=shared.part("token-revoke", token.id),
        size="compact-sm",
        variant="default",
        className="danger",
        n_clicks=0,
        **{"aria-label": f"Revoke {token.name}"},
    )
    cells = [
        ("", [html.B(token.name), html.Div(f"{token.prefix}…", className="history-meta mono")]),
        ("May", token.scope),
        ("Last used", local_time(token.last_used_at) if token.last_used_at else "never"),
        ("Expires", local_time(token.expires_at) if token.expires_at else "never"),
        ("", html.Span("revoked", className="history-meta") if token.revoked else revoke),
    ]
    return html.Tr(
        [html.Td(value, **({"data-label": name} if name else {})) for name, value in cells]
    )


@callback(
    Output(ids.TOKEN_SHOWN, "children"),
    Output(ids.TOKENS, "children"),
    Output(ids.TOKEN_NAME, "value"),
    Input(ids.TOKEN_CREATE, "n_clicks"),
    State(ids.TOKEN_NAME, "value"),
    State(ids.TOKEN_SCOPE, "value"),
    State(ids.TOKEN_DAYS, "value"),
    prevent_initial_call=True,
)
async def make_token(
    clicks: int, name: str | None, scope: Any, days: str | None
) -> tuple[Any, Any, Any]:
    """Make a token and show it, this once."""
    if not clicks:
        return no_update, no_update, no_update
    try:
        wanted = TokenCreate(name=(name or "").strip(), scope=scope, days=float(days or 0) or None)
        made = await ask(calls.create_token(wanted))
    except ValidationError:
        return refused("Say what the token is for, in at most 100 characters."), no_update, name
    except ApiError as error:
        return refused(sentence(error)), no_update, name
    tokens = await ask(calls.tokens())
    words = f"Copy the token “{made.name}” now: it is not shown again."
    return shown_once(words, made.token), token_table(tokens.items), ""


@callback(
    Output(ids.TOKENS, "children", allow_duplicate=True),
    Input(shared.part("token-revoke", ALL), "n_clicks"),
    prevent_initial_call=True,
)
async def revoke_token(_clicks: list[int]) -> Any:
    """End a token."""
    pressed = dash.ctx.triggered_id
    if not pressed or not dash.ctx.triggered[0]["value"]:
        return no_update
    await ask(calls.revoke_token(pressed["key"]))
    return token_table((await ask(calls.tokens())).items)


@callback(
    Output(ids.CHANGED, "children"),
    Output(ids.CURRENT, "value"),
    Output(ids.NEW, "value"),
    Output(ids.REPEAT, "value"),
    Output(ids.TOKENS, "children", allow_duplicate=True),
    Input(ids.CHANGE, "n_clicks"),
    State(ids.CURRENT, "value"),
    State(ids.NEW, "value"),
    State(ids.REPEAT, "value"),
    State(ids.TOKENS_END, "checked"),
    prevent_initial_call=True,
)
async def change_password(
    clicks: int, current: str | None, new: str | None, repeat: str | None, revoke: bool | None
) -> tuple[Any, ...]:
    """Change the password, or say why not."""
    if not clicks:
        return (no_update,) * 5
    if new != repeat:
        return refused("The two new passwords differ."), *(no_update,) * 4
    try:
        body = PasswordChange(current=current or "", new=new or "", keep_tokens=not revoke)
        await ask(calls.change_password(body))
    except (ApiError, ValidationError) as error:
        words = sentence(error) if isinstance(error, ApiError) else "That is too long."
        return refused(words), *(no_update,) * 4
    said = dmc.Text("The password is changed.", mt=8)
    return said, "", "", "", token_table((await ask(calls.tokens())).items)


PAGE = Page("/account", "Account", layout, parent=None)
