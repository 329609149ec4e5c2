"""Tasks and methods known by their manifests alone: checked and planned here, trained elsewhere.

A manifest (`ib_core.own.manifest`) is JSON without code. It is enough to read a sweep, to give its
trials their addresses and to forecast their cost; whoever would train them is refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from ib_core.errors import MisuseError
from ib_core.methods import OF_EVERY_METHOD, OWN_METHODS, Method
from ib_core.options import Option
from ib_core.tasks import OWN_TASKS, Defaults, Footprint, Task

Manifest = Mapping[str, Any]

#: Names longer than this fit no table.
LONGEST_NAME = 90
#: Where a manifest does not say how large its model is.
UNMEASURED = Footprint(1000, 1000, 10_000, 1000, 1e-5)


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
        return Option("choice", choices=tuple(schema["enum"]), default=default, help=help)
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
