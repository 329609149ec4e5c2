"""Titles, names and hover texts say what is drawn, and fit."""

import pytest

from backend.schemas import MovementRead, PairedRead
from dashboard.figures.difference import WORDS
from dashboard.figures.traces import best_point
from dashboard.figures.wording import (
    NARROW_LETTERS,
    axis_title,
    caption_words,
    mean_hover,
    moves_words,
    network_words,
    pair_names,
    seeds_words,
    series_name,
    series_names,
    spoken,
    title_lines,
    title_words,
)
from dashboard.theme import number
from tests.dashboard.answers import series
from tests.dashboard.figures.test_families import line
from tests.dashboard.scored_answers import rows as scored_rows

TASK = "Next-frame prediction on JSB Chorales, arctan RNN with 300 units"


def test_a_title_is_one_line_where_there_is_room():
    assert (
        title_words("Digits", "mean of 3 seeds", narrow=False) == "<b>Digits</b> · mean of 3 seeds"
    )
    assert title_words("", "mean of 3 seeds", narrow=False) == "mean of 3 seeds"
    assert title_lines(title_words(TASK, "mean", narrow=False)) == 1
    long = title_words(TASK, "against width, 95 % intervals", narrow=False)
    assert long == f"<b>{TASK}</b><br>against width, 95 % intervals"


@pytest.mark.parametrize(
    "words", [f"{one}, paired by seed; below 0 is better" for one in WORDS.values()]
)
def test_on_a_phone_no_line_of_a_title_is_cut(words):
    title = title_words(TASK, words, narrow=True)
    lines = title.replace("<b>", "").replace("</b>", "").split("<br>")
    assert len(lines) == title_lines(title) > 2
    assert max(map(len, lines)) <= NARROW_LETTERS
    assert " ".join(lines) == f"{TASK} {words}"


def test_a_title_s_own_markup_is_shown_and_not_obeyed():
    for narrow in (False, True):
        assert title_words("a <i>b</i>", "mean", narrow=narrow).startswith(
            "<b>a &lt;i&gt;b&lt;/i&gt;</b>"
        )


def test_a_curve_is_named_by_its_method_and_what_sets_it_apart():
    assert series_name(series("ib"), "ib, clip 1") == "Implicit (IB), clip 1"
    assert series_name(series("eb"), "eb") == "Explicit (EB)"
    # A phone's legend would cut off what tells two series of a method apart.
    long = "ib, " + "clip 1, batch size 100, width 8"
    assert series_name(series("ib"), long, narrow=True) == f"IB{long[2:]}"
    assert series_name(series("ib"), "ib, clip 1", narrow=True) == "Implicit (IB), clip 1"
    borrowed = series("ib").model_copy(update={"imported": True})
    assert series_name(borrowed, "ib") == "Implicit (IB), imported"


def test_an_axis_says_quantity_split_and_epochs():
    lines = [series("eb"), series("ib")]
    assert axis_title(lines, "test_loss", "final") == "test loss after 5 epochs"
    assert axis_title(lines, "train_accuracy", "best") == "best training accuracy within 5 epochs"
    assert axis_title(lines, "seconds", "final") == "share of a stack's time (s)"
    longer = lines[1].model_copy(update={"epochs": 10})
    assert axis_title([lines[0], longer], "train_loss", "final").endswith("after 5 or 10 epochs")


def test_an_axis_says_on_what_the_best_epoch_was_chosen():
    by_test, by_validation = (
        series(method).model_copy(update={"chosen_on": chosen})
        for method, chosen in (("eb", "test"), ("ib", "validation"))
    )

    def said(*lines):
        return axis_title(lines, "test_loss", "best")

    assert said(by_test) == "test loss, best within 5 epochs (chosen on test)"
    assert said(by_validation) == "test loss, best within 5 epochs (chosen on validation)"
    assert said(by_test, by_validation).endswith("(chosen on validation or test)")


def test_what_is_not_finite_is_said_on_hover():
    line = series("eb")
    lost = mean_hover("EB", line.points[-1], "std")
    assert "mean of the 1 finite seeds" in lost
    assert "2 of 3 seeds are not finite" in lost
    assert "diverged 3 of 3" in lost
    assert "mean 0.1" in mean_hover("EB", line.points[3], "std")
    assert seeds_words([line]) == "3 seeds"
    assert seeds_words([]) == "no seed yet"


def test_a_picture_is_said_in_a_sentence_with_its_curves_best_rates() -> None:
    lines = [series("eb"), series("ib")]
    best = [best_point(line, higher_is_better=False) for line in lines]
    words = spoken(lines, "Digits, mean of 3 seeds", "training loss after 5 epochs", best)
    assert words.startswith("Training loss after 5 epochs against the learning rate, Digits, ")
    for one, point in zip(lines, best, strict=True):
        name = series_name(one, one.label)
        assert f"{name}, best {number(point.mean)} at rate {number(point.lr)}" in words
    lost = sum(1 for point in lines[0].points if point.diverged)
    assert f"seeds diverged at {lost} of {len(lines[0].points)} rates" in words


def test_many_curves_are_named_only() -> None:
    words = spoken([series("eb")] * 20, "Digits", "test loss", [None] * 20)
    assert "20 curves, Explicit (EB)" in words
    assert "best" not in words


def test_a_legend_tells_what_varies_unless_that_leaves_two_alike():
    lines = [line("eb", task="a", epochs=3, width=8), line("eb", task="b", epochs=6, width=8)]
    assert list(series_names(lines).values()) == ["a", "b"]
    alike = [lines[0], lines[0].model_copy(update={"id": "other", "label": "eb, again"})]
    assert list(series_names(alike).values()) == [
        "Explicit (EB), task a, epochs 3, width 8",
        "Explicit (EB), again",
    ]
    imported = [lines[0], lines[1].model_copy(update={"imported": True})]
    assert "imported" in series_names(imported)[lines[1].id]


def test_a_caption_lists_numbers_in_order_and_nothing_twice():
    lines = [
        line("eb", task=t, epochs=e, width=w) for w in (128, 32) for t, e in (("a", 3), ("b", 6))
    ]
    said = caption_words(lines, "train_loss", "final", "A and b")
    assert "Width: 32, 128." in said
    assert "Epochs:" not in said
    assert "Task:" not in said


def test_whether_a_rate_moves_is_said_with_its_task_where_there_are_several():
    first, second, *_ = scored_rows()
    rows = [first, second.model_copy(update={"task": "another"})]
    moves = [MovementRead(setting="width", rows=[row.id], text="it moves.") for row in rows]
    assert moves_words(moves, rows) == f" {first.task}, it moves. another, it moves."
    assert moves_words(moves[:1], rows[:1]) == " it moves."


def test_a_title_says_of_a_network_only_what_its_series_have():
    def title(text, *lines):
        return network_words(text, [one.model_copy(update=changes) for one, changes in lines])

    digits, one = "Digits, three arctan layers", series("eb")
    assert title(digits, (one, {"activation": "arctan"})) == digits
    assert title(digits, (one, {"activation": "tanh"})) == "Digits, three tanh layers"
    both = ((one, {"activation": "tanh"}), (one, {"activation": "arctan"}))
    assert title(digits, *both) == "Digits, three layers"
    deep = {"activation": "arctan", "options": {"depth": 5}}
    assert title(digits, (one, deep)) == "Digits, arctan layers"
    assert title("JSB, arctan RNN", (one, {"activation": "relu"})) == "JSB, relu RNN"
    assert title("Digits, relu MLP of any width", (one, {"activation": ""})).endswith("any width")


def test_a_difference_is_named_by_what_varies_unless_that_leaves_two_alike():
    said = [line(m, task=t, epochs=e) for t, e in (("Wine", 3), ("Iris", 6)) for m in ("eb", "ib")]
    rows = [
        one.model_copy(update={"label": f"{one.method}, raw/{i}"}) for i, one in enumerate(said)
    ]
    pairs = [
        PairedRead.model_construct(
            first=rows[i + 1].id, second=rows[i].id, first_label="ib, raw", second_label="eb, raw"
        )
        for i in (0, 2)
    ]
    named = [(one.first_label, one.second_label) for one in pair_names(pairs, rows)]
    assert named == [("ib, Wine", "eb, Wine"), ("ib, Iris", "eb, Iris")]
    assert pair_names([pairs[0], pairs[0]], rows) == [pairs[0], pairs[0]]
    assert pair_names(pairs, rows[:2]) == pairs  # one of them is not known
