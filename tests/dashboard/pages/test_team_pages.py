"""Accounts, notes, activity and saved views on screen; nothing of accounts without them."""

import pytest
from dash import no_update

from backend.client import ApiError, calls
from backend.schemas import NoteRead, Page, PasswordRead, ViewRead
from dashboard import ids as shared
from dashboard import pages
from dashboard.components.elements import DEEDS, deed, markdown
from dashboard.ids import Account, Admin, Discussion, Study, Views
from dashboard.pages import account, admin, history
from dashboard.pages.history import table
from dashboard.router import account_links, render
from tests.coroutines import run
from tests.dashboard.answers import NOW
from tests.dashboard.dispatch import by_id, names, text_of, trigger

NOTHING = ("", "", None, None, False, "-updated_at", None)


def body(path: str, search: str = ""):
    view, _ = run(render(pages.PAGES, path, search))
    return view.body


def ids_in(component) -> set[str]:
    return {one.id for one in names(component) if isinstance(getattr(one, "id", None), str)}


def test_without_accounts_nothing_speaks_of_them(api):
    assert run(account_links("/")) == []
    assert by_id(body("/history"), "history-owner").display == "none"
    for path in ("/account", "/admin"):
        assert "has no accounts" in text_of(body(path))
        assert not ids_in(body(path)) & {Account.NEW, Admin.NAME}


@pytest.mark.parametrize(("role", "admin"), [("viewer", False), ("member", False), ("admin", True)])
def test_the_navigation_names_who_is_logged_in(api, role, admin):
    api.log_in("ada", role)
    words = text_of(run(account_links("/account")))
    assert "ada" in words
    assert "Log out" in words
    assert ("Admin" in words) == admin


def test_an_absent_api_does_not_break_the_navigation(api):
    api.away = True
    assert run(account_links("/")) == []


OWN = {Study.EDIT, Study.ARCHIVE}


@pytest.mark.parametrize(
    ("name", "role", "mine"),
    [("ada", "member", True), ("bob", "member", False), ("root", "admin", True),
     ("ada", "viewer", False)],
)  # fmt: skip
def test_only_who_may_change_a_study_is_offered_to(api, name, role, mine):
    api.running = True
    api.studies[1] = api._study(1).model_copy(update={"owner": "ada"})
    api.log_in(name, role)
    page = body("/studies/1")
    assert ids_in(page) >= OWN if mine else not OWN & ids_in(page)
    assert (Discussion.ADD in ids_in(page)) == (role != "viewer")
    assert Study.COPY_LINK in ids_in(page)
    kinds = {one.id["kind"] for one in names(page) if isinstance(getattr(one, "id", None), dict)}
    assert ("sweep-cancel" in kinds) == mine
    rows = run(history.filter_studies(*NOTHING, None, None, False))[0]["studies"]
    (row,) = [row for row in rows if row["id"] == 1]
    assert row["archive"] == ("Archive" if mine else None)
    assert row["about"] == "ada · digits_mlp"


def test_deleting_is_offered_after_archiving_and_goes_home(api, dash_app):
    assert Study.DELETE not in ids_in(body("/studies/1"))
    api.studies[1] = api._study(1).model_copy(update={"archived": True})
    assert Study.DELETE in ids_in(body("/studies/1"))
    api._delete_studies = lambda _call, rest: api.studies.pop(int(rest[0])) and None
    pressed = (Study.DELETE_YES, "n_clicks", 1)
    answer = trigger(dash_app, f"{Study.DELETE_MODAL}.opened@", pressed, **{Study.ID: 1})
    assert answer["response"]["location"]["href"] == "/history"
    assert 1 not in api.studies


def test_somebody_else_s_sweep_is_repeated_in_a_study_of_one_s_own(api):
    api.studies[1] = api._study(1).model_copy(update={"owner": "ada"})
    api.log_in("bob")
    page = body("/new", "?sweep=1")
    assert by_id(page, "new-study").data is None
    api.log_in("ada")
    assert by_id(body("/new", "?sweep=1"), "new-study").data == 1


def test_a_note_can_be_added_and_one_s_own_deleted(api, dash_app):
    api.log_in("bob")
    api.notes = [NoteRead(id=9, study_id=1, author="ada", text="hers", created_at=NOW)]
    pressed = (Discussion.ADD, "n_clicks", 1)
    given = {Discussion.TEXT: "EB breaks at *3*", Study.ID: 1}
    trigger(dash_app, f"{Discussion.LIST}.children.", pressed, **given)
    assert [note.text for note in api.notes] == ["EB breaks at *3*", "hers"]
    deletes = [
        one.id["key"]
        for one in names(body("/studies/1"))
        if isinstance(getattr(one, "id", None), dict) and one.id["kind"] == "note-delete"
    ]
    assert deletes == [api.notes[0].id]
    press = (shared.part("note-delete", api.notes[0].id), "n_clicks", 1)
    trigger(dash_app, f"{Discussion.LIST}.children@", press, **{Study.ID: 1})
    assert [note.text for note in api.notes] == ["hers"]


def test_a_colleague_s_note_comes_to_an_open_page_and_nothing_moves_without_one(api, dash_app):
    page = body("/studies/1")
    assert not getattr(by_id(page, Discussion.INTERVAL), "disabled", False)
    seen = by_id(page, Discussion.SEEN).data
    tick, given = (Discussion.TICK, "data", 1), {Study.ID: 1, Discussion.SEEN: seen}
    assert trigger(dash_app, f"{Discussion.SEEN}.data", tick, **given)["response"] == {}
    api.notes = [NoteRead(id=9, study_id=1, author="ada", text="It breaks here", created_at=NOW)]
    answer = trigger(dash_app, f"{Discussion.SEEN}.data", tick, **given)
    assert "It breaks here" in str(answer)


def test_people_s_text_is_drawn_inert():
    drawn = markdown("<script>alert(1)</script> ![x](https://evil.example/x.png)")
    assert drawn.dangerously_allow_html is False
    assert "![" not in drawn.children


def test_what_happened_is_told_in_words(api):
    api.happened("study.rename", before="old")
    api.happened("sweep.cancel", sweeps=[3])
    words = text_of(body("/studies/1"))
    assert "renamed it from “old”" in words
    assert "cancelled sweep 3" in words


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"disabled": True}, "changed the account eve: locked out"),
        ({"disabled": False}, "changed the account eve: let in again"),
        ({"role": "viewer"}, "changed the account eve: now viewer"),
    ],
)
def test_who_is_locked_out_is_said_to_be_and_who_is_let_in_again_too(api, change, words):
    api.happened("user.change", name="eve", **change)
    assert deed(api.past[-1]) == words


def test_a_long_past_is_folded(api):
    for number in range(20):
        api.happened("sweep.submit", sweeps=[number])
    folded = next(one for one in names(body("/studies/1")) if type(one).__name__ == "Details")
    assert "15 earlier" in text_of(folded)


def test_every_deed_the_service_records_has_words(api):
    import re
    from pathlib import Path

    backend = Path(history.__file__).parents[3] / "backend"
    sources = "".join(path.read_text() for path in backend.rglob("*.py"))
    recorded = set(re.findall(r'"((?:study|sweep|bundle|user|account|token)\.[a-z]+)"', sources))
    assert recorded <= set(DEEDS)
    assert {"study.delete", "sweep.cancel", "user.create"} <= recorded
    api.happened("something.new")
    assert deed(api.past[-1]) == "something.new"


def test_a_token_is_shown_once(api, dash_app):
    api.log_in("ada")
    assert "laptop" in text_of(body("/account"))
    given = {Account.TOKEN_NAME: "ci", Account.TOKEN_SCOPE: "read", Account.TOKEN_DAYS: "0"}
    pressed = (Account.TOKEN_CREATE, "n_clicks", 1)
    answer = trigger(dash_app, f"{Account.TOKEN_SHOWN}.children", pressed, **given)["response"]
    assert "eta_the-whole-token" in str(answer[Account.TOKEN_SHOWN])
    assert "eta_the-whole-token" not in str(answer[Account.TOKENS])
    sent = next(call for call in api.sent if call.method == "POST")
    assert sent.json == {"name": "ci", "scope": "read", "days": None}


def test_a_token_without_a_name_is_explained(api):
    shown, table, _ = run(account.make_token(1, " ", "read", "7"))
    assert "Say what the token is for" in text_of(shown)
    assert table is no_update


def test_passwords_that_differ_are_not_sent(api):
    said, *_ = run(account.change_password(1, "old", "new one here", "another", False))
    assert "differ" in text_of(said)
    assert api.sent == []
    api.refusal = ApiError(422, "invalid_input", "The current password is wrong.")
    said, *_ = run(account.change_password(1, "old", "new one here", "new one here", None))
    assert "The current password is wrong." in text_of(said)
    api.refusal = None
    said, *emptied, _ = run(account.change_password(1, "old", "new one here", "new one here", True))
    assert "is changed" in text_of(said)
    assert emptied == ["", "", ""]
    (sent,) = [call for call in api.sent if call.method == "POST" and call.json["new"]][-1:]
    assert sent.json["keep_tokens"] is False


def test_an_admin_s_page_lists_accounts_and_shows_a_new_password_once(api, dash_app):
    api.log_in("root", "admin")
    api.happened("study.delete", name="Gone", trials=3)
    words = text_of(body("/admin"))
    for part in ("root", "that is you", "ada", "locked out", "deleted the study “Gone”"):
        assert part in words
    pressed = (Admin.CREATE, "n_clicks", 1)
    given = {Admin.NAME: " Bob ", Admin.ROLE: "viewer"}
    answer = trigger(dash_app, f"{Admin.SHOWN}.children.", pressed, **given)["response"]
    assert "made-up-words" in str(answer[Admin.SHOWN])
    sent = next(call for call in api.sent if call.method == "POST")
    assert (sent.json["username"], sent.json["role"]) == ("bob", "viewer")


@pytest.mark.parametrize("keep", [True, False])
def test_a_new_password_ends_tokens_unless_the_admin_keeps_them(api, dash_app, keep):
    api.log_in("root", "admin")
    press = (shared.part("user-password", 2), "n_clicks", 1)
    answer = trigger(dash_app, f"{Admin.CONFIRM_WORDS}.children", press)["response"]
    assert "every token" in answer[Admin.CONFIRM_WORDS]["children"]
    assert answer[Admin.KEEP_TOKENS] == {"display": None, "checked": False}
    told = PasswordRead(password="made-up-words", tokens_revoked=0 if keep else 3)
    api._post_users = lambda *_: told
    given = {Admin.PENDING: answer[Admin.PENDING]["data"], Admin.KEEP_TOKENS: keep}
    pressed = (Admin.CONFIRM_YES, "n_clicks", 1)
    done = trigger(dash_app, f"{Admin.CONFIRM}.opened@", pressed, **given)["response"]
    assert ("3 tokens of theirs no longer work" in str(done[Admin.SHOWN])) == (not keep)
    (sent,) = [call for call in api.sent if call.method == "POST"]
    assert sent.json == {"keep_tokens": keep}


def test_an_account_made_elsewhere_appears_without_a_reload(api, monkeypatch):
    api.log_in("root", "admin")
    users = run(api.send(calls.users())).items
    known = admin.mark(users)
    assert run(admin.follow(1, known)) == (no_update, no_update)
    added = users[0].model_copy(update={"id": 99, "username": "zoe"})
    monkeypatch.setattr(api, "_get_users", lambda *_: Page(items=[*users, added]))
    table, mark = run(admin.follow(2, known))
    assert "zoe" in text_of(table)
    assert mark != known


def test_who_is_no_admin_reads_why_not(api):
    api.log_in("ada")
    api.refusal = ApiError(403, "forbidden", "Only admins may do this.")
    assert "Only admins may do this." in text_of(body("/admin"))


def test_a_view_is_the_filters_that_were_changed_and_leads_back_to_them(api, dash_app):
    values = ("digits", "", None, "running", True, "name", "ada")
    wanted = {"q": "digits", "state": "running", "archived": "1", "sort": "name", "owner": "ada"}
    assert table.filters_of(values) == wanted
    assert table.filters_of(NOTHING) == {}
    view = ViewRead(id=1, name="Hers", filters={"q": "a b", "owner": "ada"})
    assert table.address_of(view) == "/history?q=a+b&owner=ada"
    pressed = (Views.SAVE, "n_clicks", 1)
    given = {Views.NAME: "Hers", "history-owner": "ada"}
    answer = trigger(dash_app, f"{Views.LIST}.children@", pressed, **given)["response"]
    assert [one.filters for one in api.views] == [{"owner": "ada"}]
    assert "/history?owner=ada" in str(answer[Views.LIST])


def test_the_history_can_be_asked_for_one_person_s_studies(api):
    api.log_in("ada")
    person = by_id(body("/history", "?owner=bob"), "history-owner")
    assert (person.value, person.data, person.display) == ("bob", ["ada", "bob"], None)
