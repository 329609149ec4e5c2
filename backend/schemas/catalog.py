"""What can be run: tasks, methods, activations, presets."""

from typing import Any

from pydantic import Field

from backend.schemas.base import Output


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


class CatalogRead(Output):
    """Everything a sweep may name."""

    engine_version: str
    tasks: list[TaskRead]
    methods: list[MethodRead]
    activations: list[ActivationRead]
    presets: list[PresetRead]
    metrics: list[MetricDefinitionRead]
    limits: dict[str, int]
