"""An installation with one person of every kind, and fresh things to try rights on."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from backend.client import Call
from backend.db import reading, transaction
from backend.models import StudyNoteRow
from backend.schemas import NoteCreate, ViewCreate, ViewFilters
from backend.services import accounts, studies, sweeps, trials
from backend.services.accounts import Caller
from tests import factories
from tests.backend.accounts import Person, bearer, new_user, person, token_of

#: Everybody who may come by; the last two once had a right to.
PEOPLE = ("anonymous", "viewer", "other", "owner", "admin")
#: The owner's token for agents: everything but cells is closed to it.
AGENT = "agent_token"
ROLES = (*PEOPLE, "read_token", AGENT, "revoked", "deleted")
STRANGERS = ("anonymous", "revoked", "deleted")
KNOWN = tuple(role for role in ROLES if role not in (*STRANGERS, AGENT))

__all__ = ["AGENT", "KNOWN", "ROLES", "STRANGERS", "Call", "World", "build_world"]


@dataclass
class World:
    """Headers of everybody, and makers of fresh targets that belong to the owner."""

    headers: dict[str, dict[str, str]]
    owner: Person
    counter: int = 0

    @property
    def _owner(self) -> Caller:
        return Caller(self.owner.name, "member", self.owner.id)

    def study_id(self) -> int:
        with transaction() as session:
            return factories.new_study(session, owner_id=self.owner.id).id

    def sweep_id(self) -> int:
        """A cancelled sweep: it can be cancelled, retried, and its stream ends."""
        study_id = self.study_id()
        with transaction() as session:
            sweep = factories.submit(session, study_id=study_id).sweep
            return sweeps.cancel(session, sweep_id=sweep.id).id

    def trial_id(self) -> int:
        sweep_id = self.sweep_id_once()
        with reading() as session:
            found = trials.page(session, sweep_id=sweep_id, limit=1)
        return found.items[0].id

    def sweep_id_once(self) -> int:
        if not hasattr(self, "_sweep"):
            self._sweep = self.sweep_id()
        return int(self._sweep)

    def user_id(self) -> int:
        self.counter += 1
        with transaction() as session:
            return new_user(session, f"somebody{self.counter}").id

    def token_id(self) -> int:
        with transaction() as session:
            made = accounts.create_token(
                session, user_id=self.owner.id, name="t", scope="read", days=None
            )
            # There is room for a hundred that work.
            for token in accounts.list_tokens(session, user_id=self.owner.id)[50:]:
                if not token.revoked and token.name == "t":
                    accounts.revoke_token(session, token_id=token.id, user_id=None)
        return made.id

    def note_id(self) -> int:
        study_id = self.study_id()
        with transaction() as session:
            text = NoteCreate(text="a note").text
            return studies.add_note(session, study_id=study_id, by=self._owner, text=text).id

    def view_id(self) -> int:
        view = ViewCreate(name="a view", filters=ViewFilters(q="x"))
        with transaction() as session:
            return studies.save_view(session, user_id=self.owner.id, payload=view).id

    def fresh(self, name: str) -> int:
        """Return the id of a new thing, by the name of a path's parameter."""
        maker: Callable[[], int] = getattr(self, name)
        return maker()

    def fill(self, path: str) -> str:
        """Return a path with fresh ids for its parameters."""
        while "{" in path:
            name = path.split("{", 1)[1].split("}", 1)[0]
            path = path.replace("{" + name + "}", str(self.fresh(name)))
        return path


def build_world() -> World:
    """Store everybody."""
    people: dict[str, Any] = {
        "admin": person("root", "admin"),
        "viewer": person("vera", "viewer"),
        "other": person("otto"),
        "owner": person("ada"),
    }
    gone = person("gone")
    owner = people["owner"]
    revoked_id, revoked = token_of(owner.id, "admin")
    _, dead = token_of(gone.id, "admin")
    _, read = token_of(owner.id, "read")
    _, agent = token_of(owner.id, "agent")
    with transaction() as session:
        accounts.revoke_token(session, token_id=revoked_id, user_id=owner.id)
        accounts.delete_user(session, user_id=gone.id)
    headers = {name: one.headers for name, one in people.items()}
    headers |= {"anonymous": {}, "revoked": bearer(revoked), "deleted": bearer(dead)}
    return World(headers | {"read_token": bearer(read), AGENT: bearer(agent)}, owner)


def notes_of(study_id: int) -> int:
    """Return how many notes a study has."""
    from sqlalchemy import func, select

    with transaction() as session:
        query = select(func.count()).where(StudyNoteRow.study_id == study_id)
        return session.scalar(query) or 0
