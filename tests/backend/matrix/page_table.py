"""Every page and every callback, and who may do what with it."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from backend.db import transaction
from backend.services import trials
from dashboard import ids as shared
from dashboard.ids import (
    Account,
    Admin,
    Bundle,
    Discussion,
    History,
    NewSweep,
    Paper,
    Study,
    Trial,
    Views,
)
from ib_core.sweep import Options
from tests import factories
from tests.backend.accounts import PASSWORD
from tests.backend.matrix.world import KNOWN, World

OWNERS = ("owner", "admin")
WRITERS = ("other", "owner", "admin")
PEOPLE = ("viewer", "other", "owner", "admin")
ADMINS = ("admin",)

#: Every page's address, and who sees more than a refusal there.
PAGES: dict[str, tuple[str, ...]] = {
    "/": KNOWN,
    "/history": KNOWN,
    "/new": KNOWN,
    "/studies/<study_id>": KNOWN,
    "/trials/<trial_id>": KNOWN,
    "/compare": KNOWN,
    "/paper": KNOWN,
    "/methods": KNOWN,
    "/toy": KNOWN,
    "/updates": KNOWN,
    "/your-model": KNOWN,
    "/workers": KNOWN,
    "/guide": KNOWN,
    "/guide/numbers": KNOWN,
    "/account": KNOWN,
    "/admin": ADMINS,
}


@dataclass(frozen=True)
class Press:
    """A click that writes.

    Attributes:
        allowed: For whom it has an effect.
        pressed: What changes: id, property, value; made for a fresh target.
        values: Of the other components, by id.
    """

    allowed: tuple[str, ...]
    pressed: Callable[[World], tuple[Any, str, Any]]
    values: Callable[[World], dict[str, Any]] = lambda _: {}


def click(id: str, value: Any = 1) -> Callable[[World], tuple[Any, str, Any]]:
    return lambda _: (id, "n_clicks", value)


def click_on(kind: str, target: str) -> Callable[[World], tuple[Any, str, Any]]:
    return lambda world: (shared.part(kind, world.fresh(target)), "n_clicks", 1)


def own_study(**more: Any) -> Callable[[World], dict[str, Any]]:
    return lambda world: {Study.ID: world.study_id(), **more}


#: The form of a new sweep, filled in.
FORM = {
    NewSweep.MODE: "grid",
    NewSweep.TASK: "toy/quadratic",
    NewSweep.METHODS: ["eb"],
    NewSweep.RATES_MODE: "list",
    NewSweep.RATE_LIST: "0.1",
    NewSweep.SEEDS: "1",
}

#: The sweep that tests a gap.
GAP = {"task": "toy/quadratic", "methods": ["eb"], "learning_rates": [1.5], "seeds": [1]}
_widths, _seeds = itertools.count(5), itertools.count(1001)


def study_to_measure(world: World) -> dict[str, Any]:
    """A study whose network nobody has asked to measure yet."""
    study_id = world.study_id()
    with transaction() as session:
        factories.submit(
            session, study_id=study_id, task="digits_mlp", options=Options(width=next(_widths))
        )
    return {Study.ID: study_id}


def trial_to_replay(world: World) -> dict[str, Any]:
    """A trained trial that nobody has replayed yet."""
    study_id = world.study_id()
    with transaction() as session:
        made = factories.submit(session, study_id=study_id, seeds=(next(_seeds),))
        factories.train_all(session, made)
        return {Trial.ID: trials.page(session, sweep_id=made.sweep.id, limit=1).items[0].id}


#: Callbacks that write, each tried as everybody. The name is the module's and the function's.
WRITES: dict[str, Press] = {
    "account.make_token": Press(
        PEOPLE,
        click(Account.TOKEN_CREATE),
        lambda _: {
            Account.TOKEN_NAME: "t",
            Account.TOKEN_SCOPE: "read",
            Account.TOKEN_DAYS: "7",
        },
    ),
    "account.revoke_token": Press(OWNERS, click_on("token-revoke", "token_id")),
    "account.change_password": Press(
        PEOPLE,
        click(Account.CHANGE),
        lambda _: {
            Account.CURRENT: PASSWORD,
            Account.NEW: "another good password",
            Account.REPEAT: "another good password",
        },
    ),
    "admin.create": Press(
        ADMINS, click(Admin.CREATE), lambda _: {Admin.NAME: "new", Admin.ROLE: "member"}
    ),
    "admin.change": Press(ADMINS, click_on("user-lock", "user_id")),
    "admin.act": Press(
        ADMINS,
        click(Admin.CONFIRM_YES),
        lambda world: {Admin.PENDING: {"do": "delete", "user": world.user_id(), "name": "x"}},
    ),
    "study.header.delete": Press(OWNERS, click(Study.DELETE_YES), own_study()),
    "study.header.save": Press(
        OWNERS,
        click(Study.EDIT_SAVE),
        own_study(**{Study.EDIT_NAME: "renamed", Study.EDIT_TAGS: [], Study.EDIT_NOTES: "x"}),
    ),
    "study.sweeps.act": Press(
        OWNERS,
        click(Study.CONFIRM_YES),
        lambda world: {Study.PENDING: {"do": "retry", "sweep": world.sweep_id()}},
    ),
    "study.answer.try_gap": Press(
        OWNERS,
        lambda _: (shared.part("gap", "g"), "n_clicks", 1),
        own_study(**{Study.GAPS: [{"id": "g", "name": "EB", "sweep": GAP}]}),
    ),
    "study.answer.measure": Press(OWNERS, click(Study.MEASURE), study_to_measure),
    "study.header.archive": Press(OWNERS, click(Study.ARCHIVE), own_study()),
    "study.add_note": Press(
        WRITERS, click(Discussion.ADD), own_study(**{Discussion.TEXT: "Look."})
    ),
    "study.delete_note": Press(OWNERS, click_on("note-delete", "note_id"), own_study()),
    "history.archive": Press(
        OWNERS, lambda world: (History.PRESSED, "data", {"study": world.fresh("study_id")})
    ),
    "history.table.save_view": Press(PEOPLE, click(Views.SAVE), lambda _: {Views.NAME: "mine"}),
    "history.table.delete_view": Press(("owner",), click_on("view-delete", "view_id")),
    "new_sweep.forecast.submit": Press(
        WRITERS,
        click(NewSweep.SUBMIT),
        lambda _: {**FORM, NewSweep.NAME: "a new study", NewSweep.KEY: "k"},
    ),
    "trial.explain": Press(WRITERS, click(Trial.REPLAY), trial_to_replay),
    "components.elements.load": Press(WRITERS, click(Bundle.BUTTON)),
    "paper.matrix.run": Press(
        WRITERS,
        lambda _: (shared.part(Paper.RUN, "text|uci"), "n_clicks", 1),
    ),
}

#: Callbacks that only read, or ask the API nothing at all.
READS: frozenset[str] = frozenset(
    {
        "router.show",
        "admin.show_more",
        "admin.confirm",
        "admin.follow",
        "study.header.edit",
        "study.sweeps.copy",
        "study.trials.show",
        "study.progress.follow",
        "study.curves.draw",
        "study.follow_notes",
        "study.answer.score",
        "study.answer.offer",
        "study.trials.begin",
        "study.trials.fetch",
        "study.trials.begin_again",
        "compare.draw",
        "compare.pick",
        "history.table.show_views",
        "history.filter_studies",
        "history.follow",
        "history.show_more",
        "history.compare",
        "history.unfold",
        "new_sweep.forecast.forecast",
        "new_sweep.forecast.show_parts",
        "new_sweep.forecast.choose_task",
        "new_sweep.forecast.choose_preset",
        "paper.detail.draw",
        "paper.matrix.show_ranks",
        "paper.draw_tables",
        "paper.detail.draw_theorem",
        "trial.draw",
        "updates.change_rule",
        "start.begin",  # with accounts on, the first study that it asks for is never begun
        "start.follow",
        "start.judge",
        "which_method.draw",
        "which_method.draw_tables",
        "workers.refresh",
        "workers.refresh_offers",
    }
)
