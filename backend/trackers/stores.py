"""Stores that only their own library reads: Optuna's, MLflow's, TensorBoard's and Aim's.

Libraries are imported when they are needed: `pip install 'etascope[importers]'`.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from backend.trackers.tracked import Names, Points, State, TrackedRun, flat, number
from ib_core.errors import InvalidSpec

#: As folders are often called: lr=0.1,seed=2 or lr=0.1_seed=2.
_PAIRS = re.compile(r"([A-Za-z]\w*?)=([^,/\s]+?)(?=[,/\s]|_[A-Za-z]\w*=|$)")
MLFLOW_PAGE = 1000
#: Folders that are parts of the run around them.
TRAINING, HELD_OUT = "train", ("validation", "val", "eval", "test")


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
    """Yield a run for every folder with event files; settings are its hparams, or in its name.

    Not every folder is a run. The one that torch's `add_hparams` makes says what its parent was;
    Keras' `train` and `validation` are one run, and so are a run's folder and those of
    `add_scalars` in it.
    """
    root = Path(store)
    paths = {path.parent for path in root.rglob("*tfevents*")}
    if not paths:
        raise InvalidSpec(f"There are no event files below {store}.")
    paths |= {path.parent for path in paths if path.name == TRAINING and path != root}
    around: list[_Folder] = []  # those that the next one may belong to, the nearest last
    for path in sorted(paths):
        while around and around[-1].path not in path.parents:
            yield from _tensorboard_runs(around.pop(), root, names)
        folder = _folder(path)
        if not (around and around[-1].takes(folder, root)):
            around.append(folder)
    while around:
        yield from _tensorboard_runs(around.pop(), root, names)


@dataclass(slots=True)
class _Folder:
    """What a folder's event files hold; values with their step and time, by tag."""

    path: Path
    scalars: dict[str, list[tuple[int, float, float]]]
    settings: dict[str, Any]
    state: State
    notes: list["_Folder"] = field(default_factory=list)  # what `add_hparams` wrote below it

    def takes(self, inner: "_Folder", root: Path) -> bool:
        """Return whether another folder is part of this one's run, and take it in if so."""
        name = inner.path.name
        if inner.path.parent != self.path:
            return False
        if name == TRAINING:
            self.scalars = inner.scalars | self.scalars
            if not self.settings:
                self.settings, self.state = inner.settings, inner.state
        elif inner.settings:
            once = all(len(points) == 1 for points in inner.scalars.values())
            if self.settings or not self.scalars or not once:
                return False
            self.notes.append(inner)
        elif _PAIRS.search(name) or (self.path == root and name not in HELD_OUT):
            return False
        else:
            self.scalars |= {f"{name}/{tag}": points for tag, points in inner.scalars.items()}
        return True


def _folder(path: Path) -> _Folder:
    accumulator = needed("tensorboard.backend.event_processing.event_accumulator")
    array = needed("tensorboard.util.tensor_util").make_ndarray
    everything = {"scalars": 0, "tensors": 0}
    events = accumulator.EventAccumulator(str(path), size_guidance=everything)
    events.Reload()
    there = events.Tags()
    scalars = {
        tag: [(one.step, one.value, one.wall_time) for one in events.Scalars(tag)]
        for tag in there["scalars"]
    }
    # As tf.summary, and so Keras and JAX, write them.
    for tag in _plugin(events, "scalars").keys() & set(there["tensors"]):
        scalars[tag] = [
            (one.step, float(array(one.tensor_proto).reshape(-1)[-1]), one.wall_time)
            for one in events.Tensors(tag)
        ]
    return _Folder(path, scalars, *_hparams(events))


def _tensorboard_runs(folder: _Folder, root: Path, names: Names) -> Iterator[TrackedRun]:
    notes = folder.notes
    if notes and all(note.settings == notes[0].settings for note in notes):
        folder.settings, folder.state = notes[-1].settings, notes[-1].state
        noted = {tag: points for note in notes for tag, points in note.scalars.items()}
        folder.scalars = folder.scalars | noted | folder.scalars
        notes = []
    for one in (folder, *notes):
        yield _tensorboard_run(one, root, names)


def _tensorboard_run(folder: _Folder, root: Path, names: Names) -> TrackedRun:
    where = str(folder.path.relative_to(root))
    losses = [tag for tag in folder.scalars if "loss" in tag.lower()]
    trained = [tag for tag in losses if not re.search("val|test", tag.lower())]
    loss = names.loss or next(iter([*trained, *losses]), "")
    points = folder.scalars.get(loss, [])
    # One alone is a result, which `add_hparams` writes at step 0, and no loss to begin with.
    history = [(step, value) for step, value, _ in points] if len(points) > 1 else []
    failed = folder.state == "failed"
    return TrackedRun(
        id=where,
        state=folder.state,
        values={**dict(_PAIRS.findall(where)), **folder.settings},
        metrics={tag: found[-1][1] for tag, found in folder.scalars.items()},
        task=root.name,
        loss=points[-1][1] if points else None,
        history=history,
        error="TensorBoard's session says FAILURE." if failed else None,
        seconds=points[-1][2] - points[0][2] if points else None,
        about={"folder": where, "tag": loss},
    )


def _plugin(events: Any, name: str) -> dict[str, bytes]:
    """Return what a plugin of TensorBoard wrote, by tag."""
    try:
        return dict(events.PluginTagToContent(name))
    except KeyError:
        return {}


def _hparams(events: Any) -> tuple[dict[str, Any], State]:
    """Return what the plugin for hyperparameters wrote: settings, and how the session ended."""
    messages = needed("tensorboard.plugins.hparams.plugin_data_pb2")
    settings: dict[str, Any] = {}
    state: State = "finished"
    for data in _plugin(events, "hparams").values():
        found = messages.HParamsPluginData.FromString(data)
        for name, value in found.session_start_info.hparams.items():
            settings[name] = getattr(value, value.WhichOneof("kind") or "string_value")
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
