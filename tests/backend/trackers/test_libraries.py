"""Stores that libraries have made: which of their values is a setting, a loss, a run."""

from pathlib import Path
from typing import Any

import pytest

from backend.trackers import Names, read_tracker
from ib_core.errors import IBError

pytestmark = pytest.mark.filterwarnings("ignore")  # of the libraries' own


def test_mlflow_s_parameters_are_settings_and_its_metrics_are_losses(tmp_path: Path) -> None:
    mlflow = pytest.importorskip("mlflow")
    place = f"sqlite:///{tmp_path / 'mlflow.db'}"
    client = mlflow.MlflowClient(tracking_uri=place)
    experiment = client.create_experiment("e", artifact_location=tmp_path.as_uri())
    run = client.create_run(experiment).info.run_id
    for name, value in (("lr", 0.1), ("loss", 7), ("epochs", 3)):
        client.log_param(run, name, value)
    for step, (rate, loss) in enumerate([(0.1, 2.0), (1e-6, 0.5)]):
        client.log_metric(run, "lr", rate, step=step)
        client.log_metric(run, "loss", loss, step=step)
        client.log_metric(run, "epochs", step, step=step)
    client.set_terminated(run)
    (row,) = read_tracker("mlflow", place, Names(loss="loss", epochs="epochs")).rows
    assert (row["lr"], row["train_loss"], row["epochs"]) == (0.1, 0.5, 3)
    assert (row["initial_loss"], row["train_loss_by_epoch"]) == (2.0, "2.0;0.5")


def test_an_accuracy_that_optuna_was_told_is_never_a_loss(tmp_path: Path) -> None:
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    place = f"sqlite:///{tmp_path / 'study.db'}"
    study = optuna.create_study(storage=place, study_name="acc", direction="maximize")

    def objective(trial: Any) -> float:
        trial.suggest_float("lr", 0.1, 0.1)
        for step in range(3):
            trial.report(0.3 * step, step)
        trial.set_user_attr("final_loss", 0.25)
        return 0.9

    study.optimize(objective, n_trials=1)
    (row,) = read_tracker("optuna", place, Names(loss="final_loss")).rows
    assert row["train_loss"] == 0.25
    assert not {"train_loss_by_epoch", "initial_loss"} & row.keys()
    with pytest.raises(IBError, match="has a loss called 'final_los'") as error:
        read_tracker("optuna", place, Names(loss="final_los"))
    assert error.value.hint == "Its runs have numbers called: final_loss, lr."


def events(folder: Path, tensors: dict[str, list[float]], **hparams: float) -> None:
    """Write scalars as tf.summary does, without TensorFlow."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.plugins.hparams import summary_v2 as plugin
    from tensorboard.plugins.scalar.summary_v2 import scalar_pb
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    writer = EventFileWriter(str(folder))
    if hparams:
        writer.add_event(Event(summary=plugin.hparams_pb(hparams), wall_time=1.0))
    for tag, values in tensors.items():
        for step, value in enumerate(values):
            writer.add_event(Event(step=step, wall_time=2.0, summary=scalar_pb(tag, value)))
    writer.close()


def test_scalars_that_keras_and_jax_write_as_tensors_are_read(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    many = [1 / (step + 1) for step in range(300)]  # more than TensorBoard samples
    events(tmp_path / "jax,lr=0.1", {"loss": many, "accuracy": [0.5]})
    events(tmp_path / "keras,lr=0.2" / "train", {"epoch_loss": [1.0, 0.5]})
    events(tmp_path / "keras,lr=0.2" / "validation", {"epoch_loss": [2.0, 0.75]})
    events(tmp_path / "tuned", {}, lr=0.3)
    events(tmp_path / "tuned" / "validation", {"epoch_loss": [2.0, 0.5]})
    events(tmp_path / "tuned" / "train", {"epoch_loss": [1.0, float("nan")]})
    names = Names(test_loss="validation/epoch_loss")
    found = read_tracker("tensorboard", str(tmp_path), names)
    assert found.dropped == []
    rows = {row["lr"]: row for row in found.rows}
    assert len(found.rows) == len(rows) == 3
    assert len(rows[0.1]["train_loss_steps"].split(";")) == 300
    assert (rows[0.1]["train_loss"], rows[0.1]["initial_loss"]) == (pytest.approx(1 / 300), 1.0)
    assert (rows[0.2]["train_loss"], rows[0.2]["test_loss"]) == (0.5, 0.75)
    assert (rows[0.3]["train_loss"], rows[0.3]["test_loss"]) == ("nan", 0.5)


def test_what_torch_s_add_hparams_writes_is_of_the_run_around_it(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    pytest.importorskip("torch")
    from torch.utils.tensorboard import SummaryWriter

    for number, rate in enumerate((0.1, 0.2, 0.2)):
        with SummaryWriter(str(tmp_path / f"run{number}")) as writer:
            for step in range(3):
                writer.add_scalar("loss", rate / (step + 1), step, new_style=number == 1)
                writer.add_scalars("parts", {"a": 1.0, "b": 2.0}, step)
            settings = {"lr": rate, "opt": "adam", "nesterov": True}
            writer.add_hparams(settings, {"hparam/loss": rate / 3})
            if number == 0:  # as after a resumption
                writer.add_hparams(settings, {"hparam/loss": rate / 3}, run_name="again")
    found = read_tracker("tensorboard", str(tmp_path), Names(method="opt", loss="loss"))
    assert found.dropped == []
    assert [(row["lr"], row["method"]) for row in found.rows] == [
        (pytest.approx(rate), "adam") for rate in (0.1, 0.2, 0.2)
    ]
    assert [row["source"]["run"] for row in found.rows] == ["run0", "run1", "run2"]
    assert [row["train_loss_steps"] for row in found.rows] == ["0;1;2"] * 3
    assert found.rows[0]["initial_loss"] == pytest.approx(0.1)
    parts = read_tracker("tensorboard", str(tmp_path), Names(loss="parts_b/parts"))
    assert [row["train_loss"] for row in parts.rows] == [2.0] * 3


def test_several_results_of_one_writer_are_runs_of_their_own(tmp_path: Path) -> None:
    """As torch's documentation shows it."""
    pytest.importorskip("tensorboard")
    pytest.importorskip("torch")
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(tmp_path / "all")) as writer:
        writer.add_scalar("cpu", 1.0, 0)
        for n in (1, 2, 3):
            writer.add_hparams({"lr": 0.1 * n}, {"hparam/loss": 10.0 * n}, run_name=f"r{n}")
    found = read_tracker("tensorboard", str(tmp_path), Names())
    assert [row["train_loss"] for row in found.rows] == [10.0, 20.0, 30.0]
    assert [row.get("initial_loss") for row in found.rows] == [None] * 3, "none was the first one"
    assert [one.run for one in found.dropped] == ["all"]
