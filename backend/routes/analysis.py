"""Curves, robustness numbers, differences, comparisons; and what they say of the paper."""

from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from fastapi import Query as QueryParameters
from pydantic import Field

from backend.deps import CallerDep, Query, ReadDep, StudyId, Word, errors
from backend.schemas import (
    Band,
    CompareRead,
    DifferenceKind,
    DifferencesRead,
    Identifier,
    LearningRead,
    LossMetric,
    Metric,
    PaperRead,
    Reducer,
    ScorecardRead,
    SensitivityRead,
    TheoremRead,
)
from backend.services import analysis, reproduction, studies
from backend.web import answer_by_version

router = APIRouter(prefix="/api", tags=["analysis"])
paper_router = APIRouter(prefix="/api/paper", tags=["paper"])

UNCHANGED: dict[int | str, dict[str, Any]] = {
    304: {"description": "As it was when the caller got its `If-None-Match`."}
}
BEST = "The last value, or the best at any evaluation, chosen on validation where there is one."


#: Of many series the first are told, and those of one task are few.
TASK = "Only this task's series."


class SensitivityQuery(Query):
    """Which curves to draw."""

    metric: Metric = "train_loss"
    reducer: Reducer = Field("final", description=BEST)
    band: Band = Field("std", description="What is drawn around the mean.")


class OneSensitivityQuery(SensitivityQuery):
    """Of which task, besides."""

    task: Word | None = Field(None, description=TASK)


class ScoreQuery(Query):
    """Which losses to measure."""

    metric: LossMetric = Field("train_loss", description="An accuracy is measured as 1 - accuracy.")
    reducer: Reducer = Field("final", description=BEST)


class LearningQuery(Query):
    """Which losses over training to draw."""

    task: Word | None = Field(None, description=TASK)
    metric: LossMetric = "train_loss"
    smooth: int = Field(
        1, ge=1, le=100, description="Each value is the mean of so many evaluations up to it."
    )
    points: int = Field(40, ge=2, le=400, description="At most so many evaluations a curve.")
    series: list[Annotated[str, Field(max_length=64)]] = Field(
        [], max_length=90, description="Ids from the sensitivity answer; repeat for each."
    )


class OneScoreQuery(ScoreQuery):
    """Of which task, besides."""

    task: Word | None = Field(None, description=TASK)


class DifferencesQuery(OneScoreQuery):
    """What to compare seed by seed."""

    kind: DifferenceKind = Field(
        "method",
        description="Methods minus EB, clipped minus unclipped, or an engine minus the one before.",
    )


class CompareQuery(SensitivityQuery):
    """Which studies to overlay."""

    study: list[Identifier] = Field(min_length=1, max_length=20, description="Repeat for each.")
    metric: LossMetric = "train_loss"


@router.get(
    "/studies/{study_id}/sensitivity",
    response_model=SensitivityRead,
    responses=errors(404) | UNCHANGED,
)
def get_sensitivity(
    study_id: StudyId,
    query: Annotated[OneSensitivityQuery, QueryParameters()],
    request: Request,
    session: ReadDep,
    _: CallerDep,
) -> Response:
    """Return a study's curves: a value against the learning rate, with every seed.

    Trials that differ in more than rate and seed are in different series, whose labels say in
    what they differ.
    """
    studies.owner_of(session, study_id=study_id)
    version = analysis.studies_version(session, study_ids=[study_id])
    return answer_by_version(
        request,
        version,
        lambda: analysis.sensitivity(
            session,
            study_id=study_id,
            metric=query.metric,
            reducer=query.reducer,
            band=query.band,
            task=query.task,
        ),
    )


@router.get(
    "/studies/{study_id}/scorecard",
    response_model=ScorecardRead,
    responses=errors(404) | UNCHANGED,
)
def get_scorecard(
    study_id: StudyId,
    query: Annotated[OneScoreQuery, QueryParameters()],
    request: Request,
    session: ReadDep,
    _: CallerDep,
) -> Response:
    """Return a study's robustness numbers, with intervals, definitions and a recommendation."""
    studies.owner_of(session, study_id=study_id)
    version = analysis.studies_version(session, study_ids=[study_id])
    return answer_by_version(
        request,
        version,
        lambda: analysis.scorecard(
            session,
            study_id=study_id,
            metric=query.metric,
            reducer=query.reducer,
            task=query.task,
        ),
    )


@router.get(
    "/studies/{study_id}/theorem", response_model=TheoremRead, responses=errors(404) | UNCHANGED
)
def get_theorem(study_id: StudyId, request: Request, session: ReadDep, _: CallerDep) -> Response:
    """Return the average of App. C's theorem, from a study's trials with restarts."""
    studies.owner_of(session, study_id=study_id)
    version = analysis.studies_version(session, study_ids=[study_id])
    return answer_by_version(request, version, lambda: analysis.theorem(session, study_id=study_id))


@router.get(
    "/studies/{study_id}/learning",
    response_model=LearningRead,
    responses=errors(404) | UNCHANGED,
)
def get_learning(
    study_id: StudyId,
    query: Annotated[LearningQuery, QueryParameters()],
    request: Request,
    session: ReadDep,
    _: CallerDep,
) -> Response:
    """Return losses over training: at every rate of every series, its seeds' mean and curves."""
    studies.owner_of(session, study_id=study_id)
    version = analysis.studies_version(session, study_ids=[study_id])
    return answer_by_version(
        request,
        version,
        lambda: analysis.learning_curves(
            session,
            study_id=study_id,
            metric=query.metric,
            smooth=query.smooth,
            points=query.points,
            only=query.series,
            task=query.task,
        ),
    )


@router.get(
    "/studies/{study_id}/differences",
    response_model=DifferencesRead,
    responses=errors(404) | UNCHANGED,
)
def get_differences(
    study_id: StudyId,
    query: Annotated[DifferencesQuery, QueryParameters()],
    request: Request,
    session: ReadDep,
    _: CallerDep,
) -> Response:
    """Return differences paired by rate and seed: methods minus EB, or clipped minus unclipped.

    Where a study has no unclipped twin of a clipped series, that of another study is taken.
    """
    studies.owner_of(session, study_id=study_id)
    used = analysis.difference_studies(session, study_id=study_id, kind=query.kind)
    version = analysis.studies_version(session, study_ids=used)
    return answer_by_version(
        request,
        version,
        lambda: analysis.differences(
            session,
            study_id=study_id,
            kind=query.kind,
            metric=query.metric,
            reducer=query.reducer,
            task=query.task,
        ),
    )


@router.get("/compare", response_model=CompareRead, responses=errors(404) | UNCHANGED)
def compare_studies(
    query: Annotated[CompareQuery, QueryParameters()],
    request: Request,
    session: ReadDep,
    _: CallerDep,
) -> Response:
    """Return several studies' curves and numbers on one axis."""
    wanted = list(dict.fromkeys(query.study))
    version = analysis.studies_version(session, study_ids=wanted)
    names = {study_id: studies.get(session, study_id=study_id).name for study_id in wanted}
    return answer_by_version(
        request,
        version,
        lambda: analysis.compare(
            session,
            studies=names,
            metric=query.metric,
            reducer=query.reducer,
            band=query.band,
        ),
    )


@paper_router.get("", response_model=PaperRead, responses=errors() | UNCHANGED)
def get_paper(request: Request, session: ReadDep, _: CallerDep) -> Response:
    """Return every experiment and claim with its verdict, rule, numbers and curves.

    Verdicts are computed from the trials of this installation, in both profiles, and from the
    authors' recorded runs where they were imported or lie in the data folder.
    """
    return answer_by_version(
        request, reproduction.version(session), lambda: reproduction.get(session)
    )
