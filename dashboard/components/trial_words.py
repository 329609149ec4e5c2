"""A trial in words: its settings, what became of it, and what proves it."""

from typing import Any

import dash_mantine_components as dmc

from backend.schemas import TrialRead
from dashboard.components.elements import local_time
from dashboard.formats import NONE, counted, duration, number
from dashboard.markup import Component, html
from dashboard.theme import method_style


def facts(pairs: list[tuple[str, Any]]) -> Component:
    """Return names and values side by side; those without a value are left out."""
    shown = [(name, value) for name, value in pairs if value not in (None, "")]
    return html.Dl(
        [part for name, value in shown for part in (html.Dt(name), html.Dd(value))],
        className="facts",
    )


def trial_facts(trial: TrialRead) -> Component:
    """Return all there is to say about a trial."""
    return html.Div(
        [
            html.H3("Outcome"),
            facts(outcome_pairs(trial)),
            html.H3("Settings"),
            facts(setting_pairs(trial)),
            html.H3("Reproducibility record"),
            record_facts(trial),
        ]
    )


def at_rate(trial: TrialRead) -> str:
    """Return the address of one node's update at a trial's rate, ridge and activation."""
    activation = f"&activation={trial.activation}" if trial.activation else ""
    return f"/updates?lr={trial.lr:g}&mu={trial.mu:g}{activation}"


def setting_pairs(trial: TrialRead) -> list[tuple[str, Any]]:
    """Return what was trained."""
    options = ", ".join(f"{name} {value}" for name, value in trial.options.items() if value)
    return [
        ("Task", trial.task),
        ("Method", method_style(trial.method).title),
        ("Learning rate", number(trial.lr, 6)),
        ("Seed", str(trial.seed)),
        ("Epochs", str(trial.epochs)),
        ("Batch size", str(trial.batch_size) if trial.batch_size else None),
        ("Clip", number(trial.clip) if trial.clip is not None else "none"),
        ("Ridge mu", number(trial.mu)),
        ("Batch rule", trial.batch_rule),
        ("Activation", trial.activation),
        ("Profile", trial.profile),
        ("Options", options),
    ]


def outcome_pairs(trial: TrialRead) -> list[tuple[str, Any]]:
    """Return what became of it."""
    where = " ".join(filter(None, [trial.diverged_where, trial.diverged_layer]))
    diverged = None
    if trial.diverged_at_step is not None:
        diverged = f"at step {trial.diverged_at_step}" + (f" ({where})" if where else "")
    return [
        ("State", str(trial.state)),
        ("Initial loss", _known(trial.initial_loss)),
        ("Training loss", _known(trial.train_loss)),
        ("Test loss", _known(trial.test_loss)),
        ("Training accuracy", _known(trial.train_accuracy)),
        ("Test accuracy", _known(trial.test_accuracy)),
        ("Validation loss", _known(trial.validation_loss)),
        ("Validation accuracy", _known(trial.validation_accuracy)),
        ("Diverged", diverged),
        ("Restarts", counted(trial.restarts, "restart") if trial.restarts else None),
        ("Share of a stack's time", duration(trial.seconds) if trial.seconds is not None else None),
        ("Finished", local_time(trial.finished_at) if trial.finished_at else None),
        ("Attempts", counted(trial.attempts, "attempt") if trial.attempts > 1 else None),
        ("Error", trial.error),
    ]


def _known(value: float | None) -> str | None:
    return None if value is None else number(value)


def record_facts(trial: TrialRead) -> Component:
    """Return versions and hashes, each as it was recorded."""
    flat = _flat(trial.record or {})
    pairs: list[tuple[str, Any]] = [("fingerprint", _code(trial.fingerprint))]
    pairs += [(name, _code(value)) for name, value in flat]
    if trial.record is None:
        pairs.append(("record", "imported" if trial.imported else NONE))
    return facts(pairs)


def _flat(record: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for name, value in record.items():
        if isinstance(value, dict):
            found += _flat(value, f"{prefix}{name} ")
        else:
            found.append((f"{prefix}{name}".replace("_", " "), value))
    return found


def _code(value: Any) -> Component | None:
    return None if value is None else dmc.Code(str(value), className="mono")
