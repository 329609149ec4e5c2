"""Tasks and methods known by their manifests alone: checked and planned here, trained elsewhere.

A manifest is JSON without code. It is enough to read a sweep, to give its
trials their addresses and to forecast their cost; whoever would train them is refused. What stands
for the code in it is a hash of files and of versions (`code_of`).
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import PackageNotFoundError, packages_distributions
from importlib.metadata import requires as requirements_of
from importlib.metadata import version as version_of
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ib_core.errors import MisuseError, is_installed
from ib_core.methods import OF_EVERY_METHOD, OWN_METHODS, Method, find_method
from ib_core.options import Option, options_schema
from ib_core.tasks import OWN_TASKS, Defaults, Footprint, Task, find_task

Manifest = Mapping[str, Any]

#: Names longer than this fit no table.
LONGEST_NAME = 90
#: Where a manifest does not say how large its model is.
UNMEASURED = Footprint(1000, 1000, 10_000, 1000, 1e-5)


def manifest(name: str, kind: str = "task") -> dict[str, Any]:
    """Return what others need to know about a task or method: JSON, with no code in it.

    Args:
        name: Of a task or method that is known here.
        kind: `task` or `method`.
    """
    if kind == "method":
        method = find_method(name)
        return {
            "kind": "method",
            "name": method.name,
            "title": method.title,
            "summary": method.summary,
            "options": options_schema({**method.options, **OF_EVERY_METHOD}),
            "code": method.code,
            "versions": dict(method.versions),
        }
    task = find_task(name)
    defaults = task.defaults("text")
    return {
        "kind": "task",
        "name": task.name,
        "title": task.title,
        "summary": task.summary,
        "options": options_schema(task.options),
        "defaults": {
            "epochs": defaults.epochs,
            "batch_size": defaults.batch_size,
            "learning_rates": list(defaults.learning_rates),
            "seeds": defaults.seeds,
        },
        "code": task.code,
        "data": task.data_hash(),
        "linear_output": task.linear_output,
        "versions": dict(task.versions),
    }


def offer_key(manifest: Manifest) -> str:
    """Return what two workers share if and only if they have the same code and data."""
    deciding = [manifest[name] for name in ("kind", "name", "code")] + [manifest.get("data")]
    return hashlib.sha256(json.dumps(deciding).encode()).hexdigest()[:12]


def version_shown(code: str) -> str:
    """Return a version as people read and type it."""
    return code[:8]


def options_of(schema: Mapping[str, Any]) -> dict[str, Option]:
    """Return the options that a JSON schema of `ib_core.options.options_schema` stands for."""
    return {name: _option(one) for name, one in schema.get("properties", {}).items()}


def _option(schema: Mapping[str, Any]) -> Option:
    default, help = schema.get("default"), str(schema.get("description", ""))
    if "enum" in schema:
        choices = tuple(schema["enum"])
        return Option("choice", choices=choices, default=default, help=help, settled=True)
    kind = "whole" if schema["type"] == "integer" else "number"
    low, high = schema["minimum"], schema["maximum"]
    return Option(kind, low=low, high=high, default=default, help=help)


class AnnouncedTask(Task):
    """A task whose code is on a worker.

    Attributes:
        offer: The key of what workers must have to train it.
        solvable: Whether its model has layers with an implicit step.
    """

    def __init__(self, manifest: Manifest) -> None:
        defaults = manifest["defaults"]
        self.offer = offer_key(manifest)
        self.name, self.code = manifest["name"], manifest["code"]
        self.title, self.summary = manifest["title"], manifest.get("summary", "")
        self.source = self.dataset = self.activation = self.output = ""
        self.family = "model"
        self.options = options_of(manifest["options"])
        self.text = Defaults(
            defaults["epochs"],
            defaults["batch_size"],
            tuple(defaults["learning_rates"]),
            defaults["seeds"],
        )
        self._linear_output = bool(manifest.get("linear_output"))
        self.solvable = bool(manifest.get("implicit", True))
        self._hash = manifest["data"]
        self._footprint = Footprint(**{**asdict(UNMEASURED), **manifest.get("footprint", {})})

    @property
    def linear_output(self) -> bool:
        """Whether `ib_plus` may be asked to solve the output layer."""
        return self._linear_output

    @property
    def output_loss(self) -> str | None:
        """Nothing: it is not trained here."""
        return None

    def data_hash(self) -> str:
        """Return the hash of the data that the worker has."""
        return str(self._hash)

    def footprint(self, values: Mapping[str, Any]) -> Footprint:
        """Return the size that the worker measured, with the options' defaults."""
        del values
        return self._footprint

    def workload(self, **_: Any) -> Any:
        """Refuse: there is no code here.

        Raises:
            MisuseError: Always.
        """
        raise MisuseError(f"{self.name} is known here by its manifest only; a worker trains it.")


class AnnouncedMethod(Method):
    """A method whose code is on a worker.

    Attributes:
        offer: The key of what workers must have; None for torch's own, which all of them have.
    """

    here = False

    def __init__(self, manifest: Manifest) -> None:
        options = options_of(manifest["options"])
        own = {name: one for name, one in options.items() if name not in OF_EVERY_METHOD}
        super().__init__(
            _elsewhere,
            own,
            name=manifest["name"],
            title=manifest["title"],
            short=manifest["name"].rpartition(":")[2].rpartition(".")[2],
            summary=manifest.get("summary", ""),
        )
        self.code = manifest["code"]
        self.offer = offer_key(manifest) if self.code is not None else None


def _elsewhere(*_: Any, **__: Any) -> Any:
    raise MisuseError("This method is known here by its manifest only; a worker trains with it.")


@contextmanager
def told(
    tasks: Mapping[str, AnnouncedTask], methods: Mapping[str, AnnouncedMethod]
) -> Iterator[None]:
    """Let sweeps be read with these, for as long as the block runs."""
    with OWN_TASKS.told(tasks), OWN_METHODS.told(methods):
        yield


# --- what stands for code: the hash of its files and of the versions of what it uses


def imported(files: Iterable[Path]) -> set[str]:
    """Return the modules that files name in import statements, those beside them left out."""
    nodes = (node for file in files for node in _statements(file))
    return {name for node in nodes for name, level, _ in _names(node) if not level}


def _statements(file: Path) -> list[ast.Import | ast.ImportFrom]:
    """Return a file's import statements, wherever they stand."""
    try:
        tree = ast.parse(file.read_bytes() if file.suffix == ".py" else b"")
    except (SyntaxError, ValueError):  # whoever imports it is told
        return []
    return [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]


def _names(node: ast.Import | ast.ImportFrom) -> list[tuple[str, int, list[str]]]:
    """Return the modules of a statement, the dots before them, and what is taken out of them."""
    if isinstance(node, ast.Import):
        return [(alias.name, 0, []) for alias in node.names]
    if not node.module and not node.level:
        return []
    return [(node.module or "", node.level, [alias.name for alias in node.names])]


def found_among(module: str, folders: Sequence[str]) -> ModuleSpec | None:
    """Return where a module without dots is found, if it is somebody's own.

    Python's modules, installed packages and what ships with this one are not: their versions are
    part of every address.
    """
    if module in sys.stdlib_module_names or module == "ib_core":
        return None
    spec = PathFinder.find_spec(module, [*folders])
    place = Path((spec.origin if spec.has_location else None) or "") if spec else Path()
    return None if is_installed(place) else spec


def local_files(file: Path, folders: Sequence[str]) -> list[Path]:
    """Return the files of one's own that a file imports, however deep, and wherever they lie.

    Found by reading import statements, not by looking at what is loaded: whoever loaded a module
    first does not matter.

    Args:
        file: Where to begin.
        folders: Where its modules are looked for first; Python's path comes after.
    """
    return sorted(_reached([(file, "")], [*folders, *sys.path], found_among) - {file})


def package_files(module: str) -> list[Path]:
    """Return the files of an installed module and those of its package that it imports.

    Found as `local_files` are, whatever is loaded; the module comes first.

    Args:
        module: In full, as an entry point names it.
    """
    top = module.partition(".")[0]

    def find(name: str, folders: Sequence[str]) -> ModuleSpec | None:
        del folders
        return find_spec(top) if name == top else None

    begun = [*_local(module, [], find)]
    if not begun:  # one that no file makes
        return []
    last = begun[-1][0]
    return [last, *sorted(_reached(begun, [], find) - {last})]


#: Finds a module without dots, looking into some folders.
Finder = Callable[[str, Sequence[str]], ModuleSpec | None]


def _reached(begun: Iterable[tuple[Path, str]], folders: Sequence[str], find: Finder) -> set[Path]:
    """Return files and all that their import statements lead to.

    Args:
        begun: Files, each with its own package.
        folders: Where to look.
        find: What counts.
    """
    waiting = [*begun]
    found = {place for place, _ in waiting}
    while waiting:
        here, package = waiting.pop()
        for node in _statements(here):
            for name, level, taken in _names(node):
                around = package.split(".")
                parts = around[: len(around) - level + 1] if level else []
                base = ".".join(filter(None, [*parts, name]))
                for module in (base, *(f"{base}.{one}" for one in taken)):
                    new = [one for one in _local(module, folders, find) if one[0] not in found]
                    found.update(place for place, _ in new)
                    waiting += new
    return found


def _local(module: str, folders: Sequence[str], find: Finder) -> Iterator[tuple[Path, str]]:
    """Yield the files of a module and of the packages around it, each with its own package."""
    names = module.split(".") if module else []
    for depth, name in enumerate(names):
        spec = find(name, folders) if depth == 0 else PathFinder.find_spec(name, [*folders])
        if spec is None:
            return
        folders = list(spec.submodule_search_locations or ())
        if spec.has_location and spec.origin:
            yield Path(spec.origin).resolve(), ".".join(names[: depth + bool(folders)])
        if not folders:
            return


def code_of(files: list[Path], loaded: Iterable[str] = ()) -> tuple[str, dict[str, str]]:
    """Return the hash of files and of the versions of the packages they use, and those versions.

    Args:
        files: The module and those beside it, the module first.
        loaded: Modules that were loaded by running it: import statements miss some. What a named
            package needs itself is not counted, so that it does not matter who loaded it first.
    """
    named = packages_of(imported(files))
    named.add("torch")
    needed = _needed(named | {"etascope"})
    dynamic = packages_of(loaded) - needed
    versions = {name: version_here(name) for name in sorted((named | dynamic) - {"etascope"})}
    digest = hashlib.sha256()
    for place, file in enumerate(files):
        told = Path(os.path.relpath(file, files[0].parent)).as_posix() if place else "module"
        digest.update(f"{told}\n".encode())
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    digest.update(repr(sorted(versions.items())).encode())
    return digest.hexdigest()[:16], versions


@cache
def _distributions() -> Mapping[str, list[str]]:
    return packages_distributions()


def packages_of(modules: Iterable[str]) -> set[str]:
    """Return the installed packages that modules belong to, in canonical spelling."""
    tops = {name.split(".")[0] for name in modules} - set(sys.stdlib_module_names)
    return {_canonical(one) for top in tops for one in _distributions().get(top, ())}


def _canonical(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


def _needed(names: set[str]) -> set[str]:
    """Return packages and all that they require."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        try:
            lines = requirements_of(name) or []
        except PackageNotFoundError:
            continue
        for line in lines:
            bare = line.partition(";")[0]
            for end in "[<>=!~ (":
                bare = bare.partition(end)[0]
            waiting.append(_canonical(bare))
    return found


def version_here(name: str) -> str:
    """Return an installed package's version, without what a build adds to it."""
    try:
        return version_of(name).partition("+")[0]
    except PackageNotFoundError:
        return "?"
