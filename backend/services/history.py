"""The history: studies filtered, ordered and paged in a fixed number of queries."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from sqlalchemy import ColumnElement, Select, and_, exists, or_, select, true
from sqlalchemy.orm import Session

from backend.errors import InvalidInput
from backend.models import StudyRow, StudyTagRow, SweepRow, SweepTrialRow, TrialRow, UserRow
from backend.schemas import Page, StudyRead, SweepState, TrialState
from backend.services import studies
from backend.services.cursors import read_cursor, write_cursor
from backend.services.progress import PRECEDENCE, RETRIABLE, UNFINISHED

Sort = Literal["-updated_at", "updated_at", "-created_at", "created_at", "name", "-name"]
SORTS: tuple[Sort, ...] = (
    "-updated_at",
    "updated_at",
    "-created_at",
    "created_at",
    "name",
    "-name",
)


@dataclass(frozen=True, slots=True)
class Filters:
    """Which studies to show; None asks nothing.

    Attributes:
        q: Text in the name, the notes or a tag.
        tag: A tag, exactly.
        owner: Name of the account that created it.
        task: A task one of its sweeps is on.
        state: What its sweeps add up to.
        since: Created then or later.
        until: Created before that.
        archived: True: only archived, False: only others.
        bundle: True: only those that came with a bundle, False: only others.
    """

    q: str | None = None
    tag: str | None = None
    owner: str | None = None
    task: str | None = None
    state: SweepState | None = None
    since: datetime | None = None
    until: datetime | None = None
    archived: bool | None = False
    bundle: bool | None = None


def page(
    session: Session,
    *,
    filters: Filters = Filters(),  # noqa: B008 - frozen
    sort: str = "-updated_at",
    limit: int = 50,
    cursor: str | None = None,
) -> Page[StudyRead]:
    """Return a page of the history."""
    if sort not in SORTS:
        raise InvalidInput(f"sort is one of {', '.join(SORTS)}; got {sort!r}.", field="sort")
    key = getattr(StudyRow, sort.removeprefix("-"))
    falling = sort.startswith("-")
    query = select(StudyRow).where(*_conditions(filters)).limit(limit + 1)
    order = (key.desc(), StudyRow.id.desc()) if falling else (key.asc(), StudyRow.id.asc())
    query = _after(query, key, falling, cursor).order_by(*order)
    rows = session.scalars(query).all()
    more = len(rows) > limit
    return Page(
        items=studies.to_read(session, rows[:limit]),
        next_cursor=_cursor(sort, rows[limit - 1]) if more else None,
    )


def _cursor(sort: str, row: StudyRow) -> str:
    value = getattr(row, sort.removeprefix("-"))
    return write_cursor(value.isoformat() if isinstance(value, datetime) else value, row.id)


def _after(
    query: Select[StudyRow], key: Any, falling: bool, cursor: str | None
) -> Select[StudyRow]:
    if cursor is None:
        return query
    text, last_id = read_cursor(cursor, str, int)
    last = text if key is StudyRow.name else _moment(text)
    if falling:
        return query.where(or_(key < last, and_(key == last, StudyRow.id < last_id)))
    return query.where(or_(key > last, and_(key == last, StudyRow.id > last_id)))


def _moment(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidInput(
            "This cursor belongs to another order; start without one.", field="cursor"
        ) from None


def _conditions(filters: Filters) -> list[ColumnElement[bool]]:
    asked: dict[str, Callable[[Any], ColumnElement[bool]]] = {
        "q": _matches,
        "tag": _has_tag,
        "owner": _owned_by,
        "task": _on_task,
        "state": _in_state,
        "since": lambda moment: StudyRow.created_at >= moment,
        "until": lambda moment: StudyRow.created_at < moment,
        "archived": _archived,
        "bundle": _from_bundle,
    }
    return [
        condition(value)
        for name, condition in asked.items()
        if (value := getattr(filters, name)) is not None
    ]


def _matches(text: str) -> ColumnElement[bool]:
    """Every word has to be in the name, the notes or a tag."""
    return and_(true(), *(_has_word(word) for word in text.split()))


def _has_word(word: str) -> ColumnElement[bool]:
    tagged = exists().where(
        StudyTagRow.study_id == StudyRow.id, StudyTagRow.tag.icontains(word, autoescape=True)
    )
    return or_(
        StudyRow.name.icontains(word, autoescape=True),
        StudyRow.notes.icontains(word, autoescape=True),
        tagged,
    )


def _has_tag(tag: str) -> ColumnElement[bool]:
    return exists().where(StudyTagRow.study_id == StudyRow.id, StudyTagRow.tag == tag)


def _owned_by(name: str) -> ColumnElement[bool]:
    return exists().where(UserRow.id == StudyRow.owner_id, UserRow.name == name)


def _on_task(task: str) -> ColumnElement[bool]:
    return exists().where(SweepRow.study_id == StudyRow.id, SweepRow.task == task)


def _archived(archived: bool) -> ColumnElement[bool]:
    return StudyRow.archived_at.is_not(None) if archived else StudyRow.archived_at.is_(None)


def _from_bundle(wanted: bool) -> ColumnElement[bool]:
    return studies.of_bundle() if wanted else ~studies.of_bundle()


def _in_state(state: SweepState) -> ColumnElement[bool]:
    """The same rule as `progress.study_state`, in SQL.

    Unfinished, failed and cancelled trials are few, and found from the index on the state;
    the many finished ones are never counted.
    """
    open_, cancelled = SweepRow.cancelled_at.is_(None), SweepRow.cancelled_at.is_not(None)
    unfinished = _with_trials_in(*UNFINISHED)
    failed = _with_trials_in(TrialState.FAILED)
    bad = _with_trials_in(*UNFINISHED, *RETRIABLE)
    started = or_(_with_trials_in(TrialState.RUNNING), _has_fresh_result())
    rules: dict[SweepState, ColumnElement[bool]] = {
        SweepState.RUNNING: and_(open_, unfinished, started),
        SweepState.QUEUED: and_(open_, unfinished, ~started),
        SweepState.FAILED: and_(open_, ~unfinished, failed),
        SweepState.CANCELLED: or_(and_(cancelled, bad), and_(open_, ~unfinished, bad, ~failed)),
        SweepState.COMPLETED: ~bad,
    }
    earlier = PRECEDENCE[: PRECEDENCE.index(state)]
    return and_(_has_sweep(rules[state]), *(~_has_sweep(rules[before]) for before in earlier))


def _with_trials_in(*states: TrialState) -> ColumnElement[bool]:
    return SweepRow.id.in_(
        select(SweepTrialRow.sweep_id)
        .join(TrialRow, TrialRow.id == SweepTrialRow.trial_id)
        .where(TrialRow.state.in_(states))
    )


def _has_fresh_result() -> ColumnElement[bool]:
    return exists(
        select(1)
        .select_from(SweepTrialRow)
        .join(TrialRow, TrialRow.id == SweepTrialRow.trial_id)
        .where(
            SweepTrialRow.sweep_id == SweepRow.id,
            SweepTrialRow.reused.is_(False),
            TrialRow.state.not_in(UNFINISHED),
        )
        .correlate(SweepRow)
    )


def _has_sweep(rule: ColumnElement[bool]) -> ColumnElement[bool]:
    return StudyRow.id.in_(select(SweepRow.study_id).where(rule))
