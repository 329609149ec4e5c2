"""Notes, views and the audit list, on both databases."""

import pytest
from sqlalchemy.orm import Session

from backend.errors import Conflict, Forbidden, NotFound
from backend.schemas import StudyUpdate, ViewCreate, ViewFilters
from backend.services import accounts, studies
from backend.services.accounts import LOCAL_OWNER, Caller
from backend.services.studies import study
from tests import factories
from tests.backend.accounts import new_user


@pytest.fixture
def ada(session: Session) -> Caller:
    return Caller("ada", "member", new_user(session, "ada").id)


@pytest.fixture
def bob(session: Session) -> Caller:
    return Caller("bob", "member", new_user(session, "bob").id)


ROOT = Caller("root", "admin", 10**6)


def test_notes_have_an_author_and_come_newest_first_page_by_page(
    session: Session, ada: Caller, bob: Caller
) -> None:
    study = factories.new_study(session, owner_id=ada.user_id).id
    for number, author in enumerate((ada, bob, ada)):
        studies.add_note(session, study_id=study, by=author, text=f"note {number}")
    first = studies.notes_page(session, study_id=study, limit=2)
    assert [(note.author, note.text) for note in first.items] == [
        ("ada", "note 2"),
        ("bob", "note 1"),
    ]
    rest = studies.notes_page(session, study_id=study, limit=2, cursor=first.next_cursor)
    assert [note.text for note in rest.items] == ["note 0"]
    assert rest.next_cursor is None


def test_a_note_is_its_author_s_and_outlives_the_account(
    session: Session, ada: Caller, bob: Caller
) -> None:
    study = factories.new_study(session, owner_id=ada.user_id).id
    note = studies.add_note(session, study_id=study, by=bob, text="mine")
    with pytest.raises(Forbidden):
        studies.delete_note(session, note_id=note.id, by=ada)
    accounts.delete_user(session, user_id=bob.user_id or 0)
    (kept,) = studies.notes_page(session, study_id=study).items
    assert kept.author == "bob"
    with pytest.raises(Forbidden):  # nobody's is not everybody's
        studies.delete_note(session, note_id=note.id, by=ada)
    studies.delete_note(session, note_id=note.id, by=ROOT)
    with pytest.raises(NotFound):
        studies.delete_note(session, note_id=note.id, by=ROOT)


def test_notes_go_with_their_study(session: Session, ada: Caller) -> None:
    study = factories.new_study(session, owner_id=ada.user_id).id
    note = studies.add_note(session, study_id=study, by=ada, text="mine")
    studies.delete(session, study_id=study)
    with pytest.raises(NotFound):
        studies.delete_note(session, note_id=note.id, by=ada)


def test_views_are_each_person_s_own(session: Session, ada: Caller, bob: Caller) -> None:
    def save(user_id: int | None, **filters: str) -> int:
        view = ViewCreate(name="mine", filters=ViewFilters(**filters))
        return studies.save_view(session, user_id=user_id, payload=view).id

    save(ada.user_id, q="old")
    newest = save(ada.user_id, q="new")
    save(None, q="local")
    assert [view.filters for view in studies.list_views(session, user_id=ada.user_id)] == [
        {"q": "new"}
    ]
    assert studies.list_views(session, user_id=bob.user_id) == []
    with pytest.raises(NotFound):
        studies.delete_view(session, user_id=bob.user_id, view_id=newest)
    with pytest.raises(NotFound):
        studies.delete_view(session, user_id=None, view_id=newest)
    studies.delete_view(session, user_id=ada.user_id, view_id=newest)
    assert len(studies.list_views(session, user_id=None)) == 1


def test_there_is_an_end_to_views(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study, "MOST_VIEWS", 1)
    view = ViewCreate(name="one", filters=ViewFilters())
    studies.save_view(session, user_id=None, payload=view)
    studies.save_view(session, user_id=None, payload=view)  # replaces itself
    with pytest.raises(Conflict):
        studies.save_view(
            session, user_id=None, payload=ViewCreate(name="two", filters=ViewFilters())
        )


def test_only_what_really_changed_is_remembered(session: Session, ada: Caller) -> None:
    before = factories.new_study(session, "old", tags=["a"], owner_id=ada.user_id)
    wish = StudyUpdate(name="new", tags=["a"], notes="", archived=True)
    after = studies.update(session, study_id=before.id, payload=wish)
    accounts.audit_changes(session, by=ada, before=before, after=after)
    found = accounts.audit_page(session, study_id=before.id).items
    assert [(one.action, one.username) for one in found] == [
        ("study.archive", "ada"),
        ("study.rename", "ada"),
    ]
    assert found[1].detail == {"before": "old", "after": "new"}


def test_what_was_done_is_known_after_the_thing_and_the_account_are_gone(
    session: Session, ada: Caller
) -> None:
    study = factories.new_study(session, "gone", owner_id=ada.user_id).id
    accounts.audit(session, by=ada, action="study.delete", study_id=study, name="gone")
    session.flush()
    studies.delete(session, study_id=study)
    accounts.delete_user(session, user_id=ada.user_id or 0)
    (kept,) = accounts.audit_page(session).items
    assert (kept.username, kept.study_id, kept.detail) == ("ada", study, {"name": "gone"})


def test_the_list_is_paged_newest_first(session: Session) -> None:
    for number in range(3):
        accounts.audit(session, by=LOCAL_OWNER, action="sweep.submit", study_id=1, sweeps=[number])
        session.flush()
    first = accounts.audit_page(session, limit=2)
    assert [one.detail["sweeps"] for one in first.items] == [[2], [1]]
    rest = accounts.audit_page(session, limit=2, cursor=first.next_cursor)
    assert [one.detail["sweeps"] for one in rest.items] == [[0]]
    assert rest.items[0].username is None


def test_deleting_an_account_leaves_its_studies_to_nobody(session: Session, ada: Caller) -> None:
    study = factories.new_study(session, owner_id=ada.user_id).id
    accounts.delete_user(session, user_id=ada.user_id or 0)
    assert studies.get(session, study_id=study).owner is None
    assert not Caller("eve", "member", 99).may_change(studies.owner_of(session, study_id=study))
    assert ROOT.may_change(studies.owner_of(session, study_id=study))


def test_a_deleted_study_leaves_the_trials_others_hold(session: Session, ada: Caller) -> None:
    mine = factories.new_study(session, owner_id=ada.user_id).id
    theirs = factories.new_study(session).id
    done = factories.train_all(session, factories.submit(session, mine, learning_rates=(0.1, 1.0)))
    shared = factories.submit(session, theirs, learning_rates=(0.1,)).sweep
    assert (done.total, shared.reused) == (8, 4)
    assert studies.delete(session, study_id=mine) == 4
    left = studies.get(session, study_id=theirs)
    assert left.progress["completed"] == left.total == 4
