"""What the API answers about the toy pictures, worked out by hand from the paper's formulas."""

from collections.abc import Callable

from backend.schemas import NodeStep, PathRead, QuadraticRead, Samples, StepSweep, UpdateRead


def line(low: float, high: float, f: Callable[[float], float], count: int = 301) -> Samples:
    xs = [low + (high - low) * i / (count - 1) for i in range(count)]
    return Samples(x=xs, y=[f(x) for x in xs])


def quadratic_view(
    lr: float = 1.75, start: float = 2.0, steps: int = 10, curvature: float = 1.0
) -> QuadraticRead:
    """The paper's first figure: each step multiplies theta by one factor."""

    def loss(theta: float) -> float:
        return curvature * theta * theta / 2

    def path(method: str, factor: float) -> PathRead:
        theta = [start * factor**step for step in range(steps + 1)]
        verdict = "converges" if abs(factor) < 1 else "diverges"
        losses = [loss(at) for at in theta]
        return PathRead.model_validate(
            {
                "method": method,
                "theta": theta,
                "loss": losses,
                "factor": factor,
                "verdict": verdict,
            }
        )

    reach = 1.5 * abs(start)
    return QuadraticRead(
        loss="quadratic",
        curvature=curvature,
        start=start,
        lr=lr,
        steps=steps,
        stability_limit=2 / curvature,
        minimum=0.0,
        function=line(-reach, reach, loss),
        paths=[path("esgd", 1 - lr * curvature), path("isgd", 1 / (1 + lr * curvature))],
    )


def relu(x: float) -> float:
    return max(x, 0.0)


def relu_alpha(method: str, s: float, b: float, lr: float) -> float:
    """The paper's Table 1 with |z|^2 = 1 and mu = 0."""
    if method == "eb":
        return b if s > 0 else 0.0
    if b > 0:
        return min(b, relu(s) / lr)
    return b if s > lr * b / 2 else 0.0


def relu_view(s: float = 0.3, b: float = 1.0, lr: float = 1.0) -> UpdateRead:
    """The paper's relu figure."""
    curve = line(-3.0, 3.0, relu)
    signs = [(method, s * sign, b * sign) for sign in (1, -1) for method in ("eb", "ib")]
    return UpdateRead(
        activation="relu",
        lr=lr,
        z_sq=1.0,
        mu=0.0,
        function=curve,
        steps=[relu_step(method, at, push, lr) for method, at, push in signs],
        s=curve.x,
        sweeps=[relu_sweep(method, curve.x, push, lr) for method, _, push in signs],
        jump=-lr * b / 2,
    )


def relu_step(method: str, s: float, b: float, lr: float) -> NodeStep:
    alpha = relu_alpha(method, s, b, lr)
    landing = s - lr * alpha
    return NodeStep.model_validate(
        {
            "method": method,
            "b": b,
            "s": s,
            "alpha": alpha,
            "landing": landing,
            "value": relu(landing),
            "loss": b * relu(landing),
            "origin": relu(s),
            "change": b * (relu(landing) - relu(s)),
            "case": "stops at the hinge",
        }
    )


def relu_sweep(method: str, places: list[float], b: float, lr: float) -> StepSweep:
    landings = [s - lr * relu_alpha(method, s, b, lr) for s in places]
    return StepSweep.model_validate(
        {
            "method": method,
            "b": b,
            "step": [s - landing for s, landing in zip(places, landings, strict=True)],
            "landing": landings,
            "loss": [b * relu(landing) for landing in landings],
        }
    )
