"""Faults on the pages: wrong marks, wrong words, wrong readings of what somebody typed."""

from tests.mutation.edit import Edit

LOOKS = (
    Edit(
        "EB has another method's colour",
        "dashboard",
        '"Explicit (EB)", "EB", "#D55E00"',
        '"Explicit (EB)", "EB", "#E69F00"',
        ("test_the_paper_s_methods_have_the_colours_of_the_design",),
    ),
    Edit(
        "clipped curves are the thick ones",
        "dashboard",
        "width=1.4 if clipped else 2.6",
        "width=2.6 if clipped else 1.4",
        ("test_clipped_curves_share_the_colour_with_a_thinner_line_and_an_open_marker",),
    ),
    Edit(
        "curves that look alike are not told apart",
        "dashboard/figures",
        "        seen[look] += 1\n    return styles",
        "    return styles",
        ("test_curves_that_would_look_alike_are_told_apart",),
    ),
    Edit(
        "a diverged seed looks like a completed one",
        "dashboard/figures",
        '("completed", "circle-open"), ("diverged", "x-thin-open")',
        '("completed", "x-thin-open"), ("diverged", "circle-open")',
        ("test_a_seed_that_diverged_is_a_cross_and_one_that_completed_a_ring",),
    ),
    Edit(
        "training and test loss are swapped",
        "dashboard/figures",
        '("train", "solid"), ("test", "dash")',
        '("train", "dash"), ("test", "solid")',
        ("test_training_is_solid_and_test_dashed_in_the_method_s_colour",),
    ),
)

PICTURES = (
    Edit(
        "seeds above the scale are in no place",
        "dashboard/figures",
        "and not scale.holds(seed.value)",
        "and scale.holds(seed.value)",
        ("test_every_seed_is_a_dot_or_counted_on_the_rail",),
    ),
    Edit(
        "a click on the rail opens the seeds that did not diverge",
        "dashboard/figures",
        'seed.trial_id for seed in entry.point.seeds if seed.outcome == "diverged"',
        'seed.trial_id for seed in entry.point.seeds if seed.outcome != "diverged"',
        ("test_a_click_on_the_rail_opens_the_seeds_it_counts",),
    ),
    Edit(
        "the strip shows the share that held",
        "dashboard/figures",
        "(point.diverged / max(point.n, 1),) * 2",
        "(1 - point.diverged / max(point.n, 1),) * 2",
        ("test_the_strip_shows_the_share_of_diverged_seeds",),
    ),
    Edit(
        "a rate's step ends at its neighbour",
        "dashboard/figures",
        "(left + right) / 2 for left, right",
        "right for left, right",
        ("test_a_rate_s_step_reaches_half_way_to_its_neighbours_in_log_rate",),
    ),
    Edit(
        "the best rate is the worst",
        "dashboard/figures",
        "sign = -1 if higher_is_better else 1",
        "sign = 1 if higher_is_better else -1",
        ("test_best_means_lowest_loss_or_highest_accuracy",),
    ),
    Edit(
        "everything is compared to clipped EB",
        "dashboard/figures",
        "key=lambda line: line.clip is not None, default",
        "key=lambda line: line.clip is None, default",
        ("test_the_curve_others_are_compared_to_is_eb_without_clipping",),
    ),
    Edit(
        "a reference above the scale is drawn on its edge",
        "dashboard/figures",
        "if not scale.low <= line.value <= scale.high:",
        "if False:",
        ("test_a_line_above_the_scale_is_told_not_drawn",),
    ),
    Edit(
        "exploded runs stretch the scale",
        "dashboard/figures",
        "if high <= low + STRETCH * span:",
        "if True:",
        ("test_the_scale_is_not_stretched_by_exploded_runs",),
    ),
    Edit(
        "a band reaches across what is not finite",
        "dashboard/figures",
        "if point.low is not None and point.high is not None:\n            stretch.append",
        "if True:\n            stretch.append",
        ("test_a_band_ends_where_no_seed_is_finite",),
    ),
    Edit(
        "lost pairs count for the wrong method",
        "dashboard/figures",
        "below += max(0, point.lower - sum(value < 0 for value in finite))",
        "below += max(0, point.higher - sum(value < 0 for value in finite))",
        ("test_a_pair_one_of_which_is_lost_counts_for_the_other",),
    ),
    Edit(
        "a difference is named the wrong way round",
        "dashboard/figures",
        "{_short(item.first_label)} − {_short(item.second_label)}",
        "{_short(item.second_label)} − {_short(item.first_label)}",
        ("test_the_legend_names_each_difference_once",),
    ),
    Edit(
        "a lost mean is the best in a small curve",
        "dashboard/figures",
        "share = 1.0 if point.mean is None",
        "share = 0.0 if point.mean is None",
        ("test_a_mean_that_is_no_number_is_drawn_at_the_top_not_left_out",),
    ),
    Edit(
        "finite seeds are counted as lost",
        "dashboard/figures",
        "{point.n - point.n_finite} of {point.n} seeds are not finite",
        "{point.n_finite} of {point.n} seeds are not finite",
        ("test_what_is_not_finite_is_said_on_hover",),
    ),
)

WORDS = (
    Edit(
        "'at least' reads 'at most'",
        "dashboard/components",
        'BOUND = {"above": "≥',
        'BOUND = {"above": "≤',
        ("test_a_number_the_grid_cuts_off_is_a_bound",),
    ),
    Edit(
        "yes is no",
        "dashboard/components",
        'return "yes" if metric.value else "no"',
        'return "no" if metric.value else "yes"',
        ("test_yes_is_yes",),
    ),
    Edit(
        "cancelled trials cannot be run again",
        "dashboard/components",
        'return progress.get("failed", 0) + progress.get("cancelled", 0)',
        'return progress.get("failed", 0)',
        ("test_what_failed_or_was_cancelled_can_be_run_again_and_nothing_else",),
    ),
    Edit(
        "running trials count as ended",
        "dashboard/components",
        'ENDED = ("completed", "diverged", "failed", "cancelled")',
        'ENDED = ("completed", "diverged", "failed", "cancelled", "running")',
        ("test_progress_counts_what_has_ended_and_names_every_other_state",),
    ),
    Edit(
        "who was locked out is said to be let in",
        "dashboard/components",
        '"locked out" if locked else "let in again"',
        '"let in again" if locked else "locked out"',
        ("test_who_is_locked_out_is_said_to_be_and_who_is_let_in_again_too",),
    ),
    Edit(
        "a slider's place is not its number",
        "dashboard/components",
        "return math.log10(inside) if self.log else inside",
        "return inside",
        ("test_a_logarithmic_slider_has_a_decade_per_equal_length",),
    ),
    Edit(
        "an address sets a control to what it cannot be",
        "dashboard/components",
        "if text is None or (self.choices and text not in self.choices):",
        "if text is None:",
        ("test_what_a_control_cannot_be_is_ignored",),
    ),
    Edit(
        "an improvement looks like a loss",
        "dashboard",
        "and math.isfinite(value) and value > 0 else text",
        "and math.isfinite(value) and value < 0 else text",
        ("test_a_difference_that_is_higher_bears_a_plus",),
    ),
)

FORMS = (
    Edit(
        "a number at an end that is left out is taken",
        "dashboard",
        "low = value > self.low if self.beyond else value >= self.low",
        "low = value >= self.low",
        ("test_a_text_is_its_number_or_a_sentence",),
    ),
    Edit(
        "a rate too small to exist is taken for zero",
        "dashboard",
        "if not math.isfinite(value) or vanished or not kind.accepts(value):",
        "if not math.isfinite(value) or not kind.accepts(value):",
        ("test_a_text_is_its_number_or_a_sentence",),
    ),
    Edit(
        "the highest number of a kind is refused",
        "dashboard",
        "return low and value <= self.high",
        "return low and value < self.high",
        ("test_a_text_is_its_number_or_a_sentence",),
    ),
    Edit(
        "the wrong one of many rates is named",
        "dashboard",
        'f"{index + 1}th"',
        'f"{index}th"',
        ("test_the_one_of_many_that_is_wrong_is_named",),
    ),
    Edit(
        "the eleventh rate breaks the page",
        "dashboard",
        "if index < len(ORDINALS)",
        "if index <= len(ORDINALS)",
        ("test_the_one_of_many_that_is_wrong_is_named",),
    ),
    Edit(
        "a grid's ends are swapped",
        "dashboard",
        'return {"from": low, "to": high, "count": number}',
        'return {"from": high, "to": low, "count": number}',
        ("test_rates_are_a_list_or_a_grid",),
    ),
    Edit(
        "a page's query overwrites its path",
        "dashboard",
        "{**query_of(search), **variables}",
        "{**variables, **query_of(search)}",
        ("test_a_path_part_cannot_be_overwritten_by_the_query",),
    ),
    Edit(
        "'No' cancels a sweep",
        "dashboard/pages/study",
        "if dash.ctx.triggered_id != ids.CONFIRM_YES or not pending:",
        "if not pending:",
        ("test_only_what_was_confirmed_is_cancelled",),
    ),
    Edit(
        "viewers are offered what they may not do",
        "dashboard",
        'return visitor.role != "viewer"',
        "return True",
        ("test_only_who_may_change_a_study_is_offered_to",),
    ),
)

EDITS = (*LOOKS, *PICTURES, *WORDS, *FORMS)
