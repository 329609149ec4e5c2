"""What a long history costs: everyday requests beside 10,000 and beside a million trials.

Three installations hold the same studies and ever more others. Their requests take turns, so that
a slow minute slows all of them, and what counts is the ratio. The first trials are made up as a
worker would report them; the many others are copies of theirs, made inside the database.
"""

import itertools
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Engine,
    String,
    Table,
    cast,
    func,
    insert,
    literal,
    select,
    text,
    update,
)

from backend.bench.installation import (
    ThrowawayPostgres,
    WebProcess,
    finish_everything,
    touch,
    web_process,
)
from backend.db import build_engine, clock, reading, transaction
from backend.models import (
    CurveRow,
    ShardRow,
    StudyRow,
    SweepRow,
    SweepTrialRow,
    TrialRow,
)
from backend.operations.database import back_up, migrate, newest, script_config, upgrade
from backend.operations.programs import find_postgres
from backend.services import maintenance
from backend.settings import Settings

#: Trials in all, of which everybody reads the same study.
SIZES, FULL_SIZES = (10_000, 100_000), (10_000, 100_000, 1_000_000)
#: How long ago the others were touched: they fill no page that everybody looks at.
EARLIER_SECONDS = 86_400.0
#: How many times slower the longest history may be than the shortest.
RATIO = 1.5
TASK = "digits_mlp"
#: The study that is read and copied: 2 methods x 25 rates x 100 seeds.
STUDY = {"methods": ["eb", "ib"], "learning_rates": {"from": 0.001, "to": 100, "count": 25}}
STUDY_SEEDS, STUDY_TRIALS = 100, 5000
#: Fifty more fill a page of the history: 2 methods x 5 rates x 10 seeds.
PAGE = 50
SMALL = {"methods": ["eb", "ib"], "learning_rates": {"from": 0.01, "to": 10, "count": 5}}
SMALL_SEEDS = 10
#: 2 methods x 20 rates x 50 seeds, other seeds each time.
SUBMITTED = {"methods": ["eb", "ib"], "learning_rates": {"from": 0.01, "to": 100, "count": 20}}
SUBMITTED_SEEDS = 50
READS: dict[str, tuple[str, dict[str, Any]]] = {
    "history page": ("/api/studies", {"spark": "true", "limit": PAGE}),
    "history page, by name": ("/api/studies", {"spark": "true", "limit": PAGE, "sort": "name"}),
    "history, failed ones": ("/api/studies", {"state": "failed"}),
    "history, search": ("/api/studies", {"q": "measured", "limit": PAGE}),
    "study": ("/api/studies/{study}", {}),
    "sensitivity": ("/api/studies/{study}/sensitivity", {}),
    "scorecard": ("/api/studies/{study}/scorecard", {}),
    "trials page": ("/api/sweeps/{sweep}/trials", {"limit": 100}),
    "sweep's progress": ("/api/sweeps/{sweep}", {}),
}
Tell = Callable[[str], None]
Row = dict[str, Any]


def measure_history(*, full: bool, tell: Tell) -> list[Row]:
    """Return the rows of both databases; PostgreSQL's only where it is installed.

    Args:
        full: Whether up to a million trials.
        tell: Called with what is being done.
    """
    sizes, rounds = (FULL_SIZES, 15) if full else (SIZES, 7)
    rows = _measure("SQLite", sizes, rounds, _sqlite_copies, tell)
    if find_postgres() is not None:
        rows += _measure("PostgreSQL", sizes, rounds, _postgres_copies, tell)
    return rows


def _measure(
    name: str,
    sizes: tuple[int, ...],
    rounds: int,
    copies: Callable[[int, Tell], Any],
    tell: Tell,
) -> list[Row]:
    with copies(len(sizes), lambda what: tell(f"{name}: {what}")) as urls, ExitStack() as stack:
        for url, size in zip(urls, sizes, strict=True):
            tell(f"{name}: a history of {size:,} trials")
            grow(url, size)
        webs = [stack.enter_context(web_process(database_url=url)) for url in urls]
        rows = _first_looks(webs, sizes)
        rows += _requests(webs, sizes, rounds, lambda what: tell(f"{name}: {what}"))
        stack.close()
        rows += _upkeep(urls, sizes, lambda what: tell(f"{name}: {what}"))
    return [{"database": name, **row} for row in rows]


@contextmanager
def _sqlite_copies(count: int, tell: Tell) -> Iterator[list[str]]:
    """Lend addresses of so many equal databases."""
    with tempfile.TemporaryDirectory(prefix="etascope-history-") as folder:
        files = [Path(folder, f"history-{n}", "etascope.db") for n in range(count)]
        urls = [f"sqlite:///{file}" for file in files]
        _begin(urls[0], tell)
        back_up(Settings(database_url=urls[0]), Path(folder, "whole.db"))
        for file in files[1:]:
            file.parent.mkdir()
            shutil.copy(Path(folder, "whole.db"), file)
        yield urls


@contextmanager
def _postgres_copies(count: int, tell: Tell) -> Iterator[list[str]]:
    """Lend addresses of so many equal databases on a server of their own."""
    server = ThrowawayPostgres()
    try:
        server.start()
        server.execute("CREATE DATABASE history_0")
        _begin(server.url("history_0"), tell)
        for number in range(1, count):
            server.execute(f"CREATE DATABASE history_{number} TEMPLATE history_0")
        yield [server.url(f"history_{number}") for number in range(count)]
    finally:
        server.remove()


def _begin(url: str, tell: Tell) -> None:
    """Store the study that will be read, and those that fill a page of the history."""
    tell("made-up trials")
    with web_process(database_url=url) as web:
        web.submit({"task": TASK, **STUDY, "seeds": STUDY_SEEDS})
        web.submit({"task": TASK, **SMALL, "seeds": list(range(1000, 1000 + SMALL_SEEDS))})
        finish_everything(web.engine)
        for number in range(1, PAGE):
            _copy_study(web.engine, 2, number)


def grow(url: str, trials: int) -> None:
    """Copy the first study until a database holds so many trials."""
    engine = build_engine(url)
    try:
        with reading(engine) as session:
            held = session.scalars(select(func.count()).select_from(TrialRow)).one()
        for number in range(1, 1 + max(0, trials - held) // STUDY_TRIALS):
            _copy_study(engine, 1, number, earlier=True)
        _tidy(engine)
    finally:
        engine.dispose()


def _copy_study(engine: Engine, study_id: int, number: int, *, earlier: bool = False) -> None:
    """Store a study once more, trials and all, under ids far away from the others.

    One that is earlier is on no first page: that shall show the same studies in every history.
    """
    far = number * 1_000_000
    first = select(SweepRow.id).where(SweepRow.study_id == study_id)
    trials = select(SweepTrialRow.trial_id).where(SweepTrialRow.sweep_id.in_(first))
    shards = select(TrialRow.shard_id).where(TrialRow.id.in_(trials))
    address = func.substr(TrialRow.fingerprint, 1, 56) + literal(f"{number:08x}")
    named = literal(f"Measured {'earlier ' * earlier}{number}")
    with transaction(engine) as session:
        copied: list[tuple[Any, ColumnElement[bool], Mapping[str, Any]]] = [
            (StudyRow, StudyRow.id == study_id, {"id": _shift(StudyRow.id, far), "name": named}),
            (
                SweepRow,
                SweepRow.study_id == study_id,
                {"id": _shift(SweepRow.id, far), "study_id": _shift(SweepRow.study_id, far)},
            ),
            (ShardRow, ShardRow.id.in_(shards), {"id": _shift(ShardRow.id, far)}),
            (
                TrialRow,
                TrialRow.id.in_(trials),
                {
                    "id": _shift(TrialRow.id, far),
                    "shard_id": _shift(TrialRow.shard_id, far),
                    "fingerprint": cast(address, String),
                    "seed": TrialRow.seed + far,
                },
            ),
            (
                SweepTrialRow,
                SweepTrialRow.sweep_id.in_(first),
                {
                    "sweep_id": _shift(SweepTrialRow.sweep_id, far),
                    "trial_id": _shift(SweepTrialRow.trial_id, far),
                },
            ),
            (
                CurveRow,
                CurveRow.trial_id.in_(trials),
                {"trial_id": _shift(CurveRow.trial_id, far)},
            ),
        ]
        for model, condition, changes in copied:
            table: Table = model.__table__
            source = select(*(changes.get(c.name, c) for c in table.columns)).where(condition)
            names = [column.name for column in table.columns]
            session.execute(insert(table).from_select(names, source))
        changed = clock(-EARLIER_SECONDS if earlier else 0.0)
        session.execute(
            update(StudyRow).where(StudyRow.id == study_id + far).values(updated_at=changed)
        )


def _shift(column: Any, by: int) -> ColumnElement[Any]:
    shifted: ColumnElement[Any] = column + by
    return shifted


def _tidy(engine: Engine) -> None:
    """Let new ids begin behind the copies', and the database know how much there is."""
    if engine.dialect.name == "sqlite":  # looks for the highest id itself
        return
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for model in (StudyRow, SweepRow, ShardRow, TrialRow):
            last = select(func.max(model.id)).scalar_subquery()
            place = func.pg_get_serial_sequence(model.__tablename__, "id")
            connection.execute(select(func.setval(place, last)))
        connection.execute(text("VACUUM ANALYZE"))  # as autovacuum does soon enough


def _first_looks(webs: list[WebProcess], sizes: tuple[int, ...]) -> list[Row]:
    """Return what the pages take that are the first to see so many ended sweeps."""
    path, query = READS["history page"]
    rows = []
    for what, order in (("newest", "-updated_at"), ("oldest", "updated_at")):
        taken = [[_timed(web, "GET", path, params={**query, "sort": order})] for web in webs]
        rows.append(_row(f"history page, {what} first, the first look", sizes, taken, goal=False))
    return rows


def _requests(webs: list[WebProcess], sizes: tuple[int, ...], rounds: int, tell: Tell) -> list[Row]:
    taken: dict[str, list[list[float]]] = {
        name: [[] for _ in webs] for name in (*READS, "submitting 2,000 trials")
    }
    seeds = itertools.count(100_000, SUBMITTED_SEEDS)
    for number in range(rounds + 1):
        tell(f"requests, round {number} of {rounds}")
        for name, (path, query) in READS.items():
            for place, web in enumerate(webs):
                touch(web.engine, sweep_id=1)
                took = _timed(web, "GET", path.format(study=1, sweep=1), params=query)
                taken[name][place] += [took] if number else []  # the first round warms up
        first = next(seeds)
        body = {
            "task": TASK,
            **SUBMITTED,
            "seeds": list(range(first, first + SUBMITTED_SEEDS)),
        }
        for place, web in enumerate(webs):
            took = _timed(web, "POST", "/api/studies/2/sweeps", json=body)
            taken["submitting 2,000 trials"][place] += [took] if number else []
    return [_row(name, sizes, found, goal=True) for name, found in taken.items()]


def _timed(web: WebProcess, method: str, path: str, **options: Any) -> float:
    began = time.perf_counter()
    web.http.request(method, path, timeout=600, **options).raise_for_status()
    return (time.perf_counter() - began) * 1000


def _row(what: str, sizes: tuple[int, ...], taken: list[list[float]], *, goal: bool) -> Row:
    """Return medians in milliseconds, and how many times slower the longest history is."""
    ratio = median(last / first for first, last in zip(taken[0], taken[-1], strict=True))
    cells = {f"{size:,}": f"{median(ms):.0f} ms" for size, ms in zip(sizes, taken, strict=True)}
    return {
        "what": what,
        **cells,
        "ratio": f"{ratio:.2f}",
        "goal": f"at most {RATIO}" if goal else "",
    }


def _upkeep(urls: list[str], sizes: tuple[int, ...], tell: Tell) -> list[Row]:
    found: dict[str, list[str]] = {
        name: [] for name in ("size on disk", "db check", "db backup", "migration, one step")
    }
    for url, size in zip(urls, sizes, strict=True):
        tell(f"upkeep of {size:,} trials")
        settings = Settings(database_url=url)
        found["size on disk"].append(f"{_bytes(url) / 1e6:.0f} MB")
        found["db check"].append(_seconds(_check, url))
        with tempfile.TemporaryDirectory() as folder:
            found["db backup"].append(_seconds(back_up, settings, Path(folder, "copy")))
        _step_back(url)
        found["migration, one step"].append(_seconds(upgrade, settings))
    columns = [f"{size:,}" for size in sizes]
    return [
        {"what": name, **dict(zip(columns, cells, strict=True)), "ratio": "", "goal": ""}
        for name, cells in found.items()
    ]


def _seconds(action: Callable[..., object], *arguments: object) -> str:
    began = time.perf_counter()
    action(*arguments)
    return f"{time.perf_counter() - began:.1f} s"


def _check(url: str) -> None:
    engine = build_engine(url)
    with reading(engine) as session:
        problems = maintenance.check(session)
    engine.dispose()
    if problems:
        raise RuntimeError(f"The made-up history contradicts itself: {problems[0].sentence}")


def _bytes(url: str) -> int:
    engine = build_engine(url)
    with reading(engine) as session:
        found = maintenance.database_bytes(session)
    engine.dispose()
    return found


def _step_back(url: str) -> None:
    """Take the newest migration back."""
    engine = build_engine(url)
    with engine.connect() as connection:
        migrate(connection, script_config(), f"{int(newest()) - 1:04d}")
    engine.dispose()
