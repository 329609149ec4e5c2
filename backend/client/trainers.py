"""Callbacks that log a live run from a trainer: Lightning, Hugging Face, Keras.

    with client.run(study="Tuning", task="cifar", method="adamw", lr=lr, seed=seed) as run:
        Trainer(callbacks=[lightning_callback(run)]).fit(model)

Each makes its class when it is called, so that nobody needs the other two packages:
`pip install 'etascope[callbacks]'`.
"""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from backend.client.runs import Run

#: What trainers call the losses of a log.
TRAIN = ("train_loss", "loss")
TEST = ("val_loss", "eval_loss", "test_loss")
TRAIN_ACCURACY = ("train_accuracy", "train_acc", "accuracy")
TEST_ACCURACY = ("val_accuracy", "eval_accuracy", "val_acc")


def losses_of(logs: Mapping[str, Any]) -> dict[str, float]:
    """Return what a trainer logged, by our names; the rest is left to others."""
    places = {
        "train_loss": TRAIN,
        "test_loss": TEST,
        "train_accuracy": TRAIN_ACCURACY,
        "test_accuracy": TEST_ACCURACY,
    }
    found: dict[str, float] = {}
    for ours, theirs in places.items():
        for name in theirs:
            if name in logs and ours not in found:
                found[ours] = _number(logs[name])
    return found


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


class Steps:
    """Logs a run's points; of two that come at one step, the first counts."""

    def __init__(self, run: "Run") -> None:
        self._run = run
        self._last = -1

    def log(self, step: int, epoch: float, logs: Mapping[str, Any]) -> None:
        """Log what a trainer says at a step, if it is about losses and the step is new."""
        losses = losses_of(logs)
        if losses and step > self._last:
            self._last = step
            self._run.log(step, epoch=epoch, **losses)


def lightning_callback(run: "Run", *, every: int = 50) -> Any:
    """Return a Lightning callback: the loss every so many batches, and after each validation.

    Args:
        run: From `client.run`.
        every: Batches between points.
    """
    from lightning.pytorch.callbacks import Callback

    steps = Steps(run)

    class EtascopeCallback(Callback):  # type: ignore[misc]
        """Logs to Etascope."""

        def on_train_batch_end(
            self, trainer: Any, _module: Any, outputs: Any, _batch: Any, index: int
        ) -> None:
            """Log the loss of a batch."""
            if trainer.global_step % every == 0 and outputs is not None:
                loss = outputs["loss"] if isinstance(outputs, Mapping) else outputs
                steps.log(trainer.global_step, trainer.current_epoch, {"loss": loss})

        def on_validation_end(self, trainer: Any, _module: Any) -> None:
            """Log what validation measured."""
            if not trainer.sanity_checking:
                steps.log(trainer.global_step + 1, trainer.current_epoch, trainer.callback_metrics)

    return EtascopeCallback()


def trainer_callback(run: "Run") -> Any:
    """Return a callback for Hugging Face's Trainer: whatever it logs."""
    from transformers import TrainerCallback

    steps = Steps(run)

    class EtascopeCallback(TrainerCallback):  # type: ignore[misc]
        """Logs to Etascope."""

        def on_log(
            self, _args: Any, state: Any, _control: Any, logs: Any = None, **_more: Any
        ) -> None:
            """Log what the trainer logs."""
            steps.log(state.global_step, state.epoch or 0.0, logs or {})

    return EtascopeCallback()


def keras_callback(run: "Run") -> Any:
    """Return a Keras callback: the losses after each epoch."""
    from keras.callbacks import Callback

    steps = Steps(run)

    class EtascopeCallback(Callback):  # type: ignore[misc]
        """Logs to Etascope."""

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            """Log an epoch."""
            steps.log(epoch + 1, epoch + 1.0, logs or {})

    return EtascopeCallback()
