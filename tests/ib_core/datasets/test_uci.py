from pathlib import Path

import numpy as np
import pytest
import torch

from ib_core.datasets import DATASETS, UCI_NAMES, load_dataset
from ib_core.datasets.base import random_split
from ib_core.datasets.fetched import read_uci_dat, read_uci_npz
from ib_core.errors import CorruptData, MissingData

ROWS = 25


@pytest.fixture
def table() -> dict[str, np.ndarray]:
    train, test = random_split(ROWS)
    return {
        "x": np.random.default_rng(3).normal(size=(ROWS, 4)).astype(np.float32),
        "y": np.arange(ROWS) % 3,
        "train_order": train.astype(np.int32),
        "test_order": test.astype(np.int32),
    }


def write_dat(folder: Path, table: dict[str, np.ndarray], name: str = "iris") -> tuple[Path, Path]:
    folder.mkdir(parents=True, exist_ok=True)
    features, labels = folder / f"{name}_py.dat", folder / "labels_py.dat"
    np.savetxt(features, table["x"], fmt="%.9g", delimiter=",")  # enough for any float32
    np.savetxt(labels, table["y"], fmt="%d", delimiter=",")
    return features, labels


def test_there_are_121_tables_and_no_two_share_a_name():
    assert len(set(UCI_NAMES)) == 121
    assert {f"uci/{name}" for name in UCI_NAMES} < set(DATASETS)


def test_both_layouts_give_the_same_rows_in_the_same_order(tmp_path: Path, table):
    np.savez(tmp_path / "iris.npz", **table)
    archive = read_uci_npz(tmp_path / "iris.npz")
    text = read_uci_dat(*write_dat(tmp_path, table))
    assert archive.sha256() == text.sha256()
    assert torch.equal(text.train.x, torch.from_numpy(table["x"][table["train_order"]]))
    assert text.train.x.dtype == torch.float32
    assert text.train.y.dtype == torch.int64
    assert text.classes == 3


def test_rows_are_fed_in_the_order_the_archive_says(tmp_path: Path, table):
    table["train_order"] = table["train_order"][::-1].copy()
    np.savez(tmp_path / "iris.npz", **table)
    content = read_uci_npz(tmp_path / "iris.npz")
    assert torch.equal(content.train.x, torch.from_numpy(table["x"][table["train_order"]]))


@pytest.mark.parametrize("labels", ["%d", "%.1f", "%.18e"])
def test_labels_may_be_written_as_floats(tmp_path: Path, table, labels):
    features, path = write_dat(tmp_path, table)
    expected = read_uci_dat(features, path).sha256()
    np.savetxt(path, table["y"], fmt=labels)
    assert read_uci_dat(features, path).sha256() == expected


def test_a_table_of_one_column_keeps_its_shape(tmp_path: Path, table):
    table["x"] = table["x"][:, :1]
    assert read_uci_dat(*write_dat(tmp_path, table)).train.x.shape == (20, 1)


@pytest.mark.parametrize("layout", ["npz", "dat"])
def test_both_layouts_are_found_in_the_data_folder(folder: Path, table, layout):
    if layout == "npz":
        (folder / "uci").mkdir()
        np.savez(folder / "uci" / "zoo.npz", **table)
    else:
        write_dat(folder / "uci" / "zoo", table, "zoo")
    assert load_dataset("uci/zoo").classes == 3
    assert DATASETS["uci/zoo"].present()


def test_features_without_labels_are_not_a_table(folder: Path, table):
    _, labels = write_dat(folder / "uci" / "zoo", table, "zoo")
    labels.unlink()
    with pytest.raises(MissingData, match=r"labels_py\.dat"):
        load_dataset("uci/zoo")


def nan(x: np.ndarray) -> np.ndarray:
    x = x.copy()
    x[3, 1] = np.nan
    return x


@pytest.mark.parametrize(
    "damage",
    [
        lambda t: {"x": nan(t["x"])},
        lambda t: {"x": t["x"].astype(np.float64) * 1e300},
        lambda t: {"x": t["x"][:-1]},
        lambda t: {"x": t["x"][:, :0]},
        lambda t: {"y": t["y"] - 1},
        lambda t: {"y": t["y"] + 1_000_000},
        lambda t: {"train_order": t["train_order"][:-1]},
        lambda t: {"train_order": t["train_order"] + 1},
        lambda t: {"train_order": t["train_order"] - 1},
        lambda t: {"train_order": t["train_order"] * 0},
        lambda t: {"train_order": np.arange(ROWS), "test_order": np.arange(0)},
    ],
)
def test_an_archive_that_would_fail_later_is_refused_now(tmp_path: Path, table, damage):
    np.savez(tmp_path / "iris.npz", **(table | damage(table)))
    with pytest.raises(CorruptData, match=r"iris\.npz"):
        read_uci_npz(tmp_path / "iris.npz")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "1,2,3,4\n" * 24 + "1,2",
        "1,2,3,4\n" * 24,
        "1,2,3,4\n" * 24 + "1,2,3,nan\n",
        "1,2,3,4\n" * 24 + "1,2,3,inf\n",
        "1,2,3,4\n" * 24 + "1,2,3,1e300\n",
        "1,2,3,4\n" * 24 + "1,2,3,\n",
        "<html>\n",
        "1 2 3 4\n" * 25,
        "\0" * 100,
    ],
)
def test_damaged_features_are_refused_by_name(tmp_path: Path, table, text):
    features, labels = write_dat(tmp_path, table)
    features.write_text(text)
    with pytest.raises(CorruptData, match=r"iris_py\.dat"):
        read_uci_dat(features, labels)


@pytest.mark.parametrize("text", ["0\n" * 24 + "0.5\n", "0\n" * 24 + "-1\n", "0,1\n" * 25, "x\n"])
def test_damaged_labels_are_refused_by_name(tmp_path: Path, table, text):
    features, labels = write_dat(tmp_path, table)
    labels.write_text(text)
    with pytest.raises(CorruptData, match=r"labels_py\.dat"):
        read_uci_dat(features, labels)


def test_one_row_is_refused(tmp_path: Path):
    one = {"x": np.ones((1, 2)), "y": np.zeros(1)}
    with pytest.raises(CorruptData, match="one row"):
        read_uci_dat(*write_dat(tmp_path, one))


def test_every_supplied_table_loads_and_its_rows_are_the_public_split(supplied: Path):
    present = [name for name in UCI_NAMES if (supplied / "uci" / f"{name}.npz").is_file()]
    if not present:
        pytest.skip(f"{supplied} holds no UCI table")
    for name in present:
        loaded = load_dataset(f"uci/{name}")
        with np.load(supplied / "uci" / f"{name}.npz") as archive:
            train, test = random_split(len(archive["x"]))
            assert (train == archive["train_order"]).all(), name
            assert (test == archive["test_order"]).all(), name
            assert loaded.classes == archive["y"].max() + 1
            assert torch.equal(loaded.train.x, torch.from_numpy(archive["x"][train])), name
            assert torch.equal(loaded.test.y, torch.from_numpy(archive["y"][test])), name


@pytest.mark.parametrize("name", ["iris", "wine", "balloons", "hayes-roth"])
def test_a_supplied_table_written_out_as_text_has_the_same_hash(tmp_path: Path, need, name):
    loaded = need(f"uci/{name}")
    rows = len(loaded.train) + len(loaded.test)
    order = np.argsort(np.concatenate(random_split(rows)))
    table = {
        "x": torch.cat([loaded.train.x, loaded.test.x]).numpy()[order],
        "y": torch.cat([loaded.train.y, loaded.test.y]).numpy()[order],
    }
    assert read_uci_dat(*write_dat(tmp_path, table)).sha256() == loaded.sha256
