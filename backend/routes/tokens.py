"""Bearer tokens of one's own."""

from fastapi import APIRouter, Depends

from backend.db import transaction
from backend.deps import CallerDep, EngineDep, OwnerDep, ReadDep, require_accounts
from backend.errors import Forbidden
from backend.routes.documented import ShortPage, TokenId, errors
from backend.schemas import Page, TokenCreate, TokenCreated, TokenRead
from backend.services import audit
from backend.services.accounts import tokens
from backend.services.accounts.caller import Caller
from backend.services.cursors import cut

router = APIRouter(
    prefix="/api/tokens", tags=["accounts"], dependencies=[Depends(require_accounts)]
)


@router.get("", responses=errors(409))
def list_tokens(session: ReadDep, caller: CallerDep, page: ShortPage) -> Page[TokenRead]:
    """Return one's own tokens, without their texts, the newest first."""
    found = tokens.list_for(session, user_id=_account(caller))
    return cut(found, key=lambda one: (one.id,), limit=page.limit, cursor=page.cursor, falling=True)


@router.post("", status_code=201, responses=errors(400, 409, 413))
def create_token(payload: TokenCreate, engine: EngineDep, caller: OwnerDep) -> TokenCreated:
    """Make a token for oneself; its text is in this answer and nowhere else.

    With a login, or with a token of the scope admin, which the new one does not outlive.
    """
    if caller.token_id is not None and caller.scope != "admin":
        raise Forbidden(
            f"A token of the scope {caller.scope} cannot make others.",
            hint="Log in for that, or use a token of the scope admin.",
        )
    with transaction(engine) as session:
        made = tokens.create(
            session,
            user_id=_account(caller),
            name=payload.name,
            scope=payload.scope,
            days=payload.days,
            parent_id=caller.token_id,
        )
        audit.record(
            session,
            by=caller,
            action="token.create",
            user_id=caller.user_id,
            name=made.name,
            scope=made.scope,
        )
    return made


@router.delete("/{token_id}", status_code=204, responses=errors(404, 409))
def revoke_token(token_id: TokenId, engine: EngineDep, caller: OwnerDep) -> None:
    """End a token at once; admins may end anybody's."""
    with transaction(engine) as session:
        tokens.revoke(
            session, token_id=token_id, user_id=None if caller.is_admin else _account(caller)
        )
        audit.record(
            session, by=caller, action="token.revoke", user_id=caller.user_id, token_id=token_id
        )


def _account(caller: Caller) -> int:
    assert caller.user_id is not None  # accounts are on
    return caller.user_id
