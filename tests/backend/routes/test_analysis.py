"""Curves, robustness numbers, differences, comparisons over HTTP."""

from typing import Any

import pytest
from fastapi.testclient import TestClient


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


def test_the_threshold_is_the_midpoint_of_ebs_finite_means(api: TestClient, trained: int) -> None:
    answer = api.get(f"/api/studies/{trained}/sensitivity").json()
    assert answer["threshold"] == pytest.approx((0.115 + 0.515) / 2)
    assert answer["threshold_definition"]
    assert (answer["metric"], answer["reducer"], answer["band"]) == ("train_loss", "final", "std")


def test_the_best_reducer_takes_the_lowest_loss_after_the_first_step(
    api: TestClient, trained: int
) -> None:
    best = series(api, trained, reducer="best")["eb"]["points"][-1]
    # The curves run straight from 1 to their end in three points: 40 by way of 20.5, or NaN.
    assert [dot["value"] for dot in best["seeds"]] == [None, 20.5]


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


def test_the_scorecard_measures_and_recommends(api: TestClient, trained: int) -> None:
    rows = {r["label"]: r for r in api.get(f"/api/studies/{trained}/scorecard").json()["rows"]}
    eb, ib = rows["eb"]["metrics"], rows["ib"]["metrics"]
    assert (eb["divergence_rate"]["value"], eb["divergence_rate"]["censored"]) == (3.0, "none")
    assert ib["headroom"]["censored"] == "above"
    assert ib["best_lr"]["value"] == 1.0
    assert ib["better_than_eb"]["value"] == 1.0
    assert rows["ib"]["recommendation"].startswith("Use ")
    for metric in ib.values():
        assert {"value", "low", "high", "censored", "definition"} <= metric.keys()
        assert metric["definition"]


def test_overhead_compares_the_same_rates_and_seeds(
    api: TestClient, study: int, submit, train
) -> None:
    from tests import factories

    submit()
    train(lambda t: factories.result(t, seconds=0.3 if t.spec["method"] == "ib" else 0.1))
    rows = {r["label"]: r for r in api.get(f"/api/studies/{study}/scorecard").json()["rows"]}
    assert rows["ib"]["metrics"]["overhead"]["value"] == pytest.approx(2.0)
    assert rows["eb"]["metrics"]["seconds_per_epoch"]["value"] == pytest.approx(0.1)


def test_a_run_that_diverged_says_nothing_of_the_cost(
    api: TestClient, study: int, submit, train
) -> None:
    from tests import factories
    from tests.backend.conftest import toy_result

    def timed(trial: Any) -> Any:
        if toy_result(trial).outcome == "diverged":  # it may have stopped after a step
            return factories.result(trial, outcome=toy_result(trial).outcome, seconds=1e-6)
        return factories.result(trial, seconds=0.3 if trial.spec["method"] == "ib" else 0.1)

    submit()
    train(timed)
    rows = {r["label"]: r for r in api.get(f"/api/studies/{study}/scorecard").json()["rows"]}
    assert rows["ib"]["metrics"]["overhead"]["value"] == pytest.approx(2.0)
    assert rows["eb"]["metrics"]["seconds_per_epoch"]["value"] == pytest.approx(0.1)


def test_accuracies_are_drawn_as_they_are_and_scored_as_errors(
    api: TestClient, study: int, submit, train
) -> None:
    from tests import factories

    def judged(trial: Any) -> Any:
        method, lr, seed = (trial.spec[name] for name in ("method", "lr", "seed"))
        share = {0.1: 0.9, 1.0: 0.7, 3.0: 0.2 if method == "eb" else 0.6}[lr] + 0.01 * seed
        return factories.result(trial, test_accuracy=share)

    submit()
    train(judged)
    asked = {"metric": "test_accuracy"}
    points = series(api, study, **asked)["ib"]["points"]
    assert [point["mean"] for point in points] == pytest.approx([0.915, 0.715, 0.615])
    assert [(point["low"], point["high"]) for point in points] == [
        pytest.approx((low, low + 0.01)) for low in (0.91, 0.71, 0.61)
    ]
    answer = api.get(f"/api/studies/{study}/sensitivity", params=asked).json()
    assert answer["threshold"] == pytest.approx((0.915 + 0.215) / 2)
    rows = api.get(f"/api/studies/{study}/scorecard", params=asked).json()["rows"]
    ib = next(row["metrics"] for row in rows if row["label"] == "ib")
    assert ib["best_lr"]["value"] == 0.1
    assert ib["best_mean"]["value"] == pytest.approx(0.085)
    assert ib["best_mean"]["unit"] == "error"
    assert ib["better_than_eb"]["value"] == 1.0
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
    assert [point["mean"] for point in method["points"]] == pytest.approx([0, 0, -39.78])
    assert len(method["pairs"]) == 6
    assert {item["first_label"] for item in by_kind["clip"]} == {"eb, clip 1", "ib, clip 1"}


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
    from dataclasses import replace

    from tests.backend.conftest import toy_result

    found = toy_result(trial)
    return replace(found, train_loss=(found.train_loss or 0.0) - better)
