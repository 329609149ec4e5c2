"""Would the tests notice? Every fault of the list is made in a copy, and its tests must fail."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.mutation.__main__ import main
from tests.mutation.edit import Edit, Stale, place_of, places_of_tests
from tests.mutation.edits import EDITS
from tests.mutation.running import ROOT, ProjectCopy, Verdict, copies, judge, why_unready

#: The parts in which a survivor would be a fault somebody could suffer.
COVERED = {
    *(f"ib_core/{part}" for part in ("updates", "layers", "methods", "tasks", "sweep", "metrics")),
    *("ib_core/reproduction", "backend/services", "backend/routes", "backend/web", "backend"),
    *("worker", "dashboard", "dashboard/figures", "dashboard/components", "dashboard/pages"),
}
EXAMPLE = Edit(
    "nothing changes",
    "ib_core/metrics",
    "Unlike mean plus and minus a standard error, that interval is sound for few seeds",
    "This interval is sound for few seeds",
    ("test_no_divergence_in_five_seeds_is_not_never",),
)


def ids(edit: Edit) -> str:
    return edit.fault


@pytest.mark.parametrize("edit", [*EDITS, EXAMPLE], ids=ids)
def test_every_fault_can_still_be_made_and_its_tests_are_still_there(edit: Edit) -> None:
    place_of(edit, ROOT)
    assert len(places_of_tests(edit.tests, ROOT)) > 0
    assert edit.before != edit.after


def test_no_part_is_left_out_and_no_fault_is_listed_twice() -> None:
    assert {edit.package for edit in EDITS} >= COVERED
    assert len({edit.fault for edit in EDITS}) == len(EDITS) >= 40


def small_project(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".py").write_text(text)
    return folder


def test_a_text_is_found_wherever_its_module_has_moved(tmp_path: Path) -> None:
    root = small_project(tmp_path, core__deep__sums="x = a + b\n", core__other="y = 1\n")
    edit = Edit("minus", "core", "a + b", "a - b", ("test_sum",))
    assert place_of(edit, root) == root / "core" / "deep" / "sums.py"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a * b", "No module below core has 'a \\* b' any more"),
        ("a + b", "not unique: core/one.py"),
    ],
)
def test_a_text_that_is_gone_or_twice_there_is_said_to_be(
    tmp_path: Path, text: str, sentence: str
) -> None:
    root = small_project(tmp_path, core__one="x = a + b\n", core__two="y = a + b\n")
    with pytest.raises(Stale, match=sentence):
        place_of(Edit("fault", "core", text, "", ()), root)


def test_a_test_is_named_by_its_function_and_by_its_file_where_that_is_not_enough(
    tmp_path: Path,
) -> None:
    test = "def test_sum():\n    pass\n"
    root = small_project(tmp_path, tests__a__test_one=test, tests__b__test_two=test + test[:4])
    assert places_of_tests(("test_two.py::test_sum[x]",), root) == [
        "tests/b/test_two.py::test_sum[x]"
    ]
    with pytest.raises(Stale, match="test_sum is in 2 files"):
        places_of_tests(("test_sum",), root)
    with pytest.raises(Stale, match="test_none is in 0 files"):
        places_of_tests(("test_none",), root)


def test_the_list_can_be_read_and_searched(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list", "--only", "LEASE"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert 0 < len(listed) < len(EDITS)
    assert "backend/services: leases that still run are taken back" in listed
    assert main(["--only", "no such fault"]) == 2


@pytest.fixture(scope="module")
def copy() -> Iterator[ProjectCopy]:
    """A copy in which every test of the list passes, as long as nothing is edited."""
    with copies(1) as (made,):
        assert why_unready(made, [*EDITS, EXAMPLE]) is None
        yield made


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("after", "verdict"),
    [
        (EXAMPLE.after, Verdict.SURVIVED),  # only a sentence has changed
        ('"""\n    raise ValueError\n    """', Verdict.CAUGHT),
        ('"""\n    return return\n    """', Verdict.BROKEN),
    ],
    ids=["a sentence", "an error", "no Python"],
)
def test_who_survives_is_told_from_who_is_caught_and_who_never_ran(
    copy: ProjectCopy, after: str, verdict: Verdict
) -> None:
    found = judge(copy, replace(EXAMPLE, after=after))
    assert found.verdict is verdict, found.reason
    assert judge(copy, replace(EXAMPLE, before="gone")).verdict is Verdict.STALE
    assert why_unready(copy, [EXAMPLE]) is None  # it was taken back


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("edit", EDITS, ids=ids)
def test_the_tests_notice(copy: ProjectCopy, edit: Edit) -> None:
    found = judge(copy, edit)
    assert found.verdict is Verdict.CAUGHT, found.reason
