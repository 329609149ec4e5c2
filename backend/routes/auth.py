"""Logging in and out, one's own password, and who one is."""

from fastapi import APIRouter, Depends, Request, Response

from backend.db import transaction
from backend.deps import (
    CallerDep,
    EngineDep,
    ReadDep,
    SettingsDep,
    client_address,
    require_accounts,
)
from backend.errors import Forbidden, InvalidInput
from backend.routes.documented import ShortPage, errors
from backend.schemas import LoginCreate, MeRead, Page, PasswordChange, PersonRead
from backend.services import audit
from backend.services.accounts import passwords, sessions, users
from backend.services.accounts.login import check_password, log_in
from backend.services.cursors import cut
from backend.web import cookies

router = APIRouter(prefix="/api", tags=["accounts"])
ACCOUNTS_ONLY = [Depends(require_accounts)]


@router.post("/auth/login", responses=errors(400, 409, 413, 429), dependencies=ACCOUNTS_ONLY)
def begin_login(
    payload: LoginCreate,
    request: Request,
    response: Response,
    engine: EngineDep,
    settings: SettingsDep,
) -> MeRead:
    """Begin a login; the answer sets its cookies.

    Writes then need the value of the cookie `etascope_csrf` in the header `X-CSRF-Token`.
    Programs do better with a token.
    """
    login = log_in(
        engine,
        username=payload.username,
        password=payload.password,
        address=client_address(request),
        secret=settings.secret,
        hours=settings.session_hours,
    )
    cookies.put(response, key=login.key, settings=settings, scope=request.scope)
    return MeRead(username=login.caller.name, role=login.caller.role, auth=True)


@router.post("/auth/logout", status_code=204, responses=errors(409), dependencies=ACCOUNTS_ONLY)
def end_login(caller: CallerDep, engine: EngineDep, response: Response) -> None:
    """End the login the request came with; a token is not touched."""
    if caller.session_id is not None:
        with transaction(engine) as session:
            sessions.end(session, session_id=caller.session_id)
    cookies.drop(response)


@router.post(
    "/auth/password",
    status_code=204,
    responses=errors(400, 409, 413, 429),
    dependencies=ACCOUNTS_ONLY,
)
def change_password(
    payload: PasswordChange,
    caller: CallerDep,
    request: Request,
    engine: EngineDep,
) -> None:
    """Change one's own password; every other login of the account ends, tokens if asked to."""
    if caller.session_id is None or caller.user_id is None:
        raise Forbidden("A token cannot change the password; log in for that.")
    right = check_password(
        engine, username=caller.name, password=payload.current, address=client_address(request)
    )
    if not right:
        raise InvalidInput("The current password is wrong.", field="current")
    chosen = passwords.choose(caller.name, payload.new)
    with transaction(engine) as session:
        users.set_password(
            session,
            user_id=caller.user_id,
            password_digest=chosen.digest,
            keep_session=caller.session_id,
            keep_tokens=payload.keep_tokens,
        )
        audit.record(session, by=caller, action="account.password", user_id=caller.user_id)


@router.get("/me", responses=errors())
def get_me(caller: CallerDep, settings: SettingsDep) -> MeRead:
    """Say who is asking; without accounts that is the one local owner."""
    return MeRead(username=caller.name, role=caller.role, auth=settings.auth, scope=caller.scope)


@router.get("/people", responses=errors())
def list_people(session: ReadDep, _: CallerDep, page: ShortPage) -> Page[PersonRead]:
    """Return everybody's name, to look for their studies."""
    found = [PersonRead(username=name) for name in users.names(session)]
    return cut(found, key=lambda person: (person.username,), limit=page.limit, cursor=page.cursor)
