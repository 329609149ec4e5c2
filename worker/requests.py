"""Messages as this worker handles them."""

from celery.worker.request import Request
from kombu.asynchronous import get_event_loop


class ShardRequest(Request):  # type: ignore[misc]
    """A message whose acknowledgement may get lost, but not unnoticed.

    If the broker is away when a shard ends, Celery logs that it could not acknowledge and goes on:
    it counts the message as still being worked on, fetches no other, and so never finds out that
    its connection is dead. The worker would wait for ever. Here it connects anew instead.
    """

    def acknowledge(self) -> None:
        """Tell the broker that the message is dealt with."""
        super().acknowledge()
        loop = get_event_loop()
        if not self.message.acknowledged and loop is not None:
            loop.call_soon(_lose_connection)  # type: ignore[no-untyped-call]


def _lose_connection() -> None:
    raise ConnectionError("A finished shard's message could not be acknowledged.")
