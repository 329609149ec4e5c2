"""A sweep from the shell with nothing but torch: `python -m ib_core digits_mlp --lrs 0.1,1,10`."""

import argparse
import sys
from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from ib_core.errors import IBError

if TYPE_CHECKING:
    from ib_core.metrics import RateCurve
    from ib_core.sweep import TrialResult


def main(arguments: Sequence[str] | None = None) -> int:
    """Train a grid, print the answer and mean losses by rate; 2 if the input was bad."""
    parser = argparse.ArgumentParser(prog="python -m ib_core", description=__doc__)
    parser.add_argument("task")
    parser.add_argument("--methods", default="eb,ib", help="as eb,ib")
    parser.add_argument("--lrs", help="as 0.1,1,10 or from:to:count")
    parser.add_argument("--seeds", default="3", help="5 means 1 to 5; or a list, 1,2,7")
    parser.add_argument("--epochs", help="default: the task's")
    given = parser.parse_args(arguments)
    try:
        print_table(given)
    except IBError as error:
        sys.stderr.write(f"{error.message}\n")
        return 2
    return 0


def print_table(given: argparse.Namespace) -> None:
    """Train what was asked for and print it."""
    from ib_core.metrics import answer, score_task
    from ib_core.sweep import run_sweep, specs_of

    body = {
        "task": given.task,
        "methods": given.methods,
        "learning_rates": given.lrs,
        "seeds": given.seeds,
        "epochs": given.epochs,
    }
    (spec,) = specs_of(body, typed=True)
    results = [result for result in run_sweep(spec) if result is not None]
    losses: dict[tuple[str, float], list[float]] = {}
    for result in results:
        losses.setdefault((result.spec.method, result.spec.lr), []).append(result.train_loss)
    write = sys.stdout.write
    write(f"{answer(score_task(curves_of(results)))}\n\n")
    write("".join(f"{head:>14}" for head in ("learning rate", *spec.methods)) + "\n")
    for rate in spec.learning_rates:
        means = [f"{fmean(losses[method, rate]):.4g}" for method in spec.methods]
        write("".join(f"{cell:>14}" for cell in (f"{rate:g}", *means)) + "\n")


def curves_of(results: "Sequence[TrialResult]") -> "dict[str, RateCurve]":
    """Return the training losses of a sweep by method, for every number there is."""
    from ib_core.metrics import RateCurve, SeedResult

    found: dict[str, list[tuple[float, SeedResult]]] = {}
    for one in results:
        seed, outcome = one.spec.seed, one.outcome.value
        loss = SeedResult(seed, one.train_loss, one.initial_loss, outcome, at_zero=one.at_zero)
        found.setdefault(one.spec.method, []).append((one.spec.lr, loss))
    return {method: RateCurve.from_results(rows) for method, rows in found.items()}


if __name__ == "__main__":
    sys.exit(main())
