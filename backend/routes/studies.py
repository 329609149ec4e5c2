"""Studies: the history, and one study's name, notes and tags."""

from contextlib import suppress
from datetime import UTC, datetime
from typing import Annotated, Literal

from fastapi import APIRouter, BackgroundTasks, Response
from fastapi import Query as QueryParameters
from pydantic import BeforeValidator, Field, WithJsonSchema
from sqlalchemy import Engine
from sqlalchemy.exc import IntegrityError

from backend.db import PASSING_FAULTS, transaction
from backend.deps import (
    CallerDep,
    EngineDep,
    Paging,
    ReadDep,
    SettingsDep,
    StudyId,
    Word,
    WriterDep,
    errors,
)
from backend.schemas import Page, StudyCreate, StudyRead, StudyUpdate, SweepState
from backend.services import accounts, studies

router = APIRouter(prefix="/api/studies", tags=["studies"])


def _read_moment(text: object) -> object:
    """Return a moment in UTC, which is also what one without a zone is taken to be in.

    Dates and times only: a bare number would otherwise be read as seconds since 1970.
    """
    if not isinstance(text, str):
        return text
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("a date or time, as 2026-01-31 or 2026-01-31T12:00:00Z") from None
    try:
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError:  # the first or last day of the calendar, seen from elsewhere
        return moment.replace(tzinfo=UTC)


Moment = Annotated[
    datetime,
    BeforeValidator(_read_moment),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "format": "date-time"},
                {"type": "string", "format": "date"},
            ]
        }
    ),
]


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
    return studies.get(session, study_id=study_id)


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
