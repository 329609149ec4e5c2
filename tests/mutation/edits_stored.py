"""Faults in what is kept and what is made of it: accounts, files, numbers, verdicts."""

from tests.mutation.edit import Edit

ACCOUNTS = (
    Edit(
        "one guess more than allowed",
        "backend/services",
        "if over < 0 or now - row.last_at",
        "if over <= 0 or now - row.last_at",
        ("test_guessing_one_account_is_refused_even_with_the_right_password_then",),
    ),
    Edit(
        "who guesses on waits no longer",
        "backend/services",
        "FIRST_WAIT_SECONDS * 2.0 ** min(over, 10)",
        "FIRST_WAIT_SECONDS",
        ("test_the_wait_ends_doubles_and_a_success_forgets_it",),
    ),
    Edit(
        "a household has 2^64 times as many guesses",
        "backend/services",
        "ipaddress.ip_network((int(found), 64)",
        "ipaddress.ip_network((int(found), 128)",
        ("test_an_ipv6_household_is_one_address",),
    ),
    Edit(
        "one's own right password forgives guesses at others",
        "backend/services",
        ".values(failures=LoginAttemptsRow.failures - 1)",
        ".values(failures=0)",
        ("test_one_s_own_right_password_does_not_forgive_guesses_at_others",),
    ),
    Edit(
        "guesses of yesterday count today",
        "backend/services",
        "failures=case((forgotten, 1), else_=LoginAttemptsRow.failures + 1)",
        "failures=LoginAttemptsRow.failures + 1",
        ("test_after_an_hour_guesses_are_forgotten",),
    ),
    Edit(
        "revoked tokens take up room for ever",
        "backend/services",
        "held = [one for one in list_tokens(session, user_id=user_id) if not one.revoked]",
        "held = list_tokens(session, user_id=user_id)",
        ("test_a_revoked_token_makes_room_for_another",),
    ),
    Edit(
        "one token more than allowed",
        "backend/services",
        "if len(held) >= MOST_TOKENS:",
        "if len(held) > MOST_TOKENS:",
        ("test_a_revoked_token_makes_room_for_another",),
    ),
    Edit(
        "tokens of who is locked out still work",
        "backend/services",
        "UserRow.disabled_at.is_(None),\n",
        "",
        ("test_a_token_ends_at_once",),
    ),
    Edit(
        "a token outlives the one it was made with",
        "backend/services",
        "return min((moment for moment in (wanted, ends) if moment), default=None)",
        "return max((moment for moment in (wanted, ends) if moment), default=None)",
        ("test_a_token_does_not_outlive_the_one_it_was_made_with",),
    ),
    Edit(
        "anybody revokes anybody's token",
        "backend/services",
        "TokenRow.revoked_at.is_(None), *own)",
        "TokenRow.revoked_at.is_(None))",
        ("test_other_people_s_tokens_cannot_be_revoked",),
    ),
    Edit(
        "an admin's token for writing may do everything",
        "backend/services",
        '"write": {"viewer": "viewer", "member": "member", "admin": "member"}',
        '"write": {"viewer": "viewer", "member": "member", "admin": "admin"}',
        ("test_a_scope_takes_rights_away_and_gives_none",),
    ),
    Edit(
        "logins never end",
        "backend/services",
        "(SessionRow.expires_at > clock(), UserRow.disabled_at.is_(None))",
        "(UserRow.disabled_at.is_(None),)",
        ("test_a_login_ends_at_once",),
    ),
    Edit(
        "the last admin who can log in is locked out",
        "backend/services",
        'UserRow.role == "admin", UserRow.disabled_at.is_(None))',
        'UserRow.role == "admin")',
        ("test_an_admin_who_is_locked_out_is_none",),
    ),
    Edit(
        "a new password leaves other logins open",
        "backend/services",
        "session.execute(others.where(SessionRow.id != (keep_session or 0)))",
        "del others",
        ("test_a_new_password_ends_the_other_logins_only",),
    ),
    Edit(
        "anybody deletes anybody's note",
        "backend/services",
        'by.check_owner(row.user_id, of="note")',
        "del row",
        ("test_a_note_is_its_author_s_and_outlives_the_account",),
    ),
    Edit(
        "anybody deletes anybody's view",
        "backend/services",
        "SavedViewRow.id == view_id, _view_of(user_id))",
        "SavedViewRow.id == view_id)",
        ("test_views_are_each_person_s_own",),
    ),
)

FILES = (
    Edit(
        "a spreadsheet runs what somebody typed",
        "backend/services",
        'return f"\'{value}"',
        "return value",
        ("test_no_cell_of_an_export_is_a_formula",),
    ),
    Edit(
        "imported runs diverge later than our own",
        "backend/services/importing",
        "EXPLODED = 5.0",
        "EXPLODED = 50.0",
        ("test_a_loss_five_times_its_start_has_diverged",),
    ),
    Edit(
        "a perfect accuracy makes percent of a file's fractions",
        "backend/services/importing",
        "any(float(value) > 1 for",
        "any(float(value) >= 1 for",
        ("test_an_accuracy_of_one_is_a_fraction_too",),
    ),
    Edit(
        "an apostrophe of somebody's own is lost",
        "backend/services/importing",
        'if text[:1] == "\'" and text[1:].startswith(FORMULA_STARTS) else text',
        'if text[:1] == "\'" else text',
        ("test_only_the_mark_of_our_own_exports_is_taken_off_a_text",),
    ),
    Edit(
        "a run without a test loss counts as diverged",
        "backend/services/importing",
        'lost = said == "completed" and all(',
        'lost = said == "completed" and any(',
        ("test_a_run_that_says_it_completed_needs_one_finite_loss_only",),
    ),
    Edit(
        "seed 0 becomes seed 1",
        "backend/services/importing",
        "return default if value is None else value",
        "return value or default",
        ("test_seed_0_is_a_seed",),
    ),
    Edit(
        "half a packed file is taken for the whole",
        "backend/services/importing",
        "if not member.eof:",
        "if False:",
        ("test_files_that_cannot_be_read_say_where",),
    ),
    Edit(
        "known runs are counted as new",
        "backend/services/importing",
        '"reused": address not in new}',
        '"reused": address in new}',
        ("test_a_sweep_says_how_many_of_its_runs_were_known_before",),
    ),
    Edit(
        "imported runs are trained here",
        "backend/services/importing",
        "if imported:",
        "if False:",
        ("test_imported_runs_cannot_be_trained_here",),
    ),
)

ANALYSIS = (
    Edit(
        "an accuracy is scored as if low were good",
        "backend/services",
        "not self.higher_is_better else 1.0 - value",
        "not self.higher_is_better else value",
        ("test_accuracies_are_drawn_as_they_are_and_scored_as_errors",),
    ),
    Edit(
        "an accuracy's band is upside down",
        "backend/services",
        "low, high = high, low",
        "pass",
        ("test_accuracies_are_drawn_as_they_are_and_scored_as_errors",),
    ),
    Edit(
        "runs that stopped early make a method look quick",
        "backend/services",
        'if took and state == "completed"}',
        "if took}",
        ("test_a_run_that_diverged_says_nothing_of_the_cost",),
    ),
    Edit(
        "the best accuracy is the lowest",
        "backend/services",
        "np.fmax if highest else np.fmin",
        "np.fmin if highest else np.fmax",
        ("test_the_best_may_be_the_highest",),
    ),
    Edit(
        "a series is compared with one of other options",
        "backend/services",
        "if name not in OF_A_METHOD}",
        "if name in OF_A_METHOD}",
        ("test_a_group_leaves_out_the_method_and_what_is_its_own",),
    ),
)

NUMBERS = (
    Edit(
        "every method has bootstrap draws of its own",
        "ib_core/metrics",
        "mean_curves(curve, seeds=seeds, weights=weights)",
        "mean_curves(curve, seeds=seeds, weights=draw_weights(len(seeds), resamples, len(curve.lrs)"
        " + ord(label[0])))",
        ("test_methods_are_resampled_with_the_same_seeds_so_that_luck_they_share_decides_nothing",),
    ),
    Edit(
        "intervals are too narrow by (n - 1)/n",
        "ib_core/metrics",
        "rng.multinomial(n_seeds - 1,",
        "rng.multinomial(n_seeds,",
        ("test_resampled_means_spread_like_the_standard_error",),
    ),
    Edit(
        "rates too low to learn count as diverged",
        "ib_core/metrics",
        "above = ~within & (np.arange(x.size) > start[:, None])",
        "above = ~within",
        ("test_slow_rates_below_the_best_one_do_not_count_as_diverged",),
    ),
    Edit(
        "headroom is upside down",
        "ib_core/metrics",
        "method.value / eb.value",
        "eb.value / method.value",
        ("test_headroom_of_bounds_is_a_bound",),
    ),
    Edit(
        "the first unstable rate is called stable",
        "ib_core/metrics",
        "np.maximum(first_unstable - 1, 0)",
        "np.minimum(first_unstable, last)",
        ("test_the_largest_stable_rate_stops_at_the_first_divergence",),
    ),
    Edit(
        "a lost run counts for the method that lost it",
        "ib_core/metrics",
        "(one is None) - (two is None)",
        "(two is None) - (one is None)",
        ("test_a_pair_that_is_not_finite_enters_no_mean_but_is_counted_and_listed",),
    ),
    Edit(
        "p may be smaller than so few seeds allow",
        "ib_core/metrics",
        "2.0 ** (1 - n)",
        "2.0**-n",
        ("test_the_smallest_possible_p",),
    ),
    Edit(
        "a method with a lost rate beats EB",
        "ib_core/metrics",
        "np.where(one_loses, 0.0, np.where(two_loses, 1.0, lower))",
        "np.where(one_loses, 1.0, np.where(two_loses, 0.0, lower))",
        ("test_better_than_compares_means_over_the_grid",),
    ),
    Edit(
        "the advice reaches beyond the robust range",
        "ib_core/metrics",
        "_rounded(low, digits, ROUND_CEILING)",
        "_rounded(low, digits, ROUND_FLOOR)",
        ("test_the_recommendation_never_leaves_the_range",),
    ),
    Edit(
        "the standard error divides by n, not n - 1",
        "ib_core/metrics",
        "np.sqrt(self.n_finite - 1)",
        "np.sqrt(self.n_finite)",
        ("test_the_std_band_is_the_population_one_and_the_se_band_the_samples",),
    ),
)

VERDICTS = (
    Edit(
        "a mean between the recorded seeds does not agree",
        "ib_core/reproduction",
        "inside or gap <= CELL_TOLERANCE",
        "gap <= CELL_TOLERANCE",
        ("test_a_mean_among_the_recorded_seeds_agrees_however_far_from_their_mean",),
    ),
    Edit(
        "exact ISGD need not be flat",
        "ib_core/reproduction",
        "len(best) == len(common) and spread <= FLAT",
        "len(best) == len(common)",
        ("test_exact_isgd_must_be_best_and_flat",),
    ),
    Edit(
        "IB above clipped EB is no exception",
        "ib_core/reproduction",
        "if ib[lr] > eb[lr] * (1 + EQUAL)]",
        "if eb[lr] > ib[lr] * (1 + EQUAL)]",
        ("test_ib_must_stay_below_clipped_eb_except_on_piano",),
    ),
    Edit(
        "of seventeen experiments only one may be an exception",
        "ib_core/reproduction",
        'len(lost) <= numbers["of"] - numbers["count"]',
        'len(lost) < numbers["of"] - numbers["count"]',
        ("test_fifteen_of_seventeen_allows_two_exceptions",),
    ),
)

EDITS = (*ACCOUNTS, *FILES, *ANALYSIS, *NUMBERS, *VERDICTS)
