"""Results as columns: start, end, settings and record come back; the losses between do not."""

import json
import lzma
import math
from dataclasses import replace

import pytest

from ib_core.errors import CorruptData
from ib_core.reproduction.bundle import COLUMNS, Bundle, find_bundle
from ib_core.reproduction.lines import NUMBERS, decode, encode, fold, unfold
from ib_core.sweep import run_all, specs_of
from tests.ib_core.reproduction.toy_study import STUDY

BODY = {
    "task": "bundled/iris",
    "methods": ["eb", "ib", "adam"],
    "learning_rates": [0.01, 1.0, 1000.0],
    "seeds": [1, 2],
    "epochs": 2,
    "options": {"validation": 0.2},
}


@pytest.fixture(scope="module")
def results():
    held_out = run_all(specs_of(BODY)[0].expand(), lanes=1)
    return held_out + run_all([trial for _, trial in STUDY.trials()][:6], lanes=1)


def without_curve(result):
    """What a line says of a result, but for its losses over training."""
    content = json.loads(encode(result))
    return content | {"curve": None}


def read(results):
    found = [result for line in fold(results) for result in unfold(line)]
    return {result.spec: result for result in found}


def test_all_but_the_losses_between_start_and_end_comes_back(results):
    again = read(results)
    assert again.keys() == {result.spec for result in results}
    for result in results:
        found = again[result.spec]
        assert without_curve(found) == without_curve(result)
        assert [point.step for point in found.curve] == [0]
        curve = json.loads(encode(result))["curve"]
        assert json.loads(encode(found))["curve"] == {
            name: column and column[:1] for name, column in curve.items()
        }
        line = decode(encode(result))
        for name in (*NUMBERS, "validation_loss", "validation_accuracy"):
            mine, theirs = getattr(found, name), getattr(line, name)
            assert (mine == theirs) or (math.isnan(mine) and math.isnan(theirs))


def test_a_loss_that_is_lost_and_one_that_was_not_asked_for_are_told_apart(results):
    held_out, plain = results[0], results[-1]
    broken = replace(held_out, train_loss=math.nan, validation_loss=math.nan, train_accuracy=0.5)
    again = read([broken, plain])
    assert math.isnan(again[held_out.spec].validation_loss)
    assert math.isnan(again[held_out.spec].train_loss)
    assert again[held_out.spec].train_accuracy == 0.5
    assert again[plain.spec].validation_loss is None
    assert again[plain.spec].train_accuracy is None  # a task without classes


def test_what_all_share_is_written_once_and_numbers_that_look_alike_stay_apart(results):
    mild = [one for one in results[:18] if (one.spec.method, one.spec.lr) == ("eb", 0.01)]
    noted = [
        replace(one, record={**one.record, "note": note})
        for one, note in zip(mild, (1, True), strict=True)
    ]
    (line,) = fold(noted)
    assert line.count(mild[0].record["data"]) == 1
    assert [found.record["note"] is True for found in unfold(line)] == [False, True]


def test_what_another_engine_made_keeps_its_address(results):
    strange = replace(results[0], record={**results[0].record, "engine": "0"})
    assert read([strange])[strange.spec].fingerprint == results[0].fingerprint
    assert not any(result.fingerprint in line for line in fold(results) for result in results)


def test_a_bundle_in_columns_holds_the_same_and_grows(tmp_path, results):
    for some in (results[:8], results[8:18]):
        bundle = Bundle(tmp_path)
        for result in some:
            bundle.append(result)
        bundle.pack([], form=COLUMNS)
    (packed,) = tmp_path.glob("bundled*")
    assert packed.name == "bundled.iris.columns.xz"
    found = find_bundle(tmp_path)
    assert found.results.keys() == {result.spec for result in results[:18]}
    assert {one.fingerprint for one in found.results.values()} == {
        result.fingerprint for result in results[:18]
    }
    assert found.place_of(results[3]).startswith(f"{packed}, line ")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda line: line.replace('"trials":', '"trial":'), "it has no 'trials'"),
        (lambda line: line.replace('"trials":', '"trials":1'), "a column of"),
        (lambda line: line.replace('"completed"', '"perfect"'), "perfect"),
        (lambda line: line[:-1], "is not JSON"),
        (lambda _: "[]", "list indices"),
        (lambda _: '{"trials": 2, "columns": [7]}', "int"),
        (lambda _: '{"trials": 2, "columns": 7}', "int"),
        (lambda _: '{"trials": 99999999999, "columns": {}}', "spec"),
    ],
)
def test_a_broken_file_is_named_with_its_line(tmp_path, results, change, said):
    bundle = Bundle(tmp_path)
    for result in results[:18]:
        bundle.append(result)
    bundle.pack([], form=COLUMNS)
    (packed,) = tmp_path.glob("*.columns.xz")
    first, *rest = lzma.decompress(packed.read_bytes()).decode().splitlines()
    assert change(first) != first
    packed.write_bytes(lzma.compress("\n".join([change(first), *rest]).encode()))
    with pytest.raises(CorruptData, match=rf"columns\.xz, line 1 is no result.*{said}"):
        find_bundle(tmp_path)
