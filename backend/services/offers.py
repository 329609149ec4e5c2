"""Offers: tasks and methods that workers bring along, known here by their manifests alone.

Users' code is on the workers that its owners started; this process never runs it. A worker
announces what it has, a sweep is read by that, its shards carry the keys of what they need, and
only a worker with those keys may claim them. Old versions stay: they tell trials apart.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from backend.db import clock, insert_for
from backend.models import OfferRow, ShardRow, ShardState, SweepTrialRow, TrialRow
from backend.schemas import MissingOfferRead, OfferRead
from backend.services import workers
from ib_core.announced import AnnouncedMethod, AnnouncedTask, offer_key, told, version_shown
from ib_core.errors import InvalidSpec, UnknownName
from ib_core.methods import METHODS, find_method
from ib_core.sweep import SweepSpec, TrialSpec
from ib_core.sweep.request import read_body
from ib_core.tasks import TASKS, find_task

#: Between a name and the version of it that is wanted.
AT = "@"
#: Versions shown in the catalogue, the newest first.
MOST_SHOWN = 200
#: Announced things, by key: a key never means anything else.
_read: dict[str, AnnouncedTask | AnnouncedMethod] = {}
MOST_READ = 2000


def announce(
    session: Session, *, worker: str, host: str, manifests: Sequence[Mapping[str, Any]]
) -> list[str]:
    """Write down what a worker has; return the keys."""
    for manifest in manifests:
        values = {
            "key": offer_key(manifest),
            "kind": manifest["kind"],
            "name": manifest["name"],
            "code": manifest["code"],
            "data": manifest.get("data"),
            "manifest": dict(manifest),
            "worker": worker,
            "host": host,
            "created_at": clock(),
            "seen_at": clock(),
        }
        insert = insert_for(session, OfferRow).values(values)
        fresh = {name: insert.excluded[name] for name in ("manifest", "worker", "host", "seen_at")}
        session.execute(insert.on_conflict_do_update(index_elements=["key"], set_=fresh))
    return [offer_key(manifest) for manifest in manifests]


def leave(session: Session, *, worker: str) -> None:
    """Note that a worker had its offers until now."""
    keys = workers.offers_of(session, name=worker)
    if keys:
        session.execute(update(OfferRow).where(OfferRow.key.in_(keys)).values(seen_at=clock()))


@dataclass(frozen=True, slots=True)
class Known:
    """What one request may name besides the catalogue, each in one version.

    Attributes:
        body: The request, its names without their versions.
        tasks: By name.
        methods: By name.
    """

    body: Mapping[str, Any] = field(default_factory=dict)
    tasks: Mapping[str, AnnouncedTask] = field(default_factory=dict)
    methods: Mapping[str, AnnouncedMethod] = field(default_factory=dict)

    @contextmanager
    def told(self) -> Iterator[None]:
        """Let the request be read and stored with these."""
        with told(self.tasks, self.methods):
            yield


def known_to(session: Session, body: Mapping[str, Any]) -> Known:
    """Return what a request may name: the versions it asks for, else those that workers have.

    Raises:
        IBError: If the body cannot be read, or names a version there never was.
    """
    given = read_body(body)
    asked: dict[tuple[str, str], str] = {}
    plain = dict(body)
    if AT in str(given.get("task", "")):
        plain["task"] = _without_version("task", given["task"], asked)
    if any(AT in method for method in given.get("methods", ())):
        plain["methods"] = [_without_version("method", one, asked) for one in given["methods"]]
    chosen = _chosen(session, asked)
    _refuse_left_out(session, given, {name for _, name in chosen})
    return _sorted(plain, chosen.values())


def _refuse_left_out(session: Session, given: Mapping[str, Any], known: Collection[str]) -> None:
    """Say why a worker did not bring what nobody else has ever brought."""
    left_out = workers.live_offers(session).left_out
    methods = [("methods", one) for one in given.get("methods", ())]
    for where, word in (("task", given.get("task", "")), *methods):
        name = str(word).partition("(")[0].partition(AT)[0]
        if name in left_out and name not in known:
            raise InvalidSpec(f"Nobody has {name}: {left_out[name]}", field=where)


def _without_version(kind: str, word: str, asked: dict[tuple[str, str], str]) -> str:
    """Return a name without its version, which is noted."""
    base, bracket, options = word.partition("(")
    name, at, version = base.partition(AT)
    if at:
        asked[kind, name] = version
    return f"{name}{bracket}{options}"


def _chosen(
    session: Session, asked: Mapping[tuple[str, str], str]
) -> dict[tuple[str, str], AnnouncedTask | AnnouncedMethod]:
    columns = (OfferRow.key, OfferRow.kind, OfferRow.name, OfferRow.code)
    newest_first = (OfferRow.created_at.desc(), OfferRow.key)
    by_name: dict[tuple[str, str], list[tuple[str, str | None]]] = {}
    for key, kind, name, code in session.execute(select(*columns).order_by(*newest_first)):
        by_name.setdefault((kind, name), []).append((key, code))
    live = workers.live_offers(session).keys
    keys = {}
    for named, versions in by_name.items():
        if named in asked:
            versions = _of_version(named, versions, asked[named])
        alive = [key for key, _ in versions if key in live]
        keys[named] = alive[0] if alive else versions[0][0]
    for kind, name in asked:
        if (kind, name) not in by_name:
            names = [one for of, one in by_name if of == kind]
            raise UnknownName(kind, name, {*names, *(TASKS if kind == "task" else METHODS)})
    things = _things(session, keys.values())
    return {named: things[key] for named, key in keys.items()}


def _of_version(
    named: tuple[str, str], versions: list[tuple[str, str | None]], asked: str
) -> list[tuple[str, str | None]]:
    found = [one for one in versions if asked and (one[1] or "").startswith(asked)]
    if not found:
        shown = {version_shown(code) for _, code in versions if code}
        field = "task" if named[0] == "task" else "methods"
        raise UnknownName(f"version of {named[1]}", asked, shown, field=field)
    return found


def _things(session: Session, keys: Iterable[str]) -> dict[str, AnnouncedTask | AnnouncedMethod]:
    """Return tasks and methods by the keys of their offers."""
    wanted = set(keys)
    unread = wanted - _read.keys()
    if unread:
        if len(_read) > MOST_READ:
            _read.clear()
            unread = wanted
        query = select(OfferRow.key, OfferRow.manifest).where(OfferRow.key.in_(sorted(unread)))
        for key, manifest in session.execute(query):
            kind = AnnouncedTask if manifest["kind"] == "task" else AnnouncedMethod
            _read[key] = kind(manifest)
    return {key: _read[key] for key in wanted if key in _read}


def known_again(session: Session, trials: Iterable[tuple[TrialSpec, str | None]]) -> Known:
    """Return the very versions that stored trials were planned with.

    Args:
        session: A session.
        trials: What is to be trained, and the hash of the data.
    """
    wanted = {key for trial, data in trials for key in keys_of(trial, data)}
    found = _things(session, wanted).values() if wanted else ()
    return _sorted({}, found)


def keys_of(trial: TrialSpec, data: str | None) -> set[str]:
    """Return the keys of what trained a stored trial, which may be nowhere any more."""
    codes = dict(trial.options.own)
    names = (("task", trial.task, "code", data), ("method", _bare(trial), "method_code", None))
    return {
        offer_key({"kind": kind, "name": name, "code": codes[option], "data": its_data})
        for kind, name, option, its_data in names
        if codes.get(option)
    }


def _sorted(body: Mapping[str, Any], things: Collection[AnnouncedTask | AnnouncedMethod]) -> Known:
    return Known(
        body,
        {one.name: one for one in things if isinstance(one, AnnouncedTask)},
        {one.name: one for one in things if isinstance(one, AnnouncedMethod)},
    )


def _bare(trial: TrialSpec) -> str:
    return trial.method.partition("(")[0]


def missing_for(session: Session, *, sweep_id: int) -> list[MissingOfferRead]:
    """Return what no living worker has although the sweep waits for it."""
    query = (
        select(ShardRow.needs)
        .join(TrialRow, TrialRow.shard_id == ShardRow.id)
        .join(SweepTrialRow, SweepTrialRow.trial_id == TrialRow.id)
        .where(
            SweepTrialRow.sweep_id == sweep_id,
            ShardRow.state == ShardState.QUEUED,
            ShardRow.needs.is_not(None),
        )
        .distinct()
    )
    return missing(session, needs=[str(needs) for needs in session.scalars(query)])


def missing(session: Session, *, needs: Iterable[str]) -> list[MissingOfferRead]:
    """Return what no living worker has of what shards need."""
    live = workers.live_offers(session)
    unmet = [one.split(",") for one in needs if not live.met(one)]
    lacking = {key for keys in unmet for key in keys if key not in live.keys}
    # Two workers with one half each: all of it is missing in one place.
    lacking |= {key for keys in unmet if lacking.isdisjoint(keys) for key in keys}
    if not lacking:
        return []
    rows = session.scalars(select(OfferRow).where(OfferRow.key.in_(sorted(lacking))))
    return [
        _missing(row, live.left_out.get(row.name))
        for row in sorted(rows, key=lambda row: (row.kind, row.name))
    ]


def _missing(row: OfferRow, left_out: str | None) -> MissingOfferRead:
    when = f"{row.seen_at:%Y-%m-%d %H:%M} UTC"
    version = version_shown(row.code or "")
    return MissingOfferRead(
        kind="task" if row.kind == "task" else "method",
        name=row.name,
        version=version,
        last_worker=row.worker,
        last_host=row.host,
        last_seen_at=row.seen_at,
        sentence=f"waiting for a worker with {row.name}, version {version}; "
        f"{row.host or row.worker} had it last, until {when}: "
        f"{left_out or how_to_start(row.name)}",
    )


def how_to_start(name: str) -> str:
    """Return what brings a worker that has something of this name."""
    place = name.partition(":")[0]
    if place.endswith(".py"):
        return f"start one with etascope worker --with {place}"
    return f"start one where {place} is installed"


def list_all(session: Session) -> list[OfferRead]:
    """Return every version that people brought along, those of living workers first."""
    live = workers.live_offers(session)
    query = select(OfferRow).where(OfferRow.code.is_not(None))
    rows = session.scalars(query.order_by(OfferRow.created_at.desc()).limit(MOST_SHOWN)).all()
    found = [_to_read(row, live.hosts.get(row.key, [])) for row in rows]
    return sorted(found, key=lambda offer: (not offer.workers, offer.kind != "task", offer.name))


def _to_read(row: OfferRow, hosts: Sequence[str]) -> OfferRead:
    manifest = row.manifest
    return OfferRead(
        key=row.key,
        kind="task" if row.kind == "task" else "method",
        name=row.name,
        title=manifest.get("title") or row.name,
        summary=manifest.get("summary", ""),
        version=version_shown(row.code or ""),
        code=row.code or "",
        data=row.data,
        options=manifest["options"],
        defaults=manifest.get("defaults", {}),
        packages=manifest.get("versions", {}),
        linear_output=bool(manifest.get("linear_output")),
        implicit=bool(manifest.get("implicit", True)),
        workers=sorted(set(hosts)),
        last_worker=row.worker,
        last_host=row.host,
        first_seen_at=row.created_at,
        last_seen_at=row.seen_at,
    )


def needs_of(trials: Iterable[TrialSpec]) -> str | None:
    """Return the keys of what a worker must have to train these, as a shard keeps them."""
    found: set[str | None] = set()
    for trial in trials:
        found.add(getattr(find_task(trial.task), "offer", None))
        found.add(getattr(find_method(trial.method), "offer", None))
    return ",".join(sorted(key for key in found if key)) or None


def check(specs: Iterable[SweepSpec]) -> None:
    """Refuse methods that would find nothing to do in a model that is elsewhere.

    Raises:
        InvalidSpec: For an implicit method and a model without implicit layers.
    """
    for spec in specs:
        task = find_task(spec.task)
        for method in spec.methods:
            if (
                isinstance(task, AnnouncedTask)
                and not task.solvable
                and find_method(method).implicit
            ):
                raise InvalidSpec(
                    f"{method} solves implicit layers, and the model of {task.name} has none: use "
                    "ImplicitLinear or ImplicitRNN in it, or another method.",
                    field="methods",
                )


def carried_by(spec: SweepSpec) -> dict[str, Any]:
    """Return what a stored sweep says about the versions it was read with; nothing where none."""
    things = [find_task(spec.task), *(find_method(method) for method in spec.methods)]
    needs = [
        {
            "kind": "task" if isinstance(one, AnnouncedTask) else "method",
            "name": one.name.partition("(")[0],
            "version": one.code,
            "data": one.data_hash() if isinstance(one, AnnouncedTask) else None,
        }
        for one in things
        if isinstance(one, AnnouncedTask | AnnouncedMethod) and one.offer
    ]
    return {"needs": needs} if needs else {}
