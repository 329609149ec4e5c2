"""What this worker brings along: users' tasks and methods, loaded, and told as manifests.

Their code runs where it trains, in the processes that the parent forks, and once before in a
process of its own: a file that hangs, ends its process or cannot be read is refused there in one
sentence, and never reaches what trains. The parent itself runs none of it. Its steps are timed in
such a process, too.
"""

from __future__ import annotations

import ctypes
import json
import logging
import signal
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ib_core.announced import LONGEST_NAME, offer_key
from ib_core.errors import IBError, InvalidSpec
from worker.device import shares

if TYPE_CHECKING:  # these carry torch, which must not be in the parent
    from ib_core.bench import Ratio
    from ib_core.sweep import TrialSpec

log = logging.getLogger(__name__)

GROUPS = ("etascope.tasks", "etascope.methods")
#: Reading a file and hashing its data may take so long.
PROBE_SECONDS = 300.0
PR_SET_PDEATHSIG = 1
Manifest = dict[str, Any]


def anything_installed() -> bool:
    """Return whether a package here announces tasks or methods."""
    return any(entry_points(group=group) for group in GROUPS)


def probe(
    words: Sequence[str], *, seconds: float = PROBE_SECONDS, shares: int | None = 1
) -> list[Manifest]:
    """Return the manifests of what is named and installed, found in a process of its own.

    Args:
        words: Files, and classes as `package.Class`.
        seconds: How long that may take.
        shares: So many processes share the memory of which it may take its part; None: no limit.

    Raises:
        InvalidSpec: If something named cannot be used; with the file and the line.
    """
    if not words and not anything_installed():
        return []
    named = ", ".join(Path(word).name for word in words) or "what is installed"
    try:
        return list(_answered({"words": list(words), "shares": shares}, seconds=seconds))
    except subprocess.TimeoutExpired:
        raise InvalidSpec(
            f"{named} was not read after {seconds:g} s: what stands outside its functions, or "
            "its data function, does not end.",
            field="with",
        ) from None
    except _Ended as error:
        raise InvalidSpec(
            f"{named} ended the process that read it, with exit code {error}.", field="with"
        ) from None


def race(
    words: Sequence[str],
    trials: Mapping[str, TrialSpec],
    *,
    needs: Collection[str],
    device: str = "cpu",
    baseline: str = "eb",
    threads: int = 1,
    most: float = PROBE_SECONDS,
    **limits: float,
) -> dict[str, Ratio]:
    """Return what `ib_core.bench.race_methods` measures, in a process of its own.

    Args:
        words: As `probe` takes them; they are read again.
        trials: What takes steps, by name.
        needs: The keys of what they were planned with: other versions are not timed.
        device: Where.
        baseline: The name of what they are compared with.
        threads: Of that process.
        most: Seconds after which it is stopped.
        limits: More of what `race_methods` takes.

    Raises:
        InvalidSpec: In one sentence, whatever goes wrong in there.
    """
    from ib_core.bench import Ratio

    race = {
        "trials": {name: one.as_dict() for name, one in trials.items()},
        "needs": list(needs),
        "threads": threads,
        "options": {"device": device, "baseline": baseline, **limits},
    }
    memory = shares(threads) if device == "cpu" else None
    try:
        found = _answered({"words": list(words), "shares": memory, "race": race}, seconds=most)
    except subprocess.TimeoutExpired:
        raise InvalidSpec(f"The race was not over after {most:g} s and was stopped.") from None
    except _Ended as error:
        raise InvalidSpec(f"The process of the race ended, with exit code {error}.") from None
    return {name: Ratio(**one) for name, one in found.items()}


class _Ended(Exception):
    """A process ended before it answered; with its exit code."""


def _answered(question: Mapping[str, Any], *, seconds: float) -> Any:
    """Return what a process of its own answers to a question, which is read by `_answer`."""
    with tempfile.NamedTemporaryFile(suffix=".json") as answer:
        command = [sys.executable, "-P", "-m", "worker.own_files", answer.name]
        done = subprocess.run(
            command, input=json.dumps(question), text=True, timeout=seconds, check=False
        )
        said = Path(answer.name).read_text(encoding="utf-8")
    if not said:
        raise _Ended(done.returncode)
    found = json.loads(said)
    if "error" in found:
        raise InvalidSpec(found["error"], field="with", hint=found.get("hint"))
    return found["answer"]


def load(words: Iterable[str]) -> list[Manifest]:
    """Enter what is named and installed in this process; return the manifests, models measured.

    Args:
        words: As `probe` takes them.

    Raises:
        InvalidSpec: If something named cannot be used. A package that cannot is left out, and said.
    """
    return [_sendable({**one, **_measured(one)}) for one in _entered(words)]


def load_probed(
    words: Iterable[str], probed: Sequence[Manifest]
) -> tuple[list[Manifest], dict[str, str]]:
    """Enter what was probed, here; return its manifests, and by name why others are left out.

    The worker listens on the queues of what was probed: whatever has another key by now would be
    announced, asked for, and never heard of.

    Args:
        words: As `probe` takes them.
        probed: What `probe` found.
    """
    try:
        told = _entered(words)
    except IBError as error:
        return [], {one["name"]: f"{one['name']} is left out: {error.message}" for one in probed}
    known = {offer_key(one): one for one in probed}
    kept = [known[key] for key in map(offer_key, told) if key in known]
    before, now = ({one["name"]: one["code"] for one in them} for them in (probed, told))
    others = {*before, *now} - {one["name"] for one in kept}
    return kept, {
        name: _why_left_out(name, same_code=name in now and before.get(name) == now[name])
        for name in sorted(others)
    }


def _why_left_out(name: str, *, same_code: bool) -> str:
    if same_code:
        return (
            f"{name} is left out: its data are not those that were read when the worker started. "
            "Seed what they draw at random, or restart the worker if they were changed."
        )
    return f"{name} is left out: its code was changed after the worker started. Restart the worker."


def _entered(words: Iterable[str]) -> list[Manifest]:
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
    return [_told(name, "task") for name in tasks] + [_told(name, "method") for name in methods]


def _told(name: str, kind: str) -> Manifest:
    """Return a manifest; what cannot be asked is refused with the user's file and line."""
    from ib_core.errors import said_where
    from ib_core.own import manifest
    from ib_core.tasks import find_task

    if len(name) > LONGEST_NAME:
        raise InvalidSpec(f"{name[:40]}... has more than {LONGEST_NAME} characters; rename it.")
    made_by = find_task(name).given_data if kind == "task" else None
    try:
        return manifest(name, kind)
    except IBError as error:
        raise InvalidSpec(f"{name}: {said_where(error, made_by)}", hint=error.hint) from error
    except (Exception, SystemExit) as error:
        raise InvalidSpec(f"{name}: {said_where(error, made_by)}.") from error


def _measured(told: Manifest) -> Manifest:
    """Return how large a task's model is, and whether it has layers with an implicit step."""
    from ib_core.errors import said_where
    from ib_core.layers import ImplicitLinear, ImplicitRNN
    from ib_core.tasks import build_model, find_task

    if told["kind"] != "task":
        return {}
    task = find_task(told["name"])
    values = task.read({})
    try:
        layers = list(build_model(task, 1, values).modules())
    except IBError as error:
        raise InvalidSpec(f"{task.name}: {said_where(error)}", hint=error.hint) from error
    except (Exception, SystemExit) as error:
        raise InvalidSpec(f"{task.name}: {said_where(error, task.model)}.") from error
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


def _answer(path: str, question: Mapping[str, Any]) -> None:
    """Write down, in a process of its own, what `probe` or `race` asks."""
    if sys.platform == "linux":  # a loop without an end must not outlive whoever waits for it
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if question["shares"] is not None:
        from ib_core.tasks import limit_memory

        limit_memory(question["shares"])
    words = question["words"]
    try:
        found = _raced(words, **question["race"]) if "race" in question else load(words)
        said: dict[str, Any] = {"answer": found}
    except IBError as error:
        said = {"error": error.message, "hint": error.hint}
    except Exception as error:  # a fault of ours, or of what the file did to Python
        said = {"error": f"{', '.join(words)} could not be read: {type(error).__name__}: {error}"}
    Path(path).write_text(json.dumps(said, allow_nan=False), encoding="utf-8")


def _raced(
    words: Sequence[str],
    *,
    trials: Mapping[str, Mapping[str, Any]],
    needs: Collection[str],
    threads: int,
    options: Mapping[str, Any],
) -> dict[str, Any]:
    import torch

    from ib_core.bench import race_methods
    from ib_core.errors import said_where
    from ib_core.sweep import TrialSpec

    torch.set_num_threads(threads)
    if not set(needs) <= {offer_key(one) for one in _entered(words)}:
        raise InvalidSpec("What is to be timed was changed after the worker started: restart it.")
    racing = {name: TrialSpec.from_dict(one) for name, one in trials.items()}
    try:
        measured = race_methods(racing, **options)
    except (Exception, SystemExit) as error:
        trace = error.__traceback__  # whose first frame is this one
        raise InvalidSpec(said_where(error.with_traceback(trace and trace.tb_next))) from error
    return {name: asdict(one) for name, one in measured.items()}


if __name__ == "__main__":
    _answer(sys.argv[1], json.load(sys.stdin))
