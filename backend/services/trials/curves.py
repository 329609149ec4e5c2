"""Curves and recordings as bytes: float64 columns, compressed, NaN and all.

Six of them stand in one block, which every curve has, and those of held-out rows in another.
"""

import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select
from sqlalchemy.orm import Session

from backend.db import clock, database_time, insert_for, insert_many
from backend.errors import InvalidInput, NotFound
from backend.models import CurveRow, RecordingRow, ShardState, SweepRow, SweepTrialRow, TrialRow
from backend.schemas import BesideRead, CurvePointRead, CurveRead, RecordingRead
from backend.services import offers
from backend.services.trials.rows import COUNTED, chunks
from ib_core.methods import OF_A_METHOD, OF_EVERY_METHOD, split_name, steps_plainly
from ib_core.sweep import ENGINE_VERSION, CurvePoint, Recording, recording_answer, tell

COLUMNS = (
    *("step", "epoch", "train_loss", "test_loss", "train_accuracy", "test_accuracy"),
    *("validation_loss", "validation_accuracy"),
)
#: How many of them stand in the first block.
FIRST_BLOCK = 6
STEP, EPOCH, TRAIN_LOSS, TEST_LOSS = range(4)

#: Fewer points than this could not hold the ends, the extremes and the first non-finite one.
FEWEST_POINTS = 8
Floats = NDArray[np.float64]


def to_columns(points: Iterable[CurvePoint]) -> Floats:
    """Return the points as an array [8, points]; what is missing becomes NaN."""
    rows = [
        [np.nan if getattr(point, name) is None else getattr(point, name) for name in COLUMNS]
        for point in points
    ]
    return np.array(rows, dtype=np.float64).reshape(-1, len(COLUMNS)).T


def pack(columns: Floats) -> tuple[bytes, bytes | None]:
    """Return the columns [8, points] as compressed blocks, the second if rows were held out."""
    common, held_out = columns[:FIRST_BLOCK], columns[FIRST_BLOCK:]
    return _block(common), None if np.isnan(held_out).all() else _block(held_out)


def _block(columns: Floats) -> bytes:
    return zlib.compress(np.ascontiguousarray(columns, dtype="<f8").tobytes(), level=1)


def curve_row(trial_id: int, points: Sequence[CurvePoint]) -> dict[str, Any]:
    """Return a trial's curve as a row of its table."""
    return _row(trial_id, to_columns(points))


def _row(trial_id: int, columns: Floats) -> dict[str, Any]:
    data, validation = pack(columns)
    points = columns.shape[1]
    return {"trial_id": trial_id, "points": points, "data": data, "validation": validation}


def add_points(columns: Floats, points: Sequence[Sequence[float]]) -> Floats:
    """Return the columns [8, points] with further points, each in the order of `COLUMNS`."""
    return np.concatenate([columns, np.array(points, dtype=np.float64).T], axis=1)


def insert_or_replace_curve(session: Session, trial_id: int, columns: Floats) -> None:
    """Store a whole curve; the one before goes."""
    insert_or_replace_rows(session, [_row(trial_id, columns)])


def insert_or_replace_rows(session: Session, rows: list[dict[str, Any]]) -> None:
    """Store whole curves, as `curve_row` made them; those before go."""
    insert = insert_for(session, CurveRow)
    whole = {name: insert.excluded[name] for name in ("points", "data", "validation")}
    session.execute(
        insert.on_conflict_do_update(index_elements=["trial_id"], set_=whole),
        rows,
        # With NULLs written out all rows have the same columns, and go in together.
        execution_options={"render_nulls": True},
    )


def unpack(data: bytes, validation: bytes | None = None) -> Floats:
    """Return the columns [8, points] of a curve's blocks; NaN where the second is missing."""
    common = _columns(data, FIRST_BLOCK)
    if validation is not None:
        held_out = _columns(validation, len(COLUMNS) - FIRST_BLOCK)
    else:
        held_out = np.full((len(COLUMNS) - FIRST_BLOCK, common.shape[1]), np.nan)
    return np.concatenate([common, held_out])


def _columns(block: bytes, count: int) -> Floats:
    return np.frombuffer(zlib.decompress(block), dtype="<f8").reshape(count, -1)


def thin(columns: Floats, most: int) -> Floats:
    """Return at most `most` points that still show what the curve does.

    Kept are the first, the last, the extremes of both losses, the first point that is not
    finite, and of each stretch between the points where the training loss is lowest and highest.
    """
    most = max(most, FEWEST_POINTS)
    count = columns.shape[1]
    if count <= most:
        return columns
    kept = {0, count - 1} | _extremes(columns[TRAIN_LOSS]) | _extremes(columns[TEST_LOSS])
    broken = np.flatnonzero(~np.isfinite(columns[TRAIN_LOSS : TEST_LOSS + 1]).all(axis=0))
    kept |= set(broken[:1].tolist())
    stretches = (most - len(kept)) // 2
    for stretch in np.array_split(np.arange(count), stretches) if stretches else ():
        kept |= {int(stretch[0]) + i for i in _extremes(columns[TRAIN_LOSS][stretch])}
    return columns[:, sorted(kept)]


def _extremes(values: Floats) -> set[int]:
    finite = np.flatnonzero(np.isfinite(values))
    if not finite.size:
        return set()
    return {
        int(finite[np.argmin(values[finite])]),
        int(finite[np.argmax(values[finite])]),
    }


def _points_to_read(columns: Floats) -> list[CurvePointRead]:
    """Return the points as they go over the wire."""
    return [
        CurvePointRead(**{**dict(zip(COLUMNS, point, strict=True)), "step": int(point[STEP])})
        for point in columns.T.tolist()
    ]


def curve(
    session: Session, *, trial_id: int, after: int | None = None, points: int | None = None
) -> CurveRead:
    """Return a trial's curve, from the first step behind `after`, thinned to `points` points."""
    if points is not None and points < FEWEST_POINTS:
        raise InvalidInput(
            f"A curve needs at least {FEWEST_POINTS} points; got {points}.", field="points"
        )
    blocks = (CurveRow.data, CurveRow.validation)
    query = select(TrialRow.state, *blocks).outerjoin(CurveRow).where(TrialRow.id == trial_id)
    found = session.execute(query).one_or_none()
    if found is None:
        raise NotFound("trial", trial_id)
    state, data, validation = found
    columns = unpack(data, validation) if data else np.empty((len(COLUMNS), 0))
    if after is not None:
        columns = columns[:, columns[STEP] > after]
    total = columns.shape[1]
    last_step = int(columns[STEP, -1]) if total else after
    kept = columns if points is None else thin(columns, points)
    return CurveRead(
        trial_id=trial_id,
        state=state,
        points=_points_to_read(kept),
        last_step=last_step,
        total=total,
    )


def first_and_best(
    blocks: Sequence[bytes | None], column: str, *, highest: bool
) -> tuple[Floats, Floats]:
    """Return a column's value before the first step, and its best after it, [curves] each.

    The best leaves out the initial weights, which are no result, and whatever is not finite. NaN
    stands where there is no such value. All curves are reduced in one pass: unpacking them one by
    one into arrays would take as long as everything else together.

    Args:
        blocks: From `pack`; None for a trial without a curve.
        column: A name in `COLUMNS`, of the first block.
        highest: Whether the best is the highest.
    """
    unpacked = [zlib.decompress(block) if block else b"" for block in blocks]
    # A sentinel at the end keeps every slice's end a valid index for reduceat.
    flat = np.frombuffer(b"".join(unpacked) + bytes(8), dtype="<f8")
    sizes = np.array([len(block) for block in unpacked], dtype=np.int64) // 8
    lengths, starts = sizes // FIRST_BLOCK, np.cumsum(sizes) - sizes
    last = flat.size - 1
    has_initial = (lengths > 0) & (flat[np.minimum(starts, last)] == 0)
    begins = starts + COLUMNS.index(column) * lengths
    first = np.where(has_initial, flat[np.minimum(begins, last)], np.nan)
    begins, counts = begins + has_initial, lengths - has_initial
    best = np.full(len(blocks), np.nan)
    known = np.flatnonzero(counts > 0)
    if known.size:
        edges = np.stack([begins[known], (begins + counts)[known]], axis=1).ravel()
        values = np.where(np.isfinite(flat), flat, np.nan)
        reduce = np.fmax if highest else np.fmin
        best[known] = reduce.reduceat(values, edges)[::2]
    return np.where(np.isfinite(first), first, np.nan), best


def first_and_chosen(
    blocks: Sequence[tuple[bytes | None, bytes | None]], column: str, *, by: str, highest: bool
) -> tuple[Floats, Floats, Floats]:
    """Return a column's first value, its value where another is best, and that best, [curves] each.

    As `first_and_best`, but the point is chosen by a column of held-out rows.

    Args:
        blocks: Both blocks of every curve, from `pack`.
        column: A name in `COLUMNS`.
        by: Another, of the second block.
        highest: Whether the best is the highest.
    """
    found = np.full((3, len(blocks)), np.nan)
    for place, (data, validation) in enumerate(blocks):
        if not data:
            continue
        columns = unpack(data, validation)
        begin = int(columns.shape[1] > 0 and columns[STEP, 0] == 0)
        values, judges = columns[COLUMNS.index(column)], columns[COLUMNS.index(by), begin:]
        if begin:
            found[0, place] = values[0]
        usable = np.flatnonzero(np.isfinite(judges))
        if usable.size:
            pick = np.argmax if highest else np.argmin
            at = int(usable[pick(judges[usable])])
            found[1:, place] = values[begin + at], judges[at]
    first, chosen, best = np.where(np.isfinite(found), found, np.nan)
    return first, chosen, best


#: Fewer rows than this would not show a break.
FEWEST_ROWS = 16
#: What trials that may stand side by side have in common, besides the network's options: all but
#: the method.
PAIRED = (
    *("task", "profile", "activation", "lr", "seed", "clip", "mu", "epochs", "batch_size"),
    *("data_hash", "engine_version"),
)
MOST_BESIDE = 20


def wishes(session: Session, *, trial_ids: Sequence[int]) -> dict[int, set[str]]:
    """Return what sweeps that are not called off want recorded of these trials."""
    held: dict[int, list[int]] = {}
    places = select(SweepTrialRow.sweep_id, SweepTrialRow.trial_id)
    for chunk in chunks(trial_ids):
        for sweep_id, trial_id in session.execute(places.where(SweepTrialRow.trial_id.in_(chunk))):
            held.setdefault(sweep_id, []).append(trial_id)
    found: dict[int, set[str]] = {}
    for sweeps in chunks(sorted(held)):
        wanted = (SweepRow.id.in_(sweeps), SweepRow.cancelled_at.is_(None))
        for sweep_id, spec in session.execute(select(SweepRow.id, SweepRow.spec).where(*wanted)):
            for trial_id in held[sweep_id] if spec.get("record") else ():
                found.setdefault(trial_id, set()).update(spec["record"])
    return found


def unrecorded(
    session: Session, wished: Mapping[int, Collection[str]], *, about_to: bool = False
) -> list[int]:
    """Return the finished trials of which not all that is wished for was recorded, or is about to.

    What a replay made holds all there is. Imported trials cannot be replayed. With `about_to`
    those that wait for a replay are among them.
    """
    query = select(TrialRow.id, RecordingRow.state, RecordingRow.data, RecordingRow.agreement)
    query = query.outerjoin(RecordingRow, RecordingRow.trial_id == TrialRow.id).where(
        TrialRow.state.in_(COUNTED),
        TrialRow.imported.is_(False),
        TrialRow.engine_version == ENGINE_VERSION,
    )
    return [
        trial_id
        for chunk in chunks(sorted(wished))
        for trial_id, state, data, replayed in session.execute(query.where(TrialRow.id.in_(chunk)))
        if (about_to or state not in (ShardState.QUEUED, ShardState.RUNNING))
        and not (data and (replayed or _holds(data, wished[trial_id])))
    ]


def _holds(data: bytes, what: Collection[str]) -> bool:
    try:
        return Recording.from_bytes(data).holds(what)
    except ValueError:  # damaged: a replay makes a new one
        return False


def want_recordings(session: Session, *, needs: Mapping[int, str | None], device: str) -> None:
    """Ask for replays of those trials, locked and with what each needs, whose wishes are unmet."""
    asked = unrecorded(session, wishes(session, trial_ids=sorted(needs)))
    if not asked:
        return
    afresh = {"state": ShardState.QUEUED, "device": device, "attempts": 0, "progress": 0.0}
    rows = [{**afresh, "trial_id": one, "needs": needs[one], "error": None} for one in asked]
    insert = insert_for(session, RecordingRow).values(created_at=clock())
    renewed = (*afresh, "needs", "error", "sent_at", "owner_id")
    changed = {name: insert.excluded[name] for name in renewed}
    insert_many(
        session, insert.on_conflict_do_update(index_elements=["trial_id"], set_=changed), rows
    )


def store_recordings(session: Session, by_trial: Mapping[int, Recording]) -> None:
    """Store what shards recorded; a replay that waits, or is done, knows more and stays."""
    if not by_trial:
        return
    now = database_time(session)
    rows = [
        {
            "trial_id": trial_id,
            "state": ShardState.DONE,
            "data": recording.to_bytes(),
            "created_at": now,
            "finished_at": now,
        }
        for trial_id, recording in by_trial.items()
    ]
    session.execute(insert_for(session, RecordingRow).on_conflict_do_nothing(), rows)


def recording(session: Session, *, trial_id: int, rows: int | None = None) -> RecordingRead:
    """Return what was recorded of a trial and its story, thinned to so many rows."""
    if rows is not None and rows < FEWEST_ROWS:
        raise InvalidInput(
            f"A recording needs at least {FEWEST_ROWS} rows; got {rows}.", field="rows"
        )
    trial = session.get(TrialRow, trial_id)
    if trial is None:
        raise NotFound("trial", trial_id)
    beside = _beside(session, trial)
    row = session.get(RecordingRow, trial_id)
    if row is None:
        return RecordingRead(trial_id=trial_id, state="none", beside=beside)
    needs = [row.needs] if row.needs and row.state == ShardState.QUEUED else []
    lacking = offers.missing(session, needs=needs) if needs else []
    about = {
        "trial_id": trial_id,
        "state": row.state.value,
        "progress": row.progress,
        "error": row.error,
        "agreement": (row.agreement or {}).get("sentence"),
        "same": (row.agreement or {}).get("same"),
        "beside": beside,
        "messages": [one.sentence for one in lacking],
    }
    if row.data is None:
        return RecordingRead(**about)
    whole = Recording.from_bytes(row.data)
    story = tell(whole, trial.diverged_at_step, method=trial.method)
    shown = recording_answer(whole if rows is None else whole.thin(rows))
    if not steps_plainly(trial.method):
        shown["rates"] = [None] * len(shown["steps"])
    return RecordingRead(
        **about,
        **shown,
        total=len(whole.rows),
        stored_bytes=len(row.data),
        story=list(story.sentences),
        broke_at=story.broke_at,
        first_layer=None if story.growth is None else story.growth.layer,
        finished_at=row.finished_at,
    )


def _beside(session: Session, trial: TrialRow) -> list[BesideRead]:
    """Return the trials of one network, rate and seed that were trained otherwise.

    Other methods come first, and of these the ones with the same schedule.
    """
    alike = [getattr(TrialRow, name).is_not_distinct_from(getattr(trial, name)) for name in PAIRED]
    columns = (TrialRow.id, TrialRow.method, TrialRow.options, TrialRow.state)
    query = (
        select(*columns, RecordingRow.data.is_not(None).label("recorded"))
        .outerjoin(RecordingRow, RecordingRow.trial_id == TrialRow.id)
        .where(*alike, TrialRow.id != trial.id, TrialRow.imported.is_(False))
    )
    mine, network = split_name(trial.method)[0], _shared(trial.options)

    def far(one: Any) -> tuple[Any, ...]:
        same = split_name(one.method)[0] == mine
        return same, _schedule(one.method) != _schedule(trial.method), one.method, one.id

    found = [one for one in session.execute(query) if _shared(one.options) == network]
    return [
        BesideRead(trial_id=one.id, method=one.method, state=one.state, recorded=bool(one.recorded))
        for one in sorted(found, key=far)[:MOST_BESIDE]
    ]


def _shared(options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what options say besides what is a method's own; what is not set says nothing."""
    said = {name: v for name, v in (options or {}).items() if v is not None and v is not False}
    return {name: said[name] for name in said.keys() - OF_A_METHOD}


def _schedule(method: str) -> dict[str, Any]:
    return {key: value for key, value in split_name(method)[1].items() if key in OF_EVERY_METHOD}
