import gzip
import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import scipy.io

from ib_core.datasets import DATASETS, fetch, load_dataset
from ib_core.datasets import raw_files as download_module
from ib_core.datasets.fetch import check_dataset, known_hashes, list_datasets
from ib_core.errors import CorruptData, InvalidSpec, MissingData, UnknownName

MAT = "/music/JSB_Chorales.mat"


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch):
    monkeypatch.setattr(download_module, "FIRST_PAUSE", 0.001)
    monkeypatch.delenv("ETASCOPE_DATA_MIRROR", raising=False)


@pytest.fixture
def mat(tmp_path: Path, music) -> bytes:
    parts = {}
    for name, rolls in zip(("train", "valid", "test"), music.parts(), strict=True):
        parts[f"{name}data"] = np.empty((1, len(rolls)), dtype=object)
        parts[f"{name}data"][0, :] = rolls
    scipy.io.savemat(tmp_path / "any.mat", parts, do_compression=True)
    return (tmp_path / "any.mat").read_bytes()


@pytest.fixture
def published(monkeypatch, music) -> str:
    """Make the small pieces of these tests the published content of JSB Chorales."""
    sha256 = music.content.sha256()
    hashes = {**known_hashes(), "jsb_chorales": sha256}
    monkeypatch.setattr(fetch, "known_hashes", lambda: hashes)
    return sha256


def files_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_the_list_has_a_row_for_every_data_set(folder: Path):
    rows = {row.name: row for row in list_datasets()}
    assert set(rows) == set(DATASETS)
    assert rows["digits"].present
    assert not rows["mnist"].present
    assert rows["mnist"].size_bytes == 11_594_722
    assert "etascope data fetch mnist" in rows["mnist"].how_to_get


def test_known_hashes_are_those_of_registered_data_sets():
    assert set(known_hashes()) <= set(DATASETS)
    assert all(len(sha256) == 64 for sha256 in known_hashes().values())
    assert "uci/adult" not in known_hashes()  # two versions of it are in circulation


def test_a_fetched_set_lies_in_place_loads_and_leaves_no_litter(folder, server, mat, published):
    server.files[MAT] = mat
    seen = []
    fetched = fetch.fetch_dataset("jsb_chorales", seen.append, mirror=server.address + "/")
    assert fetched.verified
    assert fetched.sha256 == published == load_dataset("jsb_chorales").sha256
    assert fetched.files == (folder / MAT[1:],)
    assert seen[-1].received == seen[-1].total == len(mat)
    assert files_in(folder) == {MAT[1:], ".incoming/jsb_chorales.lock"}


def test_the_mirror_can_be_set_for_the_whole_process(folder, server, mat, published, monkeypatch):
    monkeypatch.setenv("ETASCOPE_DATA_MIRROR", server.address)
    server.files[MAT] = mat
    assert fetch.fetch_dataset("jsb_chorales").verified


def test_what_is_here_and_intact_is_not_fetched_again(folder, server, mat, published):
    server.files[MAT] = mat
    for _ in range(2):
        fetch.fetch_dataset("jsb_chorales", mirror=server.address)
    assert len(server.requests) == 1


def test_a_damaged_file_is_replaced(folder, server, mat, published):
    (folder / "music").mkdir()
    (folder / MAT[1:]).write_bytes(mat[:500])
    server.files[MAT] = mat
    fetch.fetch_dataset("jsb_chorales", mirror=server.address)
    assert (folder / MAT[1:]).read_bytes() == mat


def test_a_damaged_file_that_would_hide_the_fetched_one_is_named(folder, server, mat, published):
    (folder / "music").mkdir()
    (folder / "music" / "jsb_chorales.npz").write_bytes(b"damaged")
    with pytest.raises(CorruptData, match=r"jsb_chorales\.npz"):
        fetch.fetch_dataset("jsb_chorales", mirror=server.address)
    assert server.requests == []


def test_wrong_but_readable_content_is_refused_and_removed(folder, server, mat):
    server.files[MAT] = mat  # reads well, but these are not the chorales
    with pytest.raises(CorruptData, match="not the published one"):
        fetch.fetch_dataset("jsb_chorales", mirror=server.address)
    assert files_in(folder) == {".incoming/jsb_chorales.lock"}


def test_unreadable_content_is_refused_and_removed_and_a_second_try_works(
    folder, server, mat, published
):
    server.files[MAT] = b"<html>please log in</html>"
    with pytest.raises(CorruptData, match="JSB_Chorales"):
        fetch.fetch_dataset("jsb_chorales", mirror=server.address)
    assert files_in(folder) == {".incoming/jsb_chorales.lock"}
    server.files[MAT] = mat
    assert fetch.fetch_dataset("jsb_chorales", mirror=server.address).verified


def test_a_set_nobody_has_verified_need_only_load(folder, server, mat):
    server.files["/music/Nottingham.mat"] = mat
    assert not fetch.fetch_dataset("nottingham", mirror=server.address).verified


def test_uci_tables_come_as_two_files(folder, server):
    server.files["/uci/lenses/lenses_py.dat"] = b"0.5,1\n" * 10
    server.files["/uci/lenses/labels_py.dat"] = b"0\n1\n" * 5
    fetched = fetch.fetch_dataset("uci/lenses", mirror=server.address)
    assert [path.name for path in fetched.files] == ["lenses_py.dat", "labels_py.dat"]
    assert len(load_dataset("uci/lenses").train) == 8


def test_the_half_that_arrived_is_kept_for_the_next_try(folder, server):
    server.files["/uci/lenses/lenses_py.dat"] = b"0.5,1\n" * 10
    with pytest.raises(MissingData, match="answered HTTP 404"):
        fetch.fetch_dataset("uci/lenses", mirror=server.address)
    assert not DATASETS["uci/lenses"].present()
    server.files["/uci/lenses/labels_py.dat"] = b"0\n1\n" * 5
    fetch.fetch_dataset("uci/lenses", mirror=server.address)
    assert [path for path, _ in server.requests].count("/uci/lenses/lenses_py.dat") == 1


def test_mnist_is_refused_by_the_published_hash_of_the_file_at_fault(folder, server):
    for item in DATASETS["mnist"].downloads:
        server.files[f"/{item.file}"] = gzip.compress(b"not the original")
    with pytest.raises(CorruptData, match=r"train-images-idx3-ubyte\.gz"):
        fetch.fetch_dataset("mnist", mirror=server.address)


def test_without_a_network_the_message_says_what_else_to_do(folder):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound but not listening: connections are refused
        mirror = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(MissingData) as caught:
            fetch.fetch_dataset("jsb_chorales", mirror=mirror)
    message = caught.value.message
    assert "Could not reach 127.0.0.1" in message
    assert "On a machine with a connection run `etascope data fetch jsb_chorales`" in message
    assert str(folder / MAT[1:]) in message


@pytest.mark.parametrize(
    "mirror", ["ftp://host/data", "/srv/data", "http://", "http://h:x/", "http://["]
)
def test_a_mirror_that_is_no_web_address_is_refused(folder, mirror):
    with pytest.raises(InvalidSpec, match="ETASCOPE_DATA_MIRROR"):
        fetch.fetch_dataset("jsb_chorales", mirror=mirror)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch, server):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ETASCOPE_DATA_DIR", str(tmp_path / "file" / "data"))
    with pytest.raises(MissingData, match="Set ETASCOPE_DATA_DIR"):
        fetch.fetch_dataset("jsb_chorales", mirror=server.address)


def test_data_in_a_read_only_folder_counts_as_fetched(folder, mat, published):
    (folder / "music").mkdir()
    (folder / MAT[1:]).write_bytes(mat)
    (folder / ".incoming").write_text("in the way, so that nothing can be staged")
    assert fetch.fetch_dataset("jsb_chorales", mirror="http://127.0.0.1:9").verified


def test_built_in_data_is_never_fetched(folder: Path):
    assert fetch.fetch_dataset("toy_moons", mirror="http://127.0.0.1:9").verified
    assert files_in(folder) == set()


@pytest.mark.parametrize("call", [check_dataset, fetch.fetch_dataset])
def test_unknown_names_are_refused(call):
    with pytest.raises(UnknownName):
        call("cifar")


def test_check_reads_the_disk_and_not_the_memory(folder, server, mat, published):
    server.files[MAT] = mat
    path = fetch.fetch_dataset("jsb_chorales", mirror=server.address).files[0]
    load_dataset("jsb_chorales")
    stat = path.stat()
    path.write_bytes(bytes(len(mat)))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    with pytest.raises(CorruptData, match="JSB_Chorales"):
        check_dataset("jsb_chorales")


def test_processes_that_fetch_at_once_download_once_and_agree(folder, server, mat, music):
    server.files["/music/Nottingham.mat"] = mat
    server.cuts = [len(mat) // 2]  # the first is interrupted, which gives the other time
    code = (
        "import sys; from ib_core.datasets import fetch;"
        "print(fetch.fetch_dataset('nottingham', mirror=sys.argv[1]).sha256)"
    )
    command = [sys.executable, "-c", code, server.address]
    root = Path(fetch.__file__).parents[2]
    processes = [
        subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    answers = [process.communicate(timeout=60)[0].strip() for process in processes]
    assert answers == [music.content.sha256()] * 2
    assert len(server.requests) == 2  # the download and its continuation
    assert files_in(folder) == {"music/Nottingham.mat", ".incoming/nottingham.lock"}


def test_threads_that_fetch_at_once_download_once(folder, server, mat):
    server.files["/music/Nottingham.mat"] = mat
    server.cuts = [len(mat) // 3] * 2
    with ThreadPoolExecutor(4) as pool:
        tasks = [
            pool.submit(fetch.fetch_dataset, "nottingham", mirror=server.address) for _ in range(4)
        ]
    assert len({task.result().sha256 for task in tasks}) == 1
    assert len(server.requests) == 3


@pytest.mark.parametrize("name", ["mnist", "jsb_chorales", "uci/wine"])
def test_supplied_data_is_verified(need, name):
    need(name)
    assert check_dataset(name).verified
