"""People who submit one small sweep after the other, whatever happens meanwhile."""

import contextlib
import threading
from typing import Any

import httpx

#: What is asked for in turn: short, long enough to lose a lease over, and real arithmetic.
SWEEPS: tuple[dict[str, Any], ...] = (
    {"task": "toy/quadratic", "epochs": 30},
    {"task": "digits_mlp", "epochs": 12},
    {"task": "digits_mlp", "epochs": 4},
)
TRIALS = 4


def body_of(number: int, count: int, *, varied: bool) -> dict[str, Any]:
    """Return a sweep of four trials that nobody else asks for."""
    kind = SWEEPS[count % len(SWEEPS) if varied else 0]
    return {
        **kind,
        "methods": ["eb", "ib"],
        "learning_rates": [0.1, 1.0],
        "seeds": [number * 100_000 + count],
    }


class Submitter(threading.Thread):
    """Submits one small sweep after the other; each is sent until it is accepted."""

    def __init__(
        self, url: str, study: int, number: int, *, varied: bool = False, pause: float = 1.0
    ) -> None:
        super().__init__(daemon=True)
        self._pause = pause
        self._url, self._study, self._number, self._varied = url, study, number, varied
        self.accepted: dict[int, dict[str, Any]] = {}
        self.refused: list[str] = []
        self.ended = threading.Event()

    def run(self) -> None:
        """Submit until told to end; what has been begun is sent until it is accepted."""
        count = 0
        while not self.ended.is_set():
            count += 1
            body = body_of(self._number, count, varied=self._varied)
            self._submit(f"{self._number}-{count}", body)

    def _submit(self, key: str, body: dict[str, Any]) -> None:
        while not self.ended.is_set():
            with contextlib.suppress(httpx.HTTPError):
                answer = httpx.post(
                    f"{self._url}/api/studies/{self._study}/sweeps",
                    json=body,
                    headers={"Idempotency-Key": key},
                    trust_env=False,
                    timeout=20,
                )
                if answer.status_code == 202:
                    self.accepted[int(answer.json()["id"])] = body
                    self.ended.wait(self._pause)
                    return
                if answer.status_code != 503:
                    self.refused.append(f"{answer.status_code} {answer.text[:200]}")
            self.ended.wait(0.5)
