"""Faults in how a sweep is read: the numbers and lists that people write."""

from tests.mutation.edit import Edit

EDITS = (
    Edit(
        "the one seed 7 becomes the seeds 1 to 7 on the command line",
        "ib_core/sweep",
        'alone = "," if name == "seeds" and len(value) == 1 else ""',
        'alone = ""',
        ("test_a_canonical_value_reads_well_where_it_is_typed",),
    ),
    Edit(
        "another task is trained under a preset's name",
        "ib_core/sweep",
        "    _check_preset(found)\n",
        "",
        ("test_a_task_beside_a_preset_is_refused_at_every_door",),
    ),
    Edit(
        "a typed number is refused although the form shows it",
        "ib_core/sweep",
        "if typed and isinstance(value, str):\n            return read_number",
        "if False:\n            return read_number",
        ("test_all_doors_ask_for_the_same_trials",),
    ),
    Edit(
        "rates decay too slowly to converge",
        "ib_core/sweep",
        '"The decay’s power", 0.5, 1.0, beyond=True)',
        '"The decay’s power", 0.5, 1.0)',
        ("test_what_cannot_be_read_is_one_sentence_with_its_field",),
    ),
    Edit(
        "true is a number",
        "ib_core",
        "isinstance(value, int | float) and not isinstance(value, bool)\n    if not number",
        "isinstance(value, int | float)\n    if not number",
        ("test_what_cannot_be_read_is_one_sentence_with_its_field",),
    ),
    Edit(
        "a number at an end that is left out is taken",
        "ib_core",
        "low = value > self.low if self.beyond else value >= self.low",
        "low = value >= self.low",
        ("test_a_text_is_its_number_or_a_sentence",),
    ),
    Edit(
        "a rate too small to exist is taken for zero",
        "ib_core",
        "if not math.isfinite(value) or vanished or not kind.accepts(value):",
        "if not math.isfinite(value) or not kind.accepts(value):",
        ("test_a_text_is_its_number_or_a_sentence",),
    ),
    Edit(
        "the highest number of a kind is refused",
        "ib_core",
        "return low and value <= self.high",
        "return low and value < self.high",
        ("test_a_text_is_its_number_or_a_sentence",),
    ),
    Edit(
        "the wrong one of many rates is named",
        "ib_core",
        'f"{index + 1}th"',
        'f"{index}th"',
        ("test_the_one_of_many_that_is_wrong_is_named",),
    ),
    Edit(
        "the eleventh rate breaks the page",
        "ib_core",
        "if index < len(ORDINALS)",
        "if index <= len(ORDINALS)",
        ("test_the_one_of_many_that_is_wrong_is_named",),
    ),
    Edit(
        "a grid's ends are swapped",
        "ib_core",
        'return {"from": low, "to": high, "count": number}',
        'return {"from": high, "to": low, "count": number}',
        ("test_rates_are_a_list_or_a_grid",),
    ),
)
