"""Made-up runs: whole experiments in a line."""

from ib_core.reproduction.evidence import Evidence, Run


def runs(experiment, method, losses, *, seeds=(1, 2), spread=0.0, dataset=""):
    return [
        Run(experiment, dataset, method, lr, seed, loss * (1 + spread * (seed - 1.5)))
        for lr, loss in losses.items()
        for seed in seeds
    ]


def evidence(**experiments):
    """Return evidence from `{experiment: {method: {lr: loss}}}`."""
    found = []
    for name, methods in experiments.items():
        for method, losses in methods.items():
            found += runs(name, method, losses, spread=0.02)
    return Evidence.of(found)
