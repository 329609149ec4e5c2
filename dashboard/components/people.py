"""What somebody did, in words; and things that are shown only once."""

from collections.abc import Callable, Sequence
from typing import Any

import dash_mantine_components as dmc

from backend.schemas import AuditRead
from dashboard.components.elements import link, local_time
from dashboard.formats import counted
from dashboard.markup import Component, html

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
