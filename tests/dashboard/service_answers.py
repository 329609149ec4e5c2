"""What the fake API says about itself."""

from typing import Any

from backend.schemas import (
    BundleRead,
    CheckRead,
    FirstStudyRead,
    HealthRead,
    Page,
    PlaceRead,
    QueueRead,
    RaceRead,
    ReadyRead,
    StorageRead,
    TablesRead,
    WorkerRead,
)
from backend.services.analysis.unstored import stored_tables
from backend.services.start import race
from tests.dashboard.answers import NOW


class ServiceAnswers:
    """Health, workers, queue, room; the stored race, and what a new installation begins with."""

    bundle = BundleRead(state="absent", studies=0)

    def _get_illustrations(self, call: Any, _rest: list[str]) -> RaceRead:
        assert call.path == "/api/illustrations/race"
        return race()

    def _post_first_study(self, _call: Any, _rest: list[str]) -> FirstStudyRead:
        return FirstStudyRead(study_id=None)

    def _get_bundle(self, _call: Any, rest: list[str]) -> BundleRead | TablesRead:
        return stored_tables() if rest == ["tables"] else self.bundle

    def _post_bundle(self, _call: Any, _rest: list[str]) -> BundleRead:
        self.bundle = BundleRead(state="loading", studies=0)
        return self.bundle

    def _get_health(self, _call: Any, _rest: list[str]) -> HealthRead:
        return HealthRead(version="0")

    def _get_ready(self, _call: Any, _rest: list[str]) -> ReadyRead:
        check = CheckRead(ready=False, reason="No worker is alive.")
        return ReadyRead(ready=False, checks={"workers": check})

    def _get_workers(self, _call: Any, _rest: list[str]) -> Page[WorkerRead]:
        return Page[WorkerRead](
            items=[
                WorkerRead(
                    name="worker-1",
                    host="here",
                    device="cpu",
                    alive=True,
                    state="busy",
                    current_shard=7,
                    trials=27,
                    last_heartbeat=NOW,
                    trials_done=120,
                    trials_per_minute=33.4,
                    started_at=NOW,
                ),
                WorkerRead(name="worker-2", device="cpu", alive=False, last_heartbeat=NOW),
            ]
        )

    def _get_queue(self, _call: Any, _rest: list[str]) -> QueueRead:
        return QueueRead(depth=2, running=1, trials_queued=30, trials_running=4)

    def _get_storage(self, _call: Any, _rest: list[str]) -> StorageRead:
        places = [PlaceRead(name="database", used_bytes=2_500_000)]
        return StorageRead(places=places, trials=54, curve_bytes=40_000, free_bytes=10**10)
