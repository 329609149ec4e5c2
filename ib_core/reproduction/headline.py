"""What the reproduction comes to, in three sentences: made from the findings, like every number."""

from collections.abc import Iterable, Sequence

from ib_core.reproduction.findings import ClaimFindings, ExperimentFindings, Findings
from ib_core.reproduction.verdicts import Judgement, Verdict

#: More titles than these are not listed.
MOST_NAMES = 3
#: Why text and runs part, in a sentence: the notes of the experiments say more.
WHY = (
    "The published runs are not what the text describes: the autoencoder saw single images instead "
    "of batches of 100, on music in effect the last frame of a piece counts, implicit steps are "
    "weaker by the batch size, and weights start elsewhere."
)
NOTHING = "Nothing has been trained here yet."


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
    agreeing, cells = sum(one.agreeing for one in found), sum(one.cells for one in found)
    held = sum(one.verdict is Verdict.REPRODUCED for one in found)
    words = (
        f"Run as the authors ran it, {held} of {len(experiments)} experiments are reproduced: "
        f"{agreeing} of {cells} mean losses agree with their recorded runs"
    )
    if tables.cells:
        words += f", and so do {tables.agreeing:,} of {tables.cells:,} UCI losses at rates up to 1"
    return words + "."


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
        f"{len(left)} cannot be told with the seeds run",
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
        f"Of the paper's {len(claims)} claims, judged by stated rules with 95% intervals, its own "
        f"recorded runs bear out {len(held)}, contradict {len(against)}, and cannot tell "
        f"{len(left)}."
    )


def _named(titles: Sequence[str]) -> str:
    return f" ({'; '.join(titles)})" if 0 < len(titles) <= MOST_NAMES else ""


def _listed(parts: Iterable[str]) -> str:
    *first, last = parts
    return f"{', '.join(first)} and {last}"
