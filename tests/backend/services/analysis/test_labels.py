"""Labels say what tells series apart, and no more."""

import time
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from backend.services.analysis import Key, labels, series_order, varied
from backend.services.analysis.series import (
    METHOD_DEPENDENT,
    MOST_VARIED,
    baselines,
    canonical,
    series_id,
    told,
)
from ib_core.methods import OF_EVERY_METHOD, split_name


def key(method: str = "eb", **changes: Any) -> Key:
    options = canonical(changes.pop("options", {}))
    given = {
        "study_id": 1,
        "task": "digits_mlp",
        "profile": "text",
        "batch_rule": "own" if method == "ib" else None,
        "activation": "arctan",
        "clip": None,
        "mu": 0.0,
        "epochs": 5,
        "batch_size": 50,
        "imported": False,
        "engine_version": "1",
        "data_hash": "a" * 64,
    }
    return Key(method=method, options=options, **(given | changes))


def test_methods_alone_need_no_more_words() -> None:
    assert labels([key("eb"), key("ib")]) == ["eb", "ib"]


def test_a_rule_is_named_only_where_rules_differ() -> None:
    found = labels([key("eb"), key("ib"), key("ib", batch_rule="share")])
    assert found == ["eb", "ib, own", "ib, share"]


def test_versions_of_one_task_are_told_apart() -> None:
    found = labels([key(options={"code": "aaaa0000" * 2}), key(options={"code": "bbbb0000" * 2})])
    assert found == ["eb, version aaaa0000", "eb, version bbbb0000"]
    assert labels(
        [key(options={"code": "aaaa0000" * 2}), key("ib", options={"code": "aaaa0000" * 2})]
    ) == [
        "eb",
        "ib",
    ]


def test_what_belongs_to_one_method_is_not_a_difference() -> None:
    isgd = key("isgd", options={"isgd_form": "text", "inner_steps": 100})
    assert labels([key("eb"), isgd]) == ["eb", "isgd"]


def test_every_other_difference_is_told() -> None:
    found = labels([key(), key(clip=1.0), key(task="iris"), key(options={"width": 9})])
    assert found == [
        "eb, digits_mlp, no clip",
        "eb, digits_mlp, clip 1",
        "eb, iris, no clip",
        "eb, digits_mlp, no clip, width 9",
    ]


def test_engines_and_data_are_told_apart() -> None:
    assert labels([key(), key(engine_version="2")]) == ["eb, engine 1", "eb, engine 2"]
    assert labels([key(), key(data_hash="b" * 64)]) == ["eb, data aaaaaa", "eb, data bbbbbb"]
    assert labels([key(), key(task="iris", data_hash="b")]) == ["eb, digits_mlp", "eb, iris"]


def test_a_group_leaves_out_the_method_and_what_is_its_own() -> None:
    isgd = key("isgd", options={"isgd_form": "text", "inner_steps": 100})
    assert key("eb").group == key("ib").group == isgd.group
    assert key("eb").group != key("ib", clip=1.0).group
    assert key("eb").group != key("ib", options={"width": 3}).group


def test_options_that_are_not_set_do_not_matter() -> None:
    assert canonical({"width": None, "restart": False}) == canonical({})
    assert series_id(key()) == series_id(key(options={"width": None}))


def test_numbers_are_in_the_order_of_numbers() -> None:
    widths = [key(options={"width": width}) for width in (128, 8, 32)]
    found = labels(sorted([*widths, key()], key=series_order))
    assert found == ["eb", "eb, width 8", "eb, width 32", "eb, width 128"]
    engines = [key(engine_version=version) for version in ("10", "9")]
    assert [one.engine_version for one in sorted(engines, key=series_order)] == ["9", "10"]


def test_options_that_are_words_have_an_order_too() -> None:
    mixed = [key(options={"decay": value}) for value in ("cosine", 0.5, None)]
    assert [one.settings for one in sorted(mixed, key=series_order)] == [
        {},
        {"decay": "cosine"},
        {"decay": 0.5},
    ]


def test_settings_are_what_varies_as_data() -> None:
    keys = [
        key(method, options={"width": width}, batch_size=size)
        for method, width, size in [("eb", 8, 50), ("ib", 8, 50), ("ib", 32, 50), ("ib", 32, 10)]
    ]
    assert varied(keys) == [
        {"batch_size": 50, "width": 8},
        {"batch_size": 50, "width": 8},
        {"batch_size": 50, "width": 32},
        {"batch_size": 10, "width": 32},
    ]
    assert varied(keys[:2]) == [{}, {}]
    assert varied([key(), key(clip=1.0)]) == [{"clip": None}, {"clip": 1.0}]
    decays = [key(), key(options={"decay": {"tau": 100.0, "power": 0.75}})]
    assert varied(decays) == [{"decay": None}, {"decay": "100:0.75"}]


def test_what_a_methods_name_says_is_a_setting_too() -> None:
    found = sorted(map(key, ["eb(warmup=200)", "ib", "eb(warmup=50)", "eb"]), key=series_order)
    assert labels(found) == ["eb, warmup 0", "eb, warmup 50", "eb, warmup 200", "ib, warmup 0"]
    assert [one["warmup"] for one in varied(found)] == [0, 50, 200, 0]
    adam = "torch.optim.AdamW"
    decays = [key("eb"), key(adam), key(f"{adam}(weight_decay=0.1)")]
    assert varied(decays) == [
        {"weight_decay": None},
        {"weight_decay": 0.01},
        {"weight_decay": 0.1},
    ]
    # What one method alone has is no difference.
    assert labels([decays[0], decays[2]]) == ["eb", adam]


def test_the_baseline_has_the_same_schedule() -> None:
    keys = [key(name) for name in ("eb", "ib", "eb(warmup=50)", "ib(warmup=50)", "ib(warmup=9)")]
    eb, ib, slow, slow_ib, other = keys
    assert baselines(keys) == {eb: eb, ib: eb, slow: eb, slow_ib: slow, other: eb}


def test_what_is_left_unsaid_stands_where_its_default_belongs() -> None:
    """0.9 goes unsaid and comes behind 0.5; a choice is listed as its task lists it."""
    fast, slow = key("momo"), key("momo", options={"momentum": 0.5})
    assert varied([fast, slow]) == [{"momentum": 0.9}, {"momentum": 0.5}]
    assert sorted([fast, slow], key=series_order) == [slow, fast]
    norms = [key(task="digits_wide", options={"norm": one}) for one in ("batch", "layer")]
    none = key(task="digits_wide")
    assert sorted([*norms, none], key=series_order) == [none, norms[1], norms[0]]


def slowly_differing(flat: list[dict[str, Any]], said: set[str]) -> list[str]:
    """Return in which settings series differ, one setting and one series after the other."""
    found = []
    for name in dict.fromkeys(name for fields in flat for name in fields if name != "method"):
        values = {repr(fields.get(name)) for fields in flat}
        if name == "data_hash":
            pairs = {(fields["task"], fields.get(name)) for fields in flat}
            differ = len(pairs) > len({fields["task"] for fields in flat})
        elif name in said and name.removeprefix("options.") not in OF_EVERY_METHOD:
            own = {(fields["method"], repr(fields.get(name))) for fields in flat}
            differ = len(own) > len({fields["method"] for fields in flat})
        else:
            differ = len(values - {"None"} if name in METHOD_DEPENDENT else values) > 1
        found += [name] * differ
    return found


keys = st.builds(
    key,
    st.sampled_from(["eb", "ib", "eb(warmup=3)", "mine(a=1)", "mine(a=2,b=1)", "mine", "momentum"]),
    task=st.sampled_from(["digits_mlp", "elsewhere"]),
    clip=st.sampled_from([None, 1.0]),
    data_hash=st.sampled_from(["a" * 64, "b" * 64]),
    options=st.dictionaries(
        st.sampled_from(["width", "momentum", "isgd_form", "x", "y"]),
        st.sampled_from([1, 0.9, "z", True]),
    ),
)


@given(st.lists(keys, min_size=1, max_size=6, unique=True))
def test_what_differs_is_what_differs_setting_by_setting(some: list[Key]) -> None:
    flat, differing = told(some, {})
    said = {f"options.{name}" for one in some for name in split_name(one.method)[1]}
    assert list(differing) == slowly_differing(flat, said)


def test_runs_with_names_of_their_own_are_told_apart_at_once() -> None:
    many = [key(options={f"name{n}": n, "width": n}) for n in range(3000)]
    began = time.process_time()
    found = labels(many)
    assert found[7] == "eb, width 7, name7 7"
    assert len(set(found)) == len(many)
    names = {name for settings in varied(many) for name in settings}
    assert len(names) == MOST_VARIED
    assert time.process_time() - began < 5  # setting by setting and series by series: minutes
