"""The race of the start page: three methods on handwritten digits, trained once and stored.

The slider of the start page stands only on rates that were trained, so what it shows are trials
with content addresses like any others: a small bundle of its own, in `race_bundle`.
`python -m ib_core.reproduction.race` (or `make race`) trains it anew, `etascope verify FOLDER`
trains some of it again and compares.
"""

import sys
from importlib.resources import files
from pathlib import Path

from ib_core.reproduction.bundle import Bundle
from ib_core.reproduction.studies import Portion, Study

#: Six rates a decade, nearly even on a logarithmic scale and all of them easy to say.
RATES = (
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
                "learning_rates": list(RATES),
                "seeds": 5,
                "epochs": 10,
            }
        ),
    ),
)


def race_folder() -> Path:
    """Return where the trained race lies."""
    return Path(str(files("ib_core.reproduction") / "race_bundle"))


def train_race(folder: Path) -> Bundle:
    """Train what a folder lacks of the race, and pack it."""
    from ib_core.sweep.processes import run_all  # and torch, which whoever only reads does not need

    bundle = Bundle(folder)
    wanted = [trial for _, trial in RACE.trials() if trial not in bundle.results]
    for result in run_all(wanted):
        if result is not None:
            bundle.append(result)
    bundle.pack([RACE])
    return bundle


def main() -> int:
    """Train the race anew into the package, or into the folder that is named."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else race_folder()
    for old in folder.glob("*.jsonl*"):
        old.unlink()
    bundle = train_race(folder)
    sys.stderr.write(f"{len(bundle.results)} trials in {folder}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
