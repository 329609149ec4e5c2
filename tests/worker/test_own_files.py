"""Users' files on workers: loaded, told, trained; and what they do wrong is theirs alone."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from backend.db import reading, transaction
from backend.queue import get_queue
from backend.schemas import SweepRead, SweepState, TrialState
from backend.services import catalog, offers, sweeps, workers
from backend.services.submission import Submission
from backend.services.workers import Worker
from backend.settings import get_settings
from ib_core import own
from ib_core.announced import _distributions, offer_key
from ib_core.errors import InvalidSpec
from ib_core.methods import OWN_METHODS
from ib_core.tasks import OWN_TASKS
from tests.announced import submit_body
from tests.servers import BrokerServer, wait_for
from tests.worker.own_files import decent, hostile
from worker.own_files import load, load_probed, probe, torch_methods
from worker.reporter import Heartbeat, StopFlag
from worker.training import guard, train


@pytest.fixture(autouse=True)
def nothing_of_ours() -> Iterator[None]:
    """Forget what a test loaded."""
    yield
    guard(1).stop()
    guard.cache_clear()
    OWN_TASKS.clear()
    OWN_METHODS.clear()
    own._files.clear()


@pytest.fixture
def heartbeat(database: str, quick: None) -> Iterator[Heartbeat]:
    worker = Worker("one", "host", 1, "cpu", queues=("cpu",))
    heartbeat = Heartbeat(worker, get_settings(), stopping=StopFlag())
    heartbeat.start()
    yield heartbeat
    heartbeat.stop()


def sent(**body: Any) -> Submission:
    with transaction() as session:
        return submit_body(session, **body)


def seen(submission: Submission) -> SweepRead:
    with reading() as session:
        return sweeps.get(session, sweep_id=submission.sweep.id)


def train_all(submission: Submission, heartbeat: Heartbeat) -> SweepRead:
    for shard_id in submission.shard_ids:
        train(shard_id, heartbeat=heartbeat, stopping=StopFlag())
    return seen(submission)


def test_a_file_is_told_sent_for_and_trained_under_the_address_it_was_sent_with(
    heartbeat: Heartbeat, tmp_path: Path
) -> None:
    heartbeat.bring(load([str(decent(tmp_path))]))
    asked = sent(methods=["eb", "my_file.py:adamw"], vary={"width": [2]})
    assert asked.sweep.waiting_for == []
    found = train_all(asked, heartbeat)
    assert found.state is SweepState.COMPLETED, found.messages
    again = sent(methods=["eb", "my_file.py:adamw"], vary={"width": [2]})
    assert again.sweep.reused == again.sweep.total
    assert seen(again).state is SweepState.COMPLETED


def test_a_changed_file_is_another_version_with_trials_of_its_own(
    heartbeat: Heartbeat, tmp_path: Path
) -> None:
    heartbeat.bring(load([str(decent(tmp_path / "old"))]))
    first = sent()
    own._files.clear()
    other = load([str(decent(tmp_path / "new", factor=2.0))])
    with transaction() as session:
        offers.announce(session, worker="two", host="host", manifests=other)
        newer = Worker("two", "host", 2, "cpu", offers=tuple(map(offer_key, other)))
        workers.register(session, worker=newer)
    second = sent()
    assert second.sweep.reused == 0
    train(second.shard_ids[0], heartbeat=heartbeat, stopping=StopFlag())
    assert seen(second).progress["queued"] == second.sweep.total  # not this worker's to train
    assert seen(first).progress["queued"] == first.sweep.total


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("raises", "hostile.py, line 19, in forward: ValueError: no luck"),
        ("leaves", "hostile.py, line 25, in forward: SystemExit: 3"),
        ("eats", "hostile.py, line 27, in forward"),
        ("misshapes", "hostile.py, line 29, in forward"),
        ("ends", "in model: A training process ended unexpectedly (exit code 3)"),
        ("hangs", "in forward: It gave no sign of life for 4 s"),
    ],
)
def test_what_a_file_does_wrong_fails_its_own_trials_with_the_line(
    heartbeat: Heartbeat,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    how: str,
    words: str,
) -> None:
    monkeypatch.setenv("ETASCOPE_MAX_ATTEMPTS", "1")
    if how == "hangs":
        monkeypatch.setenv("ETASCOPE_STALL_SECONDS", "4")
    get_settings.cache_clear()
    heartbeat.bring(load([str(hostile(tmp_path))]))
    bad = sent(task="hostile.py:task", vary={"how": [how]})
    found = train_all(bad, heartbeat)
    assert found.state is SweepState.FAILED
    assert words in found.messages[0]
    good = train_all(sent(task="toy/quadratic", seeds=1), heartbeat)
    assert good.state is SweepState.COMPLETED


def test_a_loss_that_is_never_a_number_is_a_divergence(
    heartbeat: Heartbeat, tmp_path: Path
) -> None:
    heartbeat.bring(load([str(hostile(tmp_path))]))
    found = train_all(sent(task="hostile.py:task", vary={"how": ["nan"]}), heartbeat)
    assert found.progress[TrialState.DIVERGED.value] == found.total


def test_markup_in_a_title_stays_text(heartbeat: Heartbeat, tmp_path: Path) -> None:
    heartbeat.bring(load([str(hostile(tmp_path))]))
    with reading() as session:
        (own_task,) = [one for one in catalog.get(session).tasks if one.version]
    assert own_task.title == "<img src=x onerror=alert(1)> <b>task</b>"


NO_MODEL = """import torch
from ib_core import Data, Task
task = Task(lambda: None, Data(train=(torch.zeros(4, 2), torch.zeros(4))), loss=print)
"""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import os; os._exit(4)", "bad.py ended the process that read it, with exit code 4"),
        ("import sys; sys.exit('bye')", "bad.py, line 1"),
        ("x = 1", "bad.py holds neither a Task nor a Method"),
        ("def (", "bad.py, line 1"),
        ("1 / 0", "bad.py, line 1, in <module>: ZeroDivisionError"),
        (NO_MODEL, "bad.py:task: bad.py, line 3, in <lambda>: The model function of bad.py:task"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_in_a_process_of_its_own(
    tmp_path: Path, text: str, words: str
) -> None:
    file = tmp_path / "bad.py"
    file.write_text(text)
    with pytest.raises(InvalidSpec) as caught:
        probe([str(file)])
    assert words in caught.value.message


@pytest.mark.parametrize("told", ["float('inf')", "{1, 2}"])
def test_what_cannot_be_told_to_others_is_refused_by_its_name(tmp_path: Path, told: str) -> None:
    file = decent(tmp_path)
    file.write_text(f"{file.read_text()}\ntask.summary = {told}\n")
    with pytest.raises(InvalidSpec, match=r"my_file\.py:task cannot be told to others"):
        probe([str(file)])


def test_a_file_that_never_ends_is_given_up(tmp_path: Path) -> None:
    file = tmp_path / "bad.py"
    file.write_text("while True: pass")
    with pytest.raises(InvalidSpec, match="was not read after 1 s"):
        probe([str(file)], seconds=1.0)


def test_a_file_that_takes_all_memory_is_refused_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "bad.py"
    file.write_text("hoard = []\nwhile True:\n    hoard.append(bytearray(10**7))\n")
    with pytest.raises(InvalidSpec, match=r"bad\.py, line 3, in <module>: MemoryError"):
        probe([str(file)], shares=100)


UNSEEDED = "torch.linspace(-1, 1, 24)"


def test_data_that_differ_each_time_they_are_read_are_left_out_with_a_reason(
    heartbeat: Heartbeat, tmp_path: Path
) -> None:
    file = decent(tmp_path)
    file.write_text(file.read_text().replace(UNSEEDED, "torch.randn(24)"))
    probed = probe([str(file)])
    found, left_out = load_probed([str(file)], probed)
    assert [one["name"] for one in found] == ["my_file.py:adamw"]
    assert "Seed what they draw at random" in left_out["my_file.py:task"]
    heartbeat.bring(found, left_out)
    with pytest.raises(InvalidSpec, match=r"Nobody has my_file\.py:task: on host .* Seed what"):
        sent()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda text: f"{text}# changed\n", "its code was changed after the worker started"),
        (lambda text: text.replace("task =", "other ="), "its code was changed"),
        (lambda _: "1 / 0", "my_file.py, line 1, in <module>: ZeroDivisionError"),
    ],
)
def test_a_file_that_was_changed_since_is_left_out_until_the_worker_starts_anew(
    heartbeat: Heartbeat, tmp_path: Path, change: Callable[[str], str], words: str
) -> None:
    file = decent(tmp_path)
    probed = probe([str(file)])
    heartbeat.bring(probed)  # by a process that ended later on
    asked = sent()
    file.write_text(change(file.read_text()))
    found, left_out = load_probed([str(file)], probed)
    assert found == []
    assert words in left_out["my_file.py:task"]
    heartbeat._manifests = []
    heartbeat.bring(found, left_out)
    (missing,) = seen(asked).waiting_for
    assert words in missing.sentence


def test_an_unchanged_file_is_brought_as_it_was_probed(tmp_path: Path) -> None:
    words = [str(decent(tmp_path))]
    probed = probe(words)
    assert load_probed(words, probed) == (probed, {})


PACKAGE = {
    "pyproject.toml": """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[project]
name = "tiny-tasks"
version = "1.2"
[project.entry-points."etascope.tasks"]
line = "tiny_tasks.tasks:line"
broken = "tiny_tasks.broken:task"
[project.entry-points."etascope.methods"]
slow = "tiny_tasks.tasks:slow"
""",
    "tiny_tasks/__init__.py": "",
    "tiny_tasks/others.py": "RATE = 0.1\n",
    "tiny_tasks/broken.py": "raise ValueError('not today')",
    "tiny_tasks/nets.py": "from torch import nn\ndef net(width=2):\n    return nn.Linear(2, 1)\n",
    "tiny_tasks/tasks.py": """
import torch
import torch.nn.functional as F
from ib_core import Data, Method, Task, number, whole
from tiny_tasks.nets import net
X = torch.linspace(-1, 1, 24).reshape(12, 2)
line = Task(net, Data(train=(X, X.sum(1, keepdim=True))), loss=F.mse_loss, batch_size=6,
            options={"width": whole(1, 9)})
slow = Method(torch.optim.SGD, options={"momentum": number(0, 1)})
""",
}


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with entry points, built and installed into a folder of its own."""
    for name, text in PACKAGE.items():
        place = tmp_path / "source" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    target = tmp_path / "target"
    words = ["install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--target"]
    command = [sys.executable, "-m", "pip", *words, str(target), str(tmp_path / "source")]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    monkeypatch.syspath_prepend(str(target))
    _distributions.cache_clear()
    before = os.environ.get("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(target), before))))
    return target / "tiny_tasks"


def forget_package() -> None:
    for name in [one for one in sys.modules if one.partition(".")[0] == "tiny_tasks"]:
        del sys.modules[name]


def test_an_installed_package_is_told_and_trained_and_a_broken_part_left_out(
    heartbeat: Heartbeat, installed: Path
) -> None:
    found = {one["name"]: one for one in probe([])}
    assert set(found) == {"tiny-tasks:line", "tiny-tasks:slow"}
    assert found["tiny-tasks:line"]["versions"]["tiny-tasks"] == "1.2"
    assert found["tiny-tasks:line"]["options"]["properties"]["width"]["maximum"] == 9
    told = load([])
    assert {offer_key(one) for one in told} == set(map(offer_key, found.values()))
    (refused,) = own.register_packages().refused
    assert "broken.py, line 1, in <module>: ValueError: not today" in refused
    import_module("tiny_tasks.others")  # by somebody else, and nothing of theirs
    again = {one["name"]: one["code"] for one in load([])}
    assert again == {one["name"]: one["code"] for one in told}
    heartbeat.bring(told)
    asked = sent(task="tiny-tasks:line", methods=["tiny-tasks:slow(momentum=0.9)"], seeds=1)
    ended = train_all(asked, heartbeat)
    assert ended.state is SweepState.COMPLETED, ended.messages
    (installed / "nets.py").write_text((installed / "nets.py").read_text() + "# changed\n")
    forget_package()
    changed = {one["name"]: one["code"] for one in load([])}
    assert changed["tiny-tasks:line"] != found["tiny-tasks:line"]["code"]
    forget_package()


def test_torchs_optimizers_are_told_with_their_options() -> None:
    found = {one["name"]: one for one in torch_methods()}
    assert found["torch.optim.AdamW"]["options"]["properties"]["weight_decay"]["default"] == 0.01
    assert "torch.optim.LBFGS" not in found


@pytest.fixture
def service(sqlite_database: str, broker: BrokerServer) -> BrokerServer:
    del sqlite_database
    return broker


def announced(submission: Submission) -> Submission:
    get_queue().enqueue(submission.shard_ids)
    return submission


def wait_for_offers(count: int) -> None:
    def there() -> bool:
        with reading() as session:
            return len({one.code for one in offers.list_all(session) if one.workers}) >= count

    wait_for(there, seconds=180, what="workers to announce what they have")


def wait_for_end(submission: Submission) -> SweepRead:
    over = (SweepState.COMPLETED, SweepState.FAILED, SweepState.CANCELLED)
    wait_for(lambda: seen(submission).state in over, seconds=240, what="the sweep to end")
    return seen(submission)


@pytest.mark.slow
def test_two_workers_with_two_versions_each_train_their_own(
    service: BrokerServer, start_worker: Callable[..., Any], tmp_path: Path
) -> None:
    start_worker("-m", "worker.main", str(decent(tmp_path / "one")))
    wait_for_offers(1)
    first = announced(sent())
    assert wait_for_end(first).state is SweepState.COMPLETED
    start_worker("-m", "worker.main", str(decent(tmp_path / "two", factor=2.0)))
    wait_for_offers(2)
    old, new = first.sweep.spec["options"]["code"], seen(announced(sent())).spec["options"]["code"]
    assert old != new
    for code in (old, new):
        asked = announced(sent(task=f"my_file.py:task@{code[:8]}", seeds=[5, 6]))
        found = wait_for_end(asked)
        assert found.state is SweepState.COMPLETED, found.messages
        assert found.spec["options"]["code"] == code
    assert sent(task=f"my_file.py:task@{old[:8]}").sweep.reused == first.sweep.total


@pytest.mark.slow
def test_a_worker_survives_a_file_that_hangs_and_one_that_ends_its_process(
    service: BrokerServer,
    start_worker: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ETASCOPE_MAX_ATTEMPTS", "1")
    monkeypatch.setenv("ETASCOPE_STALL_SECONDS", "15")
    start_worker("-m", "worker.main", str(hostile(tmp_path)))
    wait_for_offers(1)
    bad = {
        how: announced(sent(task="hostile.py:task", vary={"how": [how]}, seeds=1))
        for how in ("ends", "hangs")
    }
    good = announced(sent(task="toy/quadratic", seeds=1))
    ended = {how: wait_for_end(one) for how, one in bad.items()}
    assert {one.state for one in ended.values()} == {SweepState.FAILED}
    assert "exit code 3" in ended["ends"].messages[0]
    assert "no sign of life" in ended["hangs"].messages[0]
    assert wait_for_end(good).state is SweepState.COMPLETED
    works = announced(sent(task="hostile.py:task", seeds=1))
    assert wait_for_end(works).state is SweepState.COMPLETED
