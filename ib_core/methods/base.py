"""What a method is, and one member of a stack."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Method:
    """A way of moving weights.

    Attributes:
        name: Its name in specs and files.
        title: Its name on screens.
        summary: One sentence for the catalogue.
        implicit: Whether layers with a rule move by the implicit step, eq. (7).
        implicit_output: Whether a linear output layer is solved exactly as well.
        exact: Whether the whole network's step is found by an inner optimisation, eq. (1).
    """

    name: str
    title: str
    summary: str
    implicit: bool = False
    implicit_output: bool = False
    exact: bool = False

    @property
    def solves_rows(self) -> bool:
        """Whether the batch rule (own or share) matters."""
        return self.implicit


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method("eb", "Explicit (EB)", "Backpropagation with plain gradient steps."),
        Method(
            "ib",
            "Implicit (IB)",
            "Every layer's step solves its own proximal problem, eq. (8); the rest is EB.",
            implicit=True,
        ),
        Method(
            "ib_plus",
            "Implicit + output (IB+)",
            "IB whose linear output layer is solved exactly under its loss.",
            implicit=True,
            implicit_output=True,
        ),
        Method(
            "isgd",
            "Exact ISGD",
            "The implicit step of the whole network, eq. (1), by an inner optimisation.",
            exact=True,
        ),
        Method("momentum", "SGD + momentum", "Explicit steps with heavy-ball momentum."),
        Method("adam", "Adam", "Explicit steps with per-weight rates (torch's defaults)."),
    )
}


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
