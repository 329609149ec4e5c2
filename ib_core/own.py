"""One's own tasks and methods: from a file, from an installed package, or a class by its name.

Whoever calls these runs the code they find: the command line does, for what its user typed, and a
worker for what its owner installed; whatever takes requests from others must not. What is found is
entered under its name (`my_file.py:task`) where `find_task` and `find_method` look, with the hash
of the code that decides it: the module's source, that of the modules beside it, and the versions
of the packages it uses.
"""

from __future__ import annotations

import builtins
import hashlib
import importlib
import inspect
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.metadata import entry_points
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, TypeVar

from ib_core.announced import code_of as code_of
from ib_core.announced import (
    found_among,
    local_files,
    package_files,
    packages_of,
    version_here,
)
from ib_core.announced import manifest as manifest
from ib_core.errors import THEIRS, IBError, InvalidSpec, MisuseError, UnknownName, said_where
from ib_core.methods import METHODS, OWN_METHODS, Method, optimizer_method
from ib_core.tasks import OWN_TASKS, TASKS, Task

T = TypeVar("T")

TASK_GROUP, METHOD_GROUP = "etascope.tasks", "etascope.methods"


@dataclass(frozen=True, slots=True)
class Found:
    """What a file or a package holds.

    Attributes:
        tasks: By the name a sweep says.
        methods: Likewise.
        code: Hash of the code.
        versions: Of the packages it uses.
        refused: What could not be used, a sentence each.
    """

    tasks: dict[str, Task] = field(default_factory=dict)
    methods: dict[str, Method] = field(default_factory=dict)
    code: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)


_files: dict[str, tuple[Path, Found]] = {}


def register_file(path: str | Path) -> Found:
    """Run a Python file and enter its tasks and methods as `file.py:name`.

    Raises:
        InvalidSpec: If it cannot be read or raises; with the file and the line.
    """
    file = Path(path).expanduser().resolve()
    name = file.name
    if name in _files:
        known, found = _files[name]
        if known != file:
            raise InvalidSpec(f"Two files are called {name}: {known} and {file}; rename one.")
        return found
    if not file.is_file():
        raise InvalidSpec(f"There is no file {path}.", field="task")
    module, own, new = _run(file)
    local = [*local_files(file, own.folders), *own.loaded(new)]
    THEIRS.update((file, *local))
    code, versions = code_of([file, *sorted(set(local) - {file})], new)
    found = _entered(module, name, code, versions)
    if not found.tasks and not found.methods:
        raise InvalidSpec(f"{name} holds neither a Task nor a Method.", field="task", hint=_EXAMPLE)
    _files[name] = (file, found)
    return found


_EXAMPLE = "`etascope new-task my_file.py` writes one to begin with."


def _run(file: Path) -> tuple[ModuleType, Modules, set[str]]:
    """Return the module a file makes, where its own are, and the names of those it loaded."""
    if file.suffix != ".py":
        raise InvalidSpec(f"{file.name} is no Python file.", field="task")
    path, before = [*sys.path], {*sys.modules}
    own = Modules(file)
    try:
        return own.run(), own, {*sys.modules} - before
    except BaseException as error:
        own.forget()
        if isinstance(error, KeyboardInterrupt):
            raise
        said, end = said_where(error), "" if isinstance(error, IBError) else "."
        place = "" if file.name in said else f"{file.name}: "
        raise InvalidSpec(f"{place}{said}{end}", field="task") from error
    finally:
        sys.path[:] = path


class Modules:
    """The modules of one file: those in its folder, and in folders that it puts on Python's path.

    They are kept under a name of the file's, so that two files may each have a `helpers.py`. Their
    import statements look here first whenever they run: in the file, in `model()`, in `data()`.
    Whoever else asks for one of them by its plain name, as a pickle does, finds it after all that
    Python finds by itself.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        letters = (one if one.isalnum() else f"_{ord(one):x}" for one in file.stem)
        self.root = f"etascope_own_{''.join(letters)}"
        self.folders = [str(file.parent)]
        self._path: set[str] | None = {*sys.path}
        self._builtins = {**vars(builtins), "__import__": self._import, "__etascope__": self}
        self.forget()
        importlib.invalidate_caches()
        package = sys.modules[self.root] = ModuleType(self.root)
        package.__path__ = self.folders
        sys.meta_path[:] = [self, *sys.meta_path, _ByPlainName(self)]

    def run(self) -> ModuleType:
        """Return the file's own module."""
        stem = self.file.stem
        name = f"{self.root}.{stem if stem.isidentifier() else '__main__'}"
        loader = _Loader(name, str(self.file), self._builtins)
        spec = spec_from_loader(name, loader)
        assert spec is not None
        module = sys.modules[name] = module_from_spec(spec)
        loader.exec_module(module)
        self._look_for_folders()
        self._path = None
        return module

    def _look_for_folders(self) -> None:
        """Add the folders that the file has put on Python's path while it ran."""
        if self._path is not None:
            new = (str(Path(one).resolve()) for one in sys.path if one not in self._path)
            self.folders += [one for one in new if one not in self.folders]

    def forget(self) -> None:
        """Leave nothing behind of a file that could not be run, or was read before."""
        sys.meta_path[:] = [one for one in sys.meta_path if getattr(one, "root", "") != self.root]
        for name in [one for one in sys.modules if f"{one}.".startswith(f"{self.root}.")]:
            del sys.modules[name]

    def loaded(self, new: Iterable[str]) -> list[Path]:
        """Return the files of its own that were loaded by it; those with plain names are let go."""
        found = []
        for name in new:
            place = getattr(sys.modules.get(name), "__file__", None)
            top = name.partition(".")[0]
            ours = top == self.root or found_among(top, self.folders)
            within = any(Path(place or "/").is_relative_to(folder) for folder in self.folders)
            # Some modules, as torch.classes, name a file that is not there.
            if place and within and ours and Path(place).is_file():
                found.append(Path(place).resolve())
                if top != self.root:
                    del sys.modules[name]
        return found

    def has(self, top: str) -> bool:
        """Return whether a module without dots is one of these."""
        self._look_for_folders()
        if f"{self.root}.{top}" in sys.modules:
            return True
        spec = found_among(top, [*self.folders, *sys.path])
        if spec is None:
            return False
        folders = [Path(one).parent for one in spec.submodule_search_locations or ()]
        homes = folders or [Path(spec.origin or "").parent]
        loaded = getattr(sys.modules.get(top), "__file__", None)
        return str(homes[0]) in self.folders and (loaded is None or loaded != spec.origin)

    def _import(
        self, name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
    ) -> ModuleType:
        """Do what an import statement in one of these modules asks for."""
        top = name.partition(".")[0]
        if level or not self.has(top):
            return builtins.__import__(name, globals, locals, fromlist, level)
        try:
            found = builtins.__import__(f"{self.root}.{name}", globals, locals, fromlist)
        except ModuleNotFoundError as error:
            error.msg = error.msg.replace(f"{self.root}.", "")
            raise
        return found if fromlist else sys.modules[f"{self.root}.{top}"]

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return one of these modules for Python's machinery."""
        del target
        spec = PathFinder.find_spec(name, path) if name.startswith(f"{self.root}.") else None
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(name, spec.loader.path, self._builtins)
        return spec


class _ByPlainName:
    """Finds a file's modules for those who have no import statement of its own."""

    def __init__(self, own: Modules) -> None:
        self.own, self.root = own, own.root

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return one of its modules, unless another file's code is asking."""
        del path, target
        frame = inspect.currentframe()
        while frame is not None and "__etascope__" not in frame.f_builtins:
            frame = frame.f_back
        asking = self.own if frame is None else frame.f_builtins["__etascope__"]
        if asking is not self.own or not self.own.has(name.partition(".")[0]):
            return None
        return spec_from_loader(name, _Same(importlib.import_module(f"{self.root}.{name}")))


class _Loader(SourceFileLoader):
    """Runs a file's own module with the import statement of its file, always from its source."""

    def __init__(self, name: str, path: str, names: Mapping[str, Any]) -> None:
        super().__init__(name, path)
        self.names = names

    def get_code(self, fullname: str) -> CodeType:
        # Compiled files are told apart by their second and size, which an edit may leave as is.
        return self.source_to_code(self.get_data(self.path), self.path)

    def exec_module(self, module: ModuleType) -> None:
        vars(module)["__builtins__"] = self.names
        super().exec_module(module)


class _Same(Loader):
    """Hands out a module that has been made."""

    def __init__(self, module: ModuleType) -> None:
        self.module, self.spec = module, module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.spec


def _entered(module: ModuleType, prefix: str, code: str, versions: dict[str, str]) -> Found:
    found = Found(code=code, versions=versions)
    for attribute, value in vars(module).items():
        name = f"{prefix}:{attribute}"
        if isinstance(value, Task) and TASKS.get(value.name) is not value:
            task = _twin(value) if OWN_TASKS.get(value.name) is value else value
            found.tasks[name] = enter_task(task, name, code, versions)
        elif isinstance(value, Method) and METHODS.get(value.name) is not value:
            if re.search(r"[\s,;()]", name):
                raise InvalidSpec(
                    f"A method is called by its file's name, which may hold no blanks, commas or "
                    f"brackets; rename {prefix}, or keep {attribute} in another file.",
                    field="methods",
                )
            method = _twin(value) if OWN_METHODS.get(value.name) is value else value
            found.methods[name] = enter_method(method, name, code, versions)
    return found


def _twin(value: T) -> T:
    """Return another of what has a name already, here or in a package, and keeps it."""
    twin: Any = copy(value)
    twin.title = "" if twin.title == twin.name else twin.title
    return twin  # type: ignore[no-any-return]


def enter_task(task: Task, name: str, code: str, versions: Mapping[str, str]) -> Task:
    """Enter a task under a name, with the hash of its code."""
    task.title = task.title or name
    task.name, task.code, task.versions = name, code, dict(versions)
    OWN_TASKS[name] = task
    return task


def enter_method(method: Method, name: str, code: str, versions: Mapping[str, str]) -> Method:
    """Enter a method under a name, with the hash of its code."""
    if method.factory is None:
        raise MisuseError(f"The method {name} has no optimizer: Method(torch.optim.AdamW), say.")
    method.title = method.title or name
    method.short = method.short or name.rpartition(":")[2]
    method.name, method.code, method.versions = name, code, dict(versions)
    OWN_METHODS[name] = method
    return method


def register_class(name: str) -> Method:
    """Enter an installed optimizer class, `package.Class`, as a method of that name.

    Raises:
        InvalidSpec: If there is no such class.
    """
    if name in OWN_METHODS:
        return OWN_METHODS[name]
    home, _, attribute = name.rpartition(".")
    if not all(part.isidentifier() for part in name.split(".")) or not home:
        raise InvalidSpec(
            f"An installed optimizer is said as package.Class; got {name!r}.", field="methods"
        )
    try:
        kind = getattr(importlib.import_module(home), attribute)
    except ModuleNotFoundError as error:
        raise InvalidSpec(
            f"There is no package {error.name!r} on this machine for the method {name}.",
            field="methods",
            hint=f"Install it, as with `pip install {home.split('.')[0].replace('_', '-')}`.",
        ) from None
    except AttributeError:
        raise InvalidSpec(f"{home} has no {attribute}.", field="methods") from None
    versions = {one: version_here(one) for one in sorted(packages_of([home]))}
    code = hashlib.sha256(repr((name, sorted(versions.items()))).encode()).hexdigest()[:16]
    return enter_method(optimizer_method(kind, name), name, code, versions)


def register_packages() -> Found:
    """Enter what installed packages announce by the entry points etascope.tasks and .methods.

    What cannot be loaded is left out and told in `refused`: other packages are not to blame.
    """
    found = Found()
    for point in (*entry_points(group=TASK_GROUP), *entry_points(group=METHOD_GROUP)):
        package = point.dist.name if point.dist is not None else point.module
        name = f"{package}:{point.name}"
        try:
            value = point.load()
            files = package_files(point.module)
            THEIRS.update(files)
            code, used = code_of(files)
            versions = {**used, package: version_here(package)}
            if isinstance(value, Task):
                found.tasks[name] = enter_task(value, name, code, versions)
            elif isinstance(value, Method):
                found.methods[name] = enter_method(value, name, code, versions)
            else:
                found.refused.append(f"{name} is neither a Task nor a Method.")
        except (Exception, SystemExit) as error:
            found.refused.append(f"{name} could not be loaded: {said_where(error)}.")
    return found


def register_word(word: str, kind: str) -> str:
    """Enter what a word on the command line says, and return the name to go on with.

    `my_file.py:task` is a file's; `my-package:digits` an installed package's; `package.Class` a
    class; anything else is a name already.

    Args:
        word: As typed; a method may say options in brackets.
        kind: `task` or `method`.

    Raises:
        InvalidSpec: If the file or the class is not what it should be.
    """
    base, bracket, options = word.partition("(")
    place, colon, attribute = base.rpartition(":")
    if colon and place.endswith(".py"):
        found = register_file(place)
        name = f"{Path(place).name}:{attribute}"
        known: Mapping[str, Any] = found.tasks if kind == "task" else found.methods
        if name not in known:
            raise UnknownName(f"{kind} in {Path(place).name}", attribute, _bare(known), field=kind)
        return f"{name}{bracket}{options}"
    if colon and base not in (OWN_TASKS if kind == "task" else OWN_METHODS):
        refused = [one for one in register_packages().refused if one.startswith(f"{base} ")]
        if refused:
            raise InvalidSpec(refused[0], field=kind)
        return word
    dotted = "." in base and not base.startswith("torch.optim.") and "/" not in base
    if kind == "method" and dotted and ":" not in base:
        register_class(base)
    return word


def _bare(names: Iterable[str]) -> list[str]:
    return [name.rpartition(":")[2] for name in names]
