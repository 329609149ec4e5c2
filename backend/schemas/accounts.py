"""Accounts: people, logins, tokens, and who did what."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StringConstraints

from backend.schemas.base import Input, Output
from backend.schemas.system import Role

__all__ = [
    "CSRF_COOKIE",
    "CSRF_HEADER",
    "AuditRead",
    "LoginCreate",
    "PasswordChange",
    "PasswordRead",
    "PasswordReset",
    "PersonRead",
    "Scope",
    "TokenCreate",
    "TokenCreated",
    "TokenRead",
    "UserCreate",
    "UserCreated",
    "UserRead",
    "UserUpdate",
    "Username",
]

#: agent: claim and report on cells of its owner's sweeps, and nothing else.
Scope = Literal["read", "write", "admin", "agent"]

#: A cookie that pages of ours read, and the header in which they send it back with every write:
#: another site can make a browser send cookies, but can neither read them nor set headers.
CSRF_COOKIE = "etascope_csrf"
CSRF_HEADER = "X-CSRF-Token"

#: Lower case only, so that nobody can be taken for somebody else.
USERNAME = r"^[a-z0-9][a-z0-9._@+-]*$"
Username = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=USERNAME)]
#: Only the length is checked here; what makes one weak is said without repeating it.
Secret = Annotated[str, StringConstraints(max_length=1000)]
GOOD = "10 to 200 characters, no name and no repetition."
TokenName = Annotated[
    str, StringConstraints(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f]+$")
]


class LoginCreate(Input):
    """Who wants in."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"username": "ada", "password": "correct horse battery"}]}
    )

    username: Annotated[str, StringConstraints(max_length=1000, pattern=r"^[^\x00]*$")]
    password: Secret


class PasswordChange(Input):
    """A new password for oneself; ends every other login, and tokens if asked to."""

    current: Secret
    new: Secret = Field(description=GOOD)
    keep_tokens: bool = Field(True, description="Whether one's tokens stay good.")


class PasswordReset(Input):
    """A new password for somebody else; ends all of their logins and tokens."""

    password: Secret | None = Field(None, description=f"{GOOD} Null: one is made up.")
    keep_tokens: bool = Field(False, description="Whether their tokens stay good.")


class PasswordRead(Output):
    """A password that was set."""

    password: str | None = Field(description="The made-up one, shown this once; else null.")
    tokens_revoked: int = Field(0, description="How many tokens ended with the old one.")


class UserCreate(Input):
    """A new account."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"username": "ada", "role": "member"}]}
    )

    username: Username = Field(description="Lower-case letters, digits and ._@+-")
    role: Role = "member"
    password: Secret | None = Field(
        None, description=f"{GOOD} Null: one is made up and shown once."
    )


class UserUpdate(Input):
    """Changes to an account; what is left out stays as it is."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"disabled": True}]})

    role: Role | None = None
    disabled: bool | None = Field(
        None, description="Locked out: logins and tokens end at once; studies stay."
    )


class UserRead(Output):
    """An account, as admins see it."""

    id: int
    username: str
    role: Role
    disabled: bool
    created_at: datetime
    last_login_at: datetime | None = None
    studies: int = Field(0, description="Number of studies it owns.")


class UserCreated(UserRead):
    """A new account."""

    password: str | None = Field(description="The made-up one, shown this once; else null.")
    tokens_revoked: int = Field(0, description="How many tokens ended with the old one.")


class PersonRead(Output):
    """Somebody whose studies one can look for."""

    username: str


class TokenCreate(Input):
    """A new bearer token."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"name": "laptop", "scope": "write", "days": 90}]}
    )

    name: TokenName = Field(description="What it is for.")
    scope: Scope = Field("write", description="Never more than its owner's role allows.")
    days: float | None = Field(90, gt=0, le=3650, description="Until it expires; null: never.")


class TokenRead(Output):
    """A token, without its text."""

    id: int
    name: str
    prefix: str = Field(description="How its text begins.")
    scope: Scope
    created_at: datetime
    expires_at: datetime | None = None
    last_used_at: datetime | None = Field(None, description="To the minute.")
    revoked: bool = False


class TokenCreated(TokenRead):
    """A new token."""

    token: str = Field(description="Shown this once; only its hash is kept.")


class AuditRead(Output):
    """One thing somebody did."""

    id: int
    at: datetime
    username: str | None = Field(description="Null where there were no accounts.")
    action: str = Field(description="As study.archive or sweep.cancel.")
    study_id: int | None = None
    user_id: int | None = None
    detail: dict[str, Any] = Field(default_factory=dict)
