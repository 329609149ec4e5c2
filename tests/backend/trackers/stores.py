"""Stores made by the trackers' own libraries: runs that ended, diverged, failed, run, repeat.

Each maker returns what an import has to find in it.
"""

import csv
import json
import math
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backend.trackers import Names

NAN = math.nan


@dataclass(frozen=True)
class Store:
    """A store, and what is in it."""

    kind: str
    place: str
    names: Names
    completed: int
    diverged: int
    failed: int
    dropped: int


def optuna_store(folder: Path) -> Store:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    storage = f"sqlite:///{folder / 'study.db'}"
    study = optuna.create_study(storage=storage, study_name="mlp", direction="minimize")

    def objective(trial: optuna.Trial) -> float:
        lr = trial.suggest_float("learning_rate", 1e-3, 10, log=True)
        trial.suggest_categorical("optimizer", ["sgd", "adam"])
        for step in range(3):
            trial.report(NAN if (trial.number, step) == (2, 2) else 1.0 / (step + 1), step)
        if trial.number == 4:
            raise optuna.TrialPruned
        if trial.number == 5:
            raise RuntimeError("out of memory")
        return {2: NAN, 3: math.inf}.get(trial.number, lr)

    for number in range(6):
        rate = 0.1 if number in (0, 1) else 0.5 * number  # 0 and 1: the same setting twice
        study.enqueue_trial({"learning_rate": rate, "optimizer": "sgd"})
    study.optimize(objective, n_trials=6, catch=(RuntimeError,))
    study.ask()  # goes on
    names = Names(lr="learning_rate", method="optimizer")
    return Store("optuna", storage, names, completed=2, diverged=2, failed=2, dropped=1)


def mlflow_store(folder: Path) -> Store:
    import mlflow

    place = f"sqlite:///{folder / 'mlflow.db'}"
    client = mlflow.MlflowClient(tracking_uri=place)
    experiment = client.create_experiment("resnet", artifact_location=(folder / "art").as_uri())
    ends = [(0.5, "FINISHED"), (0.4, "FINISHED"), (NAN, "FINISHED"), (0.3, "FAILED")]
    ends += [(0.2, "KILLED"), (0.1, "RUNNING"), (None, "FINISHED")]
    for number, (loss, status) in enumerate(ends):
        run = client.create_run(experiment)
        client.log_param(run.info.run_id, "lr", 0.1 if number < 2 else 0.1 * number)
        client.log_param(run.info.run_id, "opt", "sgd")
        client.log_param(run.info.run_id, "seed", number)
        for step in range(3 if loss is not None else 0):
            client.log_metric(run.info.run_id, "loss", loss * (3 - step), step=step)
        if status != "RUNNING":
            client.set_terminated(run.info.run_id, status=status)
    names = Names(method="opt", seed="seed", loss="loss")
    return Store("mlflow", place, names, completed=2, diverged=1, failed=2, dropped=2)


def tensorboard_store(folder: Path) -> Store:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.plugins.hparams import api_pb2, metadata
    from tensorboard.plugins.hparams.plugin_data_pb2 import (
        HParamsPluginData,
        SessionEndInfo,
        SessionStartInfo,
    )
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    def session(tag: str, **content: Any) -> Summary:
        about = metadata.create_summary_metadata(HParamsPluginData(**content))
        return Summary(value=[Summary.Value(tag=tag, metadata=about)])

    def ended(status: int) -> Summary:
        return session(
            metadata.SESSION_END_INFO_TAG, session_end_info=SessionEndInfo(status=status)
        )

    def write(name: str, losses: list[float], *plugins: Summary) -> None:
        writer = EventFileWriter(str(folder / "logs" / name))
        for one in plugins:
            writer.add_event(Event(summary=one, wall_time=1.0))
        for step, loss in enumerate(losses):
            value = Summary.Value(tag="train/loss", simple_value=loss)
            writer.add_event(Event(step=step, wall_time=2.0 + step, summary=Summary(value=[value])))
        writer.close()

    write("sgd,lr=0.1,seed=1", [1.0, 0.5])
    write("sgd,lr=0.1,seed=2", [1.0, 0.4])
    write("sgd,lr=10,seed=1", [1.0, NAN])
    write("no rate in its name", [1.0, 0.4])
    start = SessionStartInfo()
    start.hparams["lr"].number_value = 0.3
    start.hparams["seed"].number_value = 1.0
    begun = session(metadata.SESSION_START_INFO_TAG, session_start_info=start)
    write("hparams", [1.0, 0.3], begun, ended(api_pb2.STATUS_FAILURE))
    write("goes on", [1.0], begun, ended(api_pb2.STATUS_RUNNING))
    names = Names(method="=sgd", seed="seed", loss="train/loss")
    place = str(folder / "logs")
    return Store("tensorboard", place, names, completed=2, diverged=1, failed=1, dropped=2)


#: A program that logs to Aim and is killed in the middle of its last run. Nobody runs `aim up`.
AIM_PROGRAM = """
import os, signal, sys
import aim

quiet = {"system_tracking_interval": None, "capture_terminal_logs": False}
for lr, losses in ((0.1, [1.0, 0.5]), (0.1, [1.0, 0.4]), (10.0, [1.0, float("nan")]), (0.3, [1.0])):
    run = aim.Run(repo=sys.argv[1], **quiet)
    run["hparams"] = {"lr": lr, "opt": "sgd"}
    for step, loss in enumerate(losses):
        run.track(loss, name="loss", step=step, context={"subset": "train"})
        run.track(2.0, name="loss", step=step, context={"subset": "val"})
    if lr != 0.3:
        run.close()
os.kill(os.getpid(), signal.SIGKILL)
"""


def aim_store(folder: Path) -> Store:
    """Aim knows no failed runs: one that was not closed goes on for ever."""
    subprocess.run([sys.executable, "-c", AIM_PROGRAM, str(folder)])
    names = Names(method="opt", loss="loss[subset=train]", test_loss="loss[subset=val]")
    return Store("aim", str(folder), names, completed=2, diverged=1, failed=0, dropped=1)


def wandb_csv(folder: Path) -> Store:
    """As "Export as CSV" above a table of runs writes it."""
    path = folder / "wandb_export.csv"
    rows = [
        ["Name", "State", "Runtime", "lr", "optimizer", "seed", "loss"],
        ["swift-1", "finished", "12", "0.1", "adam", "1", "0.5"],
        ["swift-2", "finished", "12", "0.1", "adam", "2", "0.4"],
        ["swift-3", "finished", "12", "10", "adam", "1", "NaN"],
        ["swift-4", "crashed", "3", "1", "adam", "1", "0.9"],
        ["swift-5", "running", "3", "1", "adam", "1", "0.9"],
        ["swift-1", "finished", "12", "0.1", "adam", "1", "0.5"],
    ]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    names = Names(method="optimizer", seed="seed")
    return Store("wandb", str(path), names, completed=2, diverged=1, failed=1, dropped=2)


def wandb_json(folder: Path) -> Store:
    """As `[vars of each run in wandb.Api().runs(...)]` would be dumped."""
    path = folder / "runs.json"
    runs = [
        {
            "id": f"run{number}",
            "state": state,
            "project": "lm",
            "config": {"lr": {"value": lr}, "optimizer": {"value": "adam"}},
            "summary": {"loss": loss, "_runtime": 3},
            "history": [{"_step": 0, "loss": 2.0}, {"_step": 10, "loss": loss}],
        }
        for number, (lr, loss, state) in enumerate(
            [
                (0.1, 0.5, "finished"),
                (1.0, "NaN", "finished"),
                (1.0, "Infinity", "finished"),
                (0.3, 0.5, "failed"),
                (0.3, 0.5, "running"),
            ]
        )
    ]
    path.write_text(json.dumps(runs))
    names = Names(method="optimizer", loss="loss")
    return Store("wandb", str(path), names, completed=1, diverged=2, failed=1, dropped=1)


def parquet_table(folder: Path) -> Store:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = folder / "runs.parquet"
    columns = {
        "rate": [0.1, 0.1, 1.0, 3.0, None],
        "which": ["sgd"] * 5,
        "final": [0.5, 0.4, NAN, None, 0.1],
        "status": ["ok", "ok", "ok", "failed", "ok"],
    }
    pq.write_table(pa.table(columns), path)
    names = Names(lr="rate", method="which", loss="final")
    return Store("table", str(path), names, completed=2, diverged=1, failed=1, dropped=1)


#: By the library each needs, None for those that come with the server.
MAKERS = {
    "optuna": optuna_store,
    "mlflow": mlflow_store,
    "tensorboard": tensorboard_store,
    "aim": aim_store,
    "wandb_csv": wandb_csv,
    "wandb_json": wandb_json,
    "pyarrow": parquet_table,
}
