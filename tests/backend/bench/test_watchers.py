"""Watchers of the bench ask what a page asked, about a study of their own."""

from backend.bench.service import about

QUESTION = {
    "output": "study-status.children",
    "inputs": [{"id": "study-tick", "property": "data", "value": 3}],
    "state": [
        {"id": "study-id", "property": "data", "value": 1},
        [{"id": {"kind": "sweep-cancel", "key": 1}, "property": "n_clicks"}],
    ],
}


def test_a_noted_question_is_asked_about_another_study():
    asked = about(QUESTION, {"study-id": 7, "study-version": "later"})
    assert asked["state"][0] == {"id": "study-id", "property": "data", "value": 7}
    assert asked["state"][1] == QUESTION["state"][1]
    assert asked["inputs"] == QUESTION["inputs"]
    assert QUESTION["state"][0]["value"] == 1
