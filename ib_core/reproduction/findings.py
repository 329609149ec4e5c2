"""Everything the reproduction says, as values: what screens, the API and the report show.

What the reproduction comes to, in three sentences: made from the findings, like every number.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from ib_core.datasets import DATASETS
from ib_core.metrics import Number, RateCurve
from ib_core.reproduction import uci, verdicts
from ib_core.reproduction.claims import CLAIMS, Claim
from ib_core.reproduction.clipping import ClipDifferences, differences
from ib_core.reproduction.evidence import TIMED, Evidence, RateFacts
from ib_core.reproduction.plan import Experiment, experiments
from ib_core.reproduction.published import (
    BOUNDS_RULE,
    SCORED,
    PrintedRunTime,
    bounds,
    printed_run_times,
    profile_note,
)
from ib_core.reproduction.verdicts import (
    Judgement,
    RecordedCell,
    Verdict,
    judge_recorded,
    judge_text,
    recorded_cells,
)
from ib_core.sweep import PRESETS, specs_of
from ib_core.tasks import find_task

PROFILES = ("text", "authors")
#: By what a verdict was reached, as people read it.
RULES = {
    "text": verdicts.TEXT_RULE,
    "recorded": verdicts.RECORDED_RULE,
    "uci_text": uci.TEXT_RULE,
    "uci": uci.AGREEMENT_RULE,
    "bounds": BOUNDS_RULE,
}


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of an experiment was run.

    Attributes:
        trials: Runs at the paper's rates, exact ISGD included.
        of: How many the paper has.
        of_here: Of these, how many have their data here.
        rates: Rates of EB's curve (tables for UCI).
        of_rates: How many the paper has.
        fewest_seeds: Seeds at the rate that has fewest.
        most_seeds: Seeds at the rate that has most.
    """

    trials: int
    of: int
    of_here: int
    rates: int
    of_rates: int
    fewest_seeds: int
    most_seeds: int


#: Numbers of one method by name.
Row = Mapping[str, Number]


@dataclass(frozen=True, slots=True)
class ProfileFindings:
    """One experiment in one profile.

    Attributes:
        profile: Which.
        coverage: How much of it was run.
        curves: Training losses by method.
        test_curves: Test losses by method.
        numbers: Robustness numbers by method.
        judgement: What it says of the paper.
        clipping: Clipped minus unclipped, for an experiment with clipping.
    """

    profile: str
    coverage: Coverage
    curves: Mapping[str, RateCurve]
    test_curves: Mapping[str, RateCurve]
    numbers: Mapping[str, Row]
    judgement: Judgement
    clipping: Sequence[ClipDifferences] = ()


@dataclass(frozen=True, slots=True)
class ExperimentFindings:
    """One experiment: ours in both profiles beside the recorded runs."""

    experiment: Experiment
    text: ProfileFindings
    authors: ProfileFindings
    recorded: Mapping[str, Sequence[RateFacts]]
    recorded_numbers: Mapping[str, Row]
    cells: Sequence[RecordedCell]
    note: str


@dataclass(frozen=True, slots=True)
class ClaimFindings:
    """One claim, judged on the recorded runs and on ours."""

    claim: Claim
    recorded: Judgement
    text: Judgement
    authors: Judgement


@dataclass(frozen=True, slots=True)
class RunTimeFindings:
    """One row of the run time table; shares, None where nothing is known.

    Attributes:
        printed: What the paper prints.
        bound: Of our network.
        recorded: Of the recorded runs that hold only a time.
        recorded_results: Of the recorded runs behind the paper's results, with an older solver.
        here: Of ours.
    """

    printed: PrintedRunTime
    bound: float | None
    recorded: float | None
    recorded_results: float | None
    here: float | None


@dataclass(frozen=True, slots=True)
class Findings:
    """The whole reproduction."""

    experiments: Sequence[ExperimentFindings]
    claims: Sequence[ClaimFindings]
    run_times: Sequence[RunTimeFindings]
    uci_cells: Sequence[uci.Cell]
    accuracies: Mapping[str, uci.Accuracies]


def find(text: Evidence, authors: Evidence, recorded: Evidence) -> Findings:
    """Judge every experiment and every claim.

    Args:
        text: Our runs in the text profile.
        authors: Our runs in the authors profile.
        recorded: The authors' recorded runs.
    """
    limits = bounds()
    return Findings(
        experiments=[_experiment(e, text, authors, recorded) for e in experiments()],
        claims=[
            ClaimFindings(claim, *(claim.judge(found) for found in (recorded, text, authors)))
            for claim in CLAIMS.values()
        ],
        run_times=[
            RunTimeFindings(
                printed=row,
                bound=limits.get(row.dataset),
                recorded=recorded.overheads.get(row.dataset),
                recorded_results=recorded.result_overheads.get(row.dataset),
                here=text.overheads.get(row.dataset),
            )
            for row in printed_run_times()
            if row.dataset in TIMED.values()
        ],
        uci_cells=uci.cells(authors),
        accuracies=uci.compared_accuracies(
            {"recorded": recorded, "text": text, "authors": authors}
        ),
    )


def _experiment(
    experiment: Experiment, text: Evidence, authors: Evidence, recorded: Evidence
) -> ExperimentFindings:
    theirs = recorded.facts.get(experiment.id, {})
    ours = authors.facts.get(experiment.id, {})
    if experiment.id == "uci":
        judgements = (uci.judge_text(text), uci.judge_cells(authors))
    else:
        judgements = (judge_text(text, experiment.id), judge_recorded(ours, theirs))
    in_text, in_authors = (
        _profile(experiment.id, profile, evidence, judgement)
        for profile, evidence, judgement in zip(PROFILES, (text, authors), judgements, strict=True)
    )
    return ExperimentFindings(
        experiment=experiment,
        text=in_text,
        authors=in_authors,
        recorded=theirs,
        recorded_numbers=_numbers(recorded, experiment.id),
        cells=recorded_cells(ours, theirs),
        note=profile_note(experiment.id),
    )


def _profile(name: str, profile: str, evidence: Evidence, judgement: Judgement) -> ProfileFindings:
    curves = evidence.curves.get(name, {})
    return ProfileFindings(
        profile=profile,
        coverage=_uci_coverage(evidence) if name == "uci" else _coverage(name, profile, curves),
        curves=curves,
        test_curves=evidence.test_curves.get(name, {}),
        numbers=_numbers(evidence, name),
        judgement=judgement,
        clipping=differences(evidence, name),
    )


def _numbers(evidence: Evidence, experiment: str) -> dict[str, dict[str, Number]]:
    """Return an experiment's scorecard, by method and name."""
    return {
        method: {
            name: number
            for name in SCORED
            if (number := evidence.number(experiment, method, name)) is not None
        }
        for method in ("eb", "ib", "isgd")
        if method in evidence.facts.get(experiment, {})
    }


def _coverage(name: str, profile: str, curves: Mapping[str, RateCurve]) -> Coverage:
    points = [
        point for method in ("eb", "ib") if method in curves for point in curves[method].points
    ]
    rates = {point.lr for point in points}
    return Coverage(
        trials=sum(point.n for curve in curves.values() for point in curve.points),
        of=_paper_trials(name, profile),
        of_here=_trials_here(name, profile),
        rates=len(rates),
        of_rates=len(PRESETS[f"paper/{name}"].sweeps(profile)[0]["learning_rates"]),
        fewest_seeds=min((point.n for point in points), default=0),
        most_seeds=max((point.n for point in points), default=0),
    )


def _uci_coverage(evidence: Evidence) -> Coverage:
    runs = [len(rates) for methods in evidence.uci.values() for rates in methods.values()]
    tables = len(PRESETS["paper/uci"].text)
    return Coverage(
        trials=sum(runs),
        of=_paper_trials("uci", "text"),
        of_here=_trials_here("uci", "text"),
        rates=len(evidence.uci),
        of_rates=tables,
        fewest_seeds=1 if runs else 0,
        most_seeds=1 if runs else 0,
    )


def _paper_trials(name: str, profile: str) -> int:
    return sum(_sizes(name, profile).values())


def _trials_here(name: str, profile: str) -> int:
    """Return how many of an experiment's trials have their data here."""
    sizes = _sizes(name, profile).items()
    return sum(count for task, count in sizes if DATASETS[find_task(task).dataset].present())


@cache
def _sizes(name: str, profile: str) -> Counter[str]:
    """Return how many trials the paper has, by task."""
    found: Counter[str] = Counter()
    for body in PRESETS[f"paper/{name}"].sweeps(profile):
        found[body["task"]] += sum(spec.size for spec in specs_of(body))
    return found


#: More titles than these are not listed.
MOST_NAMES = 3
#: Why text and runs part, in a sentence: the notes of the experiments say more.
WHY = (
    "The published runs are not what the text describes: the autoencoder saw single images instead "
    "of batches of 100, on music in effect the last frame of a piece counts, in batches implicit "
    "steps are weaker by the batch size, and weights start elsewhere."
)
#: What such a match says of all experiments or of some, and what it does not.
ALL_MATCH, SOME_MATCH = "So what runs here", "Where they match, what runs here"
ONLY_LOSSES = "is what they ran; whether the paper's claims hold is judged below."
NOTHING = "Nothing has been trained here yet."
#: The methods whose recorded means ours are held against.
PAIR = ("eb", "ib")


def headlines(findings: Findings) -> tuple[str, ...]:
    """Return what the evidence supports: the authors profile, the text profile, the claims."""
    music_and_images = [one for one in findings.experiments if one.experiment.id != "uci"]
    (tables,) = (one for one in findings.experiments if one.experiment.id == "uci")
    said = (
        _authors(music_and_images, tables.authors.judgement),
        _text(music_and_images),
        _claims(findings.claims),
    )
    return tuple(sentence for sentence in said if sentence)


def _authors(experiments: Sequence[ExperimentFindings], tables: Judgement) -> str:
    found = [one.authors.judgement for one in experiments if one.authors.judgement.cells]
    if not found:
        return f"As the authors ran it: {NOTHING[0].lower()}{NOTHING[1:]}"
    agreeing, cells, same, ranged = (
        sum(getattr(one, name) for one in found)
        for name in ("agreeing", "cells", "same", "in_range")
    )
    held, against = (
        [one.experiment.title for one in experiments if one.authors.judgement.verdict is verdict]
        for verdict in (Verdict.REPRODUCED, Verdict.DIFFERS)
    )
    recorded = sum(
        len(points) for one in experiments for name, points in one.recorded.items() if name in PAIR
    )
    counted = f"{agreeing} of {cells} means agree"
    if cells < recorded:
        counted = f"of {recorded} recorded means {cells} were run, and {agreeing} of them agree"
    words = (
        f"Run as the authors ran it, the losses of {len(held)} of {len(experiments)} experiments "
        f"match their recorded runs"
    )
    words += f" and those of {len(against)} differ{_named(against)}" if against else ""
    words += f": {counted}"
    words += verdicts.agreement_words(same, agreeing - same - ranged, ranged)
    if tables.cells:
        words += f", and so do {tables.agreeing:,} of {tables.cells:,} UCI losses at rates up to 1"
    everything = len(held) == len(experiments) and tables.verdict is not Verdict.DIFFERS
    return f"{words}. {ALL_MATCH if everything else SOME_MATCH} {ONLY_LOSSES}"


def _text(experiments: Sequence[ExperimentFindings]) -> str:
    by_verdict = {
        verdict: [
            one.experiment.title for one in experiments if one.text.judgement.verdict is verdict
        ]
        for verdict in Verdict
    }
    judged = len(experiments) - len(by_verdict[Verdict.NOT_TESTED])
    if not judged:
        return f"As the text describes it: {NOTHING[0].lower()}{NOTHING[1:]}"
    held, against, left = (
        by_verdict[verdict]
        for verdict in (Verdict.REPRODUCED, Verdict.DIFFERS, Verdict.CANNOT_TELL)
    )
    parts = [
        f"{len(held)} of {len(experiments)} hold as published{_named(held)}",
        f"{len(against)} differ{_named(against)}",
        f"{len(left)} cannot be told",
    ]
    if judged < len(experiments):
        parts.append(f"{len(experiments) - judged} were not run")
    why = f" {WHY}" if against else ""
    return f"Run as the text describes it, {_listed(parts)}.{why}"


def _claims(claims: Sequence[ClaimFindings]) -> str:
    held, against, left = (
        [one.claim.published.id for one in claims if one.recorded.verdict is verdict]
        for verdict in (Verdict.REPRODUCED, Verdict.DIFFERS, Verdict.CANNOT_TELL)
    )
    if not (held or against or left):
        return ""
    return (
        f"Of {len(claims)} claims of the paper, judged by stated rules, with 95% intervals where "
        f"runs give them, its own recorded runs bear out {len(held)}, contradict {len(against)}, "
        f"and cannot tell {len(left)}."
    )


def _named(titles: Sequence[str]) -> str:
    return f" ({'; '.join(titles)})" if 0 < len(titles) <= MOST_NAMES else ""


def _listed(parts: Iterable[str]) -> str:
    *first, last = parts
    return f"{', '.join(first)} and {last}"
