"""The paper, repeated: studies, the shipped bundle of their results, claims and verdicts.

| module | holds |
| --- | --- |
| `studies` | `Study`, `Portion`; lists of studies as files; the questions beyond the paper |
| `plan` | `PLAN`: every study there is and when it is trained; the start page's race |
| `training` | the plan trained stage by stage into a bundle; IB's steps timed against EB's |
| `bundle` | `Bundle`: results as files, the shipped ones among them |
| `lines` | how a result is written: on a line, or many as columns |
| `verify` | some of a bundle trained again and compared |
| `published` | what the paper says and prints; the numbers, with intervals, that verdicts rest on |
| `evidence` | `Evidence`: runs by the paper's experiments, whoever made them |
| `recorded` | the authors' recorded runs; tables of them (facts) come along |
| `verdicts`, `uci` | whether an experiment, or UCI's tables, are reproduced: stated rules |
| `claims`, `clipping` | the paper's sentences, each with its test |
| `findings` | everything there is to say, as values, and in three sentences |

`python -m ib_core.reproduction` compares our authors profile with the authors' recorded runs,
number by number. It needs those runs (`paper/` in the data folder) and the data sets themselves; it
prints what agrees and, for every number that does not, why.

Names are imported when first used: reading needs no torch, training does.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ib_core.reproduction.bundle import (
        SHIPPED,
        SHIPPED_ALL,
        SHIPPED_NAMES,
        SHIPPED_SEEDS,
        SHIPPED_TABLES,
        Bundle,
        find_bundle,
        shipped_folder,
        shipped_run_times,
    )
    from ib_core.reproduction.clipping import ClipDifferences
    from ib_core.reproduction.evidence import (
        SETTINGS,
        Evidence,
        LossFacts,
        RateFacts,
        Run,
        experiment_of,
        runs_of,
    )
    from ib_core.reproduction.findings import (
        RULES,
        ClaimFindings,
        Coverage,
        ExperimentFindings,
        Findings,
        ProfileFindings,
        RunTimeFindings,
        find,
        headlines,
    )
    from ib_core.reproduction.plan import (
        COMPARISON,
        FIELD,
        PLAN,
        RACE,
        TABLES,
        THEORY,
        experiments,
        race_folder,
        shipped_in,
    )
    from ib_core.reproduction.published import published_words
    from ib_core.reproduction.recorded import SOURCE, recorded_evidence
    from ib_core.reproduction.studies import Body, Portion, Study
    from ib_core.reproduction.training import (
        Finder,
        Forecast,
        Progress,
        Unit,
        forecast,
        measure_overheads,
        train,
        train_alone,
    )
    from ib_core.reproduction.uci import (
        OF_ALL,
        Accuracies,
        Cell,
        TableNumbers,
        by_table,
        values_by_table,
    )
    from ib_core.reproduction.verdicts import Judgement, RecordedCell
    from ib_core.reproduction.verify import Check, Drawn, check, draw

__all__ = [
    "COMPARISON",
    "FIELD",
    "OF_ALL",
    "PLAN",
    "RACE",
    "RULES",
    "SETTINGS",
    "SHIPPED",
    "SHIPPED_ALL",
    "SHIPPED_NAMES",
    "SHIPPED_SEEDS",
    "SHIPPED_TABLES",
    "SOURCE",
    "TABLES",
    "THEORY",
    "Accuracies",
    "Body",
    "Bundle",
    "Cell",
    "Check",
    "ClaimFindings",
    "ClipDifferences",
    "Coverage",
    "Drawn",
    "Evidence",
    "ExperimentFindings",
    "Finder",
    "Findings",
    "Forecast",
    "Judgement",
    "LossFacts",
    "Portion",
    "ProfileFindings",
    "Progress",
    "RateFacts",
    "RecordedCell",
    "Run",
    "RunTimeFindings",
    "Study",
    "TableNumbers",
    "Unit",
    "by_table",
    "check",
    "draw",
    "experiment_of",
    "experiments",
    "find",
    "find_bundle",
    "forecast",
    "headlines",
    "locked",
    "measure_overheads",
    "published_words",
    "race_folder",
    "recorded_evidence",
    "runs_of",
    "shipped_folder",
    "shipped_in",
    "shipped_run_times",
    "train",
    "train_alone",
    "values_by_table",
]

_HOMES = {
    "bundle": (
        "SHIPPED SHIPPED_ALL SHIPPED_NAMES SHIPPED_SEEDS SHIPPED_TABLES Bundle find_bundle "
        "shipped_folder shipped_run_times"
    ),
    "clipping": "ClipDifferences",
    "evidence": "SETTINGS Evidence LossFacts RateFacts Run experiment_of runs_of",
    "findings": (
        "RULES ClaimFindings Coverage ExperimentFindings Findings ProfileFindings RunTimeFindings "
        "find headlines"
    ),
    "plan": "COMPARISON FIELD PLAN RACE TABLES THEORY experiments race_folder shipped_in",
    "published": "published_words",
    "recorded": "SOURCE recorded_evidence",
    "studies": "Body Portion Study",
    "training": "Finder Forecast Progress Unit forecast locked measure_overheads train train_alone",
    "uci": "OF_ALL Accuracies Cell TableNumbers by_table values_by_table",
    "verdicts": "Judgement RecordedCell",
    "verify": "Check Drawn check draw",
}


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names.split():
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
