"""Faults in the mathematics of a step, in what it is fed with, and in the training loop."""

from tests.mutation.edit import Edit

UPDATES = (
    Edit(
        "a sleeping relu is woken although the step does not pay",
        "ib_core/updates",
        "torch.addcmul(s, x, k, value=-0.5)",
        "torch.addcmul(s, x, k, value=-0.25)",
        (
            "test_a_relu_that_sleeps_is_woken_if_the_whole_step_pays",
            "test_a_kernel_lands_where_its_formula_does_in_every_layout",
        ),
    ),
    Edit(
        "a leaky relu takes the worse of its two sides",
        "ib_core/updates",
        "value=-(1 + NEGATIVE_SLOPE) / 2",
        "value=-(1 - NEGATIVE_SLOPE) / 2",
        ("test_a_leaky_relu_is_woken_a_little_sooner_because_its_sleep_costs_something",),
    ),
    Edit(
        "a hardtanh comes down from its plateau too early",
        "ib_core/updates",
        ".mul_(k).sub_(s).add_(shrink)",
        ".mul_(k).sub_(s)",
        ("test_a_hardtanh_step_comes_down_from_the_plateau_only_if_it_pays",),
    ),
    Edit(
        "an arctan node lands on the far root",
        "ib_core/updates",
        "alpha=2 + 16 * limits.eps",
        "alpha=-2 - 16 * limits.eps",
        ("test_the_root_nearest_zero_is_found_for_heavy_tailed_nodes_at_any_rate",),
    ),
    Edit(
        "a smoothstep leaves its plateau at the wrong place",
        "ib_core/updates",
        "mul_(-2.25)",
        "mul_(-2.0)",
        ("test_a_smoothstep_comes_down_from_its_plateau_only_if_it_pays",),
    ),
    Edit(
        "rows of a summed loss are multiplied once more",
        "ib_core/updates",
        'if batch_rule == "own" and reduction == "mean" else 1.0',
        'if batch_rule == "own" else 1.0',
        ("test_every_row_of_a_summed_loss_solves_its_own_problem_too",),
    ),
    Edit(
        "the output layer's targets are not shrunk with the ridge",
        "ib_core/updates",
        "torch.mul(s - shrink * y, factor)",
        "torch.mul(s - y, factor)",
        ("test_the_squared_error_s_alpha_makes_the_gradient_of_its_problem_vanish",),
    ),
    Edit(
        "a smoothed loss is solved as if it were a plain one",
        "ib_core/updates",
        "(off > 0.01).any()",
        "(off > 1.01).any()",
        ("test_weighted_smoothed_and_scaled_losses_are_refused_by_an_implicit_output",),
    ),
)

LAYERS = (
    Edit(
        "the bias's one is left out of |z|^2",
        "ib_core/layers",
        "squared.add_(1.0) if bias else squared",
        "squared",
        ("test_own_averages_and_share_sums_a_loop_over_samples",),
    ),
    Edit(
        "a recurrent layer records the state after, not before",
        "ib_core/layers",
        "torch.cat([torch.zeros_like(h[:1]), h[:-1]])",
        "h",
        ("test_its_record_holds_every_time_step_with_what_it_saw",),
    ),
    Edit(
        "a frozen layer moves",
        "ib_core/layers",
        "return self.implicit and self.weight.requires_grad",
        "return self.implicit",
        ("test_a_frozen_layer_stays_and_lets_gradients_through",),
    ),
    Edit(
        "a frozen bias moves",
        "ib_core/layers",
        "return self.bias is not None and self.bias.requires_grad",
        "return self.bias is not None",
        ("test_a_frozen_bias_stays_and_is_no_part_of_the_problem",),
    ),
    Edit(
        "a second backward pass replaces the first",
        "ib_core/layers",
        "self.b = self.b + b",
        "self.b = b",
        ("test_a_second_backward_pass_through_one_graph_adds_to_its_record",),
    ),
    Edit(
        "what was changed in place is solved from",
        "ib_core/layers",
        "[part._version for part in seen] != versions",
        "len(seen) != len(versions)",
        ("test_what_was_changed_in_place_is_refused_and_never_solved_from",),
    ),
)

METHODS = (
    Edit(
        "who stays in a stack goes on with a neighbour's moments",
        "ib_core/methods",
        "(kept < run.stop)] - run.start",
        "(kept < run.stop)] * 0",
        ("test_who_stays_goes_on_with_its_own_moments_when_the_first_of_its_kind_leaves",),
    ),
    Edit(
        "every layer is solved under the loss",
        "ib_core/methods",
        "output and layer is self.layers[-1] and",
        "output and",
        ("test_only_the_last_layer_is_solved_under_the_loss_however_linear_the_others_are",),
    ),
    Edit(
        "every linear layer is solved under the loss",
        "ib_core/methods",
        "output and layer is self.layers[-1] and",
        'output and layer.activation.name == "linear" and',
        ("test_only_the_last_layer_is_solved_under_the_loss_however_linear_the_others_are",),
    ),
    Edit(
        "the level set is half as large",
        "ib_core/methods",
        "return 2 * self.loss_at_zero / member.mu",
        "return self.loss_at_zero / member.mu",
        ("test_the_level_set_ends_at_twice_the_loss_at_zero_over_mu",),
    ),
    Edit(
        "momentum is damped",
        "ib_core/methods",
        "mul_(self.momentum).add_(grad)",
        "mul_(self.momentum).add_(grad * (1 - self.momentum))",
        ("test_explicit_methods_are_torchs_own",),
    ),
    Edit(
        "Adam's bias correction is one step ahead",
        "ib_core/methods",
        "lr / (1 - 0.9**self.steps)",
        "lr / (1 - 0.9 ** (self.steps + 1))",
        ("test_explicit_methods_are_torchs_own",),
    ),
    Edit(
        "clipping makes short steps longer",
        "ib_core/methods",
        ".clamp(max=1.0).unsqueeze(1)",
        ".unsqueeze(1)",
        ("test_a_clip_never_makes_a_step_longer",),
    ),
    Edit(
        "clipping makes short steps of anybody's own model longer",
        "ib_core",
        "(norm + 1e-6)).clamp(max=1)",
        "(norm + 1e-6))",
        ("test_a_step_shorter_than_the_clip_is_left_as_it_is",),
    ),
    Edit(
        "exact ISGD's two forms are swapped",
        "ib_core/methods",
        "torch.where(authors, 1.0, 1.0 / lr)",
        "torch.where(authors, 1.0 / lr, 1.0)",
        ("test_the_text_form_converges_to_the_closed_form_proximal_step",),
    ),
    Edit(
        "implicit layers shrink like explicit ones under a ridge",
        "ib_core/methods",
        "mu / (1 + lr * mu), mu).unsqueeze(1)",
        "mu, mu).unsqueeze(1)",
        ("test_an_implicit_step_of_the_ridge_alone_shrinks_by_one_over_one_plus_rate",),
    ),
)

TASKS = (
    Edit(
        "the last row of every batch is not trained on",
        "ib_core/tasks",
        "(step + 1) * self.recipe.batch_size)",
        "(step + 1) * self.recipe.batch_size - 1)",
        ("test_an_epoch_feeds_every_row_once_in_the_seed_s_own_order",),
    ),
    Edit(
        "a row of NaN counts as a right answer",
        "ib_core/tasks",
        " & torch.isfinite(best.values)",
        "",
        ("test_a_row_of_nan_is_never_a_right_answer",),
    ),
    Edit(
        "music is learnt from the very frame that is to be told",
        "ib_core/tasks",
        "x, y = self._piece[:-1], self._piece[1:]",
        "x, y = self._piece[:-1], self._piece[:-1]",
        ("test_a_piece_is_learnt_by_telling_its_next_frame",),
    ),
    Edit(
        "initial weights are drawn too wide",
        "ib_core/tasks",
        "math.sqrt(6.0 / (fan_in + fan_out))",
        "math.sqrt(6.0 / fan_in)",
        ("test_glorot_bounds_and_zero_biases_in_the_text_profile",),
    ),
    Edit(
        "dropout is not made up for",
        "ib_core/tasks",
        "torch.float32) * 2.0",
        "torch.float32) * 1.0",
        ("test_dropout_keeps_half_of_the_units_and_doubles_them",),
    ),
    Edit(
        "test numbers are taken on the training set",
        "ib_core/tasks",
        "self._measure(model, self.test)\n",
        "self._measure(model, self.train)\n",
        ("test_test_losses_and_accuracies_are_those_of_the_test_rows",),
    ),
)

SWEEP = (
    Edit(
        "a loss that explodes step by step counts as completed",
        "ib_core/sweep",
        "EXPLODED * self.curves[index][0].train_loss",
        "EXPLODED * self.curves[index][-1].train_loss",
        ("test_an_exploded_but_finite_member_trains_to_its_end_and_keeps_its_losses",),
    ),
    Edit(
        "every trial is charged with the whole shard's time",
        "ib_core/sweep",
        "(now - self._clock) / len(self.alive)",
        "now - self._clock",
        ("test_the_members_of_a_stack_share_its_time",),
    ),
    Edit(
        "the layer nearest the input is blamed",
        "ib_core/sweep",
        "_layer(bad_gradients[-1])",
        "_layer(bad_gradients[0])",
        ("test_the_layer_nearest_the_output_is_named_where_gradients_broke",),
    ),
    Edit(
        "trials of different lengths are trained as one",
        "ib_core/sweep",
        "        trial.epochs,\n        trial.batch_size,\n        trial.options.width,",
        "        trial.batch_size,\n        trial.options.width,",
        ("test_what_shapes_the_program_keeps_trials_apart",),
    ),
    Edit(
        "a grid lacks its last inner rate",
        "ib_core/sweep",
        "for i in range(1, count - 1))",
        "for i in range(1, count - 2))",
        ("test_a_log_spaced_grid_holds_its_ends_and_reads_well",),
    ),
    Edit(
        "results of other data share an address",
        "ib_core/sweep",
        '"data": data_hash, "trial"',
        '"data": "", "trial"',
        ("test_whatever_decides_a_result_changes_its_address",),
    ),
    Edit(
        "EB is trained once for each batch rule",
        "ib_core/sweep",
        "self.batch_rule if METHODS[method].solves_rows else None",
        "self.batch_rule",
        ("test_settings_a_method_ignores_do_not_change_its_address",),
    ),
    Edit(
        "the profiles' batch rules are swapped",
        "ib_core/sweep",
        '("own" if profile == "text" else "share")',
        '("share" if profile == "text" else "own")',
        ("test_every_profile_has_the_batch_rule_of_its_experiments",),
    ),
    Edit(
        "five seeds are 0 to 4",
        "ib_core/sweep",
        "tuple(range(1, count + 1))",
        "tuple(range(count))",
        ("test_a_number_of_seeds_means_one_to_that_number",),
    ),
)

EDITS = (*UPDATES, *LAYERS, *METHODS, *TASKS, *SWEEP)
