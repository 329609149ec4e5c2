"""Rows of other people's files as trials."""

from typing import Any

import pytest

from backend.errors import InvalidInput
from backend.services.importing import read_runs

AUTHORS = (
    "experiment,dataset,architecture,batch_size,clip,lr,seed,epochs,momentum,mu,method,"
    "inner_isgd_iterations,nodes,intra_epoch,epochs_recorded,train_loss,test_loss,"
    "train_accuracy,test_accuracy,runtime_s,source_folder,train_loss_by_epoch,test_loss_by_epoch\n"
)


def columns(text: str) -> list[dict[str, Any]]:
    found = read_runs(text.encode(), most_bytes=10**6)
    return [trial.columns for trial in found.trials]


def test_the_authors_recorded_runs_are_recognised() -> None:
    ib, exact = columns(
        AUTHORS + "01_mnist_classification,mnist,convffnn,100,0.0,0.2,1,1,0.0,0.0,IB,0,50,False,1,"
        "0.5,0.6,91.5,90.0,12.5,results,0.5,0.6\n"
        ",JSB Chorales,music,100,8.0,5,1,5,0.0,0.0,exact,100,300,,5,"
        "nan,nan,0,0,1,results,nan;nan,nan;nan\n"
    )
    assert (ib["task"], ib["method"], ib["profile"]) == ("mnist_classifier", "ib", "authors")
    assert (ib["batch_rule"], ib["clip"], ib["seconds"]) == ("share", None, 12.5)
    assert (ib["train_accuracy"], ib["test_accuracy"]) == pytest.approx((0.915, 0.9))
    assert ib["options"] == {"experiment": "01_mnist_classification"}
    assert (exact["task"], exact["method"], exact["clip"]) == ("music/jsb_chorales", "isgd", 8.0)
    assert (exact["state"], exact["train_loss"]) == ("diverged", None)
    assert exact["train_accuracy"] is None, "0 throughout means that accuracy has no meaning"
    assert exact["options"] == {"inner_steps": 100, "width": 300}


def test_fractions_stay_fractions() -> None:
    (run,) = columns("task,method,lr,train_loss,test_accuracy\nx,eb,1,0.1,0.9\n")
    assert run["test_accuracy"] == 0.9


def test_an_accuracy_of_one_is_a_fraction_too() -> None:
    perfect, other = columns(
        "task,method,lr,seed,train_loss,test_accuracy\nx,eb,1,1,0.1,1.0\nx,eb,1,2,0.1,0.9\n"
    )
    assert (perfect["test_accuracy"], other["test_accuracy"]) == (1.0, 0.9)


def test_only_the_mark_of_our_own_exports_is_taken_off_a_text() -> None:
    ours, theirs = columns("task,method,lr,train_loss\n'=x,eb,1,0.1\n'tis mine,eb,1,0.1\n")
    assert (ours["task"], theirs["task"]) == ("=x", "'tis mine")


def test_a_loss_five_times_its_start_has_diverged() -> None:
    low, high = columns(
        "task,method,lr,seed,initial_loss,train_loss\nx,eb,1,1,2,10\nx,eb,1,2,2,10.1\n"
    )
    assert (low["state"], high["state"]) == ("completed", "diverged")
    assert high["train_loss"] == 10.1, "a finite loss stays"


def test_a_loss_that_began_at_zero_or_below_is_not_judged_by_its_start() -> None:
    header = "task,method,lr,seed,initial_loss,train_loss\n"
    pairs = [(-1, -2), (-1, -6), (-1, 1), (0, 0.1), (0, 0)]
    rows = "".join(f"x,eb,1,{i},{first},{last}\n" for i, (first, last) in enumerate(pairs))
    assert {run["state"] for run in columns(header + rows)} == {"completed"}


@pytest.mark.parametrize("loss", ["nan", "NaN", "inf", "-Infinity"])
def test_a_loss_that_is_not_finite_is_a_divergence(loss: str) -> None:
    (run,) = columns(f"task,method,lr,train_loss\nx,eb,1,{loss}\n")
    assert (run["state"], run["train_loss"]) == ("diverged", None)


def test_a_run_that_says_it_completed_needs_one_finite_loss_only() -> None:
    one, none = columns(
        "task,method,lr,seed,outcome,train_loss,test_loss\n"
        "x,eb,1,1,completed,0.1,\nx,eb,1,2,completed,nan,nan\n"
    )
    assert (one["state"], none["state"]) == ("completed", "diverged")


def test_seed_0_is_a_seed() -> None:
    zero, unsaid = columns("task,method,lr,seed,train_loss\nx,eb,1,0,0.1\nx,eb,1,,0.1\n")
    assert (zero["seed"], unsaid["seed"]) == (0, 1)


def test_other_optimizers_keep_their_names() -> None:
    (run,) = columns("dataset,method,learning_rate,test_loss\nmine,AdamW,1e-3,0.4\n")
    assert (run["task"], run["method"], run["lr"], run["state"]) == (
        "mine",
        "adamw",
        0.001,
        "completed",
    )


def test_every_bad_row_is_counted_and_the_first_are_named() -> None:
    rows = "".join(f"x,eb,bad{i},1\n" for i in range(9))
    with pytest.raises(InvalidInput, match=r"9 of 10 rows.*Line 3, lr.*Line 7, lr") as caught:
        columns(f"task,method,lr,train_loss\nx,eb,1,1\n{rows}")
    assert "Line 8" not in caught.value.message


UNREADABLE: dict[str, tuple[str, str]] = {
    "half a surrogate pair in a name": ('"method": "\\ud800"', "Line 1, method"),
    "half a pair in the settings": ('"options": {"a": "\\udfff"}', "Line 1, options"),
    "half a pair as a setting's name": ('"options": {"\\ud834": 1}', "Line 1, options"),
    "NUL in the settings": ('"options": {"a": "\\u0000"}', "Line 1, options"),
    "settings 900 deep": ('"options": ' + '{"a":' * 900 + "1" + "}" * 900, "Line 1, options"),
    "a whole number of 400 digits": ('"options": {"a": ' + "9" * 400 + "}", "Line 1, options"),
    "too many settings": ('"options": {"a": [' + "1," * 2000 + "1]}", "at most 1000 values"),
    "an infinite setting": ('"options": {"a": 1e400}', "Line 1, options"),
    "an accuracy of 400 digits": ('"test_accuracy": ' + "9" * 400, "Line 1, test_accuracy"),
    "a list for a task": ('"task": ' + "[" * 900 + "]" * 900, "Line 1, task"),
    "a list for a number": ('"lr": ' + "[" * 900 + "]" * 900, "Line 1, lr"),
    "a list for a curve": ('"train_loss_by_epoch": ' + "[" * 900 + "]" * 900, "Line 1, train_loss"),
    "a list for an error": ('"outcome": "failed", "error": [[1]]', "Line 1, error"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_no_answer_could_hold_is_refused_by_line_and_column(name: str) -> None:
    cell, told = UNREADABLE[name]
    row = '"task": "x", "method": "eb", "lr": 1, "train_loss": 1'
    with pytest.raises(InvalidInput, match=told):
        columns("[{" + row + ", " + cell + "}]")


def test_an_error_that_is_not_text_everywhere_is_stored_as_text_that_is() -> None:
    row = '"task": "x", "method": "eb", "lr": 1, "outcome": "failed"'
    (run,) = columns("[{" + row + ', "error": "\\u0000 in \\ud800\\nat line 2"}]')
    assert run["error"] == "\\x00 in \\ud800\nat line 2"


@pytest.mark.parametrize("momentum", ["nan", "1e999", "-0.5"])
def test_a_momentum_that_is_none_is_refused(momentum: str) -> None:
    with pytest.raises(InvalidInput, match="a number from 0 to 1"):
        columns(f"task,method,lr,train_loss,momentum\na,b,0.1,1,{momentum}\n")


def test_a_curve_longer_than_any_picture_is_refused() -> None:
    head = "task,method,lr,train_loss,train_loss_by_epoch\na,b,0.1,1,"
    assert columns(head + ";".join("1" * 10_000) + ";\n")
    with pytest.raises(InvalidInput, match="at most 10,000 numbers"):
        columns(head + ";".join("1" * 10_001) + "\n")
