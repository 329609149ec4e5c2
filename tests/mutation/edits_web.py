"""Faults at the door and on the pages: rights, other sites, wrong marks, wrong words."""

from tests.mutation.edit import Edit

ROUTES = (
    Edit(
        "anybody cancels anybody's sweep",
        "backend/routes",
        "    caller.check_owner(owner_id)\n",
        "    del owner_id\n",
        ("test_a_route_lets_in_whom_it_should[POST /api/sweeps/{sweep_id}/cancel]",),
    ),
    Edit(
        "everybody reads who did what",
        "backend/routes",
        "        caller.check_admin()\n",
        "        del caller\n",
        ("test_a_route_lets_in_whom_it_should[GET /api/audit]",),
    ),
    Edit(
        "a token for writing makes further tokens",
        "backend/routes",
        'if caller.token_id is not None and caller.scope != "admin":',
        'if caller.token_id is not None and caller.scope == "read":',
        ("test_only_a_login_or_an_admin_s_token_makes_tokens",),
    ),
    Edit(
        "a member revokes other people's tokens",
        "backend/routes",
        "user_id=None if caller.is_admin else _account(caller)",
        "user_id=None",
        ("test_a_route_lets_in_whom_it_should[DELETE /api/tokens/{token_id}]",),
    ),
    Edit(
        "a token changes its owner's password",
        "backend/routes",
        "if caller.session_id is None or caller.user_id is None:",
        "if caller.user_id is None:",
        ("test_a_route_lets_in_whom_it_should[POST /api/auth/password]",),
    ),
)

WEB = (
    Edit(
        "whatever begins like an open path is open",
        "backend/web",
        'if scope["path"] in OPEN:',
        'if scope["path"].startswith(tuple(OPEN)):',
        ("test_a_path_that_looks_like_an_open_one_is_not",),
    ),
    Edit(
        "a browser's write needs no proof",
        "backend/web",
        "            self._refuse_forged(headers, key)\n",
        "            del key\n",
        ("test_a_browser_s_write_needs_proof_that_it_is_ours",),
    ),
    Edit(
        "a neighbouring site writes with one's cookie",
        "backend/web",
        'own = site in ("same-origin", "none")',
        'own = site != "cross-site"',
        ("test_a_browser_s_write_needs_proof_that_it_is_ours",),
    ),
    Edit(
        "without accounts, neighbouring sites may write",
        "backend/web",
        'site in ("cross-site", "same-site") or (',
        'site == "cross-site" or (',
        ("test_writes_of_other_sites_are_refused",),
    ),
    Edit(
        "a name that ends like ours is ours",
        "backend/web",
        'name.endswith(".localhost")',
        'name.endswith("localhost")',
        ("test_other_names_are_not",),
    ),
    Edit(
        "a login leads to another server",
        "backend/web",
        'text.isprintable() and "\\\\" not in text and',
        "text.isprintable() and",
        ("test_no_wish_leads_elsewhere",),
    ),
    Edit(
        "a body may be larger than it says",
        "backend/web",
        "if self._size > self._most:",
        "if False:",
        ("test_a_content_length_that_lies_does_not_help",),
    ),
    Edit(
        "scripts read the session's cookie",
        "backend/web",
        "httponly=name == SESSION",
        "httponly=False",
        ("test_the_cookie_is_out_of_reach_of_scripts_and_other_sites",),
    ),
    Edit(
        "an account's closed streams still count",
        "backend/web",
        "self._listening -= Counter([caller.user_id])",
        "pass",
        ("test_an_account_has_so_many_streams_and_gets_one_back_for_each_it_closes",),
    ),
    Edit(
        "an old answer is shown for a new version",
        "backend/web",
        "if kept != version:",
        "if not answer:",
        ("test_a_new_version_takes_the_place_of_the_old_one",),
    ),
)

OPERATIONS = (
    Edit(
        "a backup replaces an older one",
        "backend",
        "if target.exists():",
        "if False:",
        ("test_backup_does_not_replace_a_file",),
    ),
    Edit(
        "crashes weeks apart add up",
        "backend",
        "self._crashes = 1 if now - self._started > STEADY_SECONDS else self._crashes + 1",
        "self._crashes = self._crashes + 1",
        ("test_crashes_far_apart_do_not_add_up",),
    ),
    Edit(
        "a full broker forgets messages",
        "backend",
        '"noeviction"',
        '"allkeys-lru"',
        ("test_a_full_broker_refuses_instead_of_forgetting",),
    ),
    Edit(
        "without accounts everybody on the network is let in",
        "backend",
        "if self.host not in LOOPBACK and not self.auth:",
        "if False:",
        ("test_only_loopback_may_be_open_to_everybody",),
    ),
)

LOOKS = (
    Edit(
        "EB has another method's colour",
        "ib_core/methods",
        'Look("#D55E00", "dot", "diamond"',
        'Look("#E69F00", "dot", "diamond"',
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
        "variant = seen[look] = seen.get(look, -1) + 1",
        "variant = seen[look] = 0",
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
        "on a published page a diverged trial looks completed",
        "backend/services",
        'one.trial_id, int(one.outcome == "diverged")]',
        "one.trial_id, 0]",
        ("test_a_diverged_trial_with_a_finite_loss_is_not_taken_for_a_completed_one",),
    ),
    Edit(
        "0,5 typed for an option of one's own becomes 0 and 5",
        "dashboard/pages",
        "found[name] = read_numbers(typed, kind)",
        "found[name] = chosen_in(typed)",
        ("test_what_an_option_does_not_take_is_refused_at_its_field",),
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
        "losses' lines are drawn into a picture of times",
        "dashboard/figures",
        '    if picture.metric == "seconds":\n        return []',
        '    if picture.metric == "none":\n        return []',
        ("test_a_picture_of_times_has_no_line_of_losses",),
    ),
    Edit(
        "EB's best accuracy is its worst",
        "dashboard/figures",
        "upwards = picture.upwards\n    eb = eb_curve(series)",
        "upwards = False\n    eb = eb_curve(series)",
        ("test_the_best_accuracy_is_the_highest_in_line_and_words",),
    ),
    Edit(
        "who cannot see the picture hears of the worst accuracy",
        "dashboard/figures",
        "upwards = picture.upwards\n    best = [",
        "upwards = False\n    best = [",
        ("test_the_best_accuracy_is_the_highest_in_line_and_words",),
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
        "first, second = _short(item.first_label), _short(item.second_label)",
        "second, first = _short(item.first_label), _short(item.second_label)",
        ("test_the_legend_names_each_difference_once",),
    ),
    Edit(
        "a lost mean is the best in a small curve",
        "dashboard/figures",
        "    if mean is None or mean > high:\n        return 1.0",
        "    if mean is None or mean > high:\n        return 0.0",
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
        "ib_core/metrics",
        '_BOUND: dict[Censored, str] = {"none": "", "above": "at least ',
        '_BOUND: dict[Censored, str] = {"none": "", "above": "at most ',
        ("test_a_number_is_written_with_its_interval",),
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
        "narrowing a gap tests it instead",
        "dashboard/pages/study",
        'narrow = pressed["kind"] == "narrow"',
        "narrow = False",
        ("test_each_button_of_a_gap_submits_what_it_says",),
    ),
    Edit(
        "viewers are offered what they may not do",
        "dashboard",
        'return visitor.role != "viewer"',
        "return True",
        ("test_only_who_may_change_a_study_is_offered_to",),
    ),
)

EDITS = (*ROUTES, *WEB, *OPERATIONS, *LOOKS, *PICTURES, *WORDS, *FORMS)
