"""Every study of the reproduction: which sweeps, and in which order they are worth training.

The whole plan takes many hours on a small machine, so it is trained in stages: the cheapest and
most telling trials of every study first, further seeds later. Whatever has been trained when
time runs out is a whole picture with fewer seeds, and the next run goes on from there. Epochs,
networks and data are never cut short.

The race of the start page is no part of the plan: three methods on handwritten digits, trained once
and stored. Its slider stands only on rates that were trained, so what it shows are trials with
content addresses like any others, in a small bundle of their own. `make race` trains them anew,
`etascope verify FOLDER` trains some of them again and compares.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from ib_core.datasets import UCI_NAMES
from ib_core.reproduction.bundle import SHIPPED, SHIPPED_SEEDS
from ib_core.reproduction.evidence import UCI_SEED
from ib_core.reproduction.studies import BEYOND, Body, Portion, Study
from ib_core.sweep import PRESETS, TrialSpec, bodies_of

_CLASSIFIER, _CLIPPED_CLASSIFIER = "01_mnist_classification", "02_mnist_classification_clip_1.0"
_TABLES = "uci/"
_AUTOENCODER, _CLIPPED_AUTOENCODER = "03_mnist_autoencoder", "04_mnist_autoencoder_clip_1.0"

#: Exact ISGD's rates: both ends and the middle of the paper's grid. It costs 100 times EB.
EXACT_RATES = [0.2, 1.0, 2.0]
#: In the recorded form also tenfold, where it was run as well. One seed, as recorded.
AUTHORS_EXACT_RATES = [*EXACT_RATES, 20.0]
#: Rates of long experiments that already show the shape of the curve; the others come later.
TELLING_RATES = (5.0, 50.0, 500.0)

#: Seeds of the authors profile; of MNIST classification the authors stored twenty.
AUTHORS_SEEDS = 5

#: The text profile: stage of the first seed, stages between seeds, seeds, rates that come first.
_TEXT: dict[str, tuple[int, int, int, tuple[float, ...]]] = {
    "05_jsb_chorales": (0, 1, 5, ()),
    "06_jsb_chorales_clip_8.0": (1, 2, 5, ()),
    "07_jsb_chorales_clip_1.0": (1, 2, 5, ()),
    "08_jsb_chorales_clip_0.1": (1, 2, 5, ()),
    "13_piano_midi": (2, 3, 5, TELLING_RATES),
    "14_piano_midi_clip_8.0": (3, 4, 5, TELLING_RATES),
    "15_piano_midi_clip_1.0": (3, 4, 5, TELLING_RATES),
    "16_piano_midi_clip_0.1": (3, 4, 5, TELLING_RATES),
    "17_piano_midi_clip_0.01": (3, 4, 5, TELLING_RATES),
    _AUTOENCODER: (3, 4, 5, (1.0, 5.0, 10.0, 20.0)),
    _CLIPPED_AUTOENCODER: (3, 4, 5, (1.0, 10.0, 100.0)),
    "09_musedata": (3, 5, 3, TELLING_RATES),
    "10_musedata_clip_8.0": (3, 5, 3, TELLING_RATES),
    "11_nottingham": (2, 1, 5, ()),
    "12_nottingham_clip_8.0": (2, 1, 5, ()),
}
#: The authors profile: every rate of the recorded runs, five seeds. Stage of the first seed, stages
#: between seeds, rates that come first (all, where a set is small), when the other rates come.
_AUTHORS: dict[str, tuple[int, int, tuple[float, ...], int]] = {
    "05_jsb_chorales": (1, 2, (), 0),
    "06_jsb_chorales_clip_8.0": (4, 2, (), 0),
    "07_jsb_chorales_clip_1.0": (4, 2, (), 0),
    "08_jsb_chorales_clip_0.1": (4, 2, (), 0),
    "11_nottingham": (2, 1, (), 0),
    "12_nottingham_clip_8.0": (2, 1, (), 0),
    "13_piano_midi": (30, 1, (), 0),
    "14_piano_midi_clip_8.0": (30, 1, (), 0),
    "15_piano_midi_clip_1.0": (30, 1, (), 0),
    "16_piano_midi_clip_0.1": (30, 1, (), 0),
    "17_piano_midi_clip_0.01": (30, 1, (), 0),
    "09_musedata": (30, 1, (), 0),
    "10_musedata_clip_8.0": (30, 1, (), 0),
    _CLASSIFIER: (36, 1, (), 0),
    _CLIPPED_CLASSIFIER: (36, 1, (), 0),
    _AUTOENCODER: (50, 2, (0.001, 0.009, 0.02), 10),
    _CLIPPED_AUTOENCODER: (50, 2, (0.01, 0.2, 0.4), 10),
}
#: Exact ISGD: stages of the text's seeds, and of the authors' one.
_EXACT_STAGE, _EXACT_PER_SEED, _AUTHORS_EXACT_STAGE = 4, 40, 35


@dataclass(frozen=True, slots=True)
class Experiment:
    """One of the paper's experiments, and the studies that repeat it.

    Attributes:
        id: Its name in the published runs and the presets.
        title: Its name on screens.
        text: The study in the text profile.
        authors: The study in the authors profile.
    """

    id: str
    title: str
    text: str
    authors: str


def experiments() -> tuple[Experiment, ...]:
    """Return the 17 experiments in the paper's order, and UCI last."""
    names = [name.removeprefix("paper/") for name in PRESETS if name.startswith("paper/")]
    return tuple(
        Experiment(name, PRESETS[f"paper/{name}"].title, f"text/{name}", f"authors/{name}")
        for name in names
    )


def _study(profile: str, experiment: str, *portions: Portion) -> Study:
    preset = PRESETS[f"paper/{experiment}"]
    what = "as the text describes it" if profile == "text" else "as the published runs were made"
    return Study(
        name=f"{profile}/{experiment}",
        title=f"{preset.title} ({profile} profile)",
        question=f"{preset.summary.split(':')[0].rstrip('.')}, {what}.",
        portions=portions,
        preset=preset.name,
    )


def _body(profile: str, experiment: str, sweep: int = 0, **changes: Any) -> Body:
    return {**PRESETS[f"paper/{experiment}"].sweeps(profile)[sweep], **changes}


def _text_studies() -> Iterator[Study]:
    yield _study(
        "text",
        _CLASSIFIER,
        Portion(
            _body("text", _CLASSIFIER, seeds=5),
            stage=2,
            per_seed=3,
            first_rates=(0.2, 0.8, 1.4, 2.0),
        ),
        Portion(
            _body("text", _CLASSIFIER, 1, learning_rates=EXACT_RATES, seeds=3),
            stage=_EXACT_STAGE,
            per_seed=_EXACT_PER_SEED,
        ),
    )
    yield _study(
        "text",
        _CLIPPED_CLASSIFIER,
        Portion(
            _body("text", _CLIPPED_CLASSIFIER), stage=3, per_seed=4, first_rates=(0.5, 2.0, 4.0)
        ),
    )
    for name, (stage, per_seed, seeds, first) in _TEXT.items():
        body = _body("text", name, seeds=seeds)
        yield _study("text", name, Portion(body, stage, per_seed, first_rates=first))
    yield _study("text", "uci", *_uci("text", stage=0))


def _authors_studies() -> Iterator[Study]:
    for name, (stage, per_seed, first, later) in _AUTHORS.items():
        body = _body("authors", name, seeds=AUTHORS_SEEDS)
        portions = [Portion(body, stage, per_seed, first, later)]
        if name == _CLASSIFIER:
            exact = _body("authors", name, 1, learning_rates=AUTHORS_EXACT_RATES)
            portions.append(Portion(exact, _AUTHORS_EXACT_STAGE))
        yield _study("authors", name, *portions)
    yield _study("authors", "uci", *_uci("authors", stage=1))


def _uci(profile: str, stage: int) -> Iterator[Portion]:
    bodies = {body["task"]: body for body in PRESETS["paper/uci"].sweeps(profile)}
    for name in UCI_NAMES:
        yield Portion(bodies[f"uci/{name}"], stage)


def _in_the_papers_order(studies: Iterator[Study]) -> list[Study]:
    return sorted(studies, key=lambda study: study.name)


PLAN: dict[str, Study] = {
    study.name: study
    for study in (
        *_in_the_papers_order(_text_studies()),
        *_in_the_papers_order(_authors_studies()),
        *BEYOND,
    )
}


def shipped_in(trial: TrialSpec) -> str:
    """Return the name of the bundle that a trial of the plan is shipped in.

    What a first start need not wait for is apart: the further seeds of the study of every UCI
    table, 44,000 of 60,000 trials. The paper has one seed of each table.
    """
    further = trial.task.startswith(_TABLES) and trial.seed != UCI_SEED
    return SHIPPED_SEEDS if further else SHIPPED


#: Six rates a decade, nearly even on a logarithmic scale and all of them easy to say.
RACE_RATES = (
    *(0.01, 0.015, 0.02, 0.03, 0.05, 0.07),
    *(0.1, 0.15, 0.2, 0.3, 0.5, 0.7),
    *(1.0, 1.5, 2.0, 3.0, 5.0, 7.0),
    *(10.0, 15.0, 20.0, 30.0, 50.0, 70.0, 100.0),
)

RACE = Study(
    name="start/race",
    title="The race of the start page",
    question="Which step breaks first as the learning rate is turned up?",
    portions=(
        Portion(
            {
                "task": "digits_mlp",
                "methods": ["eb", "ib", "ib_plus"],
                "learning_rates": list(RACE_RATES),
                "seeds": 5,
                "epochs": 10,
            }
        ),
    ),
)


def _of_preset(name: str) -> Study:
    """Return a preset beyond the paper as a study."""
    preset = PRESETS[name]
    portions = tuple(Portion(one) for body in preset.sweeps() for one in bodies_of(body))
    return Study(preset.name, preset.title, preset.summary, portions)


#: Every method on one grid; the paper's appendix C; what the field studies. Stored in small bundles
#: beside the paper's.
COMPARISON, THEORY = _of_preset("compare/methods"), _of_preset("theory/level_set")
#: The first of these on every UCI table.
TABLES = _of_preset("compare/uci")
FIELD = tuple(_of_preset(name) for name in PRESETS if name.startswith("study/"))


def race_folder() -> Path:
    """Return where the trained race lies."""
    return Path(str(files("ib_core.reproduction") / "race_bundle"))
