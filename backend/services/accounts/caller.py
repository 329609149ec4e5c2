"""Who is asking, and what they may do."""

from dataclasses import dataclass

from backend.errors import Forbidden
from backend.schemas import Role, Scope

#: What a token of a scope makes of its owner's role: it can only take rights away.
ROLE_BY_SCOPE: dict[Scope, dict[Role, Role]] = {
    "read": {"viewer": "viewer", "member": "viewer", "admin": "viewer"},
    "write": {"viewer": "viewer", "member": "member", "admin": "member"},
    "admin": {"viewer": "viewer", "member": "member", "admin": "admin"},
}


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is asking. Without accounts there is one owner, whose things have no owner's id.

    Attributes:
        name: Of the account.
        role: What they may do in this request; a token may allow less than its owner's role.
        user_id: The account; None for the one owner of an installation without accounts.
        scope: Of the token; a login may do all that its role allows.
        session_id: The login the request came with.
        token_id: The token it came with instead.
    """

    name: str
    role: Role
    user_id: int | None = None
    scope: Scope = "admin"
    session_id: int | None = None
    token_id: int | None = None

    @property
    def is_admin(self) -> bool:
        """Whether everything is allowed."""
        return self.role == "admin"

    def may_change(self, owner_id: int | None) -> bool:
        """Return whether something that belongs to an account is theirs to change."""
        return self.is_admin or (self.user_id is not None and self.user_id == owner_id)

    def check_writer(self) -> None:
        """Refuse who may read only."""
        if self.scope == "read":
            raise Forbidden("This token may read only.", hint="Make one with the scope write.")
        if self.role == "viewer":
            raise Forbidden("Viewers may read only; ask an admin for the role member.")

    def check_admin(self) -> None:
        """Refuse who does not run this installation."""
        if not self.is_admin:
            raise Forbidden("Only admins may do this.")

    def check_owner(self, owner_id: int | None, *, of: str = "study") -> None:
        """Refuse changes to what belongs to somebody else."""
        if not self.may_change(owner_id):
            raise Forbidden(
                f"Only its owner or an admin may change this {of}.",
                hint="Read it, or repeat it in a study of your own.",
            )


LOCAL_OWNER = Caller("local", "admin")
