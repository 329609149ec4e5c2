"""Implicit backpropagation as a torch optimizer, for anybody's training loop."""

from collections.abc import Callable, Iterable
from typing import Any, overload

import torch
from torch import Tensor, nn

from ib_core.errors import InvalidSpec, MisuseError
from ib_core.layers import ImplicitLayer, ImplicitLinear, Record, merge
from ib_core.updates import (
    OUTPUT_ALPHAS,
    alpha_rule,
    batch_alpha,
    clip_factor,
    refuse_soft_targets,
    rows_scale,
)


class ImplicitSGD(torch.optim.Optimizer):
    """SGD whose implicit layers (dense, convolution, recurrent) take the implicit step, eq. (7).

    Use it like any torch optimizer::

        model = nn.Sequential(ImplicitLinear(784, 100), ImplicitLinear(100, 10, "linear"))
        optimizer = ImplicitSGD(model, lr=1.0)
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    All other parameters (`nn.Conv2d`, norms, embeddings) take explicit steps. An implicit
    layer's weight has no `.grad`: its step is made from what the backward pass left in it.

    * Gradient accumulation works: all rows since the last step are one batch, so divide each
      loss by the number of passes, as usual. So does a second backward through one graph.
    * A layer used twice in one pass is treated as a recurrent one: its uses are rows.
    * A frozen layer (`requires_grad_(False)`) stays where it is; gradients flow through it.
    * Evaluation between steps leaves no trace, with or without `torch.no_grad()`.

    Args:
        model: The model, or a list of torch's parameter groups given as
            `[{"params": ..., "lr": ...}]` through `groups`.
        lr: Learning rate, eta. Torch's schedulers work on it.
        mu: Ridge strength; the implicit layers shrink by 1/(1 + lr*mu).
        clip: Largest global norm of `(theta - theta')/lr` over all parameters, None for none.
        batch_rule: `own` or `share`, see `ib_core.updates.node`.
        output_loss: `cross_entropy` or `squared_error` makes the last linear layer implicit
            under exactly torch's loss of that name; None leaves it linearised.
        reduction: How the loss is reduced over rows, `mean` or `sum`.
        groups: Optional parameter groups with rates of their own; parameters of `model` that
            are in none of them form a group with `lr`.
    """

    def __init__(
        self,
        model: nn.Module,
        lr: float,
        mu: float = 0.0,
        clip: float | None = None,
        batch_rule: str = "own",
        output_loss: str | None = None,
        reduction: str = "mean",
        *,
        groups: Iterable[dict[str, Any]] = (),
    ) -> None:
        _check(lr, mu, clip, batch_rule, output_loss, reduction)
        if not isinstance(model, nn.Module):
            raise MisuseError(
                "ImplicitSGD needs the model itself, because the layers hold what the implicit "
                "step is made of: ImplicitSGD(model, lr), not ImplicitSGD(model.parameters(), lr)."
            )
        given = [dict(group, params=list(group["params"])) for group in groups]
        taken = {id(p) for group in given for p in group["params"]}
        rest = [p for p in model.parameters() if id(p) not in taken]
        super().__init__([*given, {"params": rest}] if rest else given, {"lr": lr, "mu": mu})
        self.clip, self.batch_rule, self.reduction = clip, batch_rule, reduction
        self.output_loss = output_loss
        self.layers = [layer for layer in model.modules() if isinstance(layer, ImplicitLayer)]
        if not self.layers:
            raise MisuseError(
                "This model has no implicit layer; use ImplicitLinear, ImplicitConv2d or "
                "ImplicitRNN in it, or torch.optim.SGD."
            )
        if any(layer.members is not None for layer in self.layers):
            raise MisuseError("ImplicitSGD trains one model; stacks have StackOptimizer.")
        self._output = self._output_layer() if output_loss else None
        for layer in self.layers:
            layer.implicit = True

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget all gradients and everything the layers remember."""
        super().zero_grad(set_to_none)
        for layer in self.layers:
            layer.records.clear()

    @overload
    def step(self, closure: None = None) -> None: ...

    @overload
    def step(self, closure: Callable[[], float]) -> float: ...

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """Move all parameters by one step; what the layers remembered is used up.

        Raises:
            MisuseError: If no backward pass reached an implicit layer since the last step.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        gradients = self._gradients()
        if self.clip is not None:
            moves = list(gradients.values())
            torch._foreach_mul_(moves, clip_factor(torch._foreach_norm(moves), self.clip))
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter in gradients:
                    parameter.add_(gradients[parameter], alpha=-float(group["lr"]))
        return loss

    def _gradients(self) -> dict[Tensor, Tensor]:
        """Return `(theta - theta')/lr` of every parameter that moves."""
        settings = {p: group for group in self.param_groups for p in group["params"]}
        found: dict[Tensor, Tensor] = {}
        for layer in self.layers:
            if layer.records:
                record = merge(layer.records)
                layer.records.clear()
                group = settings[layer.weight]
                found.update(self._implicit(layer, record, float(group["lr"]), group["mu"]))
        if not found and any(layer.weight.requires_grad for layer in self.layers):
            raise MisuseError(
                "No backward pass has reached an implicit layer since the last step: call "
                "loss.backward() before optimizer.step(), once for every step."
            )
        for parameter, group in settings.items():
            if parameter.grad is not None and parameter not in found:
                found[parameter] = parameter.grad.add(parameter, alpha=group["mu"])
        return found

    def _implicit(
        self, layer: ImplicitLayer, record: Record, lr: float, mu: float
    ) -> dict[Tensor, Tensor]:
        z_sq = record.z_squared(layer.bias_moves)
        scale = rows_scale(self.batch_rule, self.reduction, record.rows)
        if layer is self._output and self.output_loss is not None:
            divisor = 1 if self.reduction == "sum" else record.rows
            summed = self.reduction == "sum" and self.output_loss == "squared_error"
            if self.output_loss == "cross_entropy":
                refuse_soft_targets(record.s, record.b, divisor)
            solve = OUTPUT_ALPHAS["summed_squared_error" if summed else self.output_loss]
            alpha = solve(record.s, record.b, z_sq, lr, mu, divisor=divisor, scale=scale)
        else:
            rule = alpha_rule(layer.activation.name)
            alpha = batch_alpha(rule, record.s, record.b, z_sq, lr, mu, scale=scale)
        shrink = mu / (1 + lr * mu)
        found: dict[Tensor, Tensor] = {layer.weight: (alpha.mT @ record.z).view_as(layer.weight)}
        if layer.bias is not None and layer.bias_moves:
            found[layer.bias] = alpha.sum(-2)
        if mu:
            for parameter, gradient in found.items():
                gradient.add_(parameter, alpha=shrink)
        return found

    def _output_layer(self) -> ImplicitLayer:
        last = self.layers[-1]
        if type(last) is not ImplicitLinear or last.activation.name != "linear":
            raise MisuseError(
                f"output_loss={self.output_loss!r} solves a linear output layer, but the last "
                f"implicit layer has activation {last.activation.name!r}. Give it "
                "activation='linear', or leave output_loss out."
            )
        return last


def _check(
    lr: float,
    mu: float,
    clip: float | None,
    batch_rule: str,
    output_loss: str | None,
    reduction: str,
) -> None:
    if not 0 < float(lr) < float("inf"):
        raise InvalidSpec(f"lr must be a positive number; got {lr}.", field="lr")
    if not 0 <= mu < float("inf"):
        raise InvalidSpec(f"mu must be zero or a positive number; got {mu}.", field="mu")
    if clip is not None and not clip > 0:
        raise InvalidSpec(f"clip must be None or a positive norm; got {clip}.", field="clip")
    choices: tuple[tuple[str, str | None, tuple[str | None, ...]], ...] = (
        ("batch_rule", batch_rule, ("own", "share")),
        ("reduction", reduction, ("mean", "sum")),
        ("output_loss", output_loss, (None, "cross_entropy", "squared_error")),
    )
    for name, value, known in choices:
        if value not in known:
            raise InvalidSpec(
                f"{name} must be one of {', '.join(map(str, known))}; got {value!r}.", field=name
            )
