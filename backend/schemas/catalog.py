"""What can be run: tasks, methods, activations, presets."""

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from backend.schemas.base import Output

__all__ = [
    "ActivationRead",
    "CatalogRead",
    "DefaultsRead",
    "MethodRead",
    "MetricDefinitionRead",
    "OfferRead",
    "PresetRead",
    "TaskRead",
]


class DefaultsRead(Output):
    """What a sweep gets when it does not say."""

    epochs: int
    batch_size: int
    learning_rates: list[float]
    seeds: list[int]
    parameters: int | None = Field(
        description="Number of trained parameters; null where only the missing data would tell."
    )


class TaskRead(Output):
    """A dataset, a model and a loss."""

    name: str
    title: str
    family: str
    summary: str
    source: str = Field(description="Where in the paper, or elsewhere, it comes from.")
    dataset: str
    activation: str
    linear_output: bool
    adjustable: list[str] = Field(description="Options that may be set: width, depth.")
    fixed_batch_size: int | None
    options: dict[str, Any] = Field(
        default_factory=dict, description="JSON schema of its own options, which `vary` sets."
    )
    version: str | None = Field(None, description="Of what a worker brings along.")
    workers: list[str] = Field(default_factory=list, description="Machines that bring it along.")
    methods: list[str] = Field(description="Methods that can train it.")
    profiles: dict[str, DefaultsRead]
    present: bool = Field(description="Whether its data is on this machine.")
    how_to_get: str


class MethodRead(Output):
    """A way of moving weights."""

    name: str
    title: str
    summary: str
    implicit: bool
    options: dict[str, Any] = Field(
        default_factory=dict, description="JSON schema of its options, said as name(option=value)."
    )
    version: str | None = Field(None, description="Of what a worker brings along.")
    workers: list[str] = Field(default_factory=list, description="Machines that bring it along.")


class ActivationRead(Output):
    """An activation with an implicit update."""

    name: str
    approximation_error: float | None = Field(
        None, description="Largest error in value of its piecewise-cubic stand-in; null: exact."
    )


class PresetRead(Output):
    """One or more sweeps under a name."""

    name: str
    title: str
    summary: str
    picture: str = Field("", description="The view its study's page opens with.")
    sweeps: list[dict[str, Any]] = Field(description="Sweep bodies it stands for.")
    trials: int
    present: bool = Field(description="Whether its data is on this machine.")


class MetricDefinitionRead(Output):
    """A robustness number's meaning."""

    name: str
    title: str
    unit: str
    better: str
    definition: str
    citation: str


class OfferRead(Output):
    """A version of a task or method that somebody's worker brings along; never its code."""

    key: str
    kind: Literal["task", "method"]
    name: str = Field(description="As a sweep says it; @version behind it asks for this one.")
    title: str
    summary: str
    version: str = Field(description="The beginning of the hash of its code.")
    code: str = Field(description="Hash of its code and the packages it uses.")
    data: str | None = Field(description="Hash of its data; null for methods.")
    options: dict[str, Any] = Field(description="JSON schema of its options, with defaults.")
    defaults: dict[str, Any] = Field(description="Epochs, batch size, rates and seeds of a task.")
    packages: dict[str, str] = Field(description="Versions of the packages it uses.")
    linear_output: bool = False
    implicit: bool = Field(True, description="Whether the task's model has implicit layers.")
    workers: list[str] = Field(description="Machines whose living workers have it.")
    last_worker: str
    last_host: str
    first_seen_at: datetime
    last_seen_at: datetime


class CatalogRead(Output):
    """Everything a sweep may name."""

    engine_version: str
    tasks: list[TaskRead]
    methods: list[MethodRead]
    offers: list[OfferRead] = Field(
        default_factory=list, description="Every version that workers brought along."
    )
    activations: list[ActivationRead]
    presets: list[PresetRead]
    metrics: list[MetricDefinitionRead]
    limits: dict[str, int]
