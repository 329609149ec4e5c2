"""Callbacks: what a trainer logs arrives under our names; with the real packages, where here."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from backend.client.trainers import (
    Steps,
    keras_callback,
    lightning_callback,
    losses_of,
    trainer_callback,
)


class Notes:
    """Stands for a run; keeps what it is told."""

    def __init__(self) -> None:
        self.points: list[tuple[int, dict[str, float]]] = []
        self.end: Callable[[], None] = lambda: None

    def before_end(self, action: Callable[[], None]) -> None:
        self.end = action

    def log(self, step: int, *, epoch: float = 0.0, **losses: float) -> None:
        del epoch
        self.points.append((step, losses))


def test_losses_arrive_under_our_names_and_the_rest_is_left() -> None:
    found = losses_of({"loss": 1.0, "val_loss": "2.0", "lr": 3.0, "eval_accuracy": None})
    assert found["train_loss"] == 1.0
    assert found["test_loss"] == 2.0
    assert math.isnan(found["test_accuracy"])
    assert "lr" not in found


def test_what_is_said_of_one_step_is_one_point_and_the_first_of_a_name_counts() -> None:
    notes: Any = Notes()
    steps = Steps(notes)
    steps.log(1, 0.0, {"loss": 0.5})
    steps.log(1, 0.0, {"eval_loss": 0.6})
    steps.log(1, 0.0, {"loss": 0.4})
    steps.log(2, 0.0, {"loss": 0.3})
    assert notes.points == [(1, {"train_loss": 0.5, "test_loss": 0.6})]
    steps.flush()
    steps.log(2, 0.0, {"eval_loss": 0.2})  # too late, the step was sent
    steps.log(1, 0.0, {"eval_loss": 0.2})
    steps.log(3, 0.0, {"epoch": 1})
    notes.end()
    assert notes.points[1:] == [(2, {"train_loss": 0.3})]


@pytest.mark.filterwarnings("ignore")
def test_keras_tells_every_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    keras = pytest.importorskip("keras")
    import numpy as np

    notes: Any = Notes()
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile(optimizer="sgd", loss="mse")
    x = np.ones((8, 2), dtype="float32")
    model.fit(x, x[:, :1], epochs=3, verbose=0, callbacks=[keras_callback(notes)])
    assert [step for step, _ in notes.points] == [1, 2, 3]
    assert all("train_loss" in losses for _, losses in notes.points)


@pytest.mark.filterwarnings("ignore")
def test_lightning_tells_batches_and_validations(tmp_path: Any) -> None:
    lightning = pytest.importorskip("lightning")
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    class Model(lightning.LightningModule):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(2, 1)

        def training_step(self, batch: Any, _index: int) -> Any:
            return ((self.layer(batch[0]) - 1) ** 2).mean()

        def validation_step(self, batch: Any, _index: int) -> None:
            self.log("val_loss", ((self.layer(batch[0]) - 1) ** 2).mean())

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    notes: Any = Notes()
    data = DataLoader(TensorDataset(torch.ones(8, 2)), batch_size=2)
    trainer = lightning.Trainer(
        max_epochs=2,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=str(tmp_path),
        callbacks=[lightning_callback(notes, every=1)],
    )
    trainer.fit(Model(), data, data)
    notes.end()
    both = {"train_loss", "test_loss"}
    told = [(step, set(losses)) for step, losses in notes.points]
    assert told == [(step, both if step in (4, 8) else {"train_loss"}) for step in range(1, 9)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("evaluated", ["in training", "afterwards", "not at all"])
def test_the_hugging_face_trainer_tells_what_it_logs(tmp_path: Any, evaluated: str) -> None:
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    import torch

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(2, 1)

        def forward(self, x: Any, labels: Any = None) -> Any:
            found = self.layer(x)
            return {"loss": ((found - labels) ** 4).mean(), "logits": found}

    notes: Any = Notes()
    rows = [{"x": torch.ones(2), "labels": torch.ones(1)} for _ in range(8)]
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path),
        max_steps=5,
        optim="sgd",
        learning_rate=1e6 if evaluated == "not at all" else 1e-3,
        max_grad_norm=0,
        logging_steps=2,
        eval_strategy="steps" if evaluated == "in training" else "no",
        eval_steps=1,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
    )
    trainer = transformers.Trainer(
        model=Model(),
        args=arguments,
        train_dataset=rows,
        eval_dataset=rows,
        callbacks=[trainer_callback(notes)],
    )
    trainer.train()
    if evaluated == "afterwards":
        trainer.evaluate()
    notes.end()
    by_step = {step: set(losses) for step, losses in notes.points}
    both, test = {"train_loss", "test_loss"}, {"test_loss"}
    if evaluated == "in training":
        assert by_step == {1: test, 2: both, 3: test, 4: both, 5: test}
    elif evaluated == "afterwards":
        assert by_step == {2: {"train_loss"}, 4: {"train_loss"}, 5: test}
    else:  # a loss that was lost is none of 0, as the trainer has it
        assert [math.isfinite(losses["train_loss"]) for _, losses in notes.points][-1:] == [False]
