"""Recorded steps of many rates: sharpness against 2/rate, layers' norms at one rate."""

from dataclasses import replace

import pytest

from backend.schemas import RecordingRead
from dashboard.figures import STEPS, Answers, Family, Picture, boxes, view_figure
from tests.dashboard.answers import series


def recording(trial: int, *, rate: float | None, broke_at: int | None = None) -> RecordingRead:
    steps = [0, 1, 2, 3]
    return RecordingRead(
        trial_id=trial, state="done", layers=["a", "b"], steps=steps, losses=[1, 1, 1, 1],
        rates=[rate] * 4, weights=[[1, 2, 3, 4], [2, 2, 2, 2]],
        sharp_steps=steps, sharpness=[5, 6, 7, 1e6], broke_at=broke_at,
    )  # fmt: skip


LINES = [series("eb"), series("ib")]
RECORDED = {
    LINES[0].id: {0.5: recording(1, rate=0.5), 4.0: recording(2, rate=4.0, broke_at=2)},
    LINES[1].id: {0.5: recording(3, rate=None), 4.0: recording(4, rate=None)},
}


def drawn(**family):
    picture = Picture(family=replace(Family(), **family), narrow=family.pop("narrow", False))
    return view_figure(STEPS, Answers(LINES, recorded=RECORDED), picture)


def of(figure, meta):
    return [trace for trace in figure.data if trace.meta == meta]


def test_sharpness_ends_at_the_break_and_2_over_rate_is_where_steps_are_plain(monkeypatch):
    monkeypatch.setattr(boxes, "LEAST_MEASURED", 4)
    figure = drawn()
    assert [(trace.name, trace.x[-1]) for trace in of(figure, "sharpness")] == [
        ("rate 0.5", 3), ("rate 4", 2), ("rate 0.5", 3), ("rate 4", 3)
    ]  # fmt: skip
    assert [(trace.x, trace.y) for trace in of(figure, "break")] == [((2,), (7,))]
    limits = [(trace.y[0], trace.yaxis) for trace in of(figure, "limit")]
    assert limits == [(4.0, "y"), (0.5, "y")]  # in EB's panel alone: IB has no such limit


def test_where_sharpness_was_measured_seldom_losses_tell_of_the_break():
    figure = drawn()
    assert [trace.x[-1] for trace in of(figure, "batch loss")] == [3] * 4
    assert len(of(figure, "break")) == 1
    assert not of(figure, "sharpness")
    assert not of(figure, "limit")


@pytest.mark.parametrize(("wanted", "shown"), [(None, 4.0), (0.4, 0.5)])
def test_the_layers_are_those_of_the_lowest_rate_that_broke_or_of_the_one_asked_for(wanted, shown):
    figure = drawn(rate=wanted)
    assert figure.layout.meta["scrub"]["chosen"] == shown
    assert [list(trace.y) for trace in of(figure, "weights")][:2] == [[1, 2, 3, 4], [2, 2, 2, 2]]
    told = [one.text for one in figure.layout.annotations]
    assert sum(f"rate {shown:g}" in text for text in told) == 2


def test_panels_of_one_quantity_share_their_range():
    figure = drawn()
    axes = [figure.layout[name] for name in ("yaxis", "yaxis2", "yaxis3", "yaxis4")]
    assert axes[0].range == axes[1].range != axes[2].range == axes[3].range


def test_a_study_without_recordings_says_how_to_make_some():
    said = view_figure(STEPS, Answers(LINES), Picture())
    assert "Replay" in said
