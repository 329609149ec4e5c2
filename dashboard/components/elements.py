"""Small things every page is made of: cards, failures, offers, what somebody did."""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

import dash
import dash_mantine_components as dmc
from dash import Input, Output, no_update

from backend.client import calls
from backend.schemas import AuditRead, BundleRead
from dashboard.api_client import ask, sentence
from dashboard.dash_blocks import Component, browser_callback, callback, dcc, html
from dashboard.ids import Bundle as ids
from dashboard.theme import NONE, counted, duration, method_style

#: Colours of trial and sweep states; the words beside them say the same.
STATE_COLOUR = {
    "queued": "gray",
    "running": "indigo",
    "completed": "teal",
    "diverged": "orange",
    "failed": "red",
    "cancelled": "gray",
}


def icon(name: str) -> Component:
    """Return a pictogram of the stylesheet; it says nothing to a screen reader."""
    return html.Span(className=f"icon icon-{name}", **{"aria-hidden": "true"})


def link(label: Any, href: str, **properties: Any) -> Component:
    """Return a link to another page of ours."""
    return dmc.Anchor(label, href=href, refresh=False, **properties)


def button_link(label: str, href: str, *, primary: bool = True) -> Component:
    """Return a link that looks like a button."""
    look = "button-link primary" if primary else "button-link"
    return dmc.Anchor(label, href=href, refresh=False, unstyled=True, className=look)


class ZoomIds(Protocol):
    """The ids of a page whose address holds the zoom of its picture."""

    ZOOM: str
    ZOOM_OUT: str


def zoom_out(ids: type[ZoomIds]) -> Component:
    """Return what shows all of a picture again; it is there while less is shown."""
    return dmc.Button(
        "Show all again",
        id=ids.ZOOM_OUT,
        variant="default",
        size="compact-sm",
        n_clicks=0,
        ml=8,
        display="none",
    )


def zoom_out_from(ids: type[ZoomIds]) -> None:
    """Let the button follow the zoom, and end it."""
    browser_callback(
        "function(zoom) { return zoom ? 'inline-block' : 'none'; }",
        Output(ids.ZOOM_OUT, "display"),
        Input(ids.ZOOM, "data"),
    )
    browser_callback(
        "function() { return ''; }",
        Output(ids.ZOOM, "data", allow_duplicate=True),
        Input(ids.ZOOM_OUT, "n_clicks"),
        prevent_initial_call=True,
    )


def card(*children: Any, title: str | None = None, **properties: Any) -> Component:
    """Return a bordered box, under a heading if it has a title."""
    heading = [html.H2(title, className="card-title")] if title else []
    return dmc.Paper([*heading, *children], withBorder=True, p=16, radius="md", **properties)


def with_code(text: str) -> list[Component | str]:
    """Return a text with what stands between backticks set as code."""
    parts = text.split("`")
    return [html.Code(part) if index % 2 else part for index, part in enumerate(parts) if part]


def state_badge(state: str | None) -> Component:
    """Return a state: a spot of colour and the word."""
    name = str(state) if state else "no sweep yet"
    kind = name if name in STATE_COLOUR else "queued"
    return html.Span(name, className=f"state state-{kind}")


def method_swatch(method: str, *, imported: bool = False, clipped: bool = False) -> Component:
    """Return a spot of a method's colour; open for clipped runs, as their markers are."""
    style = method_style(method, imported=imported)
    look = {"border": f"3px solid {style.colour}"} if clipped else {"background": style.colour}
    return html.Span(className="swatch", style=look, **{"aria-hidden": "true"})


def explained(label: Any, explanation: str) -> Component:
    """Return a text whose meaning appears on hover, touch and keyboard focus.

    The browser does it: forty tooltip components would take part in every update of the page.
    """
    return html.Span(label, className="explained", tabIndex=0, **{"data-explanation": explanation})


def guide_link(anchor: str, label: str = "What does this mean?") -> Component:
    """Return a link into the guide."""
    return link(label, f"/guide#{anchor}", size="sm")


def local_time(moment: datetime | None) -> Component | str:
    """Return a moment; without JavaScript it stays in UTC and says so."""
    if moment is None:
        return NONE
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return html.Time(
        aware.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        dateTime=aware.isoformat(),
        className="local-time",
    )


def age(moment: datetime, now: datetime) -> str:
    """Return how long ago a moment was."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    seconds = max(0.0, (now - aware).total_seconds())
    return "just now" if seconds < 1 else f"{duration(round(seconds))} ago"


def markdown(text: str) -> Component:
    """Return markdown without HTML and pictures."""
    # An image would make every reader's browser ask some other host for it.
    inert = text.replace("![", r"!\[")
    return dcc.Markdown(
        inert, className="notes", link_target="_blank", dangerously_allow_html=False
    )


def error_panel(error: Exception) -> Component:
    """Say what went wrong in the API's words."""
    panel = dmc.Alert(
        with_code(sentence(error)),
        title="This cannot be shown right now",
        color="red",
        variant="light",
        my=32,
    )
    return html.Div(panel, role="alert")


def not_found(message: str) -> Component:
    """Say that there is nothing here, and where there is something."""
    return empty_state("Not found", message, button_link("Go to the history", "/history"))


def empty_state(title: str, message: str, *actions: Component) -> Component:
    """Return what fills an empty page: why it is empty and what to do next."""
    return dmc.Center(
        dmc.Stack(
            [
                dmc.Title(title, order=2, ta="center"),
                dmc.Text(with_code(message), c="dimmed", maw=520, ta="center"),
                dmc.Group(list(actions), justify="center"),
            ],
            align="center",
            gap=16,
        ),
        mih=320,
        className="empty-state",
    )


def code(text: str, label: str) -> Component:
    """Return lines to copy, with a button that does.

    Args:
        text: The lines.
        label: What they are, for those who do not see them.
    """
    return html.Div(
        [
            html.Pre(text, className="code", tabIndex=0, **{"aria-label": label}),
            dmc.CopyButton(
                value=text,
                children="Copy",
                copiedChildren="Copied",
                size="compact-xs",
                variant="default",
                className="copy",
                **{"aria-label": f"Copy: {label}"},
            ),
        ],
        className="copyable",
    )


Words = Callable[[dict[str, Any]], str]

#: An action with its details, as the end of a sentence that begins with a name.
DEEDS: dict[str, Words] = {
    "study.create": lambda _: "created the study",
    "study.rename": lambda d: f"renamed it from “{d.get('before', '')}”",
    "study.notes": lambda _: "changed its description",
    "study.tags": lambda d: f"set its tags: {', '.join(d.get('tags', [])) or 'none'}",
    "study.archive": lambda _: "archived it",
    "study.restore": lambda _: "brought it back from the archive",
    "study.delete": lambda d: (
        f"deleted the study “{d.get('name', '')}” with {counted(d.get('trials', 0), 'trial')}"
    ),
    "study.import": lambda d: f"imported runs from {d.get('source', 'a file')}",
    "study.time": lambda _: "had the cost of a step measured",
    "sweep.submit": lambda d: f"submitted {_sweeps(d)}",
    "sweep.cancel": lambda d: f"cancelled {_sweeps(d)}",
    "sweep.retry": lambda d: f"retried {_sweeps(d)}",
    "bundle.load": lambda _: "loaded the paper's reproduction",
    "user.create": lambda d: f"created the account {d.get('name', '')}",
    "user.change": lambda d: f"changed the account {d.get('name', '')}: {_changes(d)}",
    "user.delete": lambda d: f"deleted the account {d.get('name', '')}",
    "user.password": lambda d: f"gave {d.get('name', '')} a new password",
    "account.password": lambda _: "changed their password",
    "token.create": lambda d: f"made the token “{d.get('name', '')}” ({d.get('scope', '')})",
    "token.revoke": lambda d: f"revoked token {d.get('token_id', '')}",
}


def _sweeps(detail: dict[str, Any]) -> str:
    numbers = [str(number) for number in detail.get("sweeps", [])]
    return f"sweep{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}"


def _changes(detail: dict[str, Any]) -> str:
    role = [f"now {detail['role']}"] if "role" in detail else []
    locked = detail.get("disabled")
    lock = [] if locked is None else ["locked out" if locked else "let in again"]
    return ", ".join(role + lock) or "nothing"


def deed(entry: AuditRead) -> str:
    """Return what somebody did, in words."""
    known = DEEDS.get(entry.action)
    return known(entry.detail) if known else entry.action


def activity(entries: Sequence[AuditRead], *, linked: bool = False) -> Component:
    """Return a list of what happened; `linked` leads to the studies it happened to."""
    if not entries:
        return html.P("Nothing has happened yet.", className="muted")
    return html.Ul([html.Li(_entry(entry, linked)) for entry in entries], className="activity")


def _entry(entry: AuditRead, linked: bool) -> list[Any]:
    who = [html.B(entry.username), " "] if entry.username else []
    where: list[Any] = []
    if linked and entry.study_id and entry.action != "study.delete":
        where = [" · ", link(f"study {entry.study_id}", f"/studies/{entry.study_id}", size="sm")]
    moment = html.Span([" · ", local_time(entry.at)], className="history-meta")
    return [*who, deed(entry), *where, moment]


def shown_once(words: str, secret: str) -> Component:
    """Return a password or token that nobody will see again, with a button that copies it."""
    return dmc.Alert(
        html.Div(
            [
                html.Code(secret),
                dmc.CopyButton(value=secret, children="Copy", copiedChildren="Copied", size="sm"),
            ],
            className="shown-once",
        ),
        title=words,
        color="yellow",
        mt=12,
    )


def refused(words: str) -> Component:
    """Return why something was not done."""
    return dmc.Text(words, c="red", mt=8)


def plain_elements(store: str, place: str, meanwhile: Component) -> Component:
    """Return a place for markup that no callback reads or changes in part, and what is shown first.

    At every change of anything Dash asks each component of a page whether it changed, too, and a
    new one makes it ask all of them again. A table of two hundred cells would slow down every
    control beside it, so it is sent as data and the browser makes the elements (`fill_from`).

    Args:
        store: Holds the markup.
        place: Shows it.
        meanwhile: What is shown until there is any.
    """
    return html.Div(
        [
            dcc.Store(id=store),
            html.Div(id=place, className="plain-elements"),
            html.Div(meanwhile, className="until-filled"),
        ]
    )


def fill_from(store: str, place: str) -> None:
    """Let a place show the components, of `dash.html` only, that a store holds."""
    browser_callback(
        f"function(markup) {{ window.etascope.fillPlain({json.dumps(place)}, markup); }}",
        Input(store, "data"),
    )


LOOK_MS = 1500
LOADING = "Loading it: about ten seconds."


def bundle_offer(
    bundle: BundleRead, label: str = "Load the reproduction", *, primary: bool = False
) -> Component:
    """Return a button that loads the bundle, and what is said meanwhile.

    Args:
        bundle: What comes with Etascope, and whether it is here.
        label: What the page it stands on wants of it.
        primary: Whether it is what to do first there.
    """
    return html.Div(
        [
            dmc.Button(
                label,
                id=ids.BUTTON,
                variant="filled" if primary else "default",
                n_clicks=0,
                loading=bundle.state == "loading",
            ),
            html.Div(_words(bundle), id=ids.WORDS, role="status", className="history-meta"),
            dcc.Interval(id=ids.INTERVAL, interval=LOOK_MS, disabled=bundle.state != "loading"),
        ],
        className="bundle-offer",
    )


def _words(bundle: BundleRead) -> str:
    if bundle.state == "loading":
        return LOADING
    return f"It could not be loaded: {bundle.message}" if bundle.state == "failed" else ""


@callback(
    Output(ids.BUTTON, "loading"),
    Output(ids.WORDS, "children"),
    Output(ids.INTERVAL, "disabled"),
    Output(ids.LOADED, "data"),
    Input(ids.BUTTON, "n_clicks"),
    Input(ids.INTERVAL, "n_intervals"),
    prevent_initial_call=True,
)
async def load(clicks: int, _looks: int | None) -> tuple[Any, ...]:
    """Begin to load the bundle, and look how far it is until it is there."""
    pressed = dash.ctx.triggered_id == ids.BUTTON
    if pressed and not clicks:
        return no_update, no_update, no_update, no_update
    bundle = await ask(calls.load_bundle() if pressed else calls.bundle())
    loading = bundle.state == "loading"
    loaded = bundle.studies if bundle.state == "loaded" else no_update
    return loading, _words(bundle), not loading, loaded
