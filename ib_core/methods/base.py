"""The one list of methods, and one member of a stack.

Whatever lists methods takes them from `METHODS`, in its order: legends, tables, forms, the
catalogue. Nothing here needs torch, so that a page may look a colour up.
"""

from dataclasses import dataclass


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


@dataclass(frozen=True, slots=True)
class Method:
    """A way of moving weights.

    Attributes:
        title: Its name on screens.
        short: Its name in narrow places.
        summary: One sentence for the catalogue.
        further: What a reader of its curve should know besides: cost, limits, defaults.
        look: Of its curves.
        implicit: Whether layers with a rule move by the implicit step, eq. (7).
        implicit_output: Whether a linear output layer is solved exactly as well.
        exact: Whether the whole network's step is found by an inner optimisation, eq. (1).
        own_step: Whether the module of its name here has a `MOVER`; without, steps are plain.
        copies: How many numbers it remembers for every weight.
        options: Options of a sweep that only it reads.
    """

    title: str
    short: str
    summary: str
    further: str
    look: Look
    implicit: bool = False
    implicit_output: bool = False
    exact: bool = False
    own_step: bool = False
    copies: int = 0
    options: tuple[str, ...] = ()

    @property
    def solves_rows(self) -> bool:
        """Whether the batch rule (own or share) matters."""
        return self.implicit


METHODS: dict[str, Method] = {
    "eb": Method(
        "Explicit (EB)",
        "EB",
        "Backpropagation with plain gradient steps.",
        "The yardstick: headroom and threshold are measured against it.",
        Look("#D55E00", "dot", "diamond", ink_light="#A84A00", ink_dark="#FF8A3D"),
    ),
    "ib": Method(
        "Implicit (IB)",
        "IB",
        "Every layer's step solves its own proximal problem, eq. (8); the rest is EB.",
        "It costs a little more time a step than EB, and as the rate goes to 0 it becomes EB. "
        "Convolutions have no implicit step and are trained explicitly.",
        Look("#0072B2", "solid", "circle", ink_light="#00639B", ink_dark="#58B2E8"),
        implicit=True,
    ),
    "ib_plus": Method(
        "Implicit + output (IB+)",
        "IB+",
        "IB whose linear output layer is solved exactly under its loss.",
        "IB linearises the loss above every layer, so its last layer still takes steps of "
        "explicit size; IB+ solves that layer with its loss. Only for a linear last layer under "
        "squared error or softmax cross-entropy.",
        Look("#009E73", "solid", "square", ink_light="#00704F", ink_dark="#2FCB9E"),
        implicit=True,
        implicit_output=True,
    ),
    "isgd": Method(
        "Exact ISGD",
        "ISGD",
        "The implicit step of the whole network, eq. (1), by an inner optimisation.",
        "By default 100 inner gradient steps at a tenth of the rate. `text` pulls back with "
        "weight 1/rate, as the paper writes; `authors` with weight 1, as its runs did.",
        Look("#CC79A7", "dashdot", "triangle-up", ink_light="#9A3F70", ink_dark="#E3A3C6"),
        exact=True,
        copies=2,
        options=("isgd_form", "inner_steps"),
    ),
    "momentum": Method(
        "SGD + momentum",
        "Mom.",
        "Explicit steps with heavy-ball momentum.",
        "For comparison; torch's own.",
        Look("#E69F00", "dash", "cross", ink_light="#8A5F00", ink_dark="#F2B840"),
        own_step=True,
        copies=1,
        options=("momentum",),
    ),
    "adam": Method(
        "Adam",
        "Adam",
        "Explicit steps with per-weight rates (torch's defaults).",
        "For comparison; torch's own.",
        Look("#56B4E9", "longdash", "x", ink_light="#1B6FA0", ink_dark="#7CC8F2"),
        own_step=True,
        copies=2,
    ),
}


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
