"""Faults in the numbers made of losses, and in the verdicts made of numbers."""

from tests.mutation.edit import Edit

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

EDITS = (*NUMBERS, *VERDICTS)
