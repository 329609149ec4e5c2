"""The one list of methods, and one member of a stack.

Whatever lists methods takes them from `METHODS`, in its order: legends, tables, forms, the
catalogue. Nothing here needs torch, so that a page may look a colour up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any

from ib_core.errors import MisuseError
from ib_core.known import Known
from ib_core.methods.schedules import CONSTANT, Schedule
from ib_core.options import Option, choice, number, whole, with_defaults


@dataclass(frozen=True, slots=True)
class Look:
    """What a method's curves look like, in colour, in print and in grey.

    Attributes:
        colour: Of lines and markers (the Okabe-Ito set, safe for colour-blind readers).
        dash: Of lines.
        marker: Plotly's name of the symbol.
        ink_light: The colour darkened until text in it is readable on a light page (WCAG AA).
        ink_dark: The same, lightened for a dark page.
    """

    colour: str
    dash: str
    marker: str
    ink_light: str
    ink_dark: str


#: Methods that have no look of their own take these in turn.
OTHER_LOOKS = (
    Look("#7F3C8D", "solid", "star", ink_light="#7F3C8D", ink_dark="#C98AD6"),
    Look("#11A579", "dash", "hexagon", ink_light="#0B6E51", ink_dark="#3FD3A6"),
    Look("#3969AC", "dot", "pentagon", ink_light="#3969AC", ink_dark="#86AEE3"),
    Look("#80BA5A", "dashdot", "triangle-down", ink_light="#4B7A2A", ink_dark="#A5D884"),
    Look("#A5AA99", "longdash", "bowtie", ink_light="#63675A", ink_dark="#C8CCBF"),
)


class Method:
    """A way of moving weights: anybody's optimizer, or a step of the catalogue's.

    Args:
        factory: An optimizer class of torch's kind, or a function `(params, lr, **options)` that
            returns one. None for a step written for stacks in the module of its name.
        options: What of the factory's arguments a sweep may change. Every method has `schedule`
            and `warmup` besides (`ib_core.methods.schedules`).
        name: Set by the file or the package it comes from.
        title: Its name on screens.
        short: Its name in narrow places.
        summary: One sentence for the catalogue.
        further: What a reader of its curve should know besides: cost, limits, defaults.
        look: Of its curves.
        implicit: Whether layers with a rule move by the implicit step, eq. (7).
        implicit_output: Whether a linear output layer is solved exactly as well.
        exact: Whether the whole network's step is found by an inner optimisation, eq. (1).
        step: How it steps: `plain` for `theta' = theta - lr * g`, else the mover in this package
            that takes its steps, `module.Class`. Empty where a factory does.
        solves_layers: Whether hidden layers solve for their rows' targets (ProxProp).
        copies: How many numbers it remembers for every weight.
    """

    #: Hash of the code that decides it; None where that is the engine's own version.
    code: str | None = None

    def __init__(
        self,
        factory: Callable[..., Any] | None,
        options: Mapping[str, Option] | None = None,
        *,
        name: str = "",
        title: str = "",
        short: str = "",
        summary: str = "",
        further: str = "",
        look: Look = OTHER_LOOKS[0],
        implicit: bool = False,
        implicit_output: bool = False,
        exact: bool = False,
        step: str = "",
        solves_layers: bool = False,
        copies: int | None = None,
    ) -> None:
        if factory is not None and not callable(factory):
            raise MisuseError(
                "A method is an optimizer class or a function (params, lr, **options) that "
                f"returns one; got {type(factory).__name__}."
            )
        self.factory = factory
        given = dict(options or {})
        self.options = with_defaults(given, factory, "the method") if factory else given
        self.name, self.title, self.short = name, title or name, short or title or name
        self.summary, self.further, self.look = summary, further, look
        self.implicit, self.implicit_output, self.exact = implicit, implicit_output, exact
        self.step, self.solves_layers = step, solves_layers
        self.copies = (2 if factory else 0) if copies is None else copies
        #: Values of the options, where a name said them; the schedule's among them.
        self.values: Mapping[str, Any] = {}
        self.schedule: Schedule = CONSTANT

    @property
    def solves_rows(self) -> bool:
        """Whether the batch rule (own or share) matters."""
        return self.implicit

    def saying(self, values: Mapping[str, Any], schedule: Schedule, name: str) -> Method:
        """Return this method with some options said."""
        said = copy(self)
        said.values, said.schedule, said.name = dict(values), schedule, name
        return said


METHODS: dict[str, Method] = {
    "eb": Method(
        None,
        title="Explicit (EB)",
        short="EB",
        summary="Backpropagation with plain gradient steps.",
        further=("The yardstick: headroom and threshold are measured against it."),
        look=Look("#D55E00", "dot", "diamond", ink_light="#A84A00", ink_dark="#FF8A3D"),
        step="plain",
    ),
    "ib": Method(
        None,
        title="Implicit (IB)",
        short="IB",
        summary="Every layer's step solves its own proximal problem, eq. (8); the rest is EB.",
        further=(
            "It costs a little more time a step than EB, and as the rate goes to 0 it becomes EB. "
            "The paper's convolutions are trained explicitly."
        ),
        look=Look("#0072B2", "solid", "circle", ink_light="#00639B", ink_dark="#58B2E8"),
        implicit=True,
        step="plain",
    ),
    "ib_plus": Method(
        None,
        title="Implicit + output (IB+)",
        short="IB+",
        summary="IB whose linear output layer is solved exactly under its loss.",
        further=(
            "IB linearises the loss above every layer, so its last layer still takes steps of "
            "explicit size; IB+ solves that layer with its loss. Only for a linear last layer "
            "under squared error or softmax cross-entropy."
        ),
        look=Look("#009E73", "solid", "square", ink_light="#00704F", ink_dark="#2FCB9E"),
        implicit=True,
        implicit_output=True,
        step="plain",
    ),
    "isgd": Method(
        None,
        title="Exact ISGD",
        short="ISGD",
        summary="The implicit step of the whole network, eq. (1), by an inner optimisation.",
        further=(
            "By default 100 inner gradient steps at a tenth of the rate. `text` pulls back with "
            "weight 1/rate, as the paper writes; `authors` with weight 1, as its runs did."
        ),
        look=Look("#CC79A7", "dashdot", "triangle-up", ink_light="#9A3F70", ink_dark="#E3A3C6"),
        exact=True,
        copies=2,
        options={"isgd_form": choice("text", "authors"), "inner_steps": whole(1, 10_000, 100)},
        step="plain",
    ),
    "momentum": Method(
        None,
        title="SGD + momentum",
        short="Mom.",
        summary="Explicit steps with heavy-ball momentum.",
        further=("For comparison; torch's own."),
        look=Look("#E69F00", "dash", "cross", ink_light="#8A5F00", ink_dark="#F2B840"),
        step="momentum.Momentum",
        copies=1,
        options={"momentum": number(0, 0.9999, 0.9)},
    ),
    "adam": Method(
        None,
        title="Adam",
        short="Adam",
        summary="Explicit steps with per-weight rates (torch's defaults).",
        further=("For comparison; torch's own."),
        look=Look("#56B4E9", "longdash", "x", ink_light="#1B6FA0", ink_dark="#7CC8F2"),
        step="adam.Adam",
        copies=2,
    ),
    "sps": Method(
        None,
        title="Polyak step (SPS)",
        short="SPS",
        summary="EB whose rate is cut to loss/|gradient|^2: no step aims below a loss of 0.",
        further=(
            "SPSmax: the learning rate is its ceiling. It costs one norm more than EB. It needs "
            "losses whose lowest value is near 0; where that is far above, its steps are too long."
        ),
        look=Look("#B4446C", "solid", "hexagon", ink_light="#96305A", ink_dark="#E285A8"),
        step="sps.PolyakStep",
    ),
    "ngn": Method(
        None,
        title="Gauss-Newton rate (NGN)",
        short="NGN",
        summary="EB whose rate shrinks to lr/(1 + lr |gradient|^2/(2 loss)).",
        further=(
            "A Gauss-Newton step on the root of the loss. It costs one norm more than EB, and "
            "needs losses that are positive and come near 0."
        ),
        look=Look("#8A7F00", "solid", "star", ink_light="#6E6500", ink_dark="#CFC23A"),
        step="ngn.NGN",
    ),
    "ngn_m": Method(
        None,
        title="NGN + momentum (NGN-M)",
        short="NGN-M",
        summary="NGN with heavy-ball momentum.",
        further=("It remembers one number a weight, as momentum does."),
        look=Look("#B8A838", "dash", "star-diamond", ink_light="#6E6500", ink_dark="#E0D56A"),
        step="ngn.NGNMomentum",
        copies=1,
        options={"momentum": number(0, 0.9999, 0.9)},
    ),
    "momo": Method(
        None,
        title="Model-based momentum (MoMo)",
        short="MoMo",
        summary="SPS on averages of gradients and losses: momentum whose rate is cut likewise.",
        further=(
            "It remembers one number a weight, and costs two inner products more than momentum."
        ),
        look=Look("#C97B9E", "dash", "hexagon2", ink_light="#96305A", ink_dark="#E5A9C3"),
        step="momo.MoMo",
        copies=1,
        options={"momentum": number(0, 0.9999, 0.9)},
    ),
    "ib_momentum": Method(
        None,
        title="Implicit + momentum",
        short="IB mom.",
        summary="IB's step from a point ahead: theta + m (theta - theta_old).",
        further=("It costs IB's step and remembers one number a weight."),
        look=Look("#3D5FA8", "dash", "circle-open", ink_light="#34508E", ink_dark="#8FA9E3"),
        implicit=True,
        step="ib_momentum.ImplicitMomentum",
        copies=1,
        options={"momentum": number(0, 0.9999, 0.9)},
    ),
    "proxprop": Method(
        None,
        title="ProxProp",
        short="Prox",
        summary="Hidden layers solve for the outputs that a gradient step asks of them.",
        further=(
            "IB's direct rival: it solves for all rows at once and linearises the activation. "
            "Every layer solves a linear system of its inputs or rows, whichever are fewer, which "
            "costs several times EB's step; the last layer steps explicitly."
        ),
        look=Look("#7A5C9E", "dashdot", "pentagon", ink_light="#65498A", ink_dark="#B79BD8"),
        step="proxprop.ProxProp",
        solves_layers=True,
    ),
}


for _name, _method in METHODS.items():
    _method.name = _name

#: Methods from files and packages of this machine's user, by name; `ib_core.own` fills it.
OWN_METHODS: Known[Method] = Known("methods")


def place(method: str) -> int:
    """Return a method's place in legends and tables; those that nobody knows come last."""
    return list(METHODS).index(method) if method in METHODS else len(METHODS)


@dataclass(frozen=True, slots=True)
class Member:
    """How one model of a stack is trained.

    Attributes:
        method: A name in `METHODS`.
        lr: Learning rate, eta.
        clip: Largest global norm of a step's gradient, None for no clipping.
        mu: Ridge strength.
        batch_rule: `own` or `share`; ignored by explicit methods.
        momentum: Heavy-ball momentum of the `momentum` method.
        restart: Return to zero outside the level set of App. C.
        decay_tau: Rates decay as lr/(1 + t/tau)^power; None keeps them constant.
        decay_power: See `decay_tau`.
        isgd_form: Exact ISGD's pull, `text` (1/lr) or `authors` (1).
        inner_steps: Exact ISGD's inner steps.
        schedule: Of the rate, on top of a decay.
        factory: The method's own optimizer; None for a step of the catalogue's.
        options: What its optimizer is made with besides.
    """

    method: str
    lr: float
    clip: float | None = None
    mu: float = 0.0
    batch_rule: str = "own"
    momentum: float = 0.9
    restart: bool = False
    decay_tau: float | None = None
    decay_power: float = 1.0
    isgd_form: str = "text"
    inner_steps: int = 100
    schedule: Schedule = CONSTANT
    factory: Callable[..., Any] | None = None
    options: tuple[tuple[str, Any], ...] = ()

    def rate_factor(self, step: int, total: int) -> float:
        """Return what its rate is multiplied by at a step: schedule and decay."""
        factor = self.schedule.factor(step, total)
        if self.decay_tau is not None:
            factor /= (1 + step / self.decay_tau) ** self.decay_power
        return factor
