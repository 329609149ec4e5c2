"""What a method is, how it looks, its schedule, and one member of a stack; all without torch."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from ib_core.errors import MisuseError
from ib_core.options import Known, Option, choice, number, whole, with_defaults

SCHEDULES = ("constant", "linear", "cosine", "decay")

#: Options that every method has.
OF_EVERY_METHOD: dict[str, Option] = {
    "schedule": choice(*SCHEDULES, default="constant", help="How the rate changes."),
    "warmup": whole(0, 1_000_000, 0, help="Steps in which the rate rises to its full size."),
    "tau": number(1e-6, 1e12, 100.0, help="Of the schedule decay, in steps."),
    "power": number(0.5, 1.0, 1.0, help="Of the schedule decay."),
}


def stayed_at_zero(theta: float | None, restarts: int) -> bool:
    """Return whether restarts (App. C) left a network of norm `theta` at zero: it is broken."""
    return restarts > 0 and theta == 0


@dataclass(frozen=True, slots=True)
class Schedule:
    """What a rate is multiplied by as training goes on, an option of every method.

    | name | factor after the warm-up, `p` the share of steps that is done |
    | --- | --- |
    | `constant` | 1 |
    | `linear` | 1 - p |
    | `cosine` | (1 + cos(pi p)) / 2 |
    | `decay` | 1 / (1 + t/tau)^power, the paper's (App. C) |

    A warm-up of w steps rises to the full rate first: 1/w, 2/w, ... 1.
    """

    schedule: str = "constant"
    warmup: int = 0
    tau: float = 100.0
    power: float = 1.0

    def factor(self, step: int, total: int) -> float:
        """Return what the rate is multiplied by at step `step` (from 0) of `total`."""
        if step < self.warmup:
            return (step + 1) / self.warmup
        done = (step - self.warmup) / max(1, total - self.warmup)
        if self.schedule == "linear":
            return 1.0 - done
        if self.schedule == "cosine":
            return (1 + math.cos(math.pi * done)) / 2
        if self.schedule == "decay":
            return float((1 + (step - self.warmup) / self.tau) ** -self.power)
        return 1.0


CONSTANT = Schedule()


def split_schedule(values: Mapping[str, Any]) -> tuple[Schedule, dict[str, Any]]:
    """Return the schedule that some options say, and the other options."""
    of_schedule = {name: value for name, value in values.items() if name in OF_EVERY_METHOD}
    rest = {name: value for name, value in values.items() if name not in OF_EVERY_METHOD}
    return Schedule(**of_schedule), rest


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
            returns one. None for a step written for stacks in a module of ours.
        options: What of the factory's arguments a sweep may change. Every method has `schedule`
            and `warmup` besides (`OF_EVERY_METHOD`).
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
        implicit_filters: Whether the paper's classifier is built with filters that can take the
            implicit step, and they take it.
        copies: How many numbers it remembers for every weight.
    """

    #: Hash of the code that decides it; None where that is the engine's own version.
    code: str | None = None
    #: Versions of the packages that code uses.
    versions: Mapping[str, str] = MappingProxyType({})
    #: Whether its code is in this process, and not known by its manifest only.
    here = True

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
        implicit_filters: bool = False,
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
        self.implicit_filters = implicit_filters
        self.copies = (2 if factory else 0) if copies is None else copies
        #: Values of the options, where a name said them; the schedule's among them.
        self.values: Mapping[str, Any] = {}
        self.schedule: Schedule = CONSTANT

    @property
    def solves_rows(self) -> bool:
        """Whether the batch rule (own or share) matters."""
        return self.implicit

    @property
    def remembers(self) -> bool:
        """Whether it goes on from what it keeps of earlier steps, as far as is known."""
        return self.factory is not None or (self.copies > 0 and not self.exact)

    def saying(self, values: Mapping[str, Any], schedule: Schedule, name: str) -> Method:
        """Return this method with some options said."""
        said = copy(self)
        said.values, said.schedule, said.name = dict(values), schedule, name
        return said


#: Methods from files and packages of this machine's user, by name; `ib_core.own` fills it.
OWN_METHODS: Known[Method] = Known("methods")


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
