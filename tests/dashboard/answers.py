"""Answers like the real API's, from a formula instead of training."""

import math
from datetime import UTC, datetime
from typing import Any

from backend.client import ApiError
from backend.schemas import (
    ActivationRead,
    BesideRead,
    CatalogRead,
    DefaultsRead,
    LearningRateRead,
    LearningSeriesRead,
    MethodRead,
    PairedPointRead,
    PairedRead,
    PairRead,
    PresetRead,
    RatePointRead,
    RecordingRead,
    SeedRead,
    SeriesRead,
    TaskRead,
    TrialRead,
    TrialState,
)

NOW = datetime(2026, 11, 16, 3, 0, tzinfo=UTC)
RATES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
SEEDS = (1, 2, 3)
INITIAL = 2.31


def loss(method: str, lr: float, seed: int) -> float | None:
    """Return a loss: EB breaks at 3 and leaves the finite numbers at 100, IB hardly minds."""
    wobble = 1 + 0.03 * math.sin(7 * seed + lr)
    valley = 0.12 + 0.35 * math.log10(lr / 0.3) ** 2
    if method == "eb" and lr >= 3:
        return None if lr >= 100 and seed > 1 else valley * (lr / 1.5) ** (1 + 0.2 * seed) * wobble
    return min(valley * wobble, 2.0) * (0.8 if method == "ib" and lr > 1 else 1)


def outcome(value: float | None) -> str:
    return "diverged" if value is None or value > 5 * INITIAL else "completed"


def key(method: str, clip: float | None = None) -> dict[str, Any]:
    return {
        "method": method,
        "task": "digits_mlp",
        "profile": "text",
        "batch_rule": "own" if method == "ib" else None,
        "activation": "arctan",
        "clip": clip,
        "mu": 0.0,
        "epochs": 5,
        "batch_size": 100,
        "options": {},
        "imported": False,
    }


def point(method: str, lr: float, first_id: int, factor: float = 1.0) -> RatePointRead:
    values = [(seed, loss(method, lr, seed)) for seed in SEEDS]
    seeds = [
        SeedRead(
            seed=seed,
            value=None if value is None else value * factor,
            outcome=outcome(value),
            trial_id=first_id + index,
        )
        for index, (seed, value) in enumerate(values)
    ]
    finite = [seed.value for seed in seeds if seed.value is not None]
    mean = sum(finite) / len(finite) if finite else None
    diverged = sum(seed.outcome == "diverged" for seed in seeds)
    return RatePointRead(
        lr=lr,
        mean=mean if len(finite) == len(SEEDS) else None,
        finite_mean=mean,
        low=min(finite) if finite else None,
        high=max(finite) if finite else None,
        n=len(SEEDS),
        n_finite=len(finite),
        diverged=diverged,
        diverged_low=max(0.0, diverged / 3 - 0.2),
        diverged_high=min(1.0, diverged / 3 + 0.4),
        seeds=seeds,
    )


def series(
    method: str, *, clip: float | None = None, study_id: int = 1, label: str | None = None
) -> SeriesRead:
    start = {"eb": 1, "ib": 101}.get(method, 201) + (300 if clip else 0)
    return SeriesRead(
        **key(method, clip),
        id=f"{study_id}-{method}-{clip}",
        study_id=study_id,
        label=label or method,
        threshold=1.2,
        points=[
            point(method, lr, start + 3 * index, 0.9 if clip else 1.0)
            for index, lr in enumerate(RATES)
        ],
    )


def learnt(one: SeriesRead) -> LearningSeriesRead:
    """Return losses over training that end as a series says."""
    rates = [
        LearningRateRead(
            lr=point.lr,
            n=point.n,
            steps=[0, 10, 20],
            epochs=[0.0, 1.0, 2.0],
            mean=[INITIAL, 1.0 if point.mean else None, point.mean],
            broken=[0, point.diverged, point.diverged],
            seeds=[
                {"trial_id": s.trial_id, "seed": s.seed, "values": [INITIAL, 1.0, s.value]}
                for s in point.seeds
            ],
        )
        for point in one.points
    ]
    return LearningSeriesRead(id=one.id, rates=rates)


def task(name: str = "digits_mlp", *, present: bool = True) -> TaskRead:
    own = DefaultsRead(
        epochs=5, batch_size=100, learning_rates=list(RATES), seeds=[1, 2, 3], parameters=4810
    )
    return TaskRead(
        name=name,
        title="Handwritten digits, arctan MLP" if present else "MNIST classifier",
        family="digits" if present else "mnist",
        summary="1,797 images of 8 x 8 pixels, ten classes.",
        source="bundled",
        dataset="digits",
        activation="arctan",
        linear_output=True,
        adjustable=["width", "depth"],
        fixed_batch_size=None,
        methods=["eb", "ib", "ib_plus", "isgd", "momentum", "adam"] if present else ["eb", "ib"],
        profiles={"text": own, "authors": own},
        present=present,
        how_to_get="It is bundled." if present else "Run: etascope data fetch mnist",
    )


METHODS = [
    ("eb", "Explicit (EB)", False),
    ("ib", "Implicit (IB)", True),
    ("ib_plus", "Implicit + output (IB+)", True),
    ("isgd", "Exact ISGD", True),
    ("momentum", "Momentum", False),
    ("adam", "Adam", False),
]


def catalog() -> CatalogRead:
    sweep = {
        "task": "digits_mlp",
        "methods": ["eb", "ib"],
        "learning_rates": list(RATES),
        "seeds": 3,
    }
    return CatalogRead(
        engine_version="1",
        tasks=[task(), task("mnist_classifier", present=False)],
        methods=[
            MethodRead(name=name, title=title, summary=f"What {title} does.", implicit=implicit)
            for name, title, implicit in METHODS
        ],
        activations=[ActivationRead(name="relu"), ActivationRead(name="arctan")],
        presets=[
            PresetRead(
                name="first/digits",
                title="First study",
                summary="EB and IB on digits.",
                sweeps=[sweep],
                trials=54,
                present=True,
            ),
            PresetRead(
                name="paper/05_jsb_chorales",
                picture="across",
                title="JSB Chorales",
                summary="Arctan RNN.",
                sweeps=[sweep],
                trials=54,
                present=False,
            ),
        ],
        metrics=[],
        limits={"trials_per_sweep": 20000},
    )


def curve_at(end: float | None, epoch: int) -> float:
    target = 40.0 if end is None else end
    return target + (INITIAL - target) * math.exp(-epoch)


def paired() -> PairedRead:
    pairs = [
        PairRead(lr=lr, seed=seed, difference=_difference(lr, seed))
        for lr in RATES
        for seed in SEEDS
    ]
    points = [
        PairedPointRead(
            lr=lr,
            mean=_difference(lr, 1),
            low=(_difference(lr, 1) or 0) - 0.05,
            high=(_difference(lr, 1) or 0) + 0.05,
            n=3,
            n_finite=3,
            lower=2,
            higher=1,
            wilcoxon_p=0.25,
        )
        for lr in RATES
    ]
    overall = points[0].model_copy(update={"lr": None, "n": 27})
    return PairedRead(
        first="1-ib-None",
        second="1-eb-None",
        first_label="ib",
        second_label="eb",
        overall=overall,
        points=points,
        pairs=pairs,
    )


def _difference(lr: float, seed: int) -> float | None:
    ours, theirs = loss("ib", lr, seed), loss("eb", lr, seed)
    return None if ours is None or theirs is None else ours - theirs


def trial(number: int) -> TrialRead:
    """Return a trial; 1 to 27 are EB's, 101 to 127 IB's."""
    method = "eb" if number <= 100 else "ib"
    position = (number - 1) % 100
    if not 0 <= position < 27 or number > 200:
        raise ApiError(404, "not_found", f"There is no trial {number}.")
    lr, seed = RATES[position // 3], SEEDS[position % 3]
    value = loss(method, lr, seed)
    state = TrialState(outcome(value))
    return TrialRead(
        **key(method),
        id=number,
        state=state,
        lr=lr,
        seed=seed,
        outcome=str(state),
        initial_loss=INITIAL,
        train_loss=value,
        test_loss=value,
        train_accuracy=None if value is None else max(0.1, 1 - value / 3),
        test_accuracy=None if value is None else max(0.1, 1 - value / 3),
        diverged_at_step=40 if state == TrialState.DIVERGED else None,
        diverged_where="loss" if state == TrialState.DIVERGED else None,
        seconds=0.42,
        fingerprint="f" * 64,
        record={"engine_version": "1", "hashes": {"weights": "abc123", "order": "def456"}},
        finished_at=NOW,
    )


def recording(found: TrialRead) -> RecordingRead:
    """Return what was recorded of a trial: two layers, the second of which explodes at step 4."""
    broken = found.outcome == "diverged"
    grown = [1.0, 1.0, 1.0, 4.0, 20.0, None] if broken else [1.0] * 6
    return RecordingRead(
        trial_id=found.id,
        state="done",
        agreement="The replay gave the stored numbers, digit by digit.",
        same=True,
        layers=["layers.0", "layers.1"],
        steps=list(range(6)),
        losses=[2.0, 1.9, 2.1, 3.0, 40.0, None] if broken else [2.0, 1.9, 1.8, 1.7, 1.6, 1.5],
        rates=[found.lr] * 6,
        weights=[[1.0] * 6, grown],
        gradients=[[None, *[0.5] * 5]] * 2,
        moves=[[None, *[0.1] * 5]] * 2,
        damping=[[None] * 6] * 2,
        sharp_steps=[0, 3],
        sharpness=[3.0, 9.8],
        total=6,
        stored_bytes=500,
        story=["Layer 2's weights grew 20-fold between steps 2 and 4."] if broken else ["It held."],
        broke_at=4 if broken else None,
        first_layer=1 if broken else None,
        beside=[
            BesideRead(trial_id=101, method="ib", state=TrialState.COMPLETED, recorded=True),
            BesideRead(trial_id=102, method="adam", state=TrialState.COMPLETED, recorded=False),
        ],
    )
