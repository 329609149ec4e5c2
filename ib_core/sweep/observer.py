"""How the engine tells the world what happens; it knows no database, queue or plot."""

from collections.abc import Collection, Mapping

from ib_core.sweep.result import CurvePoint, TrialResult


class Observer:
    """Watches a shard train. Indices are positions in the list given to `run_trials`.

    Override what you need. Exceptions raised here end the run.
    """

    def points(self, points: Mapping[int, CurvePoint]) -> None:
        """Called after every evaluation with the new point of every member still training."""

    def finished(self, index: int, result: TrialResult) -> None:
        """Called as soon as a trial has ended, early for non-finite ones."""

    def progress(self, fraction: float) -> Collection[int]:
        """Called a few times a second between steps.

        Args:
            fraction: Share of the shard's work that is done.

        Returns:
            Indices that are no longer wanted; they are dropped and give no result.
        """
        del fraction
        return ()


SILENT = Observer()
