"""The project's files, modules and who imports whom: what tests of the whole house are made of."""

import ast
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("ib_core", "backend", "worker", "dashboard", "migrations")


@cache
def project_files() -> tuple[Path, ...]:
    """Return the files that belong to the project: what `.gitignore` does not leave out.

    Git itself is not asked: an unpacked archive has none, and a bare machine neither.
    """
    wanted = (ROOT / ".gitignore").read_text("utf-8").split()
    ignored = [pattern.removesuffix("/") for pattern in wanted]

    def belongs(path: Path) -> bool:
        whole = str(path.relative_to(ROOT))
        return not any(fnmatch(whole, one) or fnmatch(path.name, one) for one in ignored)

    def below(folder: Path) -> Iterator[Path]:
        for path in sorted(folder.iterdir()):
            if path.name != ".git" and belongs(path):
                yield from below(path) if path.is_dir() and not path.is_symlink() else (path,)

    return tuple(path for path in below(ROOT) if path.is_file())


def sources() -> list[Path]:
    return [path for path in project_files() if path.suffix == ".py"]


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def modules() -> dict[str, Path]:
    inside = (path for path in sources() if path.relative_to(ROOT).parts[0] in PACKAGES)
    return {module_name(path): path for path in inside}


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


@cache
def imports(path: Path) -> frozenset[str]:
    """Return every name a module imports, wherever in it; `from a import b` gives a and a.b."""
    return frozenset(_imports(tree_of(path)))


def _imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are written in full"
            assert node.module is not None
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def needed_to_load(module: str) -> set[str]:
    """Return the modules of ours that one imports while it is loaded, not when it is called."""
    waiting: list[ast.AST] = list(tree_of(modules()[module]).body)
    found: set[str] = set()
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting += node.orelse
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found |= {name if name in modules() else str(node.module) for name in names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        else:
            waiting += ast.iter_child_nodes(node)
    return (found & modules().keys()) - {module}


def within(name: str, part: str) -> bool:
    return name == part or name.startswith(f"{part}.")


def is_package(module: str) -> bool:
    return modules()[module].name == "__init__.py"


@cache
def importers() -> dict[str, frozenset[str]]:
    """Return who imports each module; what is taken from a package's face counts for its home.

    A face does not import what it only hands on.
    """
    found: dict[str, set[str]] = {module: set() for module in modules()}
    for module, path in modules().items():
        for name in imports(path):
            home = home_of(name)
            if home is not None and home != module and not _hands_on(module, name):
                found[home].add(module)
    return {module: frozenset(names) for module, names in found.items()}


@cache
def home_of(name: str) -> str | None:
    """Return the module of ours that an imported name leads to, through any faces."""
    if name in modules():
        return name
    package, _, last = name.rpartition(".")
    if package not in modules():
        return None
    handed_on = [other for other in imports(modules()[package]) if other.endswith(f".{last}")]
    return home_of(handed_on[0]) if is_package(package) and handed_on else package


def _hands_on(module: str, name: str) -> bool:
    """Tell whether a face imports a name, or the module of it, only for others to find."""
    if not is_package(module):
        return False
    named = exported(modules()[module])
    below = [one for one in imports(modules()[module]) if one.startswith(f"{name}.")]
    return {one.rpartition(".")[2] for one in below or [name]} <= named


@cache
def exported(path: Path) -> frozenset[str]:
    """Return what a module names in `__all__`, or what those beside it do that it adds up."""
    for node in tree_of(path).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return frozenset(ast.literal_eval(node.value))
    added = [node for node in tree_of(path).body if isinstance(node, ast.AugAssign)]
    words = [ast.unparse(node.value).split(".") for node in added]
    beside = [path.parent / f"{word[0]}.py" for word in words if word[-1] == "__all__"]
    return frozenset(name for one in beside for name in exported(one))
