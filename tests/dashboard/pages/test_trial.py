"""One trial."""

from backend.schemas import RecordingRead
from dashboard.pages import trial
from tests.coroutines import run
from tests.dashboard import answers
from tests.dashboard.dispatch import text_of


def test_a_trial_is_drawn_with_its_outcome_and_no_longer_asked_for_once_it_ended(api):
    figure, outcome, state, paused = run(trial.draw(0, "log", "dark", 27))
    assert figure.layout.yaxis.type == "log"
    assert figure.layout.template.layout.paper_bgcolor == "#17191C"
    assert "seen at step 40 (loss)" in text_of(outcome)  # the story knows when it broke
    assert text_of(state) == "diverged"
    assert paused is True


def test_why_it_broke_is_told_in_words_and_drawn(api):
    story, drawn, place, view, _, other, choices, label, waiting, paused = run(
        trial.explained(27, "weights", "alone", "light")
    )
    words = " ".join(map(text_of, story))
    assert "Layer 2's weights grew 20-fold" in words
    assert "digit by digit" in words
    assert "Replay Adam to compare" in words
    names = [trace.name for trace in drawn.data]
    assert names == ["loss", "layer 1", "layer 2, first to explode", "2/rate", "sharpness"]
    assert drawn.data[3].y[0] == 2 / api_rate(27)
    assert drawn.layout.shapes[0].x0 == 4
    assert (place, view, other) == ({}, {}, {"display": "none"})
    assert [one["value"] for one in choices] == ["alone", "101"]
    assert (label, waiting, paused) == ("Replay again", False, True)


def api_rate(number: int) -> float:
    return answers.trial(number).lr


def test_another_method_of_the_same_seed_stands_beside_it_on_the_same_axes(api):
    _, drawn, _, _, beside, place, *_ = run(trial.explained(27, "moves", "101", "dark"))
    assert place == {}
    for axis in ("xaxis", "yaxis", "yaxis2", "yaxis3"):
        assert drawn.layout[axis].range == beside.layout[axis].range
    assert drawn.layout.yaxis2.title.text == "norm of step"


def test_what_was_not_recorded_invites_to_a_replay_and_offers_no_choice_of_its_picture(
    api, monkeypatch
):
    nothing = RecordingRead(trial_id=27, state="none")
    monkeypatch.setattr("tests.dashboard.fake_api.recording", lambda _found: nothing)
    story, _, place, view, *_, label, _, _ = run(trial.explained(27, "weights", None, "light"))
    assert "A replay trains it again alone" in text_of(story[0])
    assert place == view == {"display": "none"}
    assert label == "Replay"


def test_a_replay_under_way_is_followed(api, monkeypatch):
    running = RecordingRead(trial_id=27, state="running", progress=0.42)
    monkeypatch.setattr("tests.dashboard.fake_api.recording", lambda _found: running)
    story, *_, waiting, paused = run(trial.explained(27, "weights", None, "light"))
    assert "42 % done" in text_of(story[0])
    assert (waiting, paused) == (True, False)
