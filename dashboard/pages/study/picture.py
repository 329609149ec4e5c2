"""The picture and its scorecard: fetched when the controls or the results change."""

from typing import Any

from dash import Input, Output, State, no_update

from backend.client import ApiError, calls
from backend.schemas import ScorecardRead
from dashboard import ids as shared
from dashboard.api_client import ask
from dashboard.callbacks import callback
from dashboard.catalog import task_title
from dashboard.components.live_graph import draw_from
from dashboard.components.planted import plant_from
from dashboard.components.scorecard import advice, scorecard_table
from dashboard.figures.sensitivity import Picture
from dashboard.ids import Study as ids
from dashboard.markup import html
from dashboard.pages.study import live
from dashboard.pages.study.ahead import draw_ahead
from dashboard.pages.study.drawing import Drawn, drawn
from dashboard.pages.study.pace import Shared
from dashboard.pages.study.tasks import of_task, task_shown
from dashboard.pages.study.view import DRAWN_BY, StudyView
from dashboard.theme import scheme_of

#: Those of a large study take megabytes each; one has a dozen views that are a control apart.
MOST_PICTURES = 24

VIEW_INPUTS = [Input(control.id, control.property) for control in DRAWN_BY]
PICTURES: Shared[Drawn] = Shared(MOST_PICTURES)
SCORES: Shared[ScorecardRead] = Shared(MOST_PICTURES)

draw_from(ids.DRAWN, ids.GRAPH, ids.ZOOM)
plant_from(ids.SCORES, ids.SCORECARD)


@callback(
    Output(ids.DRAWN, "data"),
    Output(ids.CAPTION, "children"),
    Output(ids.MARK, "data"),
    Output(ids.SCORED, "data"),
    Input(ids.VERSION, "data"),
    *VIEW_INPUTS,
    Input(shared.SCHEME, "data"),
    Input(shared.NARROW, "data"),
    State(ids.ID, "data"),
    State(ids.MARK, "data"),
    State(ids.SCORED, "data"),
    running=[(Output(ids.FIGURE, "className"), "waiting", "")],
)
async def draw(*values: Any) -> tuple[Any, ...]:
    """Draw the study; a figure that did not change is not sent again."""
    _version, *chosen, scheme, narrow, study_id, mark, scored = values
    view = StudyView(*chosen)
    study = await ask(calls.study(study_id))
    task, version = task_shown(view.task, study.tasks), live.version(study)
    title = await task_title([task] if task else study.tasks)

    async def shown(other: StudyView) -> Drawn:
        picture = picture_of(other, title, scheme, narrow)
        # Whoever looks at the same version of the study gets what was drawn for the first of them.
        key = (study.id, version, other, picture)
        return await PICTURES.get(key, lambda: drawn(study, other, picture))

    found = await shown(view)
    to_score = [version, view.scored, view.reducer, task]
    rest = (found.caption, found.mark, no_update if scored == to_score else to_score)
    if found.mark == mark:
        return no_update, *rest
    draw_ahead(study, view, shown, look=f"{scheme} {narrow}")
    return found.figure, *rest


def picture_of(view: StudyView, title: str, scheme: str | None, narrow: bool | None) -> Picture:
    """Return how a view is drawn."""
    return Picture(
        title=title,
        metric=view.metric,
        reducer=view.reducer,
        band=view.band,
        scale=view.scale,
        seeds=view.seeds,
        scheme=scheme_of(scheme),
        narrow=bool(narrow),
        revision=f"{view.task} {view.view} {view.metric} {view.scale}",
    )


@callback(
    Output(ids.SCORES, "data"),
    Input(ids.SCORED, "data"),
    State(ids.ID, "data"),
    prevent_initial_call=True,
)
async def score(scored: list[Any], study_id: int) -> Any:
    """Fetch the robustness numbers, after the picture: that is what one looks at first."""
    version, metric, reducer, task = scored
    call = calls.scorecard(study_id, metric=metric, reducer=reducer)
    try:
        found = await SCORES.get((study_id, version, metric, reducer), lambda: ask(call))
    except ApiError as error:
        return html.P(error.message, className="muted")
    rows = of_task(found.rows, task)
    if not rows:
        return html.P("Numbers appear with the first finished trials.", className="muted")
    return [*advice(rows), scorecard_table(rows)]
