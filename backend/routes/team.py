"""What people leave for each other: notes on studies, who did what, saved views."""

from typing import Annotated

from fastapi import APIRouter
from fastapi import Query as QueryParameters
from pydantic import Field

from backend.db import transaction
from backend.deps import CallerDep, EngineDep, OwnerDep, ReadDep, SettingsDep, WriterDep
from backend.routes.parameters import NoteId, Paging, ShortPage, StudyId, ViewId, errors
from backend.schemas import (
    AuditRead,
    Identifier,
    NoteCreate,
    NoteRead,
    Page,
    ViewCreate,
    ViewRead,
)
from backend.services import accounts, studies
from backend.services.paging import cut

router = APIRouter(prefix="/api", tags=["team"])


class AuditQuery(Paging):
    """What of the past to show."""

    study_id: Identifier | None = Field(
        None, description="What happened to one study; everything is for admins."
    )


@router.get("/audit", responses=errors())
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


@router.get("/studies/{study_id}/notes", responses=errors(404))
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


@router.post("/studies/{study_id}/notes", status_code=201, responses=errors(400, 404, 413))
def add_note(
    study_id: StudyId, payload: NoteCreate, engine: EngineDep, caller: WriterDep
) -> NoteRead:
    """Remark something about a study, one's own or somebody else's."""
    with transaction(engine) as session:
        return studies.add_note(session, study_id=study_id, by=caller, text=payload.text)


@router.delete("/notes/{note_id}", status_code=204, responses=errors(404))
def delete_note(note_id: NoteId, engine: EngineDep, caller: WriterDep) -> None:
    """Delete a note; its author and admins may."""
    with transaction(engine) as session:
        studies.delete_note(session, note_id=note_id, by=caller)


@router.get("/views", responses=errors())
def list_views(session: ReadDep, caller: CallerDep, page: ShortPage) -> Page[ViewRead]:
    """Return one's own views of the history, by name."""
    found = studies.list_views(session, user_id=caller.user_id)
    return cut(found, key=lambda view: (view.name,), limit=page.limit, cursor=page.cursor)


@router.post("/views", status_code=201, responses=errors(400, 409, 413))
def save_view(payload: ViewCreate, engine: EngineDep, caller: OwnerDep) -> ViewRead:
    """Keep filters of the history under a name; a view of the same name is replaced."""
    with transaction(engine) as session:
        return studies.save_view(session, user_id=caller.user_id, payload=payload)


@router.delete("/views/{view_id}", status_code=204, responses=errors(404))
def delete_view(view_id: ViewId, engine: EngineDep, caller: OwnerDep) -> None:
    """Delete a view of one's own."""
    with transaction(engine) as session:
        studies.delete_view(session, user_id=caller.user_id, view_id=view_id)
