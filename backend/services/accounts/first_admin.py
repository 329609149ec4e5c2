"""The first admin of an installation: through a link that works once."""

import hashlib
import hmac

from sqlalchemy.orm import Session

from backend.db import lock_table
from backend.errors import Forbidden
from backend.models import UserRow
from backend.schemas import UserRead
from backend.services import audit
from backend.services.accounts import users
from backend.services.accounts.caller import Caller


def invitation(session: Session, *, secret: str) -> str | None:
    """Return the key of the link while there is no admin, None as soon as there is one.

    Made from the installation's secret, so that several web processes print the same link and
    nothing has to be stored.
    """
    return None if users.any_admin(session) else _key(secret)


def accept(session: Session, *, secret: str, key: str, name: str, password_digest: str) -> UserRead:
    """Create the first admin for whoever brings the key.

    Raises:
        Forbidden: The key is wrong, or somebody was first.
    """
    lock_table(session, UserRow)
    check(session, secret=secret, key=key)
    user = users.create(session, name=name, role="admin", password_digest=password_digest)
    themselves = Caller(name, "admin", user_id=user.id)
    audit.record(session, by=themselves, action="user.create", user_id=user.id, name=name)
    return user


def check(session: Session, *, secret: str, key: str) -> None:
    """Refuse a key that is wrong, or that nobody needs any more.

    Raises:
        Forbidden: It says what else works.
    """
    wanted = invitation(session, secret=secret)
    if wanted is None or not hmac.compare_digest(wanted.encode(), key.encode()):
        raise Forbidden(
            "This link does not work, or not any more.",
            hint="`etascope user create NAME --role admin` on the server makes an admin, too.",
        )


def _key(secret: str) -> str:
    return hmac.new(secret.encode(), b"first admin", hashlib.sha256).hexdigest()[:40]
