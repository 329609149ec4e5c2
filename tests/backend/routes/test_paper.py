import pytest

from backend.db import transaction
from backend.services.reproduction import store_bundle
from tests.backend.paper.bundles import bad_ib, good_ib, make_bundle


@pytest.fixture(autouse=True)
def no_recorded_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("ETASCOPE_DATA_DIR", str(tmp_path / "data"))


def verdict(answer, name="05_jsb_chorales"):
    found = next(one for one in answer.json()["experiments"] if one["id"] == name)
    return found["text"]["verdict"]


def test_an_empty_installation_has_tested_nothing(api):
    answer = api.get("/api/paper")
    assert answer.status_code == 200
    assert answer.json()["counts"] == {"not tested": 17}
    assert not answer.json()["has_recorded"]


@pytest.mark.parametrize(("losses", "expected"), [(good_ib, "reproduced"), (bad_ib, "differs")])
def test_verdicts_follow_the_trials(api, tmp_path, losses, expected):
    before = api.get("/api/paper")
    with transaction() as session:
        store_bundle(session, bundle=make_bundle(tmp_path / "b", losses), source="a test")
    after = api.get("/api/paper")
    assert after.headers["etag"] != before.headers["etag"]
    assert (verdict(before), verdict(after)) == ("not tested", expected)


RECORDED = """experiment,dataset,method,lr,seed,clip,epochs,train_loss,test_loss,epochs_recorded,\
source_folder
05_jsb_chorales,JSB Chorales,EB,0.5,1,0,5,0.5,0.5,5,results
05_jsb_chorales,JSB Chorales,IB,0.5,1,0,5,0.5,0.5,5,results
"""


def test_imported_runs_fill_the_recorded_column(api):
    api.post("/api/import?filename=runs.csv", content=RECORDED)
    answer = api.get("/api/paper").json()
    assert answer["has_recorded"]
    claims = {claim["id"]: claim for claim in answer["claims"]}
    assert claims["small_rates"]["recorded"]["verdict"] == "reproduced"
    assert claims["small_rates"]["ours"]["verdict"] == "not tested"
