"""Faults in how a sweep is read: numbers, lists that people write; in verdicts on the paper."""

from tests.mutation.edit import Edit

READING = (
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

VERDICTS = (
    Edit(
        "a mean between the recorded seeds does not agree",
        "ib_core/reproduction",
        'how = near or ("range" if inside else "")',
        "how = near",
        ("test_a_mean_among_the_recorded_seeds_agrees_however_far_from_their_mean",),
    ),
    Edit(
        "exact ISGD need not be flat",
        "ib_core/reproduction",
        "all_hold([*best, spread <= FLAT])",
        "all_hold(best)",
        ("test_exact_isgd_must_be_below_every_seed_and_flat",),
    ),
    Edit(
        "IB above clipped EB is no exception",
        "ib_core/reproduction",
        "return False if number.low > EQUAL else True",
        "return False if number.high < -EQUAL else True",
        ("test_ib_must_stay_below_clipped_eb_except_on_piano",),
    ),
    Edit(
        "of seventeen experiments only one may be an exception",
        "ib_core/reproduction",
        "len(lost) + left <= spare",
        "len(lost) + left < spare",
        ("test_fifteen_of_seventeen_allows_two_exceptions",),
    ),
    Edit(
        "an interval that holds zero decides",
        "ib_core/reproduction",
        "return -1 if number.high < 0 else 1 if number.low > 0 else None",
        "return -1 if number.low < 0 else 1 if number.low > 0 else None",
        ("test_a_sign_is_known_where_the_interval_does_not_hold_zero",),
    ),
    Edit(
        "a claim of two halves is reproduced though one cannot be told",
        "ib_core/reproduction",
        "holds = all_hold((holds, later))",
        "holds = holds if later is None else all_hold((holds, later))",
        ("test_where_no_edge_lies_on_the_grid_which_breaks_later_stays_open",),
    ),
    Edit(
        "a loss may move ten times as far as rounding moves it",
        "ib_core/reproduction",
        "REACH = 3.0",
        "REACH = 10.0",
        ("test_only_what_rounding_explains_is_called_chaotic",),
    ),
    Edit(
        "a rounding that is not finite explains any movement",
        "ib_core/reproduction",
        "tuple(filter(math.isfinite, self._values(name)))",
        "self._values(name)",
        ("test_only_what_rounding_explains_is_called_chaotic",),
    ),
    Edit(
        "a loss that was not finite may come back unexplained",
        "ib_core/reproduction",
        "return len(finite) < len(values)",
        "return True",
        ("test_a_loss_that_was_not_finite_may_be_so_today_only_if_a_rounding_is",),
    ),
    Edit(
        "the lowest rate with clipping is called a higher one",
        "ib_core/reproduction",
        "lr > min(clipped.lrs)",
        "lr >= min(clipped.lrs)",
        ("test_a_claim_about_higher_rates_does_not_rest_on_the_lowest_with_clipping",),
    ),
    Edit(
        "what runs here is called what they ran though some losses differ",
        "ib_core/reproduction",
        "everything = len(held) == len(experiments) and",
        "everything = bool(held) and",
        ("test_what_runs_here_is_called_what_they_ran_only_where_all_losses_match",),
    ),
    Edit(
        "accuracies over different tables stand side by side",
        "ib_core/reproduction",
        "(found := accuracies(by_source[name], common))",
        "(found := accuracies(by_source[name]))",
        ("test_accuracies_are_compared_over_the_tables_that_all_have",),
    ),
)

PAGES: tuple[Edit, ...] = (
    Edit(
        "a task is in no rank for want of methods that it has",
        "dashboard/pages",
        "if m not in there or there[m][ranks.number].value is None]",
        "if m in there and there[m][ranks.number].value is not None]",
        ("test_a_task_that_is_in_no_rank_is_named_with_what_it_lacks",),
    ),
    Edit(
        "the Methods page puts SPS and NGN among Adam's kin",
        "dashboard/pages",
        '"SPS and NGN": ("sps", "ngn", "ngn_m", "momo"),',
        '"SPS and NGN": ("ngn", "ngn_m", "momo"),',
        ("test_every_method_of_the_catalogue_belongs_to_a_family",),
    ),
    Edit(
        "a lead is called clear although the intervals meet",
        "ib_core/metrics",
        "higher.low is not None and lower.high < higher.low",
        "higher.low is not None and lower.low < higher.low",
        ("test_the_family_that_wins_a_task_is_named_there_and_the_others_nowhere",),
    ),
    Edit(
        "where the yardstick is better is told as a win over it",
        "ib_core/metrics",
        "worse[_apart(other, own)].append(task)",
        "better[_apart(other, own)].append(task)",
        ("test_where_it_does_better_than_the_yardstick_is_said_whoever_else_wins",),
    ),
    Edit(
        "the theorem is looked for among studies that the paper's tag marks",
        "dashboard/pages",
        "ask(calls.studies(tag=TAG, limit=MOST_STUDIES))",
        'ask(calls.studies(tag="paper", limit=MOST_STUDIES))',
        ("test_the_theorem_is_drawn_from_the_newest_study_of_its_preset_that_has_ended",),
    ),
)

EDITS = (*READING, *VERDICTS, *PAGES)
