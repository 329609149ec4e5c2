"""What `etascope data list`, `check` and `fetch` do.

A fetched data set is loaded and compared with the hash in ``checksums.json`` before it is put in
place. These are hashes of contents, not of files: whoever holds the same rows in another layout
has the same hash. A data set that is not in the table (one nobody has verified yet, and
``uci/adult``, of which two versions go round) must only load.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from urllib.parse import quote, urlsplit

from filelock import FileLock

from ib_core.datasets import DATASETS
from ib_core.datasets.base import (
    DATA_DIR_VARIABLE,
    Dataset,
    DatasetInfo,
    Download,
    Kind,
    Layout,
    data_dir,
)
from ib_core.datasets.fetched import open_maybe_gzipped
from ib_core.datasets.raw_files import (
    MAX_BYTES,
    OnProgress,
    Unreachable,
    download,
    ignore,
    reading,
    refuse,
)
from ib_core.errors import CorruptData, InvalidSpec, MissingData, lookup

MIRROR_VARIABLE = "ETASCOPE_DATA_MIRROR"

_INCOMING = ".incoming"


@dataclass(frozen=True, slots=True)
class DatasetRow:
    """A line of `etascope data list`."""

    name: str
    title: str
    kind: Kind
    present: bool
    size_bytes: int | None
    source: str
    licence: str
    how_to_get: str


@dataclass(frozen=True, slots=True)
class Checked:
    """A data set that loads.

    Attributes:
        name: Its name.
        files: The files it was read from; none where it comes with the program.
        sha256: Hash of its content.
        verified: True if that is the published content; False if no hash of it is known.
    """

    name: str
    files: tuple[Path, ...]
    sha256: str
    verified: bool


def list_datasets() -> list[DatasetRow]:
    """Return every data set there is, and whether it is on this machine."""
    return [
        DatasetRow(
            name=info.name,
            title=info.title,
            kind=info.kind,
            present=info.present(),
            size_bytes=info.size_bytes,
            source=info.source,
            licence=info.licence,
            how_to_get=info.how_to_get,
        )
        for info in DATASETS.values()
    ]


@cache
def known_hashes() -> Mapping[str, str]:
    """Return the hashes of published contents, by name of data set."""
    table = files("ib_core.datasets").joinpath("checksums.json").read_text("utf-8")
    hashes: dict[str, str] = json.loads(table)
    return hashes


def check_dataset(name: str) -> Checked:
    """Read a data set from disk, past any cache, and compare it with what was published.

    Raises:
        MissingData: If it is not on this machine.
        CorruptData: If it does not load, or is not the published content.
    """
    info = lookup("dataset", name, DATASETS)
    return _check(info, info.find(), data_dir())


def _check(info: DatasetInfo, layout: Layout, folder: Path) -> Checked:
    dataset = info.read(layout, folder)
    paths = layout.paths(folder)
    _compare(dataset, paths)
    return Checked(info.name, paths, dataset.sha256, verified=info.name in known_hashes())


def _compare(dataset: Dataset, paths: tuple[Path, ...]) -> None:
    expected = known_hashes().get(dataset.name)
    if expected in (None, dataset.sha256):
        return
    where = ", ".join(map(str, paths)) or "the installed scikit-learn"
    raise CorruptData(
        f"The data set {dataset.name!r} loads, but is not the published one: the content of "
        f"{where} has sha256 {dataset.sha256}, expected {expected}.",
        field="dataset",
        hint="Remove the files and fetch again; results on them cannot be compared with others'.",
    )


def fetch_dataset(
    name: str, progress: OnProgress = ignore, *, mirror: str | None = None
) -> Checked:
    """Download a data set unless an intact one is here already.

    Safe to run twice at once: the second waits, then finds the data in place.

    Args:
        name: A key of `DATASETS`.
        progress: Called as bytes arrive.
        mirror: Address of a folder that holds the files under the same paths as the data folder,
            instead of the public addresses. Default: `ETASCOPE_DATA_MIRROR`, if set.

    Raises:
        MissingData: If it could not be had; says why and what else to do.
        CorruptData: If what came is not the data set; it has been removed then.
    """
    info = lookup("dataset", name, DATASETS)
    if not info.downloads:
        return check_dataset(name)
    mirror, folder = _mirror(mirror), data_dir()
    if here := _already_here(info, folder):  # asked without the lock: the folder may be read-only
        return here
    incoming = folder / _INCOMING / name.replace("/", "-")
    try:
        incoming.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(incoming.with_suffix(".lock")):
            return _already_here(info, folder) or _fetch(info, folder, incoming, progress, mirror)
    except Unreachable as failure:
        raise _not_had(info, folder, failure) from failure
    except OSError as error:
        raise MissingData(
            f"Could not write the data set {name!r} to {folder}: {error.strerror or error}. "
            f"Set {DATA_DIR_VARIABLE} to a folder with room that you may write to.",
            field="dataset",
        ) from error


def _mirror(given: str | None) -> str | None:
    mirror = given or os.environ.get(MIRROR_VARIABLE) or None
    if mirror is None or _is_web_address(mirror):
        return mirror
    raise InvalidSpec(
        f"{MIRROR_VARIABLE} must be the address of a folder, as https://host/data.",
        field=MIRROR_VARIABLE,
    )


def _is_web_address(address: str) -> bool:
    try:
        parts = urlsplit(address)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _already_here(info: DatasetInfo, folder: Path) -> Checked | None:
    if not info.present():
        return None
    layout = info.find()
    try:
        return _check(info, layout, folder)
    except CorruptData:
        # Fetched files replace damaged ones of their own layout, but would lose to any other.
        if layout.files != _downloaded_layout(info).files:
            raise
        return None


def _downloaded_layout(info: DatasetInfo) -> Layout:
    fetched = tuple(item.file for item in info.downloads)
    return next(layout for layout in info.layouts if layout.files == fetched)


def _fetch(
    info: DatasetInfo, folder: Path, incoming: Path, progress: OnProgress, mirror: str | None
) -> Checked:
    for item in info.downloads:
        if not (incoming / item.file).exists():
            download(_addresses(item, mirror), incoming / item.file, progress)
    layout = _downloaded_layout(info)
    try:
        for item in info.downloads:
            _compare_bytes(item, incoming / item.file)
        checked = _check(info, layout, incoming)
    except CorruptData:
        shutil.rmtree(incoming)
        raise
    for staged, final in zip(layout.paths(incoming), layout.paths(folder), strict=True):
        final.parent.mkdir(parents=True, exist_ok=True)
        os.replace(staged, final)
    shutil.rmtree(incoming)
    return replace(checked, files=layout.paths(folder))


def _addresses(item: Download, mirror: str | None) -> tuple[str, ...]:
    return (f"{mirror.rstrip('/')}/{quote(item.file)}",) if mirror else item.urls


def _compare_bytes(item: Download, path: Path) -> None:
    if item.sha256 is None:
        return
    digest, left = hashlib.sha256(), MAX_BYTES
    with reading(path), open_maybe_gzipped(path) as file:
        while left > 0 and (chunk := file.read(min(left, 2**20))):
            digest.update(chunk)
            left -= len(chunk)
    if digest.hexdigest() != item.sha256:
        refuse(path, f"its content has sha256 {digest.hexdigest()}, expected {item.sha256}")


def _not_had(info: DatasetInfo, folder: Path, failure: Unreachable) -> MissingData:
    copies = ", ".join(str(folder / item.file) for item in info.downloads)
    return MissingData(
        f"The data set {info.name!r} could not be fetched. {failure}. On a machine with a "
        f"connection run `etascope data fetch {info.name}`, then copy the files here: {copies}.",
        field="dataset",
        hint=f"Set {MIRROR_VARIABLE} to the address of a copy that this machine can reach.",
    )
