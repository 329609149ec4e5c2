import pytest

from backend.db import transaction
from backend.services.reproduction import store_bundle
from tests.backend.paper.bundles import bad_ib, good_ib, make_bundle

JSB, CLIPPED = "text/05_jsb_chorales", "text/06_jsb_chorales_clip_8.0"


@pytest.fixture(autouse=True)
def no_data(tmp_path, monkeypatch):
    monkeypatch.setenv("ETASCOPE_DATA_DIR", str(tmp_path / "data"))


def store(bundle):
    with transaction() as session:
        store_bundle(session, bundle=bundle, source="a test")


def verdict(answer, name="05_jsb_chorales"):
    found = next(one for one in answer.json()["experiments"] if one["id"] == name)
    return found["text"]["verdict"]


def test_an_empty_installation_has_tested_nothing_but_knows_what_was_recorded(api):
    answer = api.get("/api/paper")
    assert answer.status_code == 200
    found = answer.json()
    assert found["counts"] == {"not tested": 17}
    assert all(one["recorded"] and one["recorded_test"] for one in found["experiments"])
    claims = {claim["id"]: claim for claim in found["claims"]}
    assert claims["small_rates"]["recorded"]["verdict"] == "reproduced"
    assert claims["small_rates"]["ours"]["verdict"] == "not tested"
    (accuracy,) = found["uci_accuracies"]
    assert (round(accuracy["eb"], 2), round(accuracy["ib"], 2)) == (73.62, 73.66)


@pytest.mark.parametrize(("losses", "expected"), [(good_ib, "reproduced"), (bad_ib, "differs")])
def test_verdicts_follow_the_trials(api, tmp_path, losses, expected):
    before = api.get("/api/paper")
    store(make_bundle(tmp_path / "b", losses, seeds=5))
    after = api.get("/api/paper")
    assert after.headers["etag"] != before.headers["etag"]
    assert (verdict(before), verdict(after)) == ("not tested", expected)


def test_clipped_runs_are_paired_with_unclipped_ones_of_another_study(api, tmp_path):
    store(make_bundle(tmp_path / "b", good_ib, (JSB, CLIPPED), seeds=3))
    studies = {one["name"]: one["id"] for one in api.get("/api/studies?limit=50").json()["items"]}
    (clipped,) = (id_ for name, id_ in studies.items() if "clip 8" in name)
    address = f"/api/studies/{clipped}/differences?kind=clip"
    first = api.get(address)
    items = first.json()["items"]
    assert [item["first_label"] for item in items] == ["eb, clip 8", "ib, clip 8"]
    assert [item["second_label"] for item in items] == ["eb, no clip", "ib, no clip"]
    assert {point["n"] for item in items for point in item["points"]} == {3}
    tested = next(
        one
        for one in api.get("/api/paper").json()["experiments"]
        if one["id"] == CLIPPED.removeprefix("text/")
    )
    shown = {(one["method"], one["metric"]) for one in tested["text"]["clipping"]}
    assert shown == {
        (method, loss) for method in ("eb", "ib") for loss in ("train_loss", "test_loss")
    }
    store(make_bundle(tmp_path / "more", good_ib, (JSB,), seeds=4))  # the partner's study grows
    assert api.get(address).headers["etag"] != first.headers["etag"]
