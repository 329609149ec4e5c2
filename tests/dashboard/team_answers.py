"""What the fake API answers about people: none unless a test says who is there."""

from typing import Any

from backend.client import ApiError
from backend.schemas import (
    AuditRead,
    MeRead,
    NoteRead,
    Page,
    PersonRead,
    TokenCreated,
    TokenRead,
    UserCreated,
    UserRead,
    ViewRead,
)
from tests.dashboard.answers import NOW


class TeamAnswers:
    """Accounts, notes, activity and views.

    Attributes:
        me: Who is asking.
        notes: On every study.
        past: What happened.
        views: Saved ones.
        refusal: What accounts' calls end in instead, if anything.
    """

    def __init__(self) -> None:
        self.me = MeRead(username="local", role="admin", auth=False)
        self.notes: list[NoteRead] = []
        self.past: list[AuditRead] = []
        self.views: list[ViewRead] = []
        self.refusal: ApiError | None = None

    def log_in(self, name: str, role: str = "member") -> None:
        self.me = MeRead(username=name, role=role, auth=True)

    def happened(self, action: str, **detail: Any) -> None:
        number = len(self.past) + 1
        self.past.append(
            AuditRead(id=number, at=NOW, username="ada", action=action, study_id=1, detail=detail)
        )

    def _get_me(self, _call: Any, _rest: list[str]) -> MeRead:
        return self.me

    def _get_people(self, _call: Any, _rest: list[str]) -> Page[PersonRead]:
        return Page(items=[PersonRead(username=name) for name in ("ada", "bob")])

    def _get_audit(self, _call: Any, _rest: list[str]) -> Page[AuditRead]:
        return Page(items=self.past)

    def _get_notes(self) -> Page[NoteRead]:
        return Page(items=self.notes)

    def _post_note(self, study_id: int, text: str) -> NoteRead:
        note = NoteRead(
            id=len(self.notes) + 1,
            study_id=study_id,
            author=self.me.username,
            text=text,
            created_at=NOW,
        )
        self.notes.insert(0, note)
        return note

    def _delete_notes(self, _call: Any, rest: list[str]) -> None:
        self.notes = [note for note in self.notes if note.id != int(rest[0])]

    def _get_views(self, _call: Any, _rest: list[str]) -> Page[ViewRead]:
        return Page(items=self.views)

    def _post_views(self, call: Any, _rest: list[str]) -> ViewRead:
        self.views.append(ViewRead(id=len(self.views) + 1, **call.json))
        return self.views[-1]

    def _delete_views(self, _call: Any, rest: list[str]) -> None:
        self.views = [view for view in self.views if view.id != int(rest[0])]

    def _get_tokens(self, _call: Any, _rest: list[str]) -> Page[TokenRead]:
        return Page(items=[self._token(1, "laptop"), self._token(2, "old", revoked=True)])

    def _token(self, number: int, name: str, **changes: Any) -> TokenRead:
        given = {"prefix": "eta_abcdefgh", "scope": "write", "created_at": NOW}
        return TokenRead(id=number, name=name, **(given | changes))

    def _post_tokens(self, call: Any, _rest: list[str]) -> TokenCreated:
        self._refuse()
        made = self._token(3, call.json["name"], scope=call.json["scope"])
        return TokenCreated(**made.model_dump(), token="eta_the-whole-token")

    def _delete_tokens(self, _call: Any, _rest: list[str]) -> None:
        self._refuse()

    def _post_auth(self, _call: Any, _rest: list[str]) -> None:
        self._refuse()

    def _get_users(self, _call: Any, _rest: list[str]) -> Page[UserRead]:
        self._refuse()
        return Page(items=[self._user(1, "root", "admin"), self._user(2, "ada", disabled=True)])

    def _user(self, number: int, name: str, role: str = "member", **changes: Any) -> UserRead:
        given = {"disabled": False, "created_at": NOW, "studies": 2}
        return UserRead(id=number, username=name, role=role, **(given | changes))

    def _post_users(self, call: Any, rest: list[str]) -> Any:
        self._refuse()
        made = self._user(3, call.json.get("username", ""), call.json.get("role", "member"))
        return UserCreated(**made.model_dump(), password="made-up-words")

    def _patch_users(self, _call: Any, rest: list[str]) -> UserRead:
        self._refuse()
        return self._user(int(rest[0]), "ada")

    def _delete_users(self, _call: Any, _rest: list[str]) -> None:
        self._refuse()

    def _refuse(self) -> None:
        if self.refusal:
            raise self.refusal
