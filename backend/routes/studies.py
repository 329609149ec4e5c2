"""Studies: the history, a study's name, notes and tags; files out, and runs made elsewhere in."""

from contextlib import suppress
from typing import Annotated, Any, Literal

from anyio import to_thread
from fastapi import APIRouter, BackgroundTasks, Request, Response
from fastapi import Query as QueryParameters
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import Field
from sqlalchemy import Engine
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from backend.db import PASSING_FAULTS, reading, transaction
from backend.deps import (
    CallerDep,
    EngineDep,
    Moment,
    Paging,
    Query,
    ReadDep,
    SettingsDep,
    StudyId,
    Word,
    WriterDep,
    errors,
)
from backend.errors import InvalidInput
from backend.schemas import (
    Identifier,
    ImportPreview,
    ImportRead,
    Name,
    Page,
    StudyCreate,
    StudyRead,
    StudyUpdate,
    SweepState,
)
from backend.services import (
    accounts,
    analysis,
    importing,
    publishing,
    studies,
    submission,
    trials,
)
from backend.services.accounts import Caller
from backend.web import Upload, read_upload, reading_in_turns

router = APIRouter(prefix="/api/studies", tags=["studies"])

#: What a filter with three answers asks for.
CHOICES = {"true": True, "false": False, "any": None}


class HistoryQuery(Paging):
    """What of the history to show."""

    q: Word | None = Field(None, description="Words in name, notes or tags; all must occur.")
    tag: Word | None = Field(None, description="A tag, exactly.")
    owner: Word | None = Field(None, description="Name of the account that created it.")
    task: Word | None = Field(None, description="A task that one of its sweeps is on.")
    state: SweepState | None = Field(None, description="What its sweeps add up to.")
    since: Moment | None = Field(None, description="Created then or later.")
    until: Moment | None = Field(None, description="Created before that.")
    archived: Literal["true", "false", "any"] = Field(
        "false", description="Only archived ones, only others, or any."
    )
    bundle: Literal["true", "false", "any"] = Field(
        "any", description="Only those that came with a bundle, only others, or any."
    )
    sort: studies.Sort = Field("-updated_at", description="A minus sign means newest or Z first.")
    spark: bool = Field(False, description="Whether items bring a small curve for a table cell.")


@router.get("", responses=errors())
def list_studies(
    query: Annotated[HistoryQuery, QueryParameters()],
    session: ReadDep,
    settings: SettingsDep,
    engine: EngineDep,
    later: BackgroundTasks,
    _: CallerDep,
) -> Page[StudyRead]:
    """Return the history, filtered, sorted and paged."""
    page = studies.page(
        session,
        filters=studies.Filters(
            q=query.q,
            tag=query.tag,
            owner=query.owner,
            task=query.task,
            state=query.state,
            since=query.since,
            until=query.until,
            archived=CHOICES[query.archived],
            bundle=CHOICES[query.bundle],
        ),
        sort=query.sort,
        limit=min(query.limit, settings.page_limit),
        cursor=query.cursor,
    )
    if query.spark:
        found = studies.sparklines(session, study_ids=[study.id for study in page.items])
        for study in page.items:
            study.spark = found.get(study.id, [])
    ended = [study for study in page.items if study.state is SweepState.COMPLETED]
    later.add_task(_summarise, engine, [id for study in ended for id in study.sweep_ids])
    return page


def _summarise(engine: Engine, sweep_ids: list[int]) -> None:
    """Make the next look at the history cheaper; if that fails, the next look tries again."""
    with suppress(*PASSING_FAULTS, IntegrityError):  # a sweep may be deleted meanwhile
        studies.store_summaries(engine, sweep_ids=sweep_ids)


@router.post("", status_code=201, responses=errors(400, 413))
def create_study(
    payload: StudyCreate, engine: EngineDep, caller: WriterDep, response: Response
) -> StudyRead:
    """Create a study."""
    with transaction(engine) as session:
        study = studies.create(session, payload=payload, owner_id=caller.user_id)
        accounts.audit(
            session, by=caller, action="study.create", study_id=study.id, name=study.name
        )
    response.headers["Location"] = f"/api/studies/{study.id}"
    return study


@router.get("/{study_id}", responses=errors(404))
def get_study(study_id: StudyId, session: ReadDep, _: CallerDep) -> StudyRead:
    """Return a study with its state and progress."""
    found = studies.get(session, study_id=study_id)
    return found.model_copy(update={"ways": analysis.ways(session, study_id=study_id)})


@router.patch("/{study_id}", responses=errors(400, 404, 413))
def update_study(
    study_id: StudyId, payload: StudyUpdate, engine: EngineDep, caller: WriterDep
) -> StudyRead:
    """Rename, note, tag or archive a study; what the body leaves out stays as it is."""
    with transaction(engine) as session:
        caller.check_owner(studies.owner_of(session, study_id=study_id))
        before = studies.get(session, study_id=study_id)
        after = studies.update(session, study_id=study_id, payload=payload)
        accounts.audit_changes(session, by=caller, before=before, after=after)
    return after


@router.delete("/{study_id}", status_code=204, responses=errors(404))
def delete_study(study_id: StudyId, engine: EngineDep, caller: WriterDep) -> None:
    """Delete a study for good, with the trials that no other study holds."""
    with transaction(engine) as session:
        caller.check_owner(studies.owner_of(session, study_id=study_id))
        name = studies.get(session, study_id=study_id).name
        gone = studies.delete(session, study_id=study_id)
        accounts.audit(
            session, by=caller, action="study.delete", study_id=study_id, name=name, trials=gone
        )


# --- Trials out to files, and runs made elsewhere in

transfer_router = APIRouter(prefix="/api", tags=["files"])

_BINARY: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}


class ExportQuery(Query):
    """Which file to make."""

    format: trials.Format = "csv"
    content: Literal["trials", "scorecard"] = Field(
        "trials",
        description="Every trial; or every number of the scorecard, one line a series and number.",
    )


class ImportQuery(Query):
    """Where to put what a file holds."""

    study_id: Identifier | None = Field(None, description="A study; null: a new one.")
    name: Name | None = Field(None, description="Name of the new study.")
    filename: Name | None = Field(None, description="Where the runs come from, for the record.")
    reuse: bool = Field(
        False, description="Use the newest study of that name that you may change, if there is one."
    )
    preview: bool = Field(False, description="Only say what would be made; nothing is stored.")


@transfer_router.get(
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
) -> Response:
    """Return every trial of a study as CSV, JSON or Parquet, streamed; or its scorecard.

    A scorecard is CSV, or JSON as `/scorecard` answers it.
    """
    with reading(engine) as session:
        studies.owner_of(session, study_id=study_id)
        if query.content == "scorecard":
            return _scorecard(session, study_id, query.format)
        varied = analysis.settings_of(session, study_id=study_id)
    name = f"study-{study_id}.{query.format}"
    return StreamingResponse(
        trials.export(engine, study_id=study_id, format=query.format, settings_of=varied),
        media_type=trials.MEDIA_TYPES[query.format],
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


def _scorecard(session: Session, study_id: int, format: trials.Format) -> Response:
    if format == "parquet":
        raise InvalidInput(
            "A scorecard is exported as csv or json, not as parquet.", field="format"
        )
    card = analysis.scorecard(session, study_id=study_id)
    text = analysis.scorecard_csv(card.rows) if format == "csv" else card.model_dump_json()
    name = f"study-{study_id}-scorecard.{format}"
    return Response(
        text,
        media_type=trials.MEDIA_TYPES[format],
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


class PublishQuery(Query):
    """What to publish."""

    study: list[Identifier] = Field(
        min_length=1, max_length=20, description="Repeat for a comparison."
    )
    format: publishing.Format = Field(
        "html", description="One page, or a zip of data, figures and commands."
    )


@transfer_router.get(
    "/publish",
    response_class=Response,
    responses={
        **errors(404),
        200: {
            "description": "A file that needs no server.",
            "content": {
                "text/html": {"schema": {"type": "string"}},
                "application/zip": _BINARY,
            },
        },
    },
)
def publish_studies(
    query: Annotated[PublishQuery, QueryParameters()], engine: EngineDep, _: CallerDep
) -> Response:
    """Return a study, or several on one axis, as one HTML file or a zip, for anybody to open."""
    with reading(engine) as session:
        contents = publishing.gather(session, study_ids=query.study)
    made = (
        publishing.html_page(contents)
        if query.format == "html"
        else publishing.zip_file(engine, contents)
    )
    name = f"study-{'-'.join(map(str, query.study))}.{query.format}"
    return Response(
        made,
        media_type=publishing.MEDIA_TYPES[query.format],
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


@transfer_router.post(
    "/import",
    status_code=201,
    response_model=ImportRead,
    responses={
        **errors(400, 404, 413),
        200: {"model": ImportPreview, "description": "What would be made (preview)."},
    },
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
) -> ImportRead | Response:
    """Bring runs made elsewhere into a study, marked as imported; all of them or none."""
    upload = await read_upload(request)
    most = settings.max_body_bytes
    limiter = reading_in_turns()
    if query.preview:
        shown = await to_thread.run_sync(_preview, upload, engine, most, limiter=limiter)
        return JSONResponse(shown.model_dump(mode="json"))
    found = await to_thread.run_sync(_import, upload, query, engine, most, caller, limiter=limiter)
    response.headers["Location"] = f"/api/studies/{found.study_id}"
    return found


def _preview(upload: Upload, engine: Engine, most_bytes: int) -> ImportPreview:
    found = importing.read_runs(upload.content, most_bytes=most_bytes)
    with reading(engine) as session:
        return importing.preview(session, found=found)


def _import(
    upload: Upload, query: ImportQuery, engine: Engine, most_bytes: int, caller: Caller
) -> ImportRead:
    source = query.filename or upload.filename or "a file without a name"
    found = importing.read_runs(upload.content, most_bytes=most_bytes)
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
        name = query.name or f"Imported: {source}"[:200]
        there = submission.named_study(session, name=name, by=caller) if query.reuse else None
        stored = importing.store(
            session,
            found=found,
            new=new,
            source=source,
            study_id=query.study_id or there,
            name=name,
            owner_id=caller.user_id,
        )
        accounts.audit(
            session, by=caller, action="study.import", study_id=stored.study_id, source=source
        )
    return stored
