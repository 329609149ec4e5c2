"""The one training loop: a shard of trials, trained together as one stacked program."""

import math
import time
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from ib_core.errors import IBError, MisuseError
from ib_core.methods import Member, build_optimizer, find_method, first_bad_layer
from ib_core.sweep.machine import choose_device, environment
from ib_core.sweep.on_gpu import ReplayedSteps, all_finite, graphs_wanted, look_every
from ib_core.sweep.recorder import Recorder
from ib_core.sweep.recording import explodes_above
from ib_core.sweep.result import (
    ENGINE_VERSION,
    SILENT,
    CurvePoint,
    Divergence,
    Observer,
    Outcome,
    TrialResult,
    below_lowest,
    failed_result,
    fingerprint,
    lost_point,
)
from ib_core.sweep.shard import Trained, room_on, stack_key, train_in_parts, train_own
from ib_core.sweep.spec import TrialSpec
from ib_core.sweep.ways import BY_HAND, Way, alone, choose_way, member_of
from ib_core.tasks import find_task, of_all, tensor_hash

#: Seconds between two calls of `Observer.progress`.
PROGRESS_EVERY = 0.2


def run_trials(
    trials: Sequence[TrialSpec],
    *,
    device: str = "cpu",
    observer: Observer = SILENT,
    way: Way | None = None,
) -> list[TrialResult | None]:
    """Train all trials of a shard as one program and return their results in order.

    Divergence is a result, never an exception. A member that becomes non-finite leaves the stack
    and stops costing time; one that explodes but stays finite trains to its end.

    Args:
        trials: Trials with one `stack_key`: one task, network, batch size and number of epochs.
        device: `auto`, `cpu`, `cuda`, `cuda:1` or `mps`.
        observer: Told about points, ends and progress; may drop trials.
        way: How to train them, where that is not to be found out.

    Returns:
        One result a trial; None for trials the observer no longer wanted.
    """
    if not trials:
        return []
    if len({stack_key(trial) for trial in trials}) > 1:
        raise MisuseError("These trials cannot share a stack; group them with plan_shards first.")
    there = choose_device(device)
    way = way or choose_way(trials, there)

    def train(part: Sequence[TrialSpec], watcher: Observer, results: Trained) -> None:
        _StackRun(part, there, watcher, way, results=results).run()

    def each(trial: TrialSpec, watcher: Observer, reason: str) -> TrialResult | None:
        return _run_alone(trial, there, watcher, reason)

    if way is BY_HAND or (len(trials) == 1 and not way.one_by_one):
        return train_in_parts(trials, train, observer, room_on(there))
    stacked = None if way.one_by_one else train
    return train_own(trials, stacked, each, observer, room_on(there), way.reason)


def _run_alone(
    trial: TrialSpec, device: torch.device, observer: Observer, reason: str
) -> TrialResult | None:
    """Train one trial as one ordinary model; what its code raises is its result."""
    try:
        return _StackRun([trial], device, observer, alone(trial, reason)).run()[0]
    except IBError:
        raise
    except Exception as error:
        failed = failed_result(trial, find_task(trial.task).data_hash(), error)
        observer.finished(0, failed)
        return failed


class _StackEmptied(Exception):
    """Every member has left the stack."""


class _StackRun:
    """The state of one shard's training. `alive[i]` is the trial in row i of the stack."""

    def __init__(
        self,
        trials: Sequence[TrialSpec],
        device: torch.device,
        observer: Observer,
        way: Way = BY_HAND,
        *,
        results: Trained | None = None,
    ) -> None:
        self.trials, self.observer, self.device, self.way = trials, observer, device, way
        # Neighbours with one method are solved in one call, so methods stand together.
        self.alive = sorted(range(len(trials)), key=lambda i: (trials[i].method, i))
        first = trials[0]
        self.task = find_task(first.task)
        self.workload = self.task.workload(
            seeds=[trials[i].seed for i in self.alive],
            batch_size=first.batch_size,
            values=first.of_task,
            device=device,
            profile=first.profile,
            activation=first.activation,
            validation=first.options.validation,
            way=way.model,
        )
        self.model = self.workload.model()
        members = [member_of(trials[i]) for i in self.alive]
        self.total_steps = first.epochs * self.workload.steps_per_epoch
        self.optimizer = build_optimizer(
            self.model,
            members,
            output_loss=self.task.output_loss,
            loss_at_zero=self.workload.loss_at_zero() if any(m.restart for m in members) else None,
            total_steps=self.total_steps,
            way=way.optimizer,
        )
        self._check_layers(members)
        self.recorder = Recorder(
            [trials[i] for i in self.alive],
            self.model,
            self.optimizer,
            self.workload,
            self.total_steps,
        )
        self.redraw_masks = members[0].method == "isgd" and members[0].isgd_form == "authors"
        plain = way.model == "plain"
        self.weight_hashes = {
            i: tensor_hash(*(p if plain else p[row] for p in self.model.parameters()))
            for row, i in enumerate(self.alive)
        }
        self.parameters = self.optimizer.slots.numbers
        self.replayed: ReplayedSteps | None = None
        self.step = 0
        self.curves: dict[int, list[CurvePoint]] = {i: [] for i in self.alive}
        self.divergences: dict[int, Divergence] = {}
        self.results: Trained = [None] * len(trials) if results is None else results
        # What is recorded of single steps cannot be taken back.
        recording = any(self.recorder.wanted)
        self.look_every = look_every(device) if way is BY_HAND and not recording else 1
        self.seconds = dict.fromkeys(self.alive, 0.0)
        self._clock = self._last_progress = time.perf_counter()

    def _check_layers(self, members: Sequence[Member]) -> None:
        """Refuse a method that solves layers which the model has not."""
        for member in members:
            method, layers = find_method(member.method), self.optimizer.layers
            if method.implicit and not layers:
                raise MisuseError(
                    f"{member.method} solves implicit layers, and the model of {self.task.name} "
                    "has none: use ImplicitLinear or ImplicitRNN in it, or another method."
                )
            if method.implicit_output and layers[-1].activation.name != "linear":
                raise MisuseError(
                    f"{member.method} solves a linear output layer, but the last implicit layer of "
                    f"{self.task.name} is {layers[-1].activation.name}; use ib."
                )

    def run(self) -> list[TrialResult | None]:
        """Train to the end and return all results."""
        try:
            self.evaluate()
            for _ in range(self.trials[0].epochs):
                self.train_epoch()
            self.finish(range(len(self.alive)))
        except _StackEmptied:
            pass
        return self.results

    def train_epoch(self) -> None:
        """Train one epoch and evaluate where the task asks for it and at the end."""
        per_epoch = self.workload.steps_per_epoch
        stops = {per_epoch}
        if self.step == 0:
            stops |= {max(1, round(part * per_epoch)) for part in self.task.evaluate_at}
        self.workload.begin_epoch(ahead=not self.redraw_masks)
        step = 0
        while step < per_epoch:
            until = min(step + self.look_every, *(stop for stop in stops if stop > step), per_epoch)
            self.train_steps(range(step, until))
            step = until
            if step in stops:
                self.evaluate()
            self.report_progress()

    def train_steps(self, steps: range) -> None:
        """Take these steps of the epoch; look whether losses are finite at each, or at the end.

        To look at a GPU's numbers is to wait for them. So several steps are taken blindly there,
        and again with a look at each if a loss was not finite: members leave where they broke.
        """
        before = self.optimizer.saved() if len(steps) > 1 else None
        self.looking = before is None
        losses = [self.take_step(step) for step in steps]
        if before is not None and not all_finite(losses):
            self.step -= len(steps)
            self.optimizer.rewind(before)
            self.looking, self.replayed = True, None
            for step in steps:
                self.take_step(step)

    def take_step(self, step: int) -> Tensor:
        """Take step `step` of the epoch and return the batch's losses."""
        self.workload.load_batch(step)
        self._first_pass = True
        if self.looking or not graphs_wanted(self.device):
            losses = self.recorder.step(self.forward_backward)
        else:
            self.replayed = self.replayed or ReplayedSteps(
                self.workload, self.optimizer, self.forward_backward
            )
            losses = self.replayed.step()
        self.step += 1
        return losses

    def forward_backward(self) -> Tensor:
        """Return every member's batch loss after a backward pass; non-finite members leave."""
        if not self._first_pass and self.redraw_masks:
            self.workload.draw_masks()
        losses = self.workload.losses(self.model)
        total = of_all(losses)
        # One number tells whether all are finite. Inside exact ISGD's inner loop nobody leaves.
        if self.looking and self._first_pass and not math.isfinite(total.item()):
            bad = torch.nonzero(~torch.isfinite(losses.detach())).flatten().tolist()
            if bad:
                del losses, total  # their graph remembers how many members there were
                self.leave_non_finite(bad)
                return self.forward_backward()
        self._first_pass = False
        total.backward()
        return losses.detach()

    def evaluate(self) -> None:
        """Take every member's whole-set losses, note who diverged, drop who is not finite."""
        self.optimizer.evaluating(True)
        found = self.workload.evaluate(self.model)
        self.recorder.evaluated(found.train_loss.tolist())
        self.optimizer.evaluating(False)
        columns = [
            [None] * len(self.alive) if column is None else column.tolist()
            for column in (
                found.train_loss,
                found.test_loss,
                found.train_accuracy,
                found.test_accuracy,
                found.validation_loss,
                found.validation_accuracy,
            )
        ]
        epoch = self.step / self.workload.steps_per_epoch
        points = {
            index: CurvePoint(self.step, epoch, *numbers)
            for index, *numbers in zip(self.alive, *columns, strict=True)
        }
        for index, point in points.items():
            self.curves[index].append(point)
            if point.train_loss > explodes_above(self.curves[index][0].train_loss):
                self.divergences.setdefault(index, Divergence(self.step, "loss"))
        self.optimizer.averages.note(self.step, self.optimizer.restarts)
        self.observer.points(points)
        self.fail_too_low(points)
        bad = [row for row, index in enumerate(self.alive) if not _finite(points[index])]
        if bad:
            self.leave_non_finite(bad)

    def fail_too_low(self, points: Mapping[int, CurvePoint]) -> None:
        """End members whose loss is lower than their method takes it to be able to be."""
        rows = []
        for row, index in enumerate(self.alive):
            trial = self.trials[index]
            if words := below_lowest(trial, points[index].train_loss):
                self.results[index] = failed = failed_result(trial, self.task.data_hash(), words)
                self.observer.finished(index, failed)
                rows.append(row)
        if rows:
            self.drop(rows)

    def leave_non_finite(self, rows: Sequence[int]) -> None:
        """Record where these members broke, finish them and go on without them."""
        for row in rows:
            index = self.alive[row]
            where, layer = first_bad_layer(self.optimizer.slots, row)
            self.divergences.setdefault(index, Divergence(self.step, where, layer))
            last = self.curves[index][-1]
            if last.step < self.step:
                epoch = self.step / self.workload.steps_per_epoch
                self.curves[index].append(lost_point(last, self.step, epoch))
        self.finish(rows)
        self.drop(rows)

    def report_progress(self) -> None:
        """Tell the observer now and then how far we are; drop what it no longer wants."""
        now = time.perf_counter()
        if now - self._last_progress < PROGRESS_EVERY:
            return
        self._last_progress = now
        unwanted = set(self.observer.progress(self.step / self.total_steps))
        rows = [row for row, index in enumerate(self.alive) if index in unwanted]
        if rows:
            self.drop(rows)

    def drop(self, rows: Sequence[int]) -> None:
        """Take these rows out of the stack."""
        self._share_time()
        gone = set(rows)
        kept = [row for row in range(len(self.alive)) if row not in gone]
        self.alive = [self.alive[row] for row in kept]
        if not kept:
            raise _StackEmptied
        indices = torch.tensor(kept, device=self.device)
        self.replayed = None
        self.optimizer.keep(indices)
        self.workload.keep(indices)
        self.recorder.keep(indices)

    def finish(self, rows: Sequence[int]) -> None:
        """Make these rows' results and hand them out."""
        self._share_time()
        made_with = environment(self.device)
        left_at_zero = self.optimizer.left_at_zero()
        data, way = self.task.data_hash(), self.way.as_record()
        for row in rows:
            index = self.alive[row]
            trial, curve = self.trials[index], self.curves[index]
            divergence = self.divergences.get(index)
            result = TrialResult(
                spec=trial,
                outcome=Outcome.DIVERGED if divergence else Outcome.COMPLETED,
                initial_loss=curve[0].train_loss,
                train_loss=curve[-1].train_loss,
                test_loss=curve[-1].test_loss,
                train_accuracy=curve[-1].train_accuracy,
                test_accuracy=curve[-1].test_accuracy,
                validation_loss=curve[-1].validation_loss,
                validation_accuracy=curve[-1].validation_accuracy,
                divergence=divergence,
                seconds=self.seconds[index],
                curve=tuple(curve),
                fingerprint=fingerprint(trial, data),
                record={
                    **made_with,
                    "engine": ENGINE_VERSION,
                    "data": data,
                    "initial_weights": self.weight_hashes[index],
                    "batch_order": self.workload.order_hash(row),
                    "parameters": self.parameters,
                    "stacked_with": len(self.trials),
                    **self.optimizer.averages.of(row),
                    **curve[0].noted(way),
                },
                restarts=int(self.optimizer.restarts[row]),
                at_zero=left_at_zero[row],
                recording=self.recorder.of(row),
            )
            self.results[index] = result
            self.observer.finished(index, result)

    def _share_time(self) -> None:
        """Charge the time since the last call to those who trained in it, in equal parts."""
        now = time.perf_counter()
        for index in self.alive:
            self.seconds[index] += (now - self._clock) / len(self.alive)
        self._clock = now


def _finite(point: CurvePoint) -> bool:
    return math.isfinite(point.train_loss) and math.isfinite(point.test_loss)
