"""One's own tasks and methods: from a file, from an installed package, or a class by its name.

Whoever calls these runs the code they find: the command line does, for what its user typed, and a
worker for what its owner installed; whatever takes requests from others must not. What is found is
entered under its name (`my_file.py:task`) where `find_task` and `find_method` look, with the hash
of the code that decides it: the module's source, that of the modules beside it, and the versions
of the packages it uses.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, entry_points, packages_distributions
from importlib.metadata import requires as requirements_of
from importlib.metadata import version as version_of
from pathlib import Path
from types import ModuleType
from typing import Any

from ib_core.errors import IBError, InvalidSpec, MisuseError, UnknownName, said_where
from ib_core.methods import (
    METHODS,
    OF_EVERY_METHOD,
    OWN_METHODS,
    Method,
    find_method,
    method_of_class,
)
from ib_core.options import options_schema
from ib_core.tasks import OWN_TASKS, TASKS, Task, find_task

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
_versions: dict[str, dict[str, str]] = {}


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
    module, new = _run(file)
    code, versions = code_of([file, *_beside(file, new)], new)
    found = _entered(module, name, code, versions)
    if not found.tasks and not found.methods:
        raise InvalidSpec(f"{name} holds neither a Task nor a Method.", field="task", hint=_EXAMPLE)
    _files[name] = (file, found)
    return found


_EXAMPLE = "`etascope new-task my_file.py` writes one to begin with."


def _run(file: Path) -> tuple[ModuleType, set[str]]:
    """Return the module a file makes, and the names of the modules it made Python load."""
    name = f"etascope_own_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise InvalidSpec(f"{file.name} is no Python file.", field="task")
    module = importlib.util.module_from_spec(spec)
    before = set(sys.modules)
    sys.modules[name] = module
    sys.path.insert(0, str(file.parent))
    try:
        spec.loader.exec_module(module)
    except IBError as error:
        raise InvalidSpec(said_where(error), field="task") from error
    except (Exception, SystemExit) as error:
        sys.modules.pop(name, None)
        raise InvalidSpec(f"{said_where(error)}.", field="task") from error
    finally:
        sys.path.remove(str(file.parent))
    return module, set(sys.modules) - before - {name}


def _beside(file: Path, new: Iterable[str]) -> list[Path]:
    """Return the files beside a file that it imported, however deep."""
    found = set()
    for name in [*new, *_imported([file])]:
        place = getattr(sys.modules.get(name), "__file__", None)
        installed = any(part in (place or "") for part in ("site-packages", "dist-packages"))
        # Some modules, as torch.classes, name a file that is not there.
        if place and not installed and Path(place).is_file():
            found.add(Path(place).resolve())
    return sorted(one for one in found - {file} if one.is_relative_to(file.parent))


def _imported(files: Iterable[Path]) -> set[str]:
    """Return the modules that files name in import statements."""
    found: set[str] = set()
    for file in files:
        if file.suffix != ".py":
            continue
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, ast.Import):
                found.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module)
    return found


def code_of(files: list[Path], loaded: Iterable[str] = ()) -> tuple[str, dict[str, str]]:
    """Return the hash of files and of the versions of the packages they use, and those versions.

    Args:
        files: The module and those beside it, the module first.
        loaded: Modules that were loaded by running it: import statements miss some. What a named
            package needs itself is not counted, so that it does not matter who loaded it first.
    """
    distributions = _distributions()
    named = _packages(_imported(files), distributions)
    named.add("torch")
    needed = _needed(named | {"etascope"})
    dynamic = _packages(loaded, distributions) - needed
    versions = {name: _version(name) for name in sorted((named | dynamic) - {"etascope"})}
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


def _packages(modules: Iterable[str], distributions: Mapping[str, list[str]]) -> set[str]:
    """Return the installed packages that modules belong to, in canonical spelling."""
    tops = {name.split(".")[0] for name in modules} - set(sys.stdlib_module_names)
    return {_canonical(one) for top in tops for one in distributions.get(top, ())}


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


def _version(name: str) -> str:
    try:
        return version_of(name).partition("+")[0]
    except PackageNotFoundError:
        return "?"


def _entered(module: ModuleType, prefix: str, code: str, versions: dict[str, str]) -> Found:
    found = Found(code=code, versions=versions)
    for attribute, value in vars(module).items():
        name = f"{prefix}:{attribute}"
        if isinstance(value, Task) and value.name not in TASKS:
            found.tasks[name] = enter_task(value, name, code, versions)
        elif isinstance(value, Method) and value.name not in METHODS:
            found.methods[name] = enter_method(value, name, code, versions)
    return found


def enter_task(task: Task, name: str, code: str, versions: Mapping[str, str]) -> Task:
    """Enter a task under a name, with the hash of its code."""
    task.title = task.title or name
    task.name, task.code = name, code
    OWN_TASKS[name], _versions[name] = task, dict(versions)
    return task


def enter_method(method: Method, name: str, code: str, versions: Mapping[str, str]) -> Method:
    """Enter a method under a name, with the hash of its code."""
    if method.factory is None:
        raise MisuseError(f"The method {name} has no optimizer: Method(torch.optim.AdamW), say.")
    method.title = method.title or name
    method.short = method.short or name.rpartition(":")[2]
    method.name, method.code = name, code
    OWN_METHODS[name], _versions[name] = method, dict(versions)
    return method


def register_class(name: str) -> Method:
    """Enter an installed optimizer class, `package.Class`, as a method of that name.

    Raises:
        InvalidSpec: If there is no such class.
    """
    if name in OWN_METHODS:
        return OWN_METHODS[name]
    home, _, attribute = name.rpartition(".")
    try:
        kind = getattr(import_module(home), attribute)
    except ModuleNotFoundError as error:
        raise InvalidSpec(
            f"There is no package {error.name!r} on this machine for the method {name}.",
            field="methods",
            hint=f"Install it, as with `pip install {home.split('.')[0].replace('_', '-')}`.",
        ) from None
    except AttributeError:
        raise InvalidSpec(f"{home} has no {attribute}.", field="methods") from None
    versions = {one: _version(one) for one in sorted(_packages([home], _distributions()))}
    code = hashlib.sha256(repr((name, sorted(versions.items()))).encode()).hexdigest()[:16]
    return enter_method(method_of_class(kind, name), name, code, versions)


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
            code, used = code_of(_files_of(point.module))
            versions = {**used, package: _version(package)}
            if isinstance(value, Task):
                found.tasks[name] = enter_task(value, name, code, versions)
            elif isinstance(value, Method):
                found.methods[name] = enter_method(value, name, code, versions)
            else:
                found.refused.append(f"{name} is neither a Task nor a Method.")
        except (Exception, SystemExit) as error:
            found.refused.append(f"{name} could not be loaded: {said_where(error)}.")
    return found


def _files_of(module: str) -> list[Path]:
    """Return a module's file and those of its package that are loaded with it."""
    top = module.partition(".")[0]
    names = [one for one in sys.modules if one == top or one.startswith(f"{top}.")]
    places = (getattr(sys.modules[one], "__file__", None) for one in (module, *sorted(names)))
    return list(dict.fromkeys(Path(place).resolve() for place in places if place))


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
            "versions": _versions.get(method.name, {}),
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
        "versions": _versions.get(task.name, {}),
    }
