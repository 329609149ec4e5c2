import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from ib_core.datasets import DATASETS, UCI_NAMES, bundled, fetched, load_dataset
from ib_core.datasets.fetch import known_hashes
from ib_core.errors import CorruptData, MissingData, UnknownName

BUILT_IN = [
    "python_zen",
    "digits",
    "iris",
    "wine",
    "breast_cancer",
    "procedural_music",
    "toy_quadratic",
    "toy_least_squares",
    "toy_moons",
]
ON_DISK = ["mnist", "jsb_chorales", "musedata", "nottingham", "piano_midi"]


def test_the_registry_holds_exactly_the_promised_names():
    assert set(DATASETS) == {*BUILT_IN, *ON_DISK, *(f"uci/{name}" for name in UCI_NAMES)}
    assert all(info.name == name for name, info in DATASETS.items())


@pytest.mark.parametrize("info", DATASETS.values(), ids=lambda info: info.name)
def test_every_entry_says_what_it_is_and_how_to_get_it(info):
    assert info.title
    assert info.source
    assert info.licence
    assert info.how_to_get
    fetched = tuple(item.file for item in info.downloads)
    assert not fetched or fetched in [layout.files for layout in info.layouts]
    assert all(url.startswith("https://") for item in info.downloads for url in item.urls)


@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_data_needs_no_folder_and_has_not_changed(folder: Path, name):
    """Results are compared across machines by this hash; a change of it is a change of results."""
    folder.rmdir()
    assert DATASETS[name].present()
    assert load_dataset(name).sha256 == known_hashes()[name]


@pytest.mark.parametrize("name", [*ON_DISK, "uci/iris"])
def test_missing_data_says_what_was_looked_for_where_and_what_to_do(folder: Path, name):
    assert not DATASETS[name].present()
    with pytest.raises(MissingData) as caught:
        load_dataset(name)
    message = caught.value.message
    assert str(folder) in message
    assert f"`etascope data fetch {name}`" in message
    assert all(file in message for layout in DATASETS[name].layouts for file in layout.files)


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(UnknownName, match="uci/zoo"):
        load_dataset("cifar")


def write_table(folder: Path, shift: float = 0.0) -> Path:
    (folder / "uci").mkdir(exist_ok=True)
    path = folder / "uci" / "zoo.npz"
    x = np.arange(20.0, dtype=np.float32).reshape(10, 2) + np.float32(shift)
    orders = {"train_order": np.arange(8), "test_order": np.arange(8, 10)}
    np.savez(path, x=x, y=np.arange(10) % 2, **orders)
    return path


def test_a_data_set_is_read_once(folder: Path):
    write_table(folder)
    assert load_dataset("uci/zoo") is load_dataset("uci/zoo")


def test_a_replaced_file_is_noticed(folder: Path):
    path = write_table(folder)
    before = load_dataset("uci/zoo")
    write_table(folder, shift=1.0)
    os.utime(path, ns=(1, 1))
    assert load_dataset("uci/zoo").sha256 != before.sha256


def test_data_that_arrives_after_a_failure_is_found(folder: Path):
    with pytest.raises(MissingData):
        load_dataset("uci/zoo")
    path = write_table(folder)
    whole = path.read_bytes()
    path.write_bytes(whole[:50])
    with pytest.raises(CorruptData, match=r"zoo\.npz"):
        load_dataset("uci/zoo")
    path.write_bytes(whole)
    assert len(load_dataset("uci/zoo").train) == 8


def test_many_threads_share_one_reading(folder: Path):
    write_table(folder)
    loaded = []
    start = threading.Barrier(8)

    def load() -> None:
        start.wait()
        loaded.append(load_dataset("uci/zoo"))

    threads = [threading.Thread(target=load) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(dataset) for dataset in loaded}) == 1


def test_a_catalogue_does_not_load_what_only_some_data_sets_need():
    code = "import sys, ib_core.datasets; print({'sklearn', 'scipy', 'httpx'} & set(sys.modules))"
    root = Path(fetched.__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True)
    assert done.stdout.strip() == "set()", done.stderr


def test_composing_is_quick_enough_to_need_no_cache_on_disk():
    started = time.process_time()
    bundled.compose()
    assert time.process_time() - started < 1.0  # takes about 0.05


def test_every_supplied_data_set_is_the_published_one(supplied: Path):
    present = [name for name, info in DATASETS.items() if info.downloads and info.present()]
    if not present:
        pytest.skip(f"{supplied} holds no data set")
    for name in set(present) & set(known_hashes()):
        assert load_dataset(name).sha256 == known_hashes()[name], name
