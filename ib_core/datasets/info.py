"""What is known of a data set before it is read: its terms, its files and where to get them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ib_core.datasets.base import Content, Dataset, Kind, data_dir
from ib_core.errors import MissingData


@dataclass(frozen=True, slots=True)
class Layout:
    """One way a data set may lie in the data folder.

    Attributes:
        files: Paths below the data folder; all of them are needed. None at all means that the
            data comes with the program.
        read: Called with the absolute paths of `files`, in that order.
    """

    files: tuple[str, ...]
    read: Callable[..., Content]

    def paths(self, folder: Path) -> tuple[Path, ...]:
        """Return where the files would be below ``folder``."""
        return tuple(folder / file for file in self.files)

    def complete(self, folder: Path) -> bool:
        """Return whether every file is there."""
        return all(path.is_file() for path in self.paths(folder))


@dataclass(frozen=True, slots=True)
class Download:
    """A file that can be fetched.

    Attributes:
        file: Path below the data folder; also its path below a mirror.
        urls: Public addresses, tried in order.
        sha256: Hash of the uncompressed content, where a published one exists.
    """

    file: str
    urls: tuple[str, ...]
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class DatasetInfo:
    """A data set's entry in `DATASETS`.

    Attributes:
        name: Its key.
        title: Its name for people.
        kind: "table", "images", "music" or "toy".
        source: Where it comes from.
        licence: Under what terms.
        layouts: Accepted layouts; the first complete one is read.
        downloads: The files of one of the layouts; empty where nothing needs fetching.
        size_bytes: Size of the download; None if unknown, 0 if there is none.
    """

    name: str
    title: str
    kind: Kind
    source: str
    licence: str
    layouts: tuple[Layout, ...]
    downloads: tuple[Download, ...] = ()
    size_bytes: int | None = None

    @property
    def how_to_get(self) -> str:
        """One sentence: what a person must do to have this data set."""
        if not self.downloads:
            return "Comes with Etascope."
        return f"Run `etascope data fetch {self.name}`, or copy its files to {data_dir()}."

    def present(self) -> bool:
        """Return whether the files of some layout are all there (not whether they are intact)."""
        folder = data_dir()
        return any(layout.complete(folder) for layout in self.layouts)

    def find(self) -> Layout:
        """Return the layout to read.

        Raises:
            MissingData: If no layout is complete; says which files were looked for, and where.
        """
        folder = data_dir()
        for layout in self.layouts:
            if layout.complete(folder):
                return layout
        wanted = "; or ".join(", ".join(layout.files) for layout in self.layouts)
        raise MissingData(
            f"The data set {self.name!r} is not in {folder}. Looked for {wanted}. "
            f"Run `etascope data fetch {self.name}`.",
            field="dataset",
            hint="Or copy the files there.",
        )

    def read(self, layout: Layout, folder: Path) -> Dataset:
        """Read, validate and hash the files of ``layout`` below ``folder``.

        Raises:
            CorruptData: If a file is not what it should be; names the file.
        """
        content = layout.read(*layout.paths(folder))
        return Dataset(
            name=self.name,
            kind=self.kind,
            train=content.train,
            test=content.test,
            classes=content.classes,
            sha256=content.sha256(),
            source=self.source,
            licence=self.licence,
        )
