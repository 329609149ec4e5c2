"""Progress: what has ended, what has not, and what can be run again."""

from dashboard.components.words import (
    ended,
    progress_bar,
    progress_panel,
    progress_words,
    retriable,
    unfinished,
)
from tests.dashboard.component_tree import said

PROGRESS = {"completed": 5, "diverged": 4, "failed": 3, "cancelled": 2, "running": 7, "queued": 9}
TOTAL = sum(PROGRESS.values())


def test_progress_counts_what_has_ended_and_names_every_other_state():
    assert (ended(PROGRESS), unfinished(PROGRESS)) == (14, 16)
    told = progress_words(PROGRESS, TOTAL)
    expected = "4 diverged, 3 failed, 2 cancelled, 7 running, 9 queued"
    assert told == f"14 of 30 trials ended, {expected}"
    assert progress_words({"completed": 1}, 1) == "1 of 1 trial ended"


def test_what_failed_or_was_cancelled_can_be_run_again_and_nothing_else():
    assert retriable(PROGRESS) == 5
    assert retriable({"completed": 5, "diverged": 4, "running": 1}) == 0


def test_the_bar_leaves_room_for_what_waits_and_only_that():
    bar = progress_bar(PROGRESS, TOTAL)
    shares = [section.value for section in bar.children]
    assert sum(shares) == 100 * (TOTAL - PROGRESS["queued"]) / TOTAL
    assert progress_bar({}, 0).children == []


def test_news_are_offered_only_while_there_will_be_some():
    assert "Notify me" in said(progress_panel(PROGRESS, TOTAL, eta=90))
    assert "about 1 min 30 s left" in said(progress_panel(PROGRESS, TOTAL, eta=90))
    assert "Notify me" not in said(progress_panel({"completed": 3}, 3))
