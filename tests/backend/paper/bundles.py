"""Small bundles: results that were never trained, in the form of those that were."""

from dataclasses import replace

from ib_core.reproduction.bundle import Bundle
from ib_core.reproduction.plan import PLAN
from ib_core.sweep.result import ENGINE_VERSION, CurvePoint, Outcome, TrialResult, fingerprint

DATA = "d" * 64


def result_of(spec, loss, *, accuracy=None, outcome=Outcome.COMPLETED):
    """Return a result of a trial that ended with this loss."""
    points = tuple(
        CurvePoint(step, float(step), value, value, accuracy, accuracy)
        for step, value in enumerate((1.0, loss))
    )
    return TrialResult(
        spec=spec,
        outcome=outcome,
        initial_loss=1.0,
        train_loss=loss,
        test_loss=loss,
        train_accuracy=accuracy,
        test_accuracy=accuracy,
        divergence=None,
        seconds=0.1,
        curve=points,
        fingerprint=fingerprint(spec, DATA),
        record={"engine": ENGINE_VERSION, "data": DATA, "torch": "2", "git": "abc"},
    )


def make_bundle(folder, loss_of, names=("text/05_jsb_chorales",), seeds=2):
    """Fill a bundle: `loss_of(method, lr)` decides every trial's loss."""
    bundle = Bundle(folder)
    for name in names:
        for _, trial in PLAN[name].trials():
            if trial.seed <= seeds:
                bundle.append(result_of(trial, loss_of(trial.method, trial.lr) + trial.seed / 1e3))
    bundle.pack(PLAN.values())
    return bundle


def good_ib(method, lr):
    """Return losses as the paper has them: EB breaks at 50, IB at 500."""
    breaks = {"eb": 50, "ib": 500}.get(method, 1e9)
    return 0.5 if lr < breaks else 3.0


def bad_ib(method, lr):
    """Return the opposite."""
    return good_ib({"eb": "ib", "ib": "eb"}.get(method, method), lr)


__all__ = ["bad_ib", "good_ib", "make_bundle", "replace", "result_of"]
