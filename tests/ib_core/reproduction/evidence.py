"""Made-up runs: whole experiments in a line."""

from ib_core.reproduction.evidence import Evidence, Run

INITIAL = 2.0
SEEDS = (1, 2, 3, 4, 5)


def runs(experiment, method, losses, *, seeds=SEEDS, spread=0.0, dataset="", initial=INITIAL):
    """Return runs whose losses spread evenly around those given, by a share a seed."""
    middle = sum(seeds) / len(seeds)
    return [
        Run(
            experiment,
            dataset,
            method,
            lr,
            seed,
            loss * (1 + spread * (seed - middle)),
            test_loss=loss * (1 + spread * (seed - middle)) + 0.1,
            initial_loss=initial,
        )
        for lr, loss in losses.items()
        for seed in seeds
    ]


def evidence(*, spread=0.02, seeds=SEEDS, **experiments):
    """Return evidence from `{experiment: {method: {lr: loss}}}`."""
    found = []
    for name, methods in experiments.items():
        for method, losses in methods.items():
            found += runs(name, method, losses, spread=spread, seeds=seeds)
    return Evidence.of(found)
