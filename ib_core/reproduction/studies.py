"""What a planned study is: portions of sweeps, each with its place in the order of training."""

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ib_core.datasets import UCI_NAMES
from ib_core.errors import CorruptData, IBError, InvalidSpec
from ib_core.sweep import TrialSpec, specs_of
from ib_core.tasks import MUSIC_RATES, UCI_RATES

Body = dict[str, Any]

#: Version of a bundle's files; raised when this program could not read what the next one writes.
FORMAT = 1


@dataclass(frozen=True, slots=True)
class Portion:
    """One sweep of a study and when its trials are trained; lower stages come first.

    Attributes:
        body: The sweep, as the API takes it.
        stage: Stage of the first seed.
        per_seed: How many stages later each further seed comes.
        first_rates: Rates that are trained at the seed's stage; empty: all.
        later: How many stages later the other rates come.
    """

    body: Body
    stage: int = 0
    per_seed: int = 1
    first_rates: tuple[float, ...] = ()
    later: int = 2

    def trials(self) -> Iterator[tuple[int, TrialSpec]]:
        """Yield every trial with its stage."""
        for spec in specs_of(self.body):
            order = {seed: position for position, seed in enumerate(spec.seeds)}
            for trial in spec.expand():
                early = not self.first_rates or trial.lr in self.first_rates
                stage = self.stage + self.per_seed * order[trial.seed]
                yield stage + (0 if early else self.later), trial


@dataclass(frozen=True, slots=True)
class Study:
    """A question, and the sweeps that answer it.

    Attributes:
        name: `text/<experiment>`, `authors/<experiment>` or `beyond/<question>`.
        title: Its name on screens.
        question: What it asks, in a sentence.
        portions: Its sweeps.
        preset: The preset whose experiment it repeats; empty beyond the paper.
    """

    name: str
    title: str
    question: str
    portions: tuple[Portion, ...]
    preset: str = ""

    def only(self, tasks: Collection[str]) -> "Study":
        """Return the study with the sweeps of these tasks alone."""
        kept = tuple(portion for portion in self.portions if portion.body["task"] in tasks)
        return replace(self, portions=kept)

    def trials(self) -> Iterator[tuple[int, TrialSpec]]:
        """Yield every trial with its stage."""
        for portion in self.portions:
            yield from portion.trials()


def study_content(study: Study) -> dict[str, Any]:
    """Return a study as a bundle's list has it."""
    bodies: list[Body] = [portion.body for portion in study.portions]
    return {
        "name": study.name,
        "title": study.title,
        "question": study.question,
        "preset": study.preset,
        "sweeps": bodies,
    }


def read_list(path: Path) -> list[Any]:
    """Return a bundle's list of studies as it is written, once its format is known to be ours.

    Raises:
        CorruptData: If the file is no such list; names the line where it breaks.
        InvalidSpec: If it was written in another format.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise _broken(path, f"line {error.lineno} is not JSON ({error.msg})") from None
    except (OSError, UnicodeDecodeError) as error:
        raise _broken(path, f"it cannot be read ({error})") from None
    if not isinstance(content, dict) or "format" not in content:
        raise _broken(path, "it does not say which format it has")
    if content["format"] != FORMAT:
        raise InvalidSpec(
            f"{path} has the format {content['format']!r}; this Etascope reads {FORMAT}.",
            hint="Use the version of Etascope that made it, or a newer one.",
        )
    if not isinstance(content.get("studies"), list):
        raise _broken(path, "it has no list of studies")
    return list(content["studies"])


def read_studies(path: Path) -> tuple[Study, ...]:
    """Return the studies of a bundle's list, every sweep of them runnable.

    Raises:
        IBError: As `read_list`; and if a study is not whole, with its place in the list.
    """
    return tuple(
        _read_study(path, number, content) for number, content in enumerate(read_list(path), 1)
    )


def _read_study(path: Path, number: int, content: Any) -> Study:
    try:
        for body in content["sweeps"]:
            specs_of(body)
        return Study(
            name=str(content["name"]),
            title=str(content["title"]),
            question=str(content["question"]),
            portions=tuple(Portion(body) for body in content["sweeps"]),
            preset=str(content["preset"]),
        )
    except KeyError as error:
        raise _broken(path, f"study {number} has no {error}") from None
    except (IBError, TypeError, ValueError, AttributeError) as error:
        why = str(error).rstrip(".")
        raise _broken(path, f"study {number} cannot be read ({why})") from None


def _broken(path: Path, why: str) -> CorruptData:
    return CorruptData(
        f"{path} is no list of studies: {why}.",
        hint="Get the bundle again; a folder of your own runs lists them anew at the next --run "
        "once this file is deleted.",
    )


DIGIT_RATES = [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0]
#: Adam's steps have the size of its rate, whatever the gradient's; its grid starts lower.
ADAM_RATES = [0.0001, 0.0003, 0.001, 0.003, *DIGIT_RATES]
WIDE_UCI_RATES = [*UCI_RATES, 100.0, 300.0, 1000.0]
ACTIVATIONS = ("arctan", "hardtanh", "smoothstep", "tanh")
AUTOENCODER_RATES = [0.1, 0.3, 1.0, 2.0, 3.0, 5.0, 7.0, 10.0, 15.0, 20.0, 30.0, 40.0]
#: What the summary over all UCI tables compares.
UCI_METHODS = ("eb", "ib", "ib_plus", "momentum", "adam", "sps", "ngn")


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
        "Seven methods on every UCI table, by training loss",
        "Headroom and robust range of EB, IB, IB+, momentum, Adam, SPS and NGN, rates to 1000.",
        tuple(
            Portion(
                {
                    "task": f"uci/{name}",
                    "methods": list(UCI_METHODS),
                    "learning_rates": WIDE_UCI_RATES,
                    "seeds": 5,
                    "epochs": 10,
                },
                stage=2,
                per_seed=5,
            )
            for name in UCI_NAMES
        ),
    )


BEYOND: tuple[Study, ...] = (*_on_digits(), *_batch_rules(), *_on_uci())
