"""Ten studies that people run on learning rates, on bundled tasks, each with its picture.

Each takes a few minutes on two cores. Sizes are the smallest at which the picture shows what it is
made for; say larger ones beside the preset: `etascope sweep --preset study/transfer --seeds 10`.
"""

from typing import Any, NamedTuple


class Study(NamedTuple):
    """A study of the field.

    Attributes:
        name: After `study/`.
        title: Its name on screens.
        summary: What it asks, and where that comes from.
        picture: The view that the study's page opens with.
        sweeps: Bodies, as the API takes them.
    """

    name: str
    title: str
    summary: str
    picture: str
    sweeps: tuple[dict[str, Any], ...]


def _grid(low: float, high: float, count: int) -> dict[str, Any]:
    return {"from": low, "to": high, "count": count}


_TABLES = ("bundled/iris", "bundled/wine", "bundled/breast_cancer", "digits_mlp")

STUDIES = (
    Study(
        "scale",
        "Sensitivity against scale",
        "Do wider networks need a more careful rate? EB, IB and Adam at five widths, after "
        "arXiv 2309.14322.",
        "against",
        (
            {
                "task": "digits_mlp",
                "methods": ["eb", "ib", "adam"],
                "learning_rates": _grid(0.001, 100, 11),
                "seeds": 3,
                "epochs": 4,
                "vary": {"width": [8, 16, 32, 64, 128]},
            },
        ),
    ),
    Study(
        "transfer",
        "Learning-rate transfer, with and without muP",
        "Does the best rate move with the width? SGD and Adam on an MLP, Adam on a small GPT, "
        "after arXiv 2203.03466.",
        "against",
        (
            {
                "task": "digits_wide",
                "methods": ["eb"],
                "learning_rates": _grid(0.01, 10, 10),
                "seeds": 3,
                "epochs": 3,
                "record": ["activations"],
                "vary": {"scaling": ["standard", "mup"], "width": [32, 128, 512]},
            },
            {
                "task": "digits_wide",
                "methods": ["adam"],
                "learning_rates": _grid(0.0001, 0.1, 10),
                "seeds": 3,
                "epochs": 3,
                "record": ["activations"],
                "vary": {"scaling": ["standard", "mup_adam"], "width": [32, 128, 512]},
            },
            {
                "task": "gpt_bytes",
                "methods": ["adam"],
                "learning_rates": _grid(0.0005, 0.0089, 6),
                "seeds": 2,
                "epochs": 6,
                "record": ["activations"],
                "vary": {"scaling": ["standard", "mup_adam"], "width": [32, 64, 128]},
            },
        ),
    ),
    Study(
        "edge_of_stability",
        "The edge of stability",
        "Full-batch gradient descent: which rates hold, and how does the loss move at the edge? "
        "After arXiv 2209.15594.",
        "steps",
        (
            {
                "task": "digits_mlp",
                "methods": ["eb", "ib"],
                "learning_rates": [0.3, 1, 2, 3, 10],
                "seeds": 2,
                "epochs": 150,
                "batch_size": 2000,
                "width": 32,
                "record": ["norms", "sharpness"],
            },
        ),
    ),
    Study(
        "warmup",
        "Warm-up",
        "How far does a warm-up move the highest rate that holds? Rates against steps of "
        "warm-up, after arXiv 2406.09405.",
        "map",
        (
            {
                "task": "digits_mlp",
                "methods": ["eb", "ib", "adam"],
                "learning_rates": _grid(0.001, 100, 11),
                "seeds": 3,
                "epochs": 6,
                "warmup": [0, 5, 15, 50, 150],
            },
        ),
    ),
    Study(
        "ngn",
        "Steps that choose their size: NGN and SPS",
        "Which methods hold over seven decades of rates? After arXiv 2407.04358.",
        "curves",
        tuple(
            {
                "task": task,
                "methods": ["eb", "ib", "ib_plus", "sps", "ngn"],
                "learning_rates": _grid(0.001, 10_000, 15),
                "seeds": 5,
                "epochs": epochs,
            }
            for task, epochs in (("digits_mlp", 3), ("bundled/wine", 10))
        ),
    ),
    Study(
        "momentum",
        "Momentum that knows the loss: MoMo",
        "Does a model of the loss make momentum less sensitive? After arXiv 2305.07583.",
        "curves",
        (
            {
                "task": "digits_mlp",
                "methods": ["momentum", "momo", "ngn_m", "ib_momentum"],
                "learning_rates": _grid(0.001, 1000, 13),
                "seeds": 3,
                "epochs": 3,
                "momentum": [0.5, 0.9],
            },
        ),
    ),
    Study(
        "tuning_cost",
        "What tuning costs",
        "How good is the best of k rates drawn at random, chosen on held-out rows? After arXiv "
        "1910.11758.",
        "best_of",
        (
            {
                "task": "digits_mlp",
                "methods": ["eb", "ib", "ib_plus", "momentum", "adam", "sps"],
                "learning_rates": _grid(0.0001, 100, 13),
                "seeds": 5,
                "epochs": 4,
                "validation": 0.2,
            },
        ),
    ),
    Study(
        "time_to_target",
        "Many tasks: ranks and profiles",
        "Which method comes near the best loss on most tasks? Performance profiles, as AlgoPerf "
        "has them.",
        "across",
        tuple(
            {
                "task": task,
                "methods": ["eb", "ib", "ib_plus", "momentum", "adam", "sps"],
                "learning_rates": _grid(0.001, 100, 11),
                "seeds": 3,
                "epochs": 4 if task == "digits_mlp" else 10,
                "batch_size": 50 if task == "digits_mlp" else 20,
            }
            for task in _TABLES
        ),
    ),
    Study(
        "batch_size",
        "Rate against batch size",
        "Does the best rate grow with the batch, and does IB's rule for batches, own or share, "
        "change that?",
        "map",
        (
            {
                "task": "digits_mlp",
                "methods": ["eb"],
                "learning_rates": _grid(0.01, 1000, 11),
                "seeds": 3,
                "epochs": 3,
                "batch_size": [10, 40, 160, 640],
            },
            {
                "task": "digits_mlp",
                "methods": ["ib"],
                "learning_rates": _grid(0.01, 1000, 11),
                "seeds": 3,
                "epochs": 3,
                "batch_size": [10, 40, 160, 640],
                "batch_rule": ["own", "share"],
            },
        ),
    ),
    Study(
        "anatomy",
        "Anatomy of a break",
        "What happens in the steps before EB breaks, and what does IB do at the same rate and "
        "seed? After arXiv 2410.16682.",
        "steps",
        (
            {
                "task": "digits_mlp",
                "methods": ["eb", "ib"],
                "learning_rates": [0.3, 1, 2, 3, 4, 6, 8, 12],
                "seeds": 3,
                "epochs": 6,
                "width": 32,
                "record": ["norms", "sharpness"],
            },
        ),
    ),
)
