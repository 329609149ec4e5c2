"""The history: studies filtered, ordered and paged in a fixed number of queries.

Sweeps that have ended for good are added up once, so that a long history costs no more than a
short one: a trial that completed or diverged never changes again, so a sweep of nothing else
never does.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from heapq import nsmallest
from typing import Any, Literal, get_args

from sqlalchemy import (
    ColumnElement,
    Engine,
    Select,
    Text,
    and_,
    case,
    exists,
    func,
    or_,
    select,
    true,
    type_coerce,
)
from sqlalchemy.orm import Session

from backend.db import insert_for, reading, transaction
from backend.errors import InvalidInput
from backend.models import (
    LIVE_KEY,
    StudyRow,
    StudyTagRow,
    SweepRow,
    SweepSummaryRow,
    SweepTrialRow,
    TrialRow,
    UserRow,
)
from backend.schemas import Page, Spark, SparkPoint, StudyRead, SweepState, TrialState
from backend.services import read_cursor, sweeps, write_cursor
from backend.services.analysis import KEY_COLUMNS, Key, key_of, labels, series_order
from backend.services.studies.study import PRECEDENCE, of_bundle, to_read
from backend.services.trials import BEGUN, RETRIABLE, UNFINISHED, spans_of, within

Sort = Literal["-updated_at", "updated_at", "-created_at", "created_at", "name", "-name"]
SORTS: tuple[Sort, ...] = get_args(Sort)
#: More lines than this could not be told apart in a table's cell.
MOST_LINES = 12
#: Rows of one sweep: a setting at a rate each. Every look at the history reads them, and of
#: imported runs each may have settings of its own.
MOST_SUMS = 2000
#: Losses from here on are added up apart, as fractions of themselves: PostgreSQL refuses a sum
#: above all numbers, as it does a fraction of a small one below them.
_HUGE, _FRACTION = 1e280, 2.0**-40
ENDED_NAMES = (TrialState.COMPLETED.value, TrialState.DIVERGED.value)
_SUMS = ("sum", "huge", "finite", "total")
#: What stored rows consist of; those of another version are computed again.
LAYOUT = ",".join([str(column.key) for column in KEY_COLUMNS] + ["lr", *_SUMS])
#: One rate of one setting, as `LAYOUT` names it.
SumRow = list[Any]
#: Sweeps added up in one go; the next look at the history does the next ones.
MOST_SUMMARIES = 50


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
        items=to_read(session, rows[:limit]),
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
    return of_bundle() if wanted else ~of_bundle()


def _in_state(state: SweepState) -> ColumnElement[bool]:
    """The same rule as `study_state`, in SQL.

    Unfinished, failed and cancelled trials are few, and found from the index on the state;
    the many finished ones are never counted.
    """
    open_, cancelled = SweepRow.cancelled_at.is_(None), SweepRow.cancelled_at.is_not(None)
    unfinished = _with_trials_in(*UNFINISHED)
    failed = _with_trials_in(TrialState.FAILED)
    bad = _with_trials_in(*UNFINISHED, *RETRIABLE)
    started = or_(_with_trials_in(TrialState.RUNNING), _has_fresh_result())
    more, ended = SweepRow.searching.is_(True), and_(~unfinished, SweepRow.searching.is_not(True))
    rules: dict[SweepState, ColumnElement[bool]] = {
        SweepState.RUNNING: and_(open_, or_(and_(unfinished, started), and_(more, ~unfinished))),
        SweepState.QUEUED: and_(open_, unfinished, ~started),
        SweepState.FAILED: and_(open_, ended, failed),
        SweepState.CANCELLED: or_(
            and_(cancelled, or_(bad, more)), and_(open_, ended, bad, ~failed)
        ),
        SweepState.COMPLETED: and_(~bad, SweepRow.searching.is_not(True)),
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


def sparklines(session: Session, *, study_ids: Sequence[int]) -> dict[int, list[Spark]]:
    """Return each study's curves, one for each setting; of a mixed study those of its largest part.

    Mean final training loss by rate, null where a seed's is not finite. Sweeps that have ended
    for good are read from their summaries, so that a page of the history costs two queries and
    reads no more trials than are still on their way.
    """
    query = select(SweepRow.id, SweepRow.study_id).where(SweepRow.study_id.in_(study_ids))
    studies = dict(session.execute(query).all())
    rows = _stored_sums(session, studies)
    counts = sweeps.progress_of(session, sweep_ids=[id for id in studies if id not in rows])
    rows |= _sums_of_sweeps(session, sweep_ids=[id for id in counts if counts[id].good])
    by_study: defaultdict[int, list[SumRow]] = defaultdict(list)
    for sweep_id in sorted(rows):
        by_study[studies[sweep_id]] += rows[sweep_id]
    return {study_id: _lines(study_id, found) for study_id, found in by_study.items() if found}


def _sums_of_sweeps(session: Session, *, sweep_ids: Sequence[int]) -> dict[int, list[SumRow]]:
    """Return the rows of each sweep, added up by the database."""
    if not sweep_ids:
        return {}
    # Not by the index on states: SQLite would begin with every trial there is that has ended.
    ended = func.lower(type_coerce(TrialRow.state, Text)).in_(ENDED_NAMES)
    near = within(spans_of(session, sweep_ids=sweep_ids).values())
    huge = func.abs(TrialRow.train_loss) >= _HUGE
    query = (
        select(
            SweepTrialRow.sweep_id,
            *KEY_COLUMNS,
            TrialRow.lr,
            func.sum(case((~huge, TrialRow.train_loss))),
            func.sum(case((huge, TrialRow.train_loss * _FRACTION))),
            func.count(TrialRow.train_loss),
            func.count(),
        )
        .join(TrialRow, TrialRow.id == SweepTrialRow.trial_id)
        .where(SweepTrialRow.sweep_id.in_(sweep_ids), ended, BEGUN, near)
        .group_by(SweepTrialRow.sweep_id, *KEY_COLUMNS, TrialRow.lr)
        .order_by(SweepTrialRow.sweep_id, TrialRow.lr)
    )
    found: defaultdict[int, list[SumRow]] = defaultdict(list)
    for sweep_id, *row in session.execute(query):
        found[sweep_id].append(row)
    return {sweep_id: _shortened(rows) for sweep_id, rows in found.items()}


def _shortened(rows: list[SumRow]) -> list[SumRow]:
    """Return of very many rows those that could be drawn, and how many trials the others are."""
    if len(rows) <= MOST_SUMS:
        return rows
    sums: defaultdict[Key, list[SumRow]] = defaultdict(list)
    sizes: Counter[tuple[Any, ...]] = Counter()
    for row in rows:
        key = key_of(0, row[: len(KEY_COLUMNS)])
        sums[key].append(row)
        sizes[_part(key)] += row[-1]
    kept: list[SumRow] = []
    for part, size in sizes.most_common(MOST_LINES):
        first = nsmallest(MOST_LINES, (key for key in sums if _part(key) == part), key=series_order)
        shown = [row for key in first for row in sums[key]]
        rest = size - sum(row[-1] for row in shown)
        kept += [*shown, [*shown[0][: len(KEY_COLUMNS)], None, None, None, 0, rest]]
    return kept


def _stored_sums(session: Session, sweep_ids: Iterable[int]) -> dict[int, list[SumRow]]:
    query = select(SweepSummaryRow.sweep_id, SweepSummaryRow.curves).where(
        SweepSummaryRow.sweep_id.in_(list(sweep_ids)), SweepSummaryRow.layout == LAYOUT
    )
    return {sweep_id: curves["rows"] for sweep_id, curves in session.execute(query)}


def _lines(study_id: int, rows: Iterable[SumRow]) -> list[Spark]:
    sizes: Counter[tuple[Any, ...]] = Counter()
    sums: defaultdict[Key, dict[float, list[float]]] = defaultdict(dict)
    keys: dict[tuple[Any, ...], Key] = {}  # reading one costs more than the database's sums
    for row in rows:
        raw, (lr, *parts) = tuple(row[: len(KEY_COLUMNS)]), row[len(KEY_COLUMNS) :]
        key = keys[raw] if raw in keys else keys.setdefault(raw, key_of(study_id, raw))
        sizes[_part(key)] += parts[-1]
        if lr is None:  # only how many there were
            continue
        before = sums[key].get(lr, [0.0] * len(_SUMS))
        sums[key][lr] = [a + (b or 0) for a, b in zip(before, parts, strict=True)]
    part = sizes.most_common(1)[0][0]
    shown = nsmallest(MOST_LINES, (key for key in sums if _part(key) == part), key=series_order)
    return [
        Spark(method=key.method, label=label, points=_points(sums[key]))
        for key, label in zip(shown, labels(shown), strict=True)
    ]


def _part(key: Key) -> tuple[Any, ...]:
    """Return what curves of one small picture must share; other tasks have other losses."""
    return key.task, key.profile, key.imported, key.engine_version, key.data_hash


def _points(sums: dict[float, list[float]]) -> list[SparkPoint]:
    return [SparkPoint(lr=lr, mean=_mean(*sums[lr])) for lr in sorted(sums)]


def _mean(plain: float, huge: float, finite: float, total: float) -> float | None:
    return plain / finite + huge / finite / _FRACTION if finite == total else None


def store_summaries(engine: Engine, *, sweep_ids: Iterable[int]) -> int:
    """Add up those of the sweeps that ended for good and were not before; return how many.

    Read and written in transactions of their own: reading may take a while, and no other writer
    should wait for it.
    """
    with reading(engine) as session:
        rows = _summary_rows(session, set(sweep_ids))
    if not rows:
        return 0
    with transaction(engine) as session:
        insert = insert_for(session, SweepSummaryRow)
        newer = {name: insert.excluded[name] for name in rows[0] if name != "sweep_id"}
        session.execute(insert.on_conflict_do_update(index_elements=["sweep_id"], set_=newer), rows)
    return len(rows)


def _summary_rows(session: Session, sweep_ids: set[int]) -> list[dict[str, object]]:
    known = select(SweepSummaryRow.sweep_id).where(
        SweepSummaryRow.sweep_id.in_(sweep_ids), SweepSummaryRow.layout == LAYOUT
    )
    # Of runs that are logged live the next one may come while this is written; so may a round.
    live = SweepRow.idempotency_key.like(f"{LIVE_KEY}%")
    growing = select(SweepRow.id).where(
        SweepRow.id.in_(sweep_ids), or_(live, SweepRow.searching.is_(True))
    )
    left_out = {*session.scalars(known), *session.scalars(growing)}
    new = sorted(sweep_ids - left_out)[:MOST_SUMMARIES]
    counts = sweeps.progress_of(session, sweep_ids=new) if new else {}
    ended = {id: found for id, found in counts.items() if found.total and found.good == found.total}
    curves = _sums_of_sweeps(session, sweep_ids=list(ended))
    return [
        {
            "sweep_id": sweep_id,
            "completed": found.counts[TrialState.COMPLETED],
            "diverged": found.counts[TrialState.DIVERGED],
            "fresh": found.fresh,
            "finished_at": found.finished_at,
            "layout": LAYOUT,
            "curves": {"rows": curves[sweep_id]},
        }
        for sweep_id, found in ended.items()
    ]
