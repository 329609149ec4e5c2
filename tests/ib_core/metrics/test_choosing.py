"""What many tasks say about methods: nothing but what their numbers say."""

from ib_core.metrics import Number, counts_told, ranks_told, which_method

FAMILIES = {"IB": ("ib", "ib_plus"), "SPS": ("sps",), "EB": ("eb",)}
NAMES = {"ib": "IB", "ib_plus": "IB+", "sps": "SPS", "eb": "EB"}


def told(best, lost, price=0.0, cost=None):
    """Numbers of a method on a task, with intervals of a tenth to either side."""
    return {
        "best_mean": Number(best, 0.9 * best, 1.1 * best),
        "lr_sensitivity": Number(lost, 0.9 * lost, 1.1 * lost),
        "best_of_3": Number(lost, 0.9 * lost, 1.1 * lost),
        "price": Number(price),
        "step_cost": Number(cost),
    }


def said(tasks, families=FAMILIES):
    """Return what is said, by what it is about."""
    return {one.asked: one for one in which_method(tasks, families, NAMES)}


def test_the_family_that_wins_a_task_is_named_there_and_the_others_nowhere():
    tasks = {
        "Iris": {"eb": told(1.0, 0.5), "ib": told(0.5, 0.1), "sps": told(0.95, 0.6)},
        "Wine": {"eb": told(1.0, 0.5), "ib": told(0.96, 0.3), "sps": told(0.9, 0.2)},
    }
    _, _, tuned, untuned, blind, *_ = which_method(tasks, FAMILIES, NAMES)
    assert tuned.told == (
        "IB on 1 of 2 tasks, clearly on Iris (IB); SPS within the intervals on Wine (SPS); "
        "EB nowhere."
    )
    for one in (untuned, blind):
        assert one.told == (
            "IB on 1 of 2 tasks, clearly on Iris (IB); SPS clearly on Wine (SPS); EB nowhere."
        )
        assert one.behind == "IB clearly on Iris (IB). SPS clearly on Wine (SPS)."
    other = {task: {**row, "ib": row["sps"], "sps": row["ib"]} for task, row in tasks.items()}
    again = which_method(other, FAMILIES, NAMES)[2]
    assert "SPS on 1 of 2 tasks, clearly on Iris (SPS); IB within the intervals on Wine" in (
        again.told
    )


def test_many_tasks_are_counted_and_named_behind():
    rows = {
        f"T{i}": {"eb": told(1.0, 0.5), "ib": told(0.5 if i < 3 else 0.95, 0.1)} for i in range(5)
    }
    first = said(rows)["With its rate chosen with care, the lowest loss"]
    assert first.told == "IB on 5 of 5 tasks, clearly on 3; EB nowhere."
    assert first.behind == (
        "IB clearly on T0 (IB), T1 (IB) and T2 (IB), and within the intervals on T3 (IB) and T4 "
        "(IB)."
    )


def test_where_any_method_beats_the_one_it_is_about_is_said_first_and_where_it_wins():
    tasks = {
        "Iris": {"eb": told(1.0, 0.5), "ib": told(2.0, 0.5), "ib_plus": told(1.9, 0.5)},
        "Wine": {"eb": told(1.0, 0.5), "ib": told(1.05, 0.5)},
        "Chorales": {"eb": told(1.0, 0.5), "ib": told(0.5, 0.5), "sps": told(0.6, 0.5)},
        "Lost": {"eb": told(1.0, 0.5), "ib": {**told(1.0, 1.0), "best_mean": Number(None)}},
    }
    first = which_method(tasks, FAMILIES, NAMES)[0]
    assert first == (
        "IB itself",
        "at its best rate another method ends lower on 2 of 3 tasks, clearly on Iris (EB); it is "
        "lowest of all on Chorales.",
        "Clearly on Iris (EB), and within the intervals on Wine (EB).",
    )
    (alone, *_) = which_method({"Chorales": tasks["Chorales"]}, FAMILIES, {})
    assert alone == ("ib itself", "lowest of all on Chorales.", "")
    steady = {"Wine": {"eb": told(1.0, 0.5), "ib": told(1.05, 0.1), "sps": told(1.2, 0.3)}}
    assert said(steady)["IB itself"].told.endswith(
        "; it is lowest nowhere; with any rate of the range it gives up least on Wine."
    )


def test_where_it_does_better_than_the_yardstick_is_said_whoever_else_wins():
    tasks = {
        "Songs": {"eb": told(1.0, 0.5), "ib": told(0.5, 0.1), "sps": told(0.1, 0.01)},
        "Iris": {"eb": told(1.0, 0.5), "ib": told(0.97, 0.48), "sps": told(0.1, 0.01)},
        "Wine": {"eb": told(1.0, 0.5), "ib": told(1.02, 0.3), "sps": told(0.1, 0.01)},
        "Apart": {"eb": told(1.0, 0.1), "sps": told(0.1, 0.01)},
    }
    found = said(tasks)["IB against EB"]
    assert found.told == (
        "at its best rate it ends lower on 2 of 3 tasks, clearly on Songs, and ends higher within "
        "the intervals on Wine; with any rate of the common range it gives up less on 3 of 3 "
        "tasks, clearly on Songs and Wine, and gives up more on none."
    )
    assert found.behind == (
        "Ends lower clearly on Songs, and within the intervals on Iris. Ends higher within the "
        "intervals on Wine. Gives up less clearly on Songs and Wine, and within the intervals on "
        "Iris."
    )
    assert "IB against EB" not in said({"Apart": tasks["Apart"]})


def test_of_very_many_tasks_wins_are_counted_and_ties_are_nobodys():
    tasks = {
        "A": {"eb": told(1.0, 0.5), "ib": told(0.5, 0.1), "ib_plus": told(0.4, 0.2)},
        "B": {"eb": told(1.0, 0.5), "ib": told(2.0, 0.6), "sps": told(0.9, 0.2, price=0.3)},
        "C": {"eb": told(1.0, 0.3), "ib": told(1.0, 0.4), "sps": told(1.0, 0.3)},
        "Alone": {"eb": told(1.0, 0.3)},
    }
    against, tuned, untuned, blind, price = counts_told(tasks, FAMILIES, NAMES, noun="table")
    assert against == (
        "IB against EB",
        "at its best rate it ends lower on 1 of 3 tables, and ends higher on 1; with any rate of "
        "the common range it gives up less on 1 of 3 tables, and gives up more on 2.",
        "Ends lower on A. Gives up less on A.",
    )
    assert tuned.told == "IB (2 methods) on 1 of 3, SPS on 1 and EB on 0."
    assert untuned.told == blind.told == "IB (2 methods) on 1 of 3, SPS on 1 and EB on 0."
    assert price.told.endswith(
        "IB 0 %, SPS 15 % and EB 0 %, the median over the 2 tables or more that have it."
    )
    whole = {name: {**tasks["A"], "sps": told(1.0, 0.5)} for name in "AB"}
    assert counts_told(whole, FAMILIES, NAMES)[-1].told.endswith(", the median over the tasks.")
    assert counts_told({"Alone": tasks["Alone"]}, FAMILIES, NAMES) == []
    assert counts_told({}, FAMILIES, NAMES) == []


def test_ranks_are_told_with_the_difference_below_which_they_say_nothing():
    ranks = {"eb": 2.9, "ib": 1.25, "sps": 1.85, "adam": 4.0}
    assert ranks_told(ranks, 0.7, "9 tasks", NAMES) == (
        "Mean rank over 9 tasks",
        "IB 1.2, SPS 1.9 and EB 2.9 come first of 4; 1 of the others cannot be told from the "
        "first.",
        "IB 1.2, SPS 1.9, EB 2.9 and adam 4. Ranks closer than 0.7 (the critical difference) "
        "cannot be told apart.",
    )
    assert ranks_told(ranks, 0.5, "9 tasks", {}).told.endswith("; all others can be told from it.")


def test_a_family_is_as_good_as_its_best_method_and_says_what_that_gives_up_and_costs():
    row = {
        "eb": told(1.0, 0.5, price=1.0, cost=1.0),
        "ib": told(2.0, 0.5, price=3.0, cost=1.25),
        "ib_plus": told(0.5, 0.1, price=0.0, cost=2.5),
    }
    _, _, tuned, *_, given_up, costs = which_method({"Iris": row}, FAMILIES, NAMES)
    assert tuned.told == "IB (2 methods) on 1 of 1 task, clearly on Iris (IB+); EB nowhere."
    assert "IB 0 % and EB 100 %" in given_up.told
    assert costs == ("A step costs, against EB's", "IB 1.2, IB+ 2.5 and EB 1.", "")
    unmeasured = {name: {**one, "step_cost": Number(None)} for name, one in row.items()}
    assert "not been measured" in which_method({"Iris": unmeasured}, FAMILIES, {})[-1].told


def test_one_family_or_no_numbers_decide_nothing():
    assert which_method({}, FAMILIES, {}) == []
    assert which_method({"Iris": {"ib": told(1.0, 1.0)}}, FAMILIES, {}) == []
    lost = {name: {**told(1.0, 1.0), "best_mean": Number(None)} for name in ("ib", "eb")}
    assert not any("the lowest loss" in asked for asked in said({"Iris": lost}))
