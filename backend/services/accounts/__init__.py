"""Accounts: people, their passwords, logins and tokens, what each may do and what each did.

| module | for |
| --- | --- |
| `people` | accounts, who is asking and what they may do, the audit, the first admin |
| `logins` | how a caller proves who they are: logins in browsers, tokens of programs |
| `passwords` | digests of passwords, and the slowing down of guesses |
"""

from backend.services.accounts.logins import (
    Login,
    begin_login,
    check_password,
    create_token,
    csrf_token,
    end_login,
    list_tokens,
    log_in,
    login_caller,
    note_token_use,
    revoke_token,
    revoke_tokens,
    set_password,
    still_hold,
    token_caller,
    token_use_is_due,
)
from backend.services.accounts.passwords import Password, choose_password
from backend.services.accounts.people import (
    LOCAL_OWNER,
    Caller,
    accept_invitation,
    audit,
    audit_changes,
    audit_page,
    change_user,
    check_invitation,
    check_name,
    create_user,
    delete_user,
    find_user,
    get_user,
    invitation,
    list_users,
    user_names,
)

__all__ = [
    "LOCAL_OWNER",
    "Caller",
    "Login",
    "Password",
    "accept_invitation",
    "audit",
    "audit_changes",
    "audit_page",
    "begin_login",
    "change_user",
    "check_invitation",
    "check_name",
    "check_password",
    "choose_password",
    "create_token",
    "create_user",
    "csrf_token",
    "delete_user",
    "end_login",
    "find_user",
    "get_user",
    "invitation",
    "list_tokens",
    "list_users",
    "log_in",
    "login_caller",
    "note_token_use",
    "revoke_token",
    "revoke_tokens",
    "set_password",
    "still_hold",
    "token_caller",
    "token_use_is_due",
    "user_names",
]
