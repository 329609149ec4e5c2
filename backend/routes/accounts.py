"""Logging in and out, one's own password and tokens; and everybody's accounts, for admins.

What people leave for each other: notes on studies, who did what, saved views.
"""

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from fastapi import Query as QueryParameters
from pydantic import Field

from backend.db import reading, transaction
from backend.deps import (
    AdminDep,
    CallerDep,
    EngineDep,
    NoteId,
    OwnerDep,
    Paging,
    ReadDep,
    SettingsDep,
    ShortPage,
    StudyId,
    TokenId,
    UserId,
    ViewId,
    WriterDep,
    client_address,
    errors,
    require_accounts,
)
from backend.errors import Forbidden, InvalidInput
from backend.schemas import (
    AuditRead,
    Identifier,
    LoginCreate,
    MeRead,
    NoteCreate,
    NoteRead,
    Page,
    PasswordChange,
    PasswordRead,
    PasswordReset,
    PersonRead,
    TokenCreate,
    TokenCreated,
    TokenRead,
    UserCreate,
    UserCreated,
    UserRead,
    UserUpdate,
    ViewCreate,
    ViewRead,
)
from backend.services import accounts, cut, studies
from backend.services.accounts import Caller, check_password, log_in
from backend.web import drop_cookies, put_cookies

ACCOUNTS_ONLY = [Depends(require_accounts)]

login_router = APIRouter(prefix="/api", tags=["accounts"])
token_router = APIRouter(prefix="/api/tokens", tags=["accounts"], dependencies=ACCOUNTS_ONLY)
user_router = APIRouter(prefix="/api/users", tags=["accounts"], dependencies=ACCOUNTS_ONLY)


@login_router.post("/auth/login", responses=errors(400, 409, 413, 429), dependencies=ACCOUNTS_ONLY)
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
    put_cookies(response, key=login.key, settings=settings, scope=request.scope)
    return MeRead(username=login.caller.name, role=login.caller.role, auth=True)


@login_router.post(
    "/auth/logout", status_code=204, responses=errors(409), dependencies=ACCOUNTS_ONLY
)
def end_login(caller: CallerDep, engine: EngineDep, response: Response) -> None:
    """End the login the request came with; a token is not touched."""
    if caller.session_id is not None:
        with transaction(engine) as session:
            accounts.end_login(session, session_id=caller.session_id)
    drop_cookies(response)


@login_router.post(
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
    chosen = accounts.choose_password(caller.name, payload.new)
    with transaction(engine) as session:
        accounts.check_holds(session, by=caller, lock=caller.user_id)
        accounts.set_password(
            session,
            user_id=caller.user_id,
            password_digest=chosen.digest,
            keep_session=caller.session_id,
            keep_tokens=payload.keep_tokens,
        )
        accounts.audit(session, by=caller, action="account.password", user_id=caller.user_id)


@login_router.get("/me", responses=errors())
def get_me(caller: CallerDep, settings: SettingsDep) -> MeRead:
    """Say who is asking; without accounts that is the one local owner."""
    return MeRead(username=caller.name, role=caller.role, auth=settings.auth, scope=caller.scope)


@login_router.get("/people", responses=errors())
def list_people(session: ReadDep, _: CallerDep, page: ShortPage) -> Page[PersonRead]:
    """Return everybody's name, to look for their studies."""
    found = [PersonRead(username=name) for name in accounts.user_names(session)]
    return cut(found, key=lambda person: (person.username,), limit=page.limit, cursor=page.cursor)


@token_router.get("", responses=errors(409))
def list_tokens(session: ReadDep, caller: CallerDep, page: ShortPage) -> Page[TokenRead]:
    """Return one's own tokens, without their texts, the newest first."""
    found = accounts.list_tokens(session, user_id=_account(caller))
    return cut(found, key=lambda one: (one.id,), limit=page.limit, cursor=page.cursor, falling=True)


@token_router.post("", status_code=201, responses=errors(400, 409, 413))
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
        made = accounts.create_token(
            session,
            user_id=_account(caller),
            name=payload.name,
            scope=payload.scope,
            days=payload.days,
            by=caller,
        )
        accounts.audit(
            session,
            by=caller,
            action="token.create",
            user_id=caller.user_id,
            name=made.name,
            scope=made.scope,
        )
    return made


@token_router.delete("/{token_id}", status_code=204, responses=errors(404, 409))
def revoke_token(token_id: TokenId, engine: EngineDep, caller: OwnerDep) -> None:
    """End a token at once; admins may end anybody's."""
    with transaction(engine) as session:
        accounts.revoke_token(
            session, token_id=token_id, user_id=None if caller.is_admin else _account(caller)
        )
        accounts.audit(
            session, by=caller, action="token.revoke", user_id=caller.user_id, token_id=token_id
        )


def _account(caller: Caller) -> int:
    assert caller.user_id is not None  # accounts are on
    return caller.user_id


@user_router.get("", responses=errors(409))
def list_users(session: ReadDep, _: AdminDep, page: ShortPage) -> Page[UserRead]:
    """Return every account."""
    found = accounts.list_users(session)
    return cut(found, key=lambda user: (user.username,), limit=page.limit, cursor=page.cursor)


@user_router.post("", status_code=201, responses=errors(400, 409, 413))
def create_user(
    payload: UserCreate, engine: EngineDep, caller: AdminDep, response: Response
) -> UserCreated:
    """Create an account; a made-up password is in this answer and nowhere else."""
    chosen = accounts.choose_password(payload.username, payload.password)
    with transaction(engine) as session:
        accounts.check_holds(session, by=caller)
        user = accounts.create_user(
            session, name=payload.username, role=payload.role, password_digest=chosen.digest
        )
        accounts.audit(
            session, by=caller, action="user.create", user_id=user.id, name=user.username
        )
    response.headers["Location"] = f"/api/users/{user.id}"
    shown = chosen.text if payload.password is None else None
    return UserCreated(**user.model_dump(), password=shown)


@user_router.get("/{user_id}", responses=errors(404, 409))
def get_user(user_id: UserId, session: ReadDep, _: AdminDep) -> UserRead:
    """Return an account."""
    return accounts.get_user(session, user_id=user_id)


@user_router.patch("/{user_id}", responses=errors(400, 404, 409, 413))
def update_user(
    user_id: UserId, payload: UserUpdate, engine: EngineDep, caller: AdminDep
) -> UserRead:
    """Give another role, lock out, or let in again; takes effect at once."""
    with transaction(engine) as session:
        user = accounts.change_user(
            session, user_id=user_id, role=payload.role, disabled=payload.disabled
        )
        if user_id != caller.user_id:  # who locks themselves out has just ended their own
            accounts.check_holds(session, by=caller)
        changes = payload.model_dump(exclude_none=True)
        accounts.audit(
            session, by=caller, action="user.change", user_id=user_id, name=user.username, **changes
        )
    return user


@user_router.delete("/{user_id}", status_code=204, responses=errors(404, 409))
def delete_user(user_id: UserId, engine: EngineDep, caller: AdminDep) -> None:
    """Delete an account with its tokens and logins; its studies stay, as nobody's."""
    with transaction(engine) as session:
        name = accounts.get_user(session, user_id=user_id).username
        accounts.audit(session, by=caller, action="user.delete", user_id=user_id, name=name)
        session.flush()  # before the author may be gone
        accounts.delete_user(session, user_id=user_id)


@user_router.post("/{user_id}/password", responses=errors(400, 404, 409, 413))
def reset_password(
    user_id: UserId, payload: PasswordReset, engine: EngineDep, caller: AdminDep
) -> PasswordRead:
    """Give somebody a new password, and end all of their logins, and tokens unless kept."""
    with reading(engine) as session:
        name = accounts.get_user(session, user_id=user_id).username
    chosen = accounts.choose_password(name, payload.password)
    with transaction(engine) as session:
        accounts.check_holds(session, by=caller, lock=user_id)
        revoked = accounts.set_password(
            session,
            user_id=user_id,
            password_digest=chosen.digest,
            keep_tokens=payload.keep_tokens,
        )
        accounts.audit(
            session,
            by=caller,
            action="user.password",
            user_id=user_id,
            name=name,
            tokens_revoked=revoked,
        )
    shown = chosen.text if payload.password is None else None
    return PasswordRead(password=shown, tokens_revoked=revoked)


team_router = APIRouter(prefix="/api", tags=["team"])


class AuditQuery(Paging):
    """What of the past to show."""

    study_id: Identifier | None = Field(
        None, description="What happened to one study; everything is for admins."
    )


@team_router.get("/audit", responses=errors())
def list_audit(
    query: Annotated[AuditQuery, QueryParameters()],
    session: ReadDep,
    settings: SettingsDep,
    caller: CallerDep,
) -> Page[AuditRead]:
    """Return who did what, the newest first."""
    if query.study_id is None:
        caller.check_admin()
    limit = min(query.limit, settings.page_limit)
    return accounts.audit_page(session, study_id=query.study_id, limit=limit, cursor=query.cursor)


@team_router.get("/studies/{study_id}/notes", responses=errors(404))
def list_notes(
    study_id: StudyId,
    query: Annotated[Paging, QueryParameters()],
    session: ReadDep,
    settings: SettingsDep,
    _: CallerDep,
) -> Page[NoteRead]:
    """Return what people remarked about a study, the newest first."""
    limit = min(query.limit, settings.page_limit)
    return studies.notes_page(session, study_id=study_id, limit=limit, cursor=query.cursor)


@team_router.post("/studies/{study_id}/notes", status_code=201, responses=errors(400, 404, 413))
def add_note(
    study_id: StudyId, payload: NoteCreate, engine: EngineDep, caller: WriterDep
) -> NoteRead:
    """Remark something about a study, one's own or somebody else's."""
    with transaction(engine) as session:
        return studies.add_note(session, study_id=study_id, by=caller, text=payload.text)


@team_router.delete("/notes/{note_id}", status_code=204, responses=errors(404))
def delete_note(note_id: NoteId, engine: EngineDep, caller: WriterDep) -> None:
    """Delete a note; its author and admins may."""
    with transaction(engine) as session:
        studies.delete_note(session, note_id=note_id, by=caller)


@team_router.get("/views", responses=errors())
def list_views(session: ReadDep, caller: CallerDep, page: ShortPage) -> Page[ViewRead]:
    """Return one's own views of the history, by name."""
    found = studies.list_views(session, user_id=caller.user_id)
    return cut(found, key=lambda view: (view.name,), limit=page.limit, cursor=page.cursor)


@team_router.post("/views", status_code=201, responses=errors(400, 409, 413))
def save_view(payload: ViewCreate, engine: EngineDep, caller: OwnerDep) -> ViewRead:
    """Keep filters of the history under a name; a view of the same name is replaced."""
    with transaction(engine) as session:
        return studies.save_view(session, user_id=caller.user_id, payload=payload)


@team_router.delete("/views/{view_id}", status_code=204, responses=errors(404))
def delete_view(view_id: ViewId, engine: EngineDep, caller: OwnerDep) -> None:
    """Delete a view of one's own."""
    with transaction(engine) as session:
        studies.delete_view(session, user_id=caller.user_id, view_id=view_id)
