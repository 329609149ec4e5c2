"""Studies that go on from the paper: batch rules, the output layer, activations, optimizers."""

from collections.abc import Iterator

from ib_core.datasets import UCI_NAMES
from ib_core.reproduction.studies import Body, Portion, Study
from ib_core.tasks import MUSIC_RATES, UCI_RATES

DIGIT_RATES = [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0]
#: Adam's steps have the size of its rate, whatever the gradient's; its grid starts lower.
ADAM_RATES = [0.0001, 0.0003, 0.001, 0.003, *DIGIT_RATES]
WIDE_UCI_RATES = [*UCI_RATES, 100.0, 300.0, 1000.0]
ACTIVATIONS = ("arctan", "hardtanh", "smoothstep", "tanh")
AUTOENCODER_RATES = [0.1, 0.3, 1.0, 2.0, 3.0, 5.0, 7.0, 10.0, 15.0, 20.0, 30.0, 40.0]
#: What the summary over all UCI tables compares.
UCI_METHODS = ("eb", "ib", "ib_plus", "momentum", "adam")


def _digits(**changes: object) -> Body:
    return {"task": "digits_mlp", "learning_rates": DIGIT_RATES, "seeds": 5, "epochs": 5, **changes}


def _rules(task: str, rates: list[float], seeds: int, epochs: int) -> Iterator[Body]:
    """Yield EB and IB by the rule own, then IB by the rule share."""
    body: Body = {"task": task, "learning_rates": rates, "seeds": seeds, "epochs": epochs}
    yield {**body, "methods": ["eb", "ib"], "batch_rule": "own"}
    yield {**body, "methods": ["ib"], "batch_rule": "share"}


def _batch_rules() -> Iterator[Study]:
    yield Study(
        "beyond/batch_rule_jsb_chorales",
        "Own or share: JSB Chorales",
        "Should every time step solve its own problem, or share one step? (arctan RNN)",
        tuple(
            Portion(body, stage=2)
            for body in _rules("music/jsb_chorales", list(MUSIC_RATES), seeds=3, epochs=5)
        ),
    )
    yield Study(
        "beyond/batch_rule_digits_autoencoder",
        "Own or share: a small autoencoder",
        "The same question for relu layers: the paper's autoencoder scaled to 8x8 digits.",
        tuple(
            Portion(body, stage=1, per_seed=0)
            for body in _rules("digits_autoencoder", DIGIT_RATES, seeds=5, epochs=10)
        ),
    )
    yield Study(
        "beyond/batch_rule_mnist_autoencoder",
        "Own or share: the MNIST autoencoder",
        "The same question at full size.",
        tuple(
            Portion(body, stage=5, per_seed=4, first_rates=(1.0, 5.0, 10.0, 20.0))
            for body in _rules("mnist_autoencoder", AUTOENCODER_RATES, seeds=2, epochs=1)
        ),
    )


def _on_digits() -> Iterator[Study]:
    yield Study(
        "beyond/digits",
        "An implicit output layer: digits",
        "How far can the rate be turned when the output layer is implicit too?",
        (Portion(_digits(methods=["eb", "ib", "ib_plus"]), stage=0, per_seed=0),),
    )
    yield Study(
        "beyond/activations",
        "Other activations: digits",
        "Does IB keep its lead with hardtanh, smoothstep and tanh?",
        tuple(
            Portion(_digits(methods=["eb", "ib", "ib_plus"], activation=name), stage=2, per_seed=0)
            for name in ACTIVATIONS
        ),
    )
    yield Study(
        "beyond/optimizers",
        "Momentum and Adam beside them: digits",
        "How do the methods people use compare in robustness?",
        (
            Portion(_digits(methods=["eb", "ib", "ib_plus", "momentum"]), stage=1, per_seed=0),
            Portion(_digits(methods=["adam"], learning_rates=ADAM_RATES), stage=1, per_seed=0),
        ),
    )


def _on_uci() -> Iterator[Study]:
    yield Study(
        "beyond/uci_methods",
        "Every method on every UCI table",
        "Headroom and robust range of EB, IB, IB+, momentum and Adam, rates to 1000.",
        tuple(
            Portion(
                {
                    "task": f"uci/{name}",
                    "methods": list(UCI_METHODS),
                    "learning_rates": WIDE_UCI_RATES,
                    "seeds": [1],
                    "epochs": 10,
                },
                stage=4,
            )
            for name in UCI_NAMES
        ),
    )


BEYOND: tuple[Study, ...] = (*_on_digits(), *_batch_rules(), *_on_uci())
