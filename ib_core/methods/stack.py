"""Train K models at once: one optimizer for a stack, a rate and a method per member.

Every method is a gradient-like quantity `g` with `theta' = theta - lr * g` (after clipping): of the
explicit `grad + mu * theta`, of the implicit `(theta - theta') / lr` of eq. (7), which is
`sum_rows alpha z + mu * theta / (1 + lr*mu)`. How many calls to torch a step takes follows from
layers and methods, never from the number of members.
"""

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ib_core.errors import MisuseError, lookup
from ib_core.kernels import on_device, solved_layer
from ib_core.layers import ImplicitLayer, Record, merge
from ib_core.methods.base import CONSTANT, Member, stayed_at_zero
from ib_core.methods.catalogue import METHODS
from ib_core.methods.mover import Mover, Plain, Step, check_output, method_of, mover_kind, runs_of
from ib_core.methods.proximal import solved_rows
from ib_core.methods.slots import Averages, Saved, Slots, add_product
from ib_core.updates import (
    OUTPUT_ALPHAS,
    alpha_rule,
    batch_alpha,
    clip_factor,
    global_norm,
    refuse_soft_targets,
    rows_scale,
)

#: Runs one forward and backward pass; returns every member's loss, [members].
Closure = Callable[[], Tensor]
#: How a stack's losses are reduced over rows.
REDUCTION = "mean"
#: For how many steps schedules are reckoned in one go.
AHEAD = 256


class StackOptimizer:
    """Moves a stack by one batch at a time.

    Args:
        model: Its parameters have the members in front, [members, ...].
        members: How each member is trained, in stack order. Neighbours with one method are
            solved in one call, so let methods stand together.
        output_loss: A name in `OUTPUT_ALPHAS`, if the last layer is linear and `ib_plus` may
            solve it under the task's loss.
        loss_at_zero: Data loss at theta = 0, for restarts.
        total_steps: Of the whole training, for schedules.
        slots: The parameters, where somebody has looked at them already.
    """

    def __init__(
        self,
        model: nn.Module,
        members: Sequence[Member],
        *,
        output_loss: str | None = None,
        loss_at_zero: float | None = None,
        total_steps: int = 1,
        slots: Slots | None = None,
    ) -> None:
        for member in members:
            if member.factory is None:
                lookup("method", member.method, METHODS)
        self.slots = Slots(model) if slots is None else slots
        self.total_steps = total_steps
        if self.slots.members != len(members):
            raise MisuseError(
                f"The stack holds {self.slots.members} models but {len(members)} members are given."
            )
        self.layers = [layer for layer in model.modules() if isinstance(layer, ImplicitLayer)]
        self.output_loss, self.loss_at_zero = output_loss, loss_at_zero
        check_output(self.layers[-1:], members, output_loss)
        self.steps = 0
        self.given_lr: Tensor | None = None  # rates that somebody else keeps up to date
        self._ahead: tuple[int, Tensor] | None = None
        self._implicit_runs: list[slice] = []
        self._solving_runs: list[slice] = []
        self.restarts = torch.zeros(len(members), dtype=torch.int64, device=self.slots.like.device)
        self.averages = Averages(self.slots, members)
        self._describe(members)
        for layer in self.layers:  # one model that is trained explicitly needs no records
            layer.implicit = bool(self._implicit_runs or self._solving_runs) or len(members) > 1
        self._movers: list[tuple[slice, Mover]] = [
            (run, kind(self._thetas(run), self.members[run]))
            for run, kind in runs_of([mover_kind(member) for member in self.members])
        ]
        shapes = [s.parameter.shape if s.alone else s.parameter.shape[1:] for s in self.slots]
        for _, mover in self._movers:
            mover.shapes = shapes

    def step(self, closure: Closure) -> Tensor:
        """Move every member by one batch and return the losses before the step, [members]."""
        for run, mover in self._movers:
            if mover.looks_ahead:
                mover.look_ahead(self._thetas(run))
        losses = closure()
        with torch.no_grad():
            lr = self.current_lr()
            if self._plain:
                self.move_at_once(lr)
            else:
                self.collect(lr)
                self.clip()
                self.averages.take(lr)
                self.move(lr, losses)
            self.restart()
        self.steps += 1
        return losses

    def keep(self, kept: Tensor) -> None:
        """Keep only these members (indices, rising); the others stop costing time."""
        self.slots.keep(kept)
        self.restarts = self.restarts[kept]
        self.averages.keep(kept)
        self._describe([self.members[i] for i in kept.tolist()])
        remaining, start = [], 0
        for run, mover in self._movers:
            rows = kept[(kept >= run.start) & (kept < run.stop)] - run.start
            if len(rows):
                mover.keep(rows)
                remaining.append((slice(start, start + len(rows)), mover))
                start += len(rows)
        self._movers = remaining

    def remembered(self) -> list[Any]:
        """Return everything that the methods remember from step to step."""
        moved = (vars(mover) for _, mover in self._movers)
        return [self.restarts, self.averages.sums, *moved]

    def saved(self) -> tuple[list[Saved], Any]:
        """Return a copy of everything that steps change, for `rewind`."""
        rest = deepcopy((self._movers, self.steps, self.restarts))
        return self.slots.saved(), (*rest, self.averages.saved())

    def rewind(self, saved: tuple[list[Saved], Any]) -> None:
        """Go back to where a copy was taken; it is used up."""
        slots, (self._movers, self.steps, self.restarts, averages) = saved
        self.slots.rewind(slots)
        self.averages.rewind(averages)

    def evaluating(self, on: bool) -> None:
        """Do nothing: what is evaluated is what is trained."""

    def current_lr(self) -> Tensor:
        """Return every member's rate at this step, decayed where asked for, [members]."""
        if self.given_lr is not None:
            return self.given_lr
        rates = self._lr
        if self._scheduled:
            rates = rates * self._factors()
        if self._decay is None:
            return rates
        tau, power = self._decay
        return rates / (1 + self.steps / tau) ** power

    def _factors(self) -> Tensor:
        """Return what schedules multiply the rates by, [members], made for many steps at once."""
        now, place = divmod(self.steps, AHEAD)
        if self._ahead is None or self._ahead[0] != now:
            steps, total = range(now * AHEAD, (now + 1) * AHEAD), self.total_steps
            each = {m.schedule: [m.schedule.factor(s, total) for s in steps] for m in self.members}
            table = self._tensor([each[member.schedule] for member in self.members])
            self._ahead = (now, table.T.contiguous())
        return self._ahead[1][place]

    def move_at_once(self, lr: Tensor) -> None:
        """Take `theta' = theta - lr * g` with g never written down.

        The product that makes g adds it to the weights: of the passes over all parameters, which
        are most of a large layer's step besides its products, two fall away.
        """
        for layer in self.layers:
            if layer.records:
                record = merge(layer.records)
                layer.records.clear()
                alpha = self._alphas(layer, record, lr)
                self.slots.of(layer.weight).alpha = alpha
                add_product(layer, alpha, record.z, lr)
        ordinary = []
        for slot in self.slots:
            if slot.parameter.grad is not None:  # an explicit part: a convolution, say
                slot.grad, slot.parameter.grad = slot.parameter.grad, None
                ordinary.append(slot)
        if len(lr) == 1 and lr.is_cpu and ordinary:
            gradients = [slot.grad for slot in ordinary]
            torch._foreach_add_([s.parameter for s in ordinary], gradients, alpha=-float(lr))
            return
        for slot in ordinary:
            slot.theta.addcmul_(slot.rows, lr.unsqueeze(1), value=-1.0)

    def collect(self, lr: Tensor) -> None:
        """Fill the slots' gradients from the layers' records and torch's own gradients."""
        for layer in self.layers:
            if layer.records:
                record = merge(layer.records)
                layer.records.clear()
                alpha = self._alphas(layer, record, lr)
                multiply = torch.mul if alpha.shape[-2] == 1 else torch.bmm  # one row is no sum
                multiply(alpha.mT, record.z, out=self.slots.fed(layer.weight).grad.flatten(2))
                if layer.bias is not None and layer.bias_moves:
                    torch.sum(alpha, dim=-2, out=self.slots.fed(layer.bias).grad)
                for run in self._solving_runs:
                    self._solve_rows(layer, record.z[run], lr[run], run)
        self.slots.take_gradients()
        if self._mu is not None:
            self._add_ridge(lr, self._mu)

    def clip(self) -> None:
        """Scale down the gradients of members whose norm over all parameters exceeds the clip."""
        if self._clip is None:
            return
        factor = clip_factor(self.slots.grad_norms(), self._clip).unsqueeze(1)
        for slot in self.slots:
            slot.rows.mul_(factor)

    def move(self, lr: Tensor, losses: Tensor) -> None:
        """Let every run's method move it, given the gradients that were collected."""
        if self._mu is not None:
            losses = losses + self._mu / 2 * global_norm(self.slots.theta_norms()).square()
        idle = [slot.idle for slot in self.slots]
        for run, mover in self._movers:
            grads = [slot.rows[run] for slot in self.slots]
            column = (lr[run].unsqueeze(1), losses[run].unsqueeze(1))
            mover.take(Step(self._thetas(run), grads, *column), idle)

    def restart(self) -> None:
        """Set members outside the level set |theta|^2 <= 2*loss(0)/mu to zero (App. C)."""
        if self._level_set is None:
            return
        size = global_norm(self.slots.theta_norms()).square()
        outside = size > self._level_set
        self.restarts += outside
        for slot in self.slots:
            slot.theta.masked_fill_(outside.unsqueeze(1), 0.0)

    def left_at_zero(self) -> list[bool]:
        """Return which members a restart has left at theta = 0."""
        if not self.restarts.any():
            return [False] * len(self.members)
        sizes = global_norm(self.slots.theta_norms()).tolist()
        return [stayed_at_zero(*one) for one in zip(sizes, self.restarts.tolist(), strict=True)]

    def solved(self, layer: ImplicitLayer, record: Record) -> Tensor:
        """Return the alphas that a record gives at the coming step; the record stays as it is."""
        delta = None if record.delta is None else record.delta.clone()
        return self._alphas(layer, Record(record.z, record.s, record.b, delta), self.current_lr())

    def _alphas(self, layer: ImplicitLayer, record: Record, lr: Tensor) -> Tensor:
        """Return every member's alphas: explicit ones as they are, implicit ones solved."""
        if self._all_implicit:
            return self._solve(layer, record, lr, self._implicit_runs[0])
        if record.delta is None:  # a layer alone leaves it to those who need it
            record.delta = layer.activation.gradient(record.s, record.b)
        if not self._implicit_runs:
            return record.delta
        alpha = record.delta.clone() if record.delta is record.b else record.delta
        for run in self._implicit_runs:
            alpha[run] = self._solve(layer, record.of(run), lr[run], run)
        return alpha

    def _solve(self, layer: ImplicitLayer, record: Record, lr: Tensor, run: slice) -> Tensor:
        """Return the alphas of a run of implicit members, given their part of the record."""
        mu = 0.0 if self._mu is None else self._mu[run].view(-1, 1, 1)
        exact = self._solved_exactly(layer, record, run)
        if layer.activation.name == "linear" and self._mu is None and not exact:
            return record.b
        scale, bias = self._rows_scale(run, record.rows), layer.bias_moves
        if (there := on_device(record.s)) is not None:
            shrink = None if self._mu is None else 1 + lr * self._mu[run]
            alpha = self._solve_there(there, layer, record, (lr, scale, bias, shrink), exact)
            if alpha is not None:
                return alpha
        if len(lr) == 1 and lr.is_cpu and self._mu is None and not exact:
            rate = float(lr) * float(scale)
            alpha = solved_layer(
                layer.activation.name, record.s, record.b, record.z, rate, bias=bias
            )
            if alpha is not None:
                return alpha
        rates = lr.view(-1, 1, 1)
        z_sq = record.z_squared(bias)
        if exact:
            solve = OUTPUT_ALPHAS[self.output_loss or ""]
            return solve(record.s, record.b, z_sq, rates, mu, divisor=record.rows, scale=scale)
        rule, s = alpha_rule(layer.activation.name), record.s.mT
        # Rules are element-wise; handed over as the layer left it in memory, nothing is copied.
        if s.is_contiguous():
            return batch_alpha(rule, s, record.b.mT, z_sq.mT, rates, mu, scale=scale).mT
        return batch_alpha(rule, record.s, record.b, z_sq, rates, mu, scale=scale)

    def _solved_exactly(self, layer: ImplicitLayer, record: Record, run: slice) -> bool:
        """Return whether a run solves a layer under its loss; a user's is looked at once."""
        output = method_of(self.members[run.start]).implicit_output
        exact = output and layer is self.layers[-1] and self.output_loss is not None
        if exact and layer.gives_output and not self.steps and self.output_loss == "cross_entropy":
            refuse_soft_targets(record.s, record.b, record.rows, method=True)
        return exact

    def _solve_there(
        self, there: Any, layer: ImplicitLayer, record: Record, travel: Any, exact: bool
    ) -> Tensor | None:
        """Return the alphas of a run by a GPU's kernels; None for what they do not know."""
        seen, name, found = (record.s, record.b, record.z, *travel), layer.activation.name, None
        if exact and self.output_loss == "cross_entropy":
            found = there.solve_cross_entropy(*seen, divisor=record.rows)
        elif not exact and there.has_rule(name):
            found = there.solve_layer(name, *seen)
        return found

    def _solve_rows(self, layer: ImplicitLayer, z: Tensor, lr: Tensor, run: slice) -> None:
        """Replace a hidden layer's gradient by ProxProp's, for a run of members."""
        if layer is self.layers[-1]:
            return
        weight = self.slots.of(layer.weight).grad[run].flatten(2)
        if layer.bias is None or not layer.bias_moves:
            weight.copy_(solved_rows(weight, z, lr))
            return
        bias = self.slots.of(layer.bias).grad[run]
        joined = torch.cat([weight, bias.unsqueeze(-1)], dim=-1)
        # Rows last, as a stack's small layers lie in memory: their products are three times faster.
        found = solved_rows(joined, F.pad(z.mT, (0, 0, 0, 1), value=1.0).mT, lr)
        weight.copy_(found[..., :-1])
        bias.copy_(found[..., -1])

    def _rows_scale(self, run: slice, rows: int) -> float | Tensor:
        """Return `rows_scale` of a run: a number where all its members use one batch rule."""
        rule = self._batch_rules[run.start]
        if rule is not None:
            return rows_scale(rule, REDUCTION, rows)
        key = (run.start, rows)
        if key not in self._scales:
            scales = [rows_scale(m.batch_rule, REDUCTION, rows) for m in self.members[run]]
            self._scales[key] = self._tensor(scales).view(-1, 1, 1)
        return self._scales[key]

    def _add_ridge(self, lr: Tensor, mu: Tensor) -> None:
        """Add the ridge's part of `g`; implicit layers shrink by 1/(1 + lr*mu)."""
        shrunk = torch.where(self._implicit, mu / (1 + lr * mu), mu).unsqueeze(1)
        solved = {id(p) for layer in self.layers for p in (layer.weight, layer.bias)}
        for slot in self.slots.moving():
            pull = shrunk if id(slot.parameter) in solved else mu.unsqueeze(1)
            slot.rows.addcmul_(slot.theta, pull)

    def _describe(self, members: Sequence[Member]) -> None:
        """Turn the members into tensors and runs of neighbours that are treated alike."""
        self.members = tuple(members)
        no_limit = float("inf")
        self._lr = self._tensor([m.lr for m in members])
        self._mu = self._tensor_unless([m.mu for m in members], 0.0)
        self._clip = self._tensor_unless(
            [no_limit if m.clip is None else m.clip for m in members], no_limit
        )
        taus = self._tensor_unless([m.decay_tau or no_limit for m in members], no_limit)
        powers = self._tensor([m.decay_power for m in members])
        self._decay = None if taus is None else (taus, powers)
        self._level_set = self._tensor_unless([self._squared_radius(m) for m in members], no_limit)
        self._plain = (
            self._mu is None
            and self._clip is None
            and all(mover_kind(member) is Plain for member in members)
        )
        self._scheduled = any(member.schedule != CONSTANT for member in members)
        self._ahead = None
        self._implicit = self._tensor([float(method_of(m).implicit) for m in members]) > 0
        runs = runs_of([method_of(m) for m in members])
        self._implicit_runs = [run for run, method in runs if method.implicit]
        self._solving_runs = [run for run, method in runs if method.solves_layers]
        self._all_implicit = self._implicit_runs == [slice(0, len(members))]
        #: The batch rule of every implicit run, None where its members differ.
        self._batch_rules: dict[int, str | None] = {}
        #: Their scales, by number of rows, where they differ.
        self._scales: dict[tuple[int, int], Tensor] = {}
        for run in self._implicit_runs:
            rules = {member.batch_rule for member in members[run]}
            self._batch_rules[run.start] = rules.pop() if len(rules) == 1 else None

    def _thetas(self, run: slice) -> list[Tensor]:
        """Return every parameter of a run of members, [rows, numbers] each."""
        return [slot.theta[run] for slot in self.slots]

    def _squared_radius(self, member: Member) -> float:
        """Return the bound on |theta|^2 beyond which a member restarts."""
        if not member.restart:
            return float("inf")
        if self.loss_at_zero is None:
            raise MisuseError("Restarts need loss_at_zero, the data loss at theta = 0 (App. C).")
        return 2 * self.loss_at_zero / member.mu

    def _tensor(self, values: list[float] | list[list[float]]) -> Tensor:
        like = self.slots.like
        return torch.tensor(values, device=like.device, dtype=like.dtype)

    def _tensor_unless(self, values: list[float], nothing: float) -> Tensor | None:
        return None if all(value == nothing for value in values) else self._tensor(values)
