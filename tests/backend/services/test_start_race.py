"""The race's words: whatever they say, the runs say too."""

import math
import re
from statistics import median

import pytest
from fastapi.testclient import TestClient

from backend.schemas import RaceRead
from backend.services.start import LEARNT, NUMBERS, race, race_of
from ib_core.errors import CorruptData
from ib_core.reproduction.bundle import Bundle
from ib_core.reproduction.plan import RACE, race_folder
from ib_core.sweep.result import Outcome, TrialResult

STEPS = {"explicit": "eb", "implicit": "ib", "IB+": "ib_plus"}


@pytest.fixture(scope="module")
def runs() -> list[TrialResult]:
    return Bundle(race_folder()).results_of(RACE)


def at(runs: list[TrialResult], method: str, lr: float) -> list[TrialResult]:
    return [run for run in runs if (run.spec.method, run.spec.lr) == (method, lr)]


def parts(words: str) -> dict[str, str]:
    """Return what a sentence says of every method."""
    body = words.split(" ", 2)[2].rstrip(".")
    said = {}
    for part in body.split("; "):
        if found := re.match(r"all three (.*)", part):
            said |= dict.fromkeys(STEPS.values(), found[1])
        else:
            names, what = part.split(" steps ")
            said |= {STEPS[name]: what for name in names.split(" and ")}
    return said


def holds(what: str, runs: list[TrialResult]) -> bool:
    """Return whether a few words are true of runs: the slow twin, from the trials themselves."""
    broken = sum(run.outcome is Outcome.DIVERGED for run in runs)
    start = median(run.initial_loss for run in runs)
    ends = sorted(math.inf if math.isnan(run.train_loss) else run.train_loss for run in runs)
    low = ends[len(ends) // 2] <= 1.02 * LEARNT * start
    everyone = NUMBERS[len(runs)]
    return {
        f"break in all {everyone} runs": broken == len(runs) and not low,
        f"break in all {everyone} runs before they recover": broken == len(runs) and low,
        f"break in {NUMBERS[broken]} of {everyone} runs": 0 < broken < len(runs),
        "hold, but learn little": broken == 0,
        "learn slowly": broken == 0 and ends[-1] < start,
        "still learn": broken == 0 and low,
        "learn well": broken == 0 and low,
    }[what]


def test_no_sentence_contradicts_the_runs_it_is_about(runs: list[TrialResult]) -> None:
    for rate in race().rates:
        said = parts(rate.words)
        assert set(said) == set(STEPS.values()), rate.words
        for method, what in said.items():
            assert holds(what, at(runs, method, rate.lr)), (rate.words, method)


def test_what_is_said_to_break_next_is_whole_until_there_and_broken_there(
    runs: list[TrialResult],
) -> None:
    def broken(method: str, lr: float) -> bool:
        return any(run.outcome is Outcome.DIVERGED for run in at(runs, method, lr))

    rates = [rate.lr for rate in race().rates]
    seen = 0
    for rate in race().rates:
        if found := re.fullmatch(r"Next to break: (.*) steps, at (\S+)\.", rate.ahead):
            limit = float(found[2])
            for name in found[1].split(" and "):
                before = [lr for lr in rates if rate.lr <= lr < limit]
                assert not any(broken(STEPS[name], lr) for lr in before), rate.ahead
                assert broken(STEPS[name], limit), rate.ahead
            seen += 1
        elif found := re.fullmatch(r"Up to (\S+) no run of the (.*) steps breaks\.", rate.ahead):
            for name in found[2].split(" and "):
                assert not any(broken(STEPS[name], lr) for lr in rates if lr >= rate.lr)
            seen += 1
        else:
            assert all(broken(method, rate.lr) for method in STEPS.values()), rate.ahead
    assert seen


def test_curves_and_their_median_are_the_trials(runs: list[TrialResult]) -> None:
    for rate in race().rates:
        for lane in rate.lanes:
            found = at(runs, lane.method, rate.lr)
            assert len(lane.losses) == len(found) == race().seeds
            assert [losses[-1] for losses in lane.losses] == pytest.approx(
                [run.curve[-1].train_loss for run in found], rel=1e-3
            )
            assert lane.median[-1] == pytest.approx(
                median(run.curve[-1].train_loss for run in found), rel=1e-3
            )


def test_explicit_steps_break_first_and_the_implicit_output_lasts_longest() -> None:
    def limit(method: str) -> float:
        return min(
            (rate.lr for rate in race().rates for lane in rate.lanes
             if lane.method == method and lane.broken),
            default=math.inf,
        )  # fmt: skip

    assert limit("eb") < limit("ib") < limit("ib_plus")


def test_the_api_sends_it_and_browsers_may_keep_it(api: TestClient) -> None:
    answer = api.get("/api/illustrations/race")
    assert RaceRead.model_validate(answer.json()) == race()
    assert "max-age" in answer.headers["cache-control"]


def test_trials_of_another_engine_are_not_shown(runs: list[TrialResult]) -> None:
    old = [TrialResult(**{**_fields(run), "record": {"engine": "0"}}) for run in runs[:3]]
    with pytest.raises(CorruptData, match="engine version"):
        race_of(old)


def _fields(run: TrialResult) -> dict[str, object]:
    return {name: getattr(run, name) for name in run.__dataclass_fields__}
