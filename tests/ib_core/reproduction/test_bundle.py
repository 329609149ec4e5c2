import gzip
import json
import lzma
import math
from dataclasses import replace
from threading import Event, Thread

import pytest

from ib_core.errors import CorruptData, InvalidSpec
from ib_core.reproduction.bundle import DENSE, PACKED, Bundle, find_bundle
from ib_core.reproduction.lines import decode, encode
from ib_core.reproduction.training import locked
from ib_core.sweep import PRESETS, specs_of
from ib_core.sweep.runner import run_all
from tests.ib_core.reproduction.toy_study import STUDY


@pytest.fixture(scope="module")
def results():
    return run_all([trial for _, trial in STUDY.trials()], lanes=1)


def test_a_result_survives_the_way_through_a_line(results):
    for result in results:
        read = decode(encode(result))
        assert read.spec == result.spec
        assert read.fingerprint == result.fingerprint
        assert read.outcome == result.outcome
        assert read.divergence == result.divergence
        assert read.record == result.record
        assert read.train_loss == pytest.approx(result.train_loss, rel=1e-8)
        assert [point.step for point in read.curve] == [point.step for point in result.curve]


def test_a_loss_that_is_not_finite_is_null_in_the_file_and_nan_again_after_it(results):
    broken = replace(results[0], train_loss=math.inf)
    line = encode(broken)
    assert json.loads(line)["train_loss"] is None
    assert math.isnan(decode(line).train_loss)


def test_restarts_survive_the_way_through_a_line_and_are_found_in_older_ones():
    body = {"task": "digits_mlp", "methods": ["eb"], "learning_rates": [0.1, 3.0, 1000.0]}
    wish = {"seeds": [1], "epochs": 1, "mu": 1e-3, "options": {"restart": True}}
    found = run_all(specs_of(body | wish)[0].expand(), lanes=1)
    ends = [(result.restarts, result.at_zero) for result in found]
    assert ends[0] == (0, False)
    assert ends[1] == (1, False)  # it has moved on since
    assert ends[2][1]
    assert [(read.restarts, read.at_zero) for read in map(decode, map(encode, found))] == ends
    for result, end in zip(found, ends, strict=True):
        content = json.loads(encode(result))
        del content["restarts"], content["at_zero"]  # as it was written before
        older = decode(json.dumps(content))
        assert (older.restarts, older.at_zero) == end


def test_the_first_seed_s_recording_survives_the_way_through_a_line_and_no_other_is_kept():
    body = {"task": "bundled/iris", "methods": ["eb"], "learning_rates": [0.1], "seeds": [1, 2]}
    wish = {"epochs": 1, "batch_size": 20, "record": ["norms", "sharpness"]}
    first, second = run_all(specs_of(body | wish)[0].expand(), lanes=1)
    read = decode(encode(first)).recording
    assert read.layers == first.recording.layers
    assert read.steps.tolist() == first.recording.steps.tolist()
    assert read.sharp == pytest.approx(first.recording.sharp, rel=1e-6)
    assert second.recording is not None
    assert decode(encode(second)).recording is None
    damaged = json.loads(encode(first)) | {"recording": "no base64"}
    with pytest.raises(CorruptData):
        decode(json.dumps(damaged))


def test_the_shipped_studies_that_open_with_their_steps_have_recorded_them():
    bundle = find_bundle("studies")
    shown = [name for name, preset in PRESETS.items() if preset.picture == "steps"]
    assert len(shown) == 2
    for study in (one for one in bundle.studies() if one.name in shown):
        firsts = [one for one in bundle.results_of(study) if one.spec.seed == 1]
        assert firsts
        assert all(one.recording.holds(["norms", "sharpness"]) for one in firsts)


def test_the_shipped_transfer_study_grows_without_mup_and_stays_within_twice_with_it():
    """The coordinate check of arXiv 2203.03466: the output's change in ten steps at one rate."""
    bundle = find_bundle("studies")
    (study,) = [one for one in bundle.studies() if one.name == "study/transfer"]
    changes: dict[tuple[str, str, float], dict[int, float]] = {}
    for one in bundle.results_of(study):
        if one.spec.seed == 1 and one.spec.task == "digits_wide":
            assert one.recording.outputs == ("layers.0", "layers.1", "output")
            scaling = str(dict(one.spec.options.own).get("scaling", "standard"))
            key = (one.spec.method, scaling, one.spec.lr)
            changes.setdefault(key, {})[one.spec.options.width] = one.recording.sizes[-1, -1]
    grown = {key: found[512] / found[32] for key, found in changes.items()}
    assert len(grown) == 2 * 2 * 10
    low = {key: one for key, one in grown.items() if key[2] <= {"eb": 0.1, "adam": 0.001}[key[0]]}
    assert all(one > 2.5 for (_, scaling, _), one in low.items() if scaling == "standard")
    assert all(0.5 < one < 2 for (_, scaling, _), one in low.items() if scaling != "standard")


def test_what_was_appended_is_there_without_packing(tmp_path, results):
    Bundle(tmp_path).append(results[0])
    assert list(Bundle(tmp_path).results) == [results[0].spec]


def test_a_torn_last_line_costs_one_trial_only(tmp_path, results):
    bundle = Bundle(tmp_path)
    bundle.append(results[0])
    with (tmp_path / "toy.quadratic.jsonl").open("a") as journal:
        journal.write(encode(results[1])[:200])
    assert list(Bundle(tmp_path).results) == [results[0].spec]


def test_what_follows_a_torn_line_is_kept(tmp_path, results):
    Bundle(tmp_path).append(results[0])
    with (tmp_path / "toy.quadratic.jsonl").open("a") as journal:
        journal.write(encode(results[1])[:200])
    again = Bundle(tmp_path)
    again.append(results[2])
    again.append(results[3])
    assert list(Bundle(tmp_path).results) == [results[i].spec for i in (0, 2, 3)]


def test_a_line_without_its_end_is_torn_even_if_it_could_be_read(tmp_path, results):
    (tmp_path / "toy.quadratic.jsonl").write_text(encode(results[0]))
    bundle = Bundle(tmp_path)
    assert bundle.results == {}
    bundle.append(results[1])
    assert list(Bundle(tmp_path).results) == [results[1].spec]


def test_a_journal_that_is_folded_while_it_is_read_costs_nothing(tmp_path, results, monkeypatch):
    bundle = Bundle(tmp_path)
    bundle.append(results[0])
    bundle.pack([STUDY])
    bundle.append(results[1])
    plain = type(tmp_path).glob

    def glob(self, pattern):
        found = list(plain(self, pattern))
        if pattern == "*.jsonl":
            bundle.pack([STUDY])  # another process, between listing and reading
        return found

    monkeypatch.setattr(type(tmp_path), "glob", glob)
    assert len(Bundle(tmp_path).results) == 2


def test_packing_the_same_results_gives_the_same_bytes(tmp_path, results):
    for folder, order in (("a", results), ("b", results[::-1])):
        bundle = Bundle(tmp_path / folder)
        for result in order:
            bundle.append(result)
        bundle.pack([STUDY])
        assert not list((tmp_path / folder).glob("*.jsonl"))
    packed = [(tmp_path / name / "toy.quadratic.jsonl.gz").read_bytes() for name in "ab"]
    assert packed[0] == packed[1]
    assert len(gzip.decompress(packed[0]).splitlines()) == len(results)


def test_a_dense_bundle_holds_the_same_in_fewer_bytes_and_without_addresses(tmp_path, results):
    strange = replace(results[3], record={**results[3].record, "engine": "0"})
    sizes = {}
    for name, form in (("plain", PACKED), ("dense", DENSE)):
        bundle = Bundle(tmp_path / name)
        for result in (*results[:3], strange):
            bundle.append(result)
        bundle.pack([STUDY], form=form)
        (packed,) = (tmp_path / name).glob("toy.quadratic.jsonl.*")
        sizes[name] = packed.stat().st_size
    text = lzma.decompress(packed.read_bytes()).decode()
    # What another engine has made keeps its address: only that engine knows how it follows.
    assert [name.fingerprint in text for name in (*results[:3], strange)] == [False] * 3 + [True]
    assert sizes["dense"] < sizes["plain"]
    plain, dense = (find_bundle(tmp_path / name) for name in sizes)
    assert len(dense.results) == 4
    assert list(map(encode, dense.results.values())) == [
        encode(plain.results[spec]) for spec in dense.results
    ]


def test_a_dense_bundle_that_grows_stays_dense_and_a_cut_one_is_named(tmp_path, results):
    for result in results[:2]:
        bundle = Bundle(tmp_path)
        bundle.append(result)
        bundle.pack([STUDY], form=DENSE)
    (packed,) = tmp_path.glob("toy*")
    assert packed.name == "toy.quadratic.jsonl.xz"
    assert set(find_bundle(tmp_path).results) == {result.spec for result in results[:2]}
    packed.write_bytes(packed.read_bytes()[:-20])
    with pytest.raises(CorruptData, match=r"toy\.quadratic\.jsonl\.xz cannot be read"):
        find_bundle(tmp_path)


def test_a_packed_bundle_says_what_its_studies_are(tmp_path, results):
    bundle = Bundle(tmp_path)
    for result in results[:3]:
        bundle.append(result)
    bundle.pack([STUDY, replace(STUDY, name="text/empty", portions=())])
    (study,) = find_bundle(tmp_path).studies()
    assert (study.name, study.question) == (STUDY.name, STUDY.question)
    assert len(find_bundle(tmp_path).results_of(study)) == 3


@pytest.fixture
def packed(tmp_path, results):
    bundle = Bundle(tmp_path)
    for result in results[:3]:
        bundle.append(result)
    bundle.pack([STUDY])
    return tmp_path / "toy.quadratic.jsonl.gz"


def lines_of(packed):
    return [json.loads(line) for line in gzip.decompress(packed.read_bytes()).splitlines()]


def write_lines(packed, lines):
    text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    packed.write_bytes(gzip.compress(text.encode()))


@pytest.mark.parametrize(
    "content",
    [lambda whole: whole[:-20], lambda whole: b"no gzip", lambda whole: whole[:30] + b"x" * 50],
    ids=["cut short", "not gzip", "altered"],
)
def test_a_packed_file_that_cannot_be_read_is_named(packed, content):
    packed.write_bytes(content(packed.read_bytes()))
    with pytest.raises(CorruptData, match=r"toy\.quadratic\.jsonl\.gz cannot be read") as raised:
        find_bundle(packed.parent)
    assert raised.value.hint


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (lambda line: "{torn", "not JSON"),
        (lambda line: "[1]", "is no result"),
        (lambda line: {k: v for k, v in line.items() if k != "train_loss"}, "no 'train_loss'"),
        (lambda line: {k: v for k, v in line.items() if k != "spec"}, "no 'spec'"),
        (lambda line: {**line, "spec": {**line["spec"], "warmth": 1}}, "warmth"),
        (lambda line: {**line, "spec": {**line["spec"], "options": {"warmth": 1}}}, "warmth"),
        (lambda line: {**line, "spec": {**line["spec"], "options": {"momentum": [1]}}}, "list"),
        (lambda line: {**line, "spec": {**line["spec"], "lr": "fast"}}, "lr cannot be 'fast'"),
        (lambda line: {**line, "spec": {**line["spec"], "lr": math.nan}}, "JSON compliant"),
        (lambda line: {**line, "outcome": "won"}, "won"),
        (lambda line: {**line, "train_loss": "low"}, "low"),
        (lambda line: {**line, "record": None}, "record"),
        (lambda line: {**line, "curve": {"step": [1]}}, "no 'epoch'"),
    ],
)
def test_a_line_that_is_no_result_is_named(packed, broken, why):
    first, second, third = lines_of(packed)
    write_lines(packed, [first, broken(second), third])
    with pytest.raises(CorruptData, match=r"toy\.quadratic\.jsonl\.gz, line 2") as raised:
        find_bundle(packed.parent)
    assert why in raised.value.message
    assert raised.value.hint


def test_a_whole_line_of_a_journal_that_is_no_result_is_named(tmp_path, results):
    (tmp_path / "toy.quadratic.jsonl").write_text(encode(results[0]) + "\n{}\n")
    with pytest.raises(CorruptData, match=r"toy\.quadratic\.jsonl, line 2") as raised:
        Bundle(tmp_path)
    assert "delete the line" in raised.value.hint


def test_another_format_is_refused_before_its_trials_are_read(packed):
    (packed.parent / "studies.json").write_text('{"format": 2, "studies": []}')
    packed.write_bytes(b"as nobody knows it")
    with pytest.raises(InvalidSpec, match="has the format 2; this Etascope reads 1"):
        find_bundle(packed.parent)


def test_run_times_that_are_not_json_are_named(packed):
    (packed.parent / "run_times.json").write_text("{")
    with pytest.raises(CorruptData, match=r"run_times\.json is not JSON"):
        find_bundle(packed.parent).run_times()


def test_the_place_of_a_result_is_its_newest_line(packed, results):
    bundle = Bundle(packed.parent)
    assert bundle.place_of(results[0]).startswith(f"{packed}, line ")
    bundle.append(results[0])
    assert bundle.place_of(results[0]) == f"{packed.with_suffix('')}, line 1"


def test_what_is_borrowed_fills_gaps_and_hides_other_engines(tmp_path, results):
    one, two, three = results[:3]
    shipped, own = Bundle(tmp_path / "shipped"), Bundle(tmp_path / "own")
    for result in (one, two, three):
        shipped.append(result)
    shipped.keep_run_times({"overheads": {"JSB Chorales": 0.1}})
    mine, old = replace(one, train_loss=9.0), replace(two, record={**two.record, "engine": "0"})
    own.append(mine)
    own.append(old)
    own.borrow(shipped)
    assert own.results == {one.spec: mine, two.spec: two, three.spec: three}
    assert own.run_times() == {"overheads": {"JSB Chorales": 0.1}}
    own.keep_run_times({"overheads": {"JSB Chorales": 0.2}})
    assert own.run_times() == {"overheads": {"JSB Chorales": 0.2}}


def test_who_waits_for_another_run_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr("ib_core.reproduction.training.PATIENCE_SECONDS", 0.05)
    told, free = Event(), Event()

    def wait_for_it():
        with locked(tmp_path, waiting=told.set):
            free.set()

    with locked(tmp_path, waiting=pytest.fail):
        other = Thread(target=wait_for_it)
        other.start()
        assert told.wait(10)
        assert not free.is_set()
    other.join(10)
    assert free.is_set()


def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(InvalidSpec, match="Results cannot be kept in"),
        locked(tmp_path / "file" / "folder", waiting=pytest.fail),
    ):
        pytest.fail("it was opened")


def test_a_folder_that_is_no_bundle_is_refused(tmp_path):
    with pytest.raises(InvalidSpec, match="no bundle"):
        find_bundle(tmp_path)
