"""Curves, robustness numbers, differences, comparisons over HTTP."""

import csv
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa
from fastapi.testclient import TestClient

from backend.db import transaction
from backend.models import StudyRow, SweepRow
from ib_core.metrics import KINDS, NUMBERS
from ib_core.sweep import CurvePoint, Outcome
from tests import factories


def series(api: TestClient, study: int, **query: str) -> dict[str, dict[str, Any]]:
    answer = api.get(f"/api/studies/{study}/sensitivity", params=query)
    assert answer.status_code == 200, answer.text
    return {line["label"]: line for line in answer.json()["series"]}


def test_a_lost_seed_shows_as_null_beside_its_outcome(api: TestClient, trained: int) -> None:
    points = series(api, trained)["eb"]["points"]
    broken = points[-1]
    assert (broken["lr"], broken["mean"], broken["finite_mean"]) == (3.0, None, 40.0)
    assert (broken["n"], broken["n_finite"], broken["diverged"]) == (2, 1, 2)
    seeds = [(dot["seed"], dot["value"], dot["outcome"]) for dot in broken["seeds"]]
    assert seeds == [(1, None, "diverged"), (2, 40.0, "diverged")]


def test_means_and_bands_are_those_of_the_seeds(api: TestClient, trained: int) -> None:
    point = series(api, trained)["ib"]["points"][0]
    assert point["mean"] == pytest.approx(0.515)
    assert (point["low"], point["high"]) == pytest.approx((0.51, 0.52))
    assert point["diverged_low"] == 0 < point["diverged_high"]


def test_the_papers_own_rule_is_for_the_papers_own_studies(api: TestClient, trained: int) -> None:
    curves, card = f"/api/studies/{trained}/sensitivity", f"/api/studies/{trained}/scorecard"
    assert api.get(curves).json()["threshold"] is None
    assert not any(name.startswith("paper") for name in first_numbers(api.get(card).json()))
    with transaction() as session:  # as a sweep that came with the shipped reproduction
        session.execute(sa.update(SweepRow).values(idempotency_key="bundle:text/toy:0"))
        session.execute(sa.update(StudyRow).values(name="The toy, as in the paper"))
    answer = api.get(curves).json()
    assert answer["threshold"] == pytest.approx((0.115 + 0.515) / 2)
    assert answer["threshold_definition"]
    assert (answer["metric"], answer["reducer"], answer["band"]) == ("train_loss", "final", "std")
    found = first_numbers(api.get(card).json())
    assert found["paper_threshold"]["value"] == pytest.approx(answer["threshold"])


def first_numbers(card: dict[str, Any]) -> dict[str, Any]:
    return dict(card["rows"][0]["metrics"])


def test_the_best_reducer_takes_the_lowest_loss_after_the_first_step(
    api: TestClient, trained: int
) -> None:
    best = series(api, trained, reducer="best")["eb"]["points"][-1]
    # The curves run straight from 1 to their end in three points: 40 by way of 20.5, or NaN.
    assert [dot["value"] for dot in best["seeds"]] == [None, 20.5]


def test_losses_over_training_are_those_of_the_trials_curves(api: TestClient, trained: int) -> None:
    ids = {line["id"]: label for label, line in series(api, trained).items()}
    path = f"/api/studies/{trained}/learning"
    answer = api.get(path)
    assert answer.status_code == 200, answer.text
    found = {ids[one["id"]]: one["rates"] for one in answer.json()["series"]}
    broken = found["eb"][-1]
    assert (broken["lr"], broken["n"]) == (3.0, 2)
    for seed in broken["seeds"]:
        curve = api.get(f"/api/trials/{seed['trial_id']}/curve").json()["points"]
        known = {point["step"]: point["train_loss"] for point in curve}
        assert seed["values"] == [known.get(step) for step in broken["steps"]]
    assert broken["mean"][-1] is None
    assert broken["broken"][-1] == 2
    sound = found["ib"][0]
    ends = [seed["values"][-1] for seed in sound["seeds"]]
    assert sound["mean"][-1] == pytest.approx(sum(ends) / len(ends))
    ib = next(one for one, label in ids.items() if label == "ib")
    alone = api.get(path, params={"series": ib, "smooth": 3}).json()
    assert [one["id"] for one in alone["series"]] == [ib]
    both = api.get(path, params={"series": list(ids)}).json()  # as the pictures ask
    assert {one["id"] for one in both["series"]} == set(ids)
    assert api.get(path, params={"smooth": 0}).status_code == 422


def test_a_metric_the_task_does_not_have_gives_no_points(api: TestClient, trained: int) -> None:
    assert series(api, trained, metric="test_accuracy")["ib"]["points"] == []


def test_time_has_curves_but_no_threshold(api: TestClient, trained: int) -> None:
    answer = api.get(f"/api/studies/{trained}/sensitivity", params={"metric": "seconds"}).json()
    assert answer["threshold"] is None
    assert answer["series"][0]["points"][0]["mean"] == pytest.approx(0.1)


def test_clipped_and_unclipped_trials_never_mix(api: TestClient, study: int, submit, train) -> None:
    submit(clip=[None, 1.0])
    submit(batch_rule="share", methods=["ib"])
    train()
    assert set(series(api, study)) == {
        "eb, no clip",
        "eb, clip 1",
        "ib, own, no clip",
        "ib, share, no clip",
        "ib, own, clip 1",
    }


def test_trials_on_the_way_are_counted_beside_the_curve(
    api: TestClient, study: int, submit, train
) -> None:
    submit()
    train()
    submit(seeds=3)
    line = series(api, study)["eb"]
    assert (line["unfinished"], line["failed"]) == (3, 0)
    assert all(point["n"] == 2 for point in line["points"])


def test_a_study_without_trials_has_no_curves(api: TestClient, study: int) -> None:
    assert series(api, study) == {}
    assert api.get(f"/api/studies/{study}/scorecard").json()["rows"] == []


def test_the_scorecard_measures_and_answers(api: TestClient, study: int, submit, train) -> None:
    submit(seeds=5)
    train()
    card = api.get(f"/api/studies/{study}/scorecard").json()
    rows = {row["label"]: row for row in card["rows"]}
    eb, ib = rows["eb"]["metrics"], rows["ib"]["metrics"]
    assert tuple(ib) == tuple(kind.name for kind in NUMBERS if not kind.paper)
    assert 1.0 < eb["edge"]["low"] < eb["edge"]["value"] < eb["edge"]["high"] < 3.0
    assert (ib["edge"]["censored"], ib["edge"]["text"]) == ("above", "at least 3")
    assert ib["headroom"]["censored"] == "above"
    assert ib["best_rate"]["value"] == 1.0
    assert ib["chance_better"]["interval"].endswith("%")
    assert (ib["time_to_target"]["value"], ib["time_to_target"]["n"]) == (0.2, 5)  # the last of 3
    assert ib["time_to_target"]["note"].startswith("5 of 5 seeds got to ")
    for name, number in ib.items():
        assert number["definition"] == KINDS[name].definition
        assert {"value", "low", "high", "censored", "n", "note", "unit", "better"} <= number.keys()
    assert rows["eb"]["advice"].startswith("Good at 1 (5 seeds). At 3, 5 of 5 broke.")
    assert rows["eb"]["strip"]["to_test"] == [1.0, 3.0]
    assert [cell["state"] for cell in rows["eb"]["strip"]["cells"]] == ["tested", "good", "broken"]
    assert [one["k"] for one in rows["ib"]["best_of"]] == list(range(1, 21))
    (answer,) = card["answers"]
    assert answer["answer"].startswith("IB breaks nowhere up to 3, EB holds to ")
    assert (answer["common_range"], len(answer["rows"])) == ([0.1, 3.0], 2)
    assert card["across"] is None


def test_the_gap_can_be_sent_as_it_is(api: TestClient, study: int, submit, train) -> None:
    submit(seeds=[2, 5], epochs=3, mu=0.5, options={"restart": True})
    train()
    rows = {r["label"]: r for r in api.get(f"/api/studies/{study}/scorecard").json()["rows"]}
    assert rows["ib"]["gap"] is None  # it broke nowhere
    gap = rows["eb"]["gap"]
    assert all(1.0 < rate < 3.0 for rate in gap["learning_rates"])
    assert gap["seeds"] == [2, 5]
    assert api.post("/api/forecast", json=gap).status_code == 200
    sent = api.post(f"/api/studies/{study}/sweeps", json=gap)
    assert sent.status_code == 202, sent.text
    train(lambda t: factories.result(t, outcome=Outcome.DIVERGED, loss=40.0))
    card = api.get(f"/api/studies/{study}/scorecard").json()
    eb = next(row for row in card["rows"] if row["label"] == "eb")
    tried = [cell["lr"] for cell in eb["strip"]["cells"]]
    assert tried == sorted({0.1, 1.0, 3.0, *gap["learning_rates"]})  # one series, grown


def test_a_share_of_a_stacks_time_is_no_cost(api: TestClient, study: int, submit, train) -> None:
    submit()
    train(lambda t: factories.result(t, seconds=0.3 if t.spec["method"] == "ib" else 0.1))
    for row in api.get(f"/api/studies/{study}/scorecard").json()["rows"]:
        cost = row["metrics"]["step_cost"]
        assert (cost["value"], cost["note"]) == (None, "Not measured.")
        assert not row["metrics"].keys() & {"overhead", "seconds_per_epoch"}


def test_a_run_that_restarts_leave_at_zero_is_broken(
    api: TestClient, study: int, submit, train
) -> None:
    def judge(trial: Any) -> Any:
        lost = trial.spec["lr"] == 3.0
        return factories.result(trial, loss=0.4, restarts=7 if lost else 0, at_zero=lost)

    sweep = submit(seeds=3)
    train(judge)
    for row in api.get(f"/api/studies/{study}/scorecard").json()["rows"]:
        assert [cell["broke"] for cell in row["strip"]["cells"]] == [0, 0, 3]
    trials = api.get(f"/api/sweeps/{sweep['id']}/trials").json()["items"]
    assert {(one["lr"], one["restarts"]) for one in trials} == {(0.1, 0), (1.0, 0), (3.0, 7)}


def test_what_breaks_in_training_is_broken_on_test_as_well(
    api: TestClient, study: int, submit, train
) -> None:
    submit(seeds=3)
    train(lambda t: factories.result(t, loss=2.0 if t.spec["lr"] == 3.0 else 0.4, test_loss=0.3))
    asked = {"metric": "test_loss"}
    for row in api.get(f"/api/studies/{study}/scorecard", params=asked).json()["rows"]:
        assert [cell["state"] for cell in row["strip"]["cells"]][-1] == "broken"
        assert "Chosen on test." in row["metrics"]["best_mean"]["note"]


def test_many_tasks_are_compared_as_a_whole(api: TestClient, study: int, submit, train) -> None:
    for task in ("toy/quadratic", "digits_mlp", "bundled/wine"):
        submit(task=task)
    train()
    card = api.get(f"/api/studies/{study}/scorecard").json()
    assert [one["task"] for one in card["answers"]] == [
        "bundled/wine",
        "digits_mlp",
        "toy/quadratic",
    ]
    across = card["across"]
    assert (across["tasks"], across["methods"]) == (3, ["eb", "ib"])
    ranks = {one["number"]: one["mean_ranks"] for one in across["ranks"]}
    assert ranks == {
        "best_mean": {"eb": 1.5, "ib": 1.5},
        "lr_sensitivity": {"eb": 2.0, "ib": 1.0},
    }
    (chance,) = across["chances"]
    assert (chance["first"], chance["second"], chance["n"]) == ("ib", "eb", 3)
    assert chance["value"] == pytest.approx((2 + 4 * 0.5) / 6)  # better at 3, equal below
    assert {line["label"]: line["shares"][0] for line in across["profiles"]} == {"eb": 1, "ib": 1}
    assert {line["label"]: line["shares"][0] for line in across["times"]} == {"eb": 1, "ib": 1}
    assert across["definitions"].keys() == {"ranks", "profiles", "times", "chances", "iqm"}


def test_epochs_to_target_are_read_off_the_curves_at_the_best_rate(
    api: TestClient, study: int, submit, train
) -> None:
    """EB gets there early, Adam's seeds late or never; no other rate's curve is asked."""
    early, late, never = ([1, 0.4, 0.4, 0.4], [1, 0.9, 0.8, 0.4], [1, 0.9, 0.8, 0.7])

    def trained(trial):
        lr, method, seed = (trial.spec[name] for name in ("lr", "method", "seed"))
        losses = early if method == "eb" or lr != 1.0 else late if seed < 3 else never
        points = [CurvePoint(step, step / 2, one, 1.0) for step, one in enumerate(losses)]
        loss = losses[-1] if lr == 1.0 else 0.9
        return factories.result(trial, loss=loss, curve=tuple(points))

    for task in ("toy/quadratic", "digits_mlp", "bundled/wine"):
        submit(task=task, methods=["eb", "adam"], seeds=3)
    train(trained)
    card = api.get(f"/api/studies/{study}/scorecard").json()
    eb, adam = (row["metrics"]["time_to_target"] for row in card["rows"][:2])
    assert (eb["text"], eb["n"], adam["text"], adam["n"]) == ("0.5", 3, "1.5", 3)
    assert "2 of 3 seeds got to 0.46." in adam["note"]
    shares = {
        line["label"]: dict(zip(line["taus"], line["shares"], strict=True))
        for line in card["across"]["times"]
    }
    assert shares["eb"][1.0] == 1
    assert shares["adam"] == {1.0: 0, 3.0: 1, 100.0: 1}  # a step at the very factor, 1.5 / 0.5


def test_accuracies_are_drawn_as_they_are_and_scored_as_errors(
    api: TestClient, study: int, submit, train
) -> None:
    def judged(trial: Any) -> Any:
        method, lr, seed = (trial.spec[name] for name in ("method", "lr", "seed"))
        share = {0.1: 0.9, 1.0: 0.7, 3.0: 0.2 if method == "eb" else 0.6}[lr] + 0.01 * seed
        ends = [CurvePoint(step, step / 10, 1.0, 1.0, 0.1, 0.1) for step in (0, 10)]
        ends[1] = replace(ends[1], test_accuracy=share)
        return factories.result(trial, test_accuracy=share, curve=tuple(ends))

    submit()
    train(judged)
    asked = {"metric": "test_accuracy"}
    points = series(api, study, **asked)["ib"]["points"]
    assert [point["mean"] for point in points] == pytest.approx([0.915, 0.715, 0.615])
    assert [(point["low"], point["high"]) for point in points] == [
        pytest.approx((low, low + 0.01)) for low in (0.91, 0.71, 0.61)
    ]
    rows = api.get(f"/api/studies/{study}/scorecard", params=asked).json()["rows"]
    ib = next(row["metrics"] for row in rows if row["label"] == "ib")
    assert ib["best_rate"]["value"] == 0.1
    assert ib["best_mean"]["value"] == pytest.approx(0.085)
    assert ib["best_mean"]["unit"] == "error"
    assert ib["mean_difference"]["value"] == pytest.approx(-0.4 / 3)
    found = api.get(f"/api/studies/{study}/differences", params=asked).json()["items"]
    assert [point["mean"] for point in found[0]["points"]] == pytest.approx([0, 0, -0.4])


def test_differences_pair_by_rate_and_seed(api: TestClient, study: int, submit, train) -> None:
    submit(clip=[None, 1.0])
    train()
    by_kind = {
        kind: api.get(f"/api/studies/{study}/differences", params={"kind": kind}).json()["items"]
        for kind in ("method", "clip")
    }
    method = by_kind["method"][0]
    assert (method["first_label"], method["second_label"]) == ("ib, no clip", "eb, no clip")
    assert [point["mean"] for point in method["points"]] == pytest.approx(
        [0, 0, 0.215 - 1]
    )  # capped at 1
    assert len(method["pairs"]) == 6
    assert {item["first_label"] for item in by_kind["clip"]} == {"eb, clip 1", "ib, clip 1"}


def test_a_scorecard_leaves_as_a_file(api: TestClient, trained: int) -> None:
    path, asked = f"/api/studies/{trained}/export", {"content": "scorecard"}
    answer = api.get(path, params=asked)
    assert answer.headers["content-disposition"].endswith('-scorecard.csv"')
    lines = list(csv.DictReader(answer.text.splitlines()))
    card = api.get(f"/api/studies/{trained}/scorecard").json()
    assert len(lines) == sum(len(row["metrics"]) for row in card["rows"])
    for line in lines:
        row = next(row for row in card["rows"] if row["id"] == line["series"])
        number = row["metrics"][line["number"]]
        for name in ("value", "low", "high"):
            assert line[name] == ("" if number[name] is None else repr(number[name]))
        assert (line["n"], line["censored"]) == (str(number["n"]), number["censored"])
        assert line["definition"] == number["definition"]
    assert api.get(path, params={**asked, "format": "json"}).json() == card
    refused = api.get(path, params={**asked, "format": "parquet"})
    assert refused.status_code == 422


def test_compare_says_which_study_a_curve_is_of(api: TestClient, study: int, submit, train) -> None:
    submit()
    other = api.post("/api/studies", json={"name": "Other"}).json()["id"]
    body = {"task": "toy/quadratic", "methods": ["ib"], "learning_rates": [1.0], "seeds": 2}
    api.post(f"/api/studies/{other}/sweeps", json=body)
    train()
    answer = api.get("/api/compare", params={"study": [study, other]}).json()
    assert [one["name"] for one in answer["studies"]] == ["A study", "Other"]
    assert {line["label"] for line in answer["series"]} == {
        "eb, A study",
        "ib, A study",
        "ib, Other",
    }
    assert len(answer["rows"]) == 3


def test_an_answer_that_has_not_changed_is_not_sent_again(
    api: TestClient, trained: int, submit, train
) -> None:
    path = f"/api/studies/{trained}/sensitivity"
    etag = api.get(path).headers["etag"]
    assert api.get(path, headers={"If-None-Match": etag}).status_code == 304
    submit(seeds=3)
    train()
    assert api.get(path, headers={"If-None-Match": etag}).status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/api/studies/9/sensitivity",
        "/api/studies/9/scorecard",
        "/api/studies/9/differences",
        "/api/compare?study=9",
    ],
)
def test_unknown_studies_are_not_found(api: TestClient, path: str) -> None:
    assert api.get(path).status_code == 404


@pytest.mark.parametrize(
    "query", ["metric=loss", "reducer=mean", "band=iqr", "metrik=train_loss", "metric="]
)
def test_unknown_choices_are_refused(api: TestClient, trained: int, query: str) -> None:
    answer = api.get(f"/api/studies/{trained}/sensitivity?{query}")
    assert answer.status_code == 422


def test_an_engine_is_compared_with_the_one_before(
    api: TestClient, study: int, submit, train, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit()
    train()
    for version, better in (("9", 0.0), ("10", 0.25)):
        monkeypatch.setattr("backend.services.shards.planning.ENGINE_VERSION", version)
        monkeypatch.setattr("backend.services.sweeps.submitting.ENGINE_VERSION", version)
        monkeypatch.setattr("ib_core.sweep.result.ENGINE_VERSION", version)
        assert submit()["reused"] == 0
        train(lambda t, better=better: improved(t, better))
    asked = {"kind": "engine"}
    found = api.get(f"/api/studies/{study}/differences", params=asked).json()["items"]
    pairs = {(one["first_label"], one["second_label"]): one for one in found}
    assert ("ib, engine 9", "ib, engine 1") in pairs
    later = pairs["ib, engine 10", "ib, engine 9"]
    assert [point["mean"] for point in later["points"]] == pytest.approx([-0.25] * 3)
    sweeps = api.get(f"/api/studies/{study}/sweeps").json()["items"]
    assert [one["engine_version"] for one in sweeps] == ["1", "9", "10"]


def improved(trial: Any, better: float) -> Any:
    from tests.backend.conftest import toy_result

    found = toy_result(trial)
    return replace(found, train_loss=(found.train_loss or 0.0) - better)
