"""Records a stack while it trains, member by member, and changes nothing about it.

Norms are taken of what a step leaves behind anyway. Sharpness is the largest eigenvalue of the
Hessian of the mean training loss (ridge included) over up to `SAMPLE_ROWS` rows, the same for
everybody, found by power iteration on Hessian-vector products, sped up: for plain gradient steps,
2/rate is the sharpness above which they grow.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from ib_core.layers import ImplicitLayer, Outputs, Record, merge, twice_differentiable
from ib_core.methods import METHODS, StackOptimizer, layer_of
from ib_core.sweep.cost import SAMPLE_ROWS
from ib_core.sweep.recording import LOOKS, OF_LAYER, OF_ROW, Recording
from ib_core.sweep.spec import TrialSpec
from ib_core.tasks import Workload

#: Hessian-vector products of one measurement at most, and the share of `|Hx - lambda x|` in
#: `|lambda x|` that ends it earlier: the eigenvalue is off by about its square.
MOST_PRODUCTS, TOLERANCE = 40, 0.02
#: How much of other directions is mixed into the one found last time.
NEWS = 0.1
#: Of three directions, one that the others hold but for this is none.
DEPENDENT = 1e-6

Closure = Callable[[], Tensor]
Vectors = list[Tensor]


class Recorder:
    """Watches a stack's steps and evaluations; what nobody asked for costs nothing.

    Args:
        trials: The members in stack order; their wishes say what is kept.
        model: The stack.
        optimizer: What moves it.
        workload: What feeds it.
        total_steps: Of the whole training.
    """

    def __init__(
        self,
        trials: Sequence[TrialSpec],
        model: nn.Module,
        optimizer: StackOptimizer,
        workload: Workload,
        total_steps: int,
    ) -> None:
        self.model, self.optimizer, self.workload = model, optimizer, workload
        self.taken, self.note = 0, ""
        wishes = [trial.wish for trial in trials if trial.wish is not None]
        self.steps = {step for wish in wishes for step in wish.steps(total_steps)}
        sharp = [wish for wish in wishes if "sharpness" in wish.what]
        self.sharp_steps = {step for wish in sharp for step in wish.sharp_steps(total_steps)}
        self.norms = any("norms" in wish.what for wish in wishes)
        self.sharpness = bool(sharp)
        self.wanted = [trial.wish is not None for trial in trials]
        self.mu = torch.tensor([trial.mu for trial in trials])
        names = (slot.name for slot in optimizer.slots) if self.norms else ()
        self.layers = tuple(dict.fromkeys(map(layer_of, names)))
        self._rows: list[list[list[float]]] = [[] for _ in trials]
        self._sharp: list[list[tuple[int, float]]] = [[] for _ in trials]
        self._before: list[Tensor] = []
        self._vectors: Vectors = []
        looked_at = any("activations" in wish.what for wish in wishes)
        self.outputs = Outputs(model, alone=optimizer.slots.alone) if looked_at else None
        self._sizes: list[list[list[float]]] = [[] for _ in trials]

    def step(self, closure: Closure) -> Tensor:
        """Let the optimizer take a step and return its losses; note what somebody asked for."""
        losses = self._stepped(closure)
        self._look()
        return losses

    def _look(self) -> None:
        """Note how large every layer's outputs are on the sample, and how far they have come."""
        if self.outputs is None or self.taken not in LOOKS:
            return
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            run = partial(self.workload.sampled_losses, self.model, SAMPLE_ROWS)
            found = self.outputs.look(run, len(self.wanted))
        for member, sizes in enumerate(found.tolist()):
            self._sizes[member].append([self.taken, *sizes])

    def _stepped(self, closure: Closure) -> Tensor:
        self.taken += 1
        if self.taken in self.sharp_steps:
            self._measure(self.taken - 1)
        if self.taken not in self.steps:
            return self.optimizer.step(closure)
        slots = self.optimizer.slots
        self._before = [slot.theta.clone() for slot in slots] if self.norms else []
        gradients: list[Tensor] = []

        def watched() -> Tensor:
            losses = closure()
            if self.norms and not gradients:  # exact ISGD passes many times
                gradients.extend(self._gradients())
            return losses

        rates = self.optimizer.current_lr()
        losses = self.optimizer.step(watched)
        rates = rates if len(rates) == len(losses) else self.optimizer.current_lr()
        moves = [
            _norm(slot.theta - start) for slot, start in zip(slots, self._before, strict=False)
        ]
        self._before = []
        self._append(self.taken, losses, rates, [self._weights(), *gradients], moves)
        return losses

    def evaluated(self, losses: Sequence[float]) -> None:
        """Note the initial weights, and the sharpness; called after every evaluation.

        Args:
            losses: Every member's loss over the whole training set.
        """
        if self.taken == 0 and self.steps:
            nothing = torch.full((len(losses), len(self.layers)), torch.nan)
            rates, layered = self.optimizer.current_lr(), [self._weights(), nothing, nothing]
            self._append(0, torch.tensor(losses), rates, layered, None)
            self._look()
        if self.sharpness:
            self._measure(self.taken)

    def keep(self, kept: Tensor) -> None:
        """Keep only these members (indices, rising)."""
        rows = kept.tolist()
        self.wanted = [self.wanted[row] for row in rows]
        self._rows = [self._rows[row] for row in rows]
        self._sharp = [self._sharp[row] for row in rows]
        self._sizes = [self._sizes[row] for row in rows]
        if self.outputs is not None:
            self.outputs.keep(kept)
        self._before = [before[kept] for before in self._before]
        self._vectors = [vector[kept] for vector in self._vectors]
        self.mu = self.mu[kept.cpu()]

    def of(self, row: int) -> Recording | None:
        """Return what was kept of a member; None if nobody asked for it.

        One that stopped being finite within a step gets a row of that step: weights, and nothing.
        """
        if not self.wanted[row]:
            return None
        width = len(OF_ROW) + len(OF_LAYER) * len(self.layers)
        outputs = () if self.outputs is None else self.outputs.names
        rows = list(self._rows[row])
        if rows and rows[-1][0] < self.taken:
            weights = self._weights()[row].tolist()
            lost = [np.nan] * (width - len(OF_ROW) - len(weights))
            rows.append([self.taken, np.nan, rows[-1][2], *weights, *lost])
        return Recording(
            self.layers,
            np.array(rows, dtype=np.float64).reshape(-1, width),
            np.array(self._sharp[row], dtype=np.float64).reshape(-1, 2),
            self.note,
            outputs,
            np.array(self._sizes[row], dtype=np.float64).reshape(-1, 1 + 2 * len(outputs)),
        )

    def _append(
        self,
        step: int,
        losses: Tensor,
        rates: Tensor,
        layered: Sequence[Tensor],
        moves: Sequence[Tensor] | None,
    ) -> None:
        """Note a row of every member.

        Args:
            step: Which.
            losses: [members].
            rates: [members].
            layered: Weights, gradients and damping, [members, layers] each.
            moves: The parameters' steps, [members] each; None for none.
        """
        columns = [losses.double().cpu().unsqueeze(1), rates.double().cpu().unsqueeze(1)]
        if self.norms:
            weights, gradients, damping = (part.double().cpu() for part in layered)
            moved = torch.full_like(weights, torch.nan)
            if moves is not None:
                moved = self._by_layer(moves)
            columns += [weights, gradients, moved, damping]
        for rows, numbers in zip(self._rows, torch.cat(columns, dim=1).tolist(), strict=True):
            rows.append([step, *numbers])

    def _weights(self) -> Tensor:
        """Return the layers' norms, [members, layers]."""
        if not self.norms:
            return torch.empty(len(self.wanted), 0)
        return self._by_layer([_norm(slot.theta) for slot in self.optimizer.slots])

    def _by_layer(self, norms: Sequence[Tensor]) -> Tensor:
        """Return the layers' norms, [members, layers], of those of their parameters."""
        squares = {
            layer: torch.zeros(len(self.wanted), dtype=torch.float64) for layer in self.layers
        }
        for slot, norm in zip(self.optimizer.slots, norms, strict=True):
            squares[layer_of(slot.name)] += norm.cpu().square()
        return torch.stack(list(squares.values()), dim=1).sqrt()

    def _gradients(self) -> tuple[Tensor, Tensor]:
        """Return the norms of the loss's own gradient, and the damping, [members, layers] each."""
        slots, found = self.optimizer.slots, {}
        damping = torch.full((len(self.wanted), len(self.layers)), torch.nan, dtype=torch.float64)
        with torch.no_grad():
            for layer in self.optimizer.layers:
                if not layer.records:
                    continue
                record = merge(layer.records)
                delta = _explicit(layer, record)
                found[id(layer.weight)] = _norm((delta.mT @ record.z).flatten(1))
                if layer.bias is not None:
                    found[id(layer.bias)] = _norm(delta.sum(-2))
                place = self.layers.index(layer_of(slots.of(layer.weight).name))
                damping[:, place] = self._damping(layer, record, delta)
            nothing = torch.zeros(len(self.wanted), dtype=torch.float64)
            for slot in slots:
                grad = slot.parameter.grad
                if grad is not None:
                    found[id(slot.parameter)] = _norm(grad.reshape(len(self.wanted), -1))
        norms = [found.get(id(slot.parameter), nothing) for slot in slots]
        return self._by_layer(norms), damping

    def _damping(self, layer: ImplicitLayer, record: Record, delta: Tensor) -> Tensor:
        """Return the mean of `alpha / (sigma'(s) b)`, where that is defined, [members].

        NaN for members that step explicitly.
        """
        ratio = self.optimizer.solved(layer, record).double() / delta.double()
        ratio = torch.where(delta != 0, ratio, torch.nan)
        mean = torch.where(ratio.isfinite(), ratio, torch.nan).flatten(1).nanmean(1).cpu()
        members = self.optimizer.members
        implicit = [m.factory is None and METHODS[m.method].implicit for m in members]
        return torch.where(torch.tensor(implicit), mean, torch.nan)

    def _measure(self, step: int) -> None:
        """Note every member's sharpness."""
        if not self.sharpness:
            return
        parameters = trained_parameters(self.model)
        try:
            with (
                torch.enable_grad(),
                torch.random.fork_rng(devices=[]),
                twice_differentiable(self.model),
            ):
                losses = self.workload.sampled_losses(self.model, SAMPLE_ROWS)
                found, self._vectors = largest_curvature(losses, parameters, self._vectors)
        except RuntimeError as error:
            self.note = f"Sharpness could not be taken: {str(error).splitlines()[0]}"
            self.sharpness = False
            return
        for sharp, value in zip(self._sharp, (found + self.mu).tolist(), strict=True):
            if not sharp or sharp[-1][0] < step:
                sharp.append((step, value))


def trained_parameters(model: nn.Module) -> list[nn.Parameter]:
    """Return what the model's losses are functions of: a bridge's model, not its twins."""
    base = getattr(model, "base", model) if hasattr(model, "twins") else model
    return [parameter for parameter in base.parameters() if parameter.requires_grad]


def largest_curvature(
    losses: Tensor, parameters: Sequence[Tensor], start: Vectors | None = None
) -> tuple[Tensor, Vectors]:
    """Return the largest eigenvalue of every member's Hessian, [members], and its vectors.

    Args:
        losses: [members], with a graph that can be differentiated twice.
        parameters: Members in front, [members, ...], or those of one model.
        start: Vectors to begin with, [members, numbers] each; without, the same for all members.
    """
    members = len(losses)
    gradients = torch.autograd.grad(
        losses.sum(), parameters, create_graph=True, allow_unused=True, materialize_grads=True
    )

    def product(vectors: Vectors) -> Vectors:
        outer = [v.view(p.shape) for v, p in zip(vectors, parameters, strict=True)]
        found = torch.autograd.grad(
            gradients,
            parameters,
            outer,
            retain_graph=True,
            allow_unused=True,
            materialize_grads=True,
        )
        return [part.reshape(members, -1) for part in found]

    if not any(gradient.requires_grad for gradient in gradients):  # a linear loss is flat
        return torch.zeros(members), []
    drawn = _unit(_drawn(parameters, members))
    if start:  # the direction found last time, and a little of every other
        drawn = [old + NEWS * new for old, new in zip(start, drawn, strict=True)]
    largest, vectors = _climb(product, _unit(drawn))
    return largest, [torch.nan_to_num(vector.detach(), nan=1.0) for vector in vectors]


def _climb(product: Callable[[Vectors], Vectors], x: Vectors) -> tuple[Tensor, Vectors]:
    """Return the largest eigenvalue, [members], and its vectors.

    Plain power iteration goes from x to Hx. Here the best direction is taken within the span of x,
    of the residual `Hx - lambda x`, and of the last move, for the same one product a round: where
    eigenvalues lie close together that takes tens of rounds in place of hundreds, and it finds the
    largest, not the one of largest size. A member that has settled keeps its value whatever its
    neighbours still need.
    """
    members, device = len(x[0]), x[0].device
    hx, last, hlast = product(x), [torch.zeros_like(v) for v in x], [torch.zeros_like(v) for v in x]
    value = _inner(x, hx)
    settled = torch.zeros(members, dtype=torch.bool, device=device)
    for _ in range(MOST_PRODUCTS - 1):
        level = value.unsqueeze(1).to(x[0].dtype)
        residual = [h - level * v for h, v in zip(hx, x, strict=True)]
        left = _inner(residual, residual).sqrt()
        settled |= ~left.isfinite() | (left <= TOLERANCE * value.abs())
        if bool(settled.all()):
            break
        residual = _unit(residual)
        basis, images = (x, residual, last), (hx, product(residual), hlast)
        mix = _best_mix(basis, images)
        moves, moved = (_mixed(parts, mix, (1, 2)) for parts in (basis, images))
        going = ~settled.unsqueeze(1)
        first = mix[:, :1].to(x[0].dtype)
        there = [first * v + m for v, m in zip(x, moves, strict=True)]
        image = [first * h + m for h, m in zip(hx, moved, strict=True)]
        x, hx = (_kept(going, new, old) for new, old in ((there, x), (image, hx)))
        last, hlast = moves, moved
        value = torch.where(settled, value, _inner(x, hx) / _inner(x, x))
    return torch.where(value.isfinite(), value, torch.nan).float().cpu(), _unit(x)


def _best_mix(basis: Sequence[Vectors], images: Sequence[Vectors]) -> Tensor:
    """Return the unit mixture of the vectors with the largest `<v, Hv>`, [members, vectors]."""
    gram = torch.stack([torch.stack([_inner(a, b) for b in basis], -1) for a in basis], -1)
    steep = torch.stack([torch.stack([_inner(a, b) for b in images], -1) for a in basis], -1)
    gram, steep = gram.nan_to_num(0.0, 0.0, 0.0), steep.nan_to_num(0.0, 0.0, 0.0)
    sizes, axes = torch.linalg.eigh((gram + gram.mT) / 2)
    usable = sizes > DEPENDENT * sizes[:, -1:]
    scale = torch.where(usable, sizes, 1.0).rsqrt() * usable
    whitened = axes * scale.unsqueeze(1)
    inside = whitened.mT @ ((steep + steep.mT) / 2) @ whitened
    below = 1 + 2 * inside.abs().amax((1, 2)).unsqueeze(1)  # no direction at all is never the best
    inside = inside - torch.diag_embed(torch.where(usable, 0.0, below))
    found: Tensor = (whitened @ torch.linalg.eigh(inside).eigenvectors[..., -1:]).squeeze(-1)
    return found


def _mixed(parts: Sequence[Vectors], mix: Tensor, which: Sequence[int]) -> Vectors:
    weights = [mix[:, place : place + 1].to(parts[0][0].dtype) for place in which]
    chosen = [parts[place] for place in which]
    return [
        torch.stack([w * v for w, v in zip(weights, vectors, strict=True)]).sum(0)
        for vectors in zip(*chosen, strict=True)
    ]


def _kept(going: Tensor, new: Vectors, old: Vectors) -> Vectors:
    return [torch.where(going, a, b) for a, b in zip(new, old, strict=True)]


def _drawn(parameters: Sequence[Tensor], members: int) -> Vectors:
    """Return one random vector, the same for every member and every run."""
    source = torch.Generator().manual_seed(0)
    sizes = [parameter.numel() // members for parameter in parameters]
    return [
        torch.randn(size, generator=source).to(p.device, p.dtype).expand(members, size)
        for size, p in zip(sizes, parameters, strict=True)
    ]


def _inner(one: Vectors, other: Vectors) -> Tensor:
    parts = [(a.double() * b.double()).sum(1) for a, b in zip(one, other, strict=True)]
    return torch.stack(parts).sum(0)


def _unit(vectors: Vectors) -> Vectors:
    length = _inner(vectors, vectors).sqrt().clamp(min=1e-300).unsqueeze(1)
    return [(vector / length).to(vector.dtype) for vector in vectors]


def _explicit(layer: ImplicitLayer, record: Record) -> Tensor:
    """Return `sigma'(s) b`."""
    if record.delta is not None:
        return record.delta
    return layer.activation.gradient(record.s, record.b)


def _norm(rows: Tensor) -> Tensor:
    """Return the norm of every member's row, [members]; float64 holds squares of large floats."""
    norms: Tensor = torch.linalg.vector_norm(rows.detach(), dim=1, dtype=torch.float64)
    return norms
