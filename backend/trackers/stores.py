"""Stores that only their own library reads: Optuna's, MLflow's, TensorBoard's and Aim's.

Libraries are imported when they are needed: `pip install 'etascope[importers]'`.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from backend.trackers.tracked import Names, Points, State, TrackedRun, flat, number
from ib_core.errors import InvalidSpec

#: As folders are often called: lr=0.1,seed=2 or lr=0.1_seed=2.
_PAIRS = re.compile(r"([A-Za-z]\w*?)=([^,/\s]+?)(?=[,/\s]|_[A-Za-z]\w*=|$)")
MLFLOW_PAGE = 1000


def needed(package: str) -> Any:
    """Return a tracker's library.

    Raises:
        InvalidSpec: It is not installed.
    """
    try:
        return import_module(package)
    except ImportError as error:
        name = package.split(".")[0]
        raise InvalidSpec(
            f"Reading this needs the package {name}, which cannot be imported: {error}.",
            hint="pip install 'etascope[importers]'",
        ) from None


def read_optuna(store: str, names: Names) -> Iterator[TrackedRun]:
    """Yield the trials of every study in a storage; pruned ones count as failed."""
    optuna = needed("optuna")
    try:
        studies = optuna.get_all_study_summaries(storage=store)
    except Exception as error:
        raise InvalidSpec(f"Optuna cannot read {store}: {_first_line(error)}.") from None
    for summary in studies:
        study = optuna.load_study(study_name=summary.study_name, storage=store)
        if names.loss is None and study.directions[0].name == "MAXIMIZE":
            raise InvalidSpec(
                f"The Optuna study {summary.study_name!r} maximises its value, which is no loss.",
                field="loss",
                hint="Name a user attribute that holds one with --loss.",
            )
        for trial in study.get_trials(deepcopy=False):
            yield _optuna_run(summary.study_name, trial, names)


def _optuna_run(study: str, trial: Any, names: Names) -> TrackedRun:
    state, name = _optuna_state(trial), trial.state.name
    steps = sorted(trial.intermediate_values.items())
    # Optuna calls a value that is not a number a failure, and forgets it: what was reported tells.
    lost = name == "FAIL" and bool(steps) and math.isnan(steps[-1][1])
    at = f" at step {steps[-1][0]}" if steps else ""
    return TrackedRun(
        id=f"{study}/{trial.number}",
        state="diverged" if lost else state,
        values=trial.params,
        metrics=trial.user_attrs,
        task=study,
        loss=float("nan") if lost else (trial.values[0] if trial.values else None),
        # What was reported is the study's own value, which need not be the loss that was named.
        history=steps if names.loss is None else (),
        error=f"Optuna pruned it{at}." if name == "PRUNED" else f"Optuna says {name}.",
        seconds=trial.duration.total_seconds() if trial.duration else None,
        about={"study": study, "state": name, "params": trial.params},
    )


def _optuna_state(trial: Any) -> State:
    states: dict[str, State] = {"COMPLETE": "finished", "FAIL": "failed", "PRUNED": "failed"}
    return states.get(trial.state.name, "running")


def read_mlflow(store: str, names: Names) -> Iterator[TrackedRun]:
    """Yield the runs of every experiment of a tracking store."""
    client = needed("mlflow").MlflowClient(tracking_uri=store)
    try:
        experiments = client.search_experiments()
    except Exception as error:
        raise InvalidSpec(f"MLflow cannot read {store}: {_first_line(error)}.") from None
    for experiment in experiments:
        token = None
        while True:
            ids = [experiment.experiment_id]
            page = client.search_runs(ids, max_results=MLFLOW_PAGE, page_token=token)
            for run in page:
                yield _mlflow_run(client, experiment.name, run, names)
            token = page.token
            if not token:
                break


def _mlflow_run(client: Any, experiment: str, run: Any, names: Names) -> TrackedRun:
    states: dict[str, State] = {"FINISHED": "finished", "FAILED": "failed", "KILLED": "failed"}
    info, data = run.info, run.data
    loss = names.loss or "loss"
    history: Points = ()
    if loss in data.metrics:
        points = client.get_metric_history(info.run_id, loss)
        history = [(one.step, one.value) for one in sorted(points, key=lambda one: one.step)]
    took = (info.end_time - info.start_time) / 1000 if info.end_time and info.start_time else None
    return TrackedRun(
        id=info.run_id,
        state=states.get(info.status, "running"),
        values={**data.tags, **data.params},
        metrics=data.metrics,
        task=experiment,
        history=history,
        error=f"MLflow says {info.status}.",
        seconds=took,
        about={
            "experiment": experiment,
            "name": data.tags.get("mlflow.runName", ""),
            "state": info.status,
            "params": data.params,
        },
    )


def read_tensorboard(store: str, names: Names) -> Iterator[TrackedRun]:
    """Yield a run for every folder with event files; settings are its hparams, or in its name."""
    accumulator = needed("tensorboard.backend.event_processing.event_accumulator")
    root = Path(store)
    folders = sorted({path.parent for path in root.rglob("*tfevents*")})
    if not folders:
        raise InvalidSpec(f"There are no event files below {store}.")
    for folder in folders:
        events = accumulator.EventAccumulator(str(folder), size_guidance={"scalars": 0})
        events.Reload()
        tags = events.Tags()["scalars"]
        settings, state = _hparams(events)
        where = str(folder.relative_to(root))
        last = {tag: events.Scalars(tag)[-1].value for tag in tags}
        loss = names.loss or next((tag for tag in tags if "loss" in tag.lower()), "")
        points = events.Scalars(loss) if loss in tags else []
        history = [(point.step, point.value) for point in points]
        yield TrackedRun(
            id=where,
            state=state,
            values={**dict(_PAIRS.findall(where)), **settings},
            metrics=last,
            task=root.name,
            loss=history[-1][1] if history else None,
            history=history,
            error="TensorBoard's session says FAILURE." if state == "failed" else None,
            seconds=points[-1].wall_time - points[0].wall_time if points else None,
            about={"folder": where, "tag": loss},
        )


def _hparams(events: Any) -> tuple[dict[str, Any], State]:
    """Return what the plugin for hyperparameters wrote: settings, and how the session ended."""
    try:
        content = events.PluginTagToContent("hparams")
    except KeyError:
        return {}, "finished"
    messages = needed("tensorboard.plugins.hparams.plugin_data_pb2")
    settings: dict[str, Any] = {}
    state: State = "finished"
    for data in content.values():
        found = messages.HParamsPluginData.FromString(data)
        for name, value in found.session_start_info.hparams.items():
            settings[name] = getattr(value, value.WhichOneof("kind"))
        if found.HasField("session_end_info"):
            ended: dict[int, State] = {2: "failed", 3: "running"}  # of api_pb2.Status
            state = ended.get(found.session_end_info.status, "finished")
    return settings, state


def read_aim(store: str, names: Names) -> Iterator[TrackedRun]:
    """Yield the runs of an Aim repository; who never closed one has it running for ever."""
    aim = needed("aim")

    class Unindexed(aim.Repo):  # type: ignore[name-defined,misc]
        # Of a run's own file, where Aim would read what its server has indexed so far.
        def request_tree(self, name: str, sub: str | None = None, **how: Any) -> Any:
            return super().request_tree(name, sub or self.reading, **how)

    try:
        repository = Unindexed(store)
    except Exception as error:
        raise InvalidSpec(f"Aim cannot read {store}: {_first_line(error)}.") from None
    for name in sorted(repository.list_all_runs()):
        repository.reading = name
        run = aim.Run(name, repo=repository, read_only=True)
        settings = dict(flat(run.meta_run_tree.collect().get("attrs", {})))
        curves = dict(_aim_curves(run))
        last = {label: curve[-1][1] for label, curve in curves.items()}
        yield TrackedRun(
            id=run.hash,
            state="running" if run.active else "finished",
            values={**settings, **_without_prefix(settings)},
            metrics=last,
            task=run.experiment or "aim",
            history=curves.get(names.loss or "loss", ()),
            seconds=number(run.duration),
            about={"name": run.name, "experiment": run.experiment},
        )


def _aim_curves(run: Any) -> Iterator[tuple[str, Points]]:
    """Yield a run's metrics; `loss[subset=val]` where one name is tracked in several contexts."""
    metrics = list(run.metrics())
    times = Counter(metric.name for metric in metrics)
    for metric in metrics:
        steps, (values, *_) = metric.data.numpy()  # in the order of steps, unlike `metric.values`
        apart = metric.context.to_dict() if times[metric.name] > 1 else {}
        words = ",".join(f"{name}={value}" for name, value in apart.items())
        if len(steps):
            points = list(zip(map(float, steps), map(float, values), strict=True))
            yield f"{metric.name}[{words}]" if words else metric.name, points


def _without_prefix(settings: dict[str, Any]) -> dict[str, Any]:
    return {name.rsplit(".", 1)[-1]: value for name, value in settings.items()}


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")[:300]
