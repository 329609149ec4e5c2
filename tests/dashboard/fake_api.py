"""An API without a database: answers calls, and remembers what was written."""

from typing import Any

from backend.client import ApiError, ServerAway
from backend.schemas import (
    CatalogRead,
    CompareRead,
    CompareStudy,
    CurvePointRead,
    CurveRead,
    DifferencesRead,
    DryRunRead,
    LearningRead,
    Page,
    PaperRead,
    ScorecardRead,
    SensitivityRead,
    Spark,
    SparkPoint,
    StudyRead,
    SweepRead,
    SweepState,
    SweepSubmitted,
    TimingRead,
    TimingsRead,
    TrialRead,
)
from tests.dashboard.answers import (
    NOW,
    RATES,
    SEEDS,
    catalog,
    curve_at,
    learnt,
    paired,
    recording,
    series,
    trial,
)
from tests.dashboard.paper_answer import paper_answer
from tests.dashboard.scored_answers import answers_of, rows, timing
from tests.dashboard.service_answers import ServiceAnswers
from tests.dashboard.team_answers import TeamAnswers


class FakeApi(TeamAnswers, ServiceAnswers):
    """Answers calls; remembers what was written.

    Attributes:
        sent: Every call, in order.
        away: Whether nobody answers.
        engine: The version that trained the sweeps.
        running: Whether the study still runs.
        studies: By id.
        refused_forecast: What a forecast ends in instead, if anything.
        timings: How far the measuring of step costs is.
        catalog: What can be run.
    """

    def __init__(self, *, studies: int = 2, running: bool = False) -> None:
        super().__init__()
        self.sent: list[Any] = []
        self.away = False
        self.engine = "1"
        self.pairs = [paired()]
        self.refused_forecast: ApiError | None = None
        self.timings: list[TimingRead] = []
        self.running = running
        self.catalog = catalog()
        self.studies = {number: self._study(number) for number in range(1, studies + 1)}

    def _study(self, number: int) -> StudyRead:
        return StudyRead(
            id=number,
            name=f"Digits {number}: EB against IB",
            notes="A *first* look. <script>alert(1)</script>",
            tags=["digits", "paper", "05_jsb_chorales"][: number + 1],
            owner=None,
            archived=False,
            created_at=NOW,
            updated_at=NOW,
            state=SweepState.RUNNING if self.running else SweepState.COMPLETED,
            tasks=["digits_mlp"],
            methods=["eb", "ib"],
            progress={"completed": 20, "running": 4, "queued": 30}
            if self.running
            else {"completed": 43, "diverged": 11},
            total=54,
            sweep_ids=[number],
            spark=[
                Spark(
                    method=method,
                    points=[SparkPoint(lr=one.lr, mean=one.mean) for one in series(method).points],
                )
                for method in ("eb", "ib")
            ],
        )

    async def send(self, call: Any) -> Any:
        """Answer a call."""
        self.sent.append(call)
        if self.away:
            raise ServerAway("No answer.")
        head, *rest = call.path.removeprefix("/api/").replace("-", "_").split("/")
        return getattr(self, f"_{call.method.lower()}_{head}")(call, rest)

    def _find(self, number: str) -> StudyRead:
        if int(number) not in self.studies:
            raise ApiError(404, "not_found", f"There is no study {number}.")
        return self.studies[int(number)]

    def _get_catalog(self, _call: Any, _rest: list[str]) -> CatalogRead:
        return self.catalog

    def _get_paper(self, _call: Any, _rest: list[str]) -> PaperRead:
        return paper_answer()

    def _get_studies(self, call: Any, rest: list[str]) -> Any:
        if not rest:
            return self._history(call.parameters)
        study = self._find(rest[0])
        answers = {
            "": lambda: study,
            "notes": self._get_notes,
            "sweeps": lambda: Page[SweepRead](items=[self.sweep(study.id)]),
            "sensitivity": lambda: self._sensitivity(study.id, call.parameters),
            "learning": lambda: self._learning(study.id, call.parameters),
            "scorecard": lambda: ScorecardRead(
                study_id=study.id,
                metric="train_loss",
                reducer="final",
                answers=answers_of("digits_mlp"),
                rows=rows(study.id),
            ),
            "timing": lambda: TimingsRead(study_id=study.id, items=self.timings),
            "differences": lambda: self._differences(study.id, call.parameters),
        }
        return answers[rest[1] if len(rest) > 1 else ""]()

    def _history(self, asked: dict[str, Any]) -> Page[StudyRead]:
        words = asked.get("q") or ""
        found = [
            study
            for study in self.studies.values()
            if words in study.name
            and asked.get("archived", "false") in ("any", str(study.archived).lower())
            and (asked.get("tag") is None or asked["tag"] in study.tags)
            and asked.get("bundle", "any") in ("any", str(study.bundle).lower())
        ]
        start = int(asked.get("cursor") or 0)
        limit = int(asked.get("limit", 50))
        more = str(start + limit) if len(found) > start + limit else None
        return Page[StudyRead](items=found[start : start + limit], next_cursor=more)

    def _sensitivity(self, study_id: int, asked: dict[str, Any]) -> SensitivityRead:
        return SensitivityRead(
            study_id=study_id,
            metric=asked["metric"],
            reducer=asked["reducer"],
            band=asked["band"],
            band_definition="One standard deviation.",
            series=[series("eb", study_id=study_id), series("ib", study_id=study_id)],
            threshold=1.2,
        )

    def _learning(self, study_id: int, asked: dict[str, Any]) -> LearningRead:
        lines = [series(method, study_id=study_id) for method in ("eb", "ib")]
        return LearningRead(
            study_id=study_id,
            metric=asked["metric"],
            smooth=asked["smooth"],
            whole=True,
            series=[learnt(line) for line in lines if line.id in asked["series"]],
        )

    def _differences(self, study_id: int, asked: dict[str, Any]) -> DifferencesRead:
        items = [] if asked["kind"] == "clip" else self.pairs
        return DifferencesRead(
            study_id=study_id,
            metric=asked["metric"],
            reducer=asked["reducer"],
            kind=asked["kind"],
            definition="First minus second.",
            items=items,
        )

    def _patch_studies(self, call: Any, rest: list[str]) -> StudyRead:
        study = self._find(rest[0]).model_copy(update=call.json)
        self.studies[study.id] = study
        return study

    def _post_studies(self, call: Any, rest: list[str]) -> Any:
        if not rest:
            number = max(self.studies, default=0) + 1
            self.studies[number] = self._study(number).model_copy(update=call.json)
            return self.studies[number]
        if rest[1] == "notes":
            return self._post_note(int(rest[0]), call.json["text"])
        if rest[1] == "timing":
            self.timings = [timing("queued")]
            return TimingsRead(study_id=int(rest[0]), items=self.timings)
        return SweepSubmitted(**self.sweep(int(rest[0])).model_dump(), sweep_ids=[int(rest[0])])

    def _post_forecast(self, call: Any, _rest: list[str]) -> DryRunRead:
        body = call.json
        if self.refused_forecast is not None:
            raise self.refused_forecast
        if body.get("task") == "mnist_classifier":
            raise ApiError(
                422, "missing_data", "MNIST is not on this machine.", field="task", hint="Fetch it."
            )
        return DryRunRead(
            trials=54,
            reused=20,
            shards=2,
            cost_seconds=12.0,
            memory_bytes=2_000_000,
            learning_rates=list(RATES),
            seeds=list(SEEDS),
            messages=[],
            at_most="find" in str((call.json or {}).get("learning_rates")),
        )

    def _get_sweeps(self, call: Any, rest: list[str]) -> Any:
        if len(rest) == 1:
            return self.sweep(int(rest[0]))
        start = int(call.parameters.get("cursor") or 0)
        limit = int(call.parameters.get("limit", 100))
        ids = [number + 100 * part for part in (0, 1) for number in range(1, 28)]
        more = str(start + limit) if len(ids) > start + limit else None
        return Page[TrialRead](
            items=[trial(number) for number in ids[start : start + limit]], next_cursor=more
        )

    def _post_sweeps(self, call: Any, rest: list[str]) -> SweepRead:
        if not rest:
            number = max(self.studies, default=0) + 1
            self.studies[number] = self._study(number).model_copy(update=call.json["study"])
            return SweepSubmitted(**self.sweep(number).model_dump(), sweep_ids=[number])
        return self.sweep(int(rest[0]))

    def sweep(self, number: int) -> SweepRead:
        study = self.studies[number]
        return SweepRead(
            id=number,
            study_id=number,
            state=study.state or SweepState.COMPLETED,
            spec={
                "task": "digits_mlp",
                "methods": ["eb", "ib"],
                "learning_rates": list(RATES),
                "seeds": list(SEEDS),
                "epochs": 5,
                "batch_size": 100,
                "clips": [None],
                "mu": 0.0,
                "batch_rule": None,
                "profile": "text",
                "activation": None,
                "device": "auto",
                "options": {"width": None, "restart": False},
            },
            progress=study.progress,
            total=54,
            reused=0,
            engine_version=self.engine,
            eta_seconds=12.5 if self.running else None,
            messages=["waiting for a gpu worker"] if self.running else [],
            created_at=NOW,
        )

    def _get_trials(self, _call: Any, rest: list[str]) -> Any:
        found = trial(int(rest[0]))
        if len(rest) == 1:
            return found
        if rest[1] == "recording":
            return recording(found)
        end = found.train_loss
        points = [
            CurvePointRead(
                step=18 * epoch,
                epoch=epoch,
                train_loss=None if end is None and epoch > 2 else curve_at(end, epoch),
                test_loss=None if end is None and epoch > 2 else curve_at(end, epoch),
            )
            for epoch in range(6)
        ]
        return CurveRead(trial_id=found.id, state=found.state, points=points, last_step=90, total=6)

    def _get_compare(self, call: Any, _rest: list[str]) -> CompareRead:
        wanted = call.parameters["study"]
        found = [self._find(str(number)) for number in wanted]
        return CompareRead(
            studies=[CompareStudy(id=study.id, name=study.name) for study in found],
            metric=call.parameters["metric"],
            reducer="final",
            band="std",
            series=[
                series(method, study_id=study.id, label=f"{method}, {study.name}")
                for study in found
                for method in ("eb", "ib")
            ],
            answers=answers_of(*(study.name for study in found)),
            rows=[one for study in found for one in rows(study.id)],
            threshold=1.2,
        )
