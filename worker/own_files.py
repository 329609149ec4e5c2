"""What this worker brings along: users' tasks and methods, loaded, and told as manifests.

Their code runs where it trains, in the processes that the parent forks, and once before in a
process of its own: a file that hangs, ends its process or cannot be read is refused there in one
sentence, and never reaches what trains. The parent itself runs none of it.
"""

import json
import logging
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from ib_core.announced import LONGEST_NAME, offer_key
from ib_core.errors import IBError, InvalidSpec

log = logging.getLogger(__name__)

GROUPS = ("etascope.tasks", "etascope.methods")
#: Reading a file and hashing its data may take so long.
PROBE_SECONDS = 300.0
Manifest = dict[str, Any]


def anything_installed() -> bool:
    """Return whether a package here announces tasks or methods."""
    return any(entry_points(group=group) for group in GROUPS)


def probe(words: Sequence[str], *, seconds: float = PROBE_SECONDS) -> list[Manifest]:
    """Return the manifests of what is named and installed, found in a process of its own.

    Args:
        words: Files, and classes as `package.Class`.
        seconds: How long that may take.

    Raises:
        InvalidSpec: If something named cannot be used; with the file and the line.
    """
    if not words and not anything_installed():
        return []
    named = ", ".join(Path(word).name for word in words) or "what is installed"
    with tempfile.NamedTemporaryFile(suffix=".json") as answer:
        command = [sys.executable, "-P", "-m", "worker.own_files", answer.name, *words]
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, timeout=seconds, check=False)
        except subprocess.TimeoutExpired:
            raise InvalidSpec(
                f"{named} was not read after {seconds:g} s: what stands outside its functions, or "
                "its data function, does not end.",
                field="with",
            ) from None
        said = Path(answer.name).read_text(encoding="utf-8")
    if not said:
        raise InvalidSpec(
            f"{named} ended the process that read it, with exit code {done.returncode}.",
            field="with",
        )
    found = json.loads(said)
    if "error" in found:
        raise InvalidSpec(found["error"], field="with", hint=found.get("hint"))
    return list(found["manifests"])


def load(words: Iterable[str], probed: Sequence[Manifest] | None = None) -> list[Manifest]:
    """Enter what is named and installed in this process; return the manifests.

    Args:
        words: As `probe` takes them.
        probed: What `probe` found: models are not measured again. A file that was changed since is
            another version, whose size is not known.

    Raises:
        InvalidSpec: If something named cannot be used. A package that cannot is left out, and said.
    """
    from ib_core import own

    tasks: list[str] = []
    methods: list[str] = []
    for word in words:
        if word.endswith(".py") or "/" in word:
            found = own.register_file(word)
            tasks += found.tasks
            methods += found.methods
        else:
            methods.append(own.register_class(word).name)
    if anything_installed():
        installed = own.register_packages()
        tasks += installed.tasks
        methods += installed.methods
        for sentence in installed.refused:
            log.warning("Left out: %s", sentence)
    told = [_told(name, "task") for name in tasks] + [_told(name, "method") for name in methods]
    if probed is None:
        return [_sendable({**one, **_measured(one)}) for one in told]
    known = {offer_key(one): one for one in probed}
    return [known.get(offer_key(one), one) for one in told]


def _told(name: str, kind: str) -> Manifest:
    """Return a manifest; what cannot be asked is refused with the user's file and line."""
    from ib_core.errors import said_where
    from ib_core.own import manifest

    if len(name) > LONGEST_NAME:
        raise InvalidSpec(f"{name[:40]}... has more than {LONGEST_NAME} characters; rename it.")
    try:
        return manifest(name, kind)
    except IBError as error:
        raise InvalidSpec(f"{name}: {error.message}", hint=error.hint) from error
    except (Exception, SystemExit) as error:
        raise InvalidSpec(f"{name}: {said_where(error)}.") from error


def _measured(told: Manifest) -> Manifest:
    """Return how large a task's model is, and whether it has layers with an implicit step."""
    from ib_core.errors import said_where
    from ib_core.layers import ImplicitLinear, ImplicitRNN
    from ib_core.tasks import find_task

    if told["kind"] != "task":
        return {}
    task = find_task(told["name"])
    values = task.read({})
    try:
        layers = list(task.model(**values).modules())
    except (Exception, SystemExit) as error:
        raise InvalidSpec(f"{task.name}: {said_where(error)}.") from error
    solvable = any(isinstance(layer, ImplicitLinear | ImplicitRNN) for layer in layers)
    return {"footprint": asdict(task.footprint(values)), "implicit": solvable}


def _sendable(told: Manifest) -> Manifest:
    """Return a manifest that others can be told; one that is no JSON is refused."""
    try:
        json.dumps(told, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidSpec(
            f"{told['name']} cannot be told to others ({error}): its options' limits and defaults "
            "have to be finite numbers or words."
        ) from None
    return told


def torch_methods() -> list[Manifest]:
    """Return the manifests of torch's own optimizers, so that nobody else need carry torch."""
    from ib_core.methods import find_method, torch_optimizers
    from ib_core.own import manifest

    found = []
    for name in torch_optimizers():
        try:
            found.append(manifest(find_method(f"torch.optim.{name}").name, "method"))
        except IBError:  # one that cannot train a stack; whoever asks for it is told why
            continue
    return found


def _answer(path: str, words: Sequence[str]) -> None:
    try:
        said: dict[str, Any] = {"manifests": load(words)}
    except IBError as error:
        said = {"error": error.message, "hint": error.hint}
    except Exception as error:  # a fault of ours, or of what the file did to Python
        said = {"error": f"{', '.join(words)} could not be read: {type(error).__name__}: {error}"}
    Path(path).write_text(json.dumps(said, allow_nan=False), encoding="utf-8")


if __name__ == "__main__":
    _answer(sys.argv[1], sys.argv[2:])
