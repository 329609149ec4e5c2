"""Several studies on one axis."""

from collections.abc import Mapping

from sqlalchemy.orm import Session

from backend.schemas import Band, CompareRead, CompareStudy, Metric, Reducer
from backend.services.analysis.scorecard import read_rows
from backend.services.analysis.sensitivity import read_series
from backend.services.analysis.series import load_series
from backend.services.analysis.values import Measure, read_plots
from ib_core.metrics import BAND_DEFINITIONS


def compare(
    session: Session,
    *,
    studies: Mapping[int, str],
    metric: Metric = "train_loss",
    reducer: Reducer = "final",
    band: Band = "std",
) -> CompareRead:
    """Return the curves and numbers of several studies, labelled by what tells them apart.

    Args:
        session: For reading.
        studies: Names by id, in the order of the answer.
        metric: Which number.
        reducer: Final or best.
        band: What is drawn around the means.
    """
    measure = Measure(metric, reducer)
    found = load_series(
        session,
        study_ids=list(studies),
        value=measure.column,
        with_curves=measure.needs_curves(initial=True),
    )
    names = dict(studies) if len(studies) > 1 else {}
    plots = read_plots(found, measure, initial=True)
    series = read_series(plots, measure, band, names)
    thresholds = [line.threshold for line in series if line.threshold is not None]
    return CompareRead(
        studies=[CompareStudy(id=id_, name=name) for id_, name in studies.items()],
        metric=metric,
        reducer=reducer,
        band=band,
        band_definition=BAND_DEFINITIONS[band],
        series=series,
        rows=read_rows(plots, measure, names),
        threshold=thresholds[0] if thresholds else None,
    )
