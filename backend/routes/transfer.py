"""Trials out to files, and runs made elsewhere in."""

from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Request, Response
from fastapi import Query as QueryParameters
from fastapi.responses import StreamingResponse
from pydantic import Field
from sqlalchemy import Engine

from backend.db import reading, transaction
from backend.deps import CallerDep, EngineDep, SettingsDep, WriterDep
from backend.routes.parameters import Query, StudyId, errors
from backend.schemas import Identifier, ImportRead, Name
from backend.services import accounts, importing, studies, trials
from backend.services.accounts import Caller
from backend.web import Upload, read_upload

router = APIRouter(prefix="/api", tags=["files"])

_BINARY: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}


class ExportQuery(Query):
    """Which file to make."""

    format: trials.Format = "csv"


class ImportQuery(Query):
    """Where to put what a file holds."""

    study_id: Identifier | None = Field(None, description="A study; null: a new one.")
    name: Name | None = Field(None, description="Name of the new study.")
    filename: Name | None = Field(None, description="Where the runs come from, for the record.")


@router.get(
    "/studies/{study_id}/export",
    response_class=StreamingResponse,
    responses={
        **errors(404),
        200: {
            "description": "Every trial, also those that failed or wait. A number that is not "
            "finite is empty or null beside its outcome.",
            "content": {
                "text/csv": {"schema": {"type": "string"}},
                "application/json": {"schema": {"type": "object"}},
                "application/vnd.apache.parquet": _BINARY,
            },
        },
    },
)
def export_study(
    study_id: StudyId,
    query: Annotated[ExportQuery, QueryParameters()],
    engine: EngineDep,
    _: CallerDep,
) -> StreamingResponse:
    """Return every trial of a study as CSV, JSON or Parquet, streamed."""
    with reading(engine) as session:
        studies.owner_of(session, study_id=study_id)
    name = f"study-{study_id}.{query.format}"
    return StreamingResponse(
        trials.export(engine, study_id=study_id, format=query.format),
        media_type=trials.MEDIA_TYPES[query.format],
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


@router.post(
    "/import",
    status_code=201,
    responses=errors(400, 404, 413),
    openapi_extra={
        "requestBody": {
            "required": True,
            "description": "CSV with a header: dataset (or task), method, lr, seed, train_loss, "
            "test_loss, epochs, clip, ...; or our own export as CSV or JSON. Plain or "
            "gzip-compressed, as the body or as the file of a form.",
            "content": {
                "text/csv": {"schema": {"type": "string"}},
                "application/octet-stream": _BINARY,
                "application/json": {"schema": {}},
                "multipart/form-data": {
                    "schema": {"type": "object", "properties": {"file": _BINARY["schema"]}}
                },
            },
        }
    },
)
async def import_runs(
    request: Request,
    query: Annotated[ImportQuery, QueryParameters()],
    engine: EngineDep,
    settings: SettingsDep,
    caller: WriterDep,
    response: Response,
) -> ImportRead:
    """Bring runs made elsewhere into a study, marked as imported; all of them or none."""
    upload = await read_upload(request)
    found = await to_thread.run_sync(
        _import, upload, query, engine, settings.max_body_bytes, caller
    )
    response.headers["Location"] = f"/api/studies/{found.study_id}"
    return found


def _import(
    upload: Upload, query: ImportQuery, engine: Engine, most_bytes: int, caller: Caller
) -> ImportRead:
    source = query.filename or upload.filename or "a file without a name"
    rows = importing.read_rows(upload.content, most_bytes=most_bytes)
    found = importing.read_trials(rows)
    if query.study_id is not None:
        with reading(engine) as session:
            caller.check_owner(studies.owner_of(session, study_id=query.study_id))
    new = importing.store_trials(engine, found)
    try:
        return _publish(engine, found, new, source, query, caller)
    except Exception:
        importing.forget(engine, new)
        raise


def _publish(
    engine: Engine,
    found: importing.Imported,
    new: set[str],
    source: str,
    query: ImportQuery,
    caller: Caller,
) -> ImportRead:
    with transaction(engine) as session:
        if query.study_id is not None:  # again: meanwhile it may be somebody else's, or gone
            caller.check_owner(studies.owner_of(session, study_id=query.study_id))
        stored = importing.store(
            session,
            found=found,
            new=new,
            source=source,
            study_id=query.study_id,
            name=query.name or f"Imported: {source}"[:200],
            owner_id=caller.user_id,
        )
        accounts.audit(
            session, by=caller, action="study.import", study_id=stored.study_id, source=source
        )
    return stored
