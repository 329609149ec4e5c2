"""What a planned study is: portions of sweeps, each with its place in the order of training."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any

from ib_core.sweep.body import specs_of
from ib_core.sweep.spec import TrialSpec

Body = dict[str, Any]


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
