"""The paper, repeated: studies, the shipped bundle of their results, claims and verdicts.

| module | holds |
| --- | --- |
| `studies` | `Study`, `Portion`; lists of studies as files; the questions beyond the paper |
| `plan` | `PLAN`: every study there is and when it is trained; the start page's race |
| `training` | the plan trained stage by stage into a bundle |
| `bundle` | `Bundle`: results as files, the shipped one among them |
| `verify` | some of a bundle trained again and compared |
| `evidence` | `Evidence`: runs by the paper's experiments, whoever made them; what it prints |
| `recorded` | the authors' recorded runs |
| `verdicts`, `uci` | whether an experiment, or UCI's tables, are reproduced: stated rules |
| `claims` | the paper's sentences, each with its test |
| `findings` | everything there is to say, as values |
| `timing` | how much longer an IB step takes here |

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
        Bundle,
        find_bundle,
        locked,
        shipped_folder,
        shipped_run_times,
    )
    from ib_core.reproduction.evidence import (
        SETTINGS,
        UNCLIPPED,
        Evidence,
        Run,
        experiment_of,
        on_the_grid,
        published_better,
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
    )
    from ib_core.reproduction.plan import PLAN, RACE, experiments, race_folder
    from ib_core.reproduction.recorded import recorded_evidence, recorded_file, recorded_overheads
    from ib_core.reproduction.studies import Body, Portion, Study
    from ib_core.reproduction.timing import measure_overheads
    from ib_core.reproduction.training import (
        Finder,
        Forecast,
        Progress,
        Unit,
        forecast,
        train,
        train_race,
    )
    from ib_core.reproduction.uci import Cell, TableNumbers, by_table
    from ib_core.reproduction.verdicts import Judgement, far_robustness
    from ib_core.reproduction.verify import Check, Drawn, check, draw

__all__ = [
    "PLAN",
    "RACE",
    "RULES",
    "SETTINGS",
    "SHIPPED",
    "UNCLIPPED",
    "Body",
    "Bundle",
    "Cell",
    "Check",
    "ClaimFindings",
    "Coverage",
    "Drawn",
    "Evidence",
    "ExperimentFindings",
    "Finder",
    "Findings",
    "Forecast",
    "Judgement",
    "Portion",
    "ProfileFindings",
    "Progress",
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
    "far_robustness",
    "find",
    "find_bundle",
    "forecast",
    "locked",
    "measure_overheads",
    "on_the_grid",
    "published_better",
    "race_folder",
    "recorded_evidence",
    "recorded_file",
    "recorded_overheads",
    "runs_of",
    "shipped_folder",
    "shipped_run_times",
    "train",
    "train_race",
]

_HOMES = {
    "bundle": "SHIPPED Bundle find_bundle locked shipped_folder shipped_run_times",
    "evidence": (
        "SETTINGS UNCLIPPED Evidence Run experiment_of on_the_grid published_better runs_of"
    ),
    "findings": (
        "RULES ClaimFindings Coverage ExperimentFindings Findings ProfileFindings "
        "RunTimeFindings find"
    ),
    "plan": "PLAN RACE experiments race_folder",
    "recorded": "recorded_evidence recorded_file recorded_overheads",
    "studies": "Body Portion Study",
    "timing": "measure_overheads",
    "training": "Finder Forecast Progress Unit forecast train train_race",
    "uci": "Cell TableNumbers by_table",
    "verdicts": "Judgement far_robustness",
    "verify": "Check Drawn check draw",
}


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names.split():
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
