"""Faults at the door: routes, sessions, other sites; and in what starts and stops the service."""

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

EDITS = (*ROUTES, *WEB, *OPERATIONS)
