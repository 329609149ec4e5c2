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
    """Logs a run's points: what a trainer says of one step in pieces is one of them.

    A step is held back until it is told that no more comes, the next one is logged, or the run
    ends. Of two values of one name the first counts.
    """

    def __init__(self, run: "Run") -> None:
        self._run = run
        self._step, self._epoch = -1, 0.0
        self._held: dict[str, float] = {}
        run.before_end(self.flush)

    def log(self, step: int, epoch: float, logs: Mapping[str, Any]) -> None:
        """Keep what a trainer says at a step, if it is about losses and the step not yet sent."""
        losses = losses_of(logs)
        if losses and step > self._step:
            self.flush()
            self._step, self._epoch, self._held = step, epoch, losses
        elif step == self._step and self._held:
            self._held = losses | self._held

    def flush(self) -> None:
        """Log the step that is held: whatever is said of it from now on is left out."""
        held, self._held = self._held, {}
        if held:
            self._run.log(self._step, epoch=self._epoch, **held)


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

        def on_train_batch_start(self, *_said: Any) -> None:
            """Let go of the batch before, validated by now if it ever is."""
            steps.flush()

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
                steps.log(trainer.global_step, trainer.current_epoch, trainer.callback_metrics)

    return EtascopeCallback()


def trainer_callback(run: "Run") -> Any:
    """Return a callback for Hugging Face's Trainer: whatever it logs, evaluations included."""
    from transformers import TrainerCallback

    steps = Steps(run)

    class EtascopeCallback(TrainerCallback):  # type: ignore[misc]
        """Logs to Etascope."""

        def on_train_begin(self, args: Any, *_said: Any, **_more: Any) -> None:
            """Have a loss that is not finite logged as it is; by default the Trainer says 0."""
            args.logging_nan_inf_filter = False

        def on_log(
            self, _args: Any, state: Any, _control: Any, logs: Any = None, **_more: Any
        ) -> None:
            """Log what the trainer logs, but for its summary: that is a mean over all steps."""
            if "train_runtime" not in (logs or {}):
                steps.log(state.global_step, state.epoch or 0.0, logs or {})

        def on_step_begin(self, *_said: Any, **_more: Any) -> None:
            """Let go of the step before, evaluated by now if it ever is."""
            steps.flush()

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
            steps.flush()

    return EtascopeCallback()
