"""Ids of what teams use: accounts, notes, activity, saved views."""

LOGOUT = "logout"


class Account:
    """One's own account."""

    CURRENT = "account-current"
    NEW = "account-new"
    REPEAT = "account-repeat"
    CHANGE = "account-change"
    CHANGED = "account-changed"
    TOKENS = "account-tokens"
    TOKEN_NAME = "account-token-name"
    TOKEN_SCOPE = "account-token-scope"
    TOKEN_DAYS = "account-token-days"
    TOKEN_CREATE = "account-token-create"
    TOKEN_SHOWN = "account-token-shown"


class Admin:
    """Everybody's accounts."""

    USERS = "admin-users"
    INTERVAL = "admin-interval"
    KNOWN = "admin-known"
    NAME = "admin-name"
    ROLE = "admin-role"
    CREATE = "admin-create"
    SHOWN = "admin-shown"
    CONFIRM = "admin-confirm"
    CONFIRM_WORDS = "admin-confirm-words"
    CONFIRM_YES = "admin-confirm-yes"
    CONFIRM_NO = "admin-confirm-no"
    PENDING = "admin-pending"
    ACTIVITY = "admin-activity"
    MORE = "admin-more"


class Views:
    """Saved views of the history."""

    BUTTON = "views-button"
    MODAL = "views-modal"
    LIST = "views-list"
    NAME = "views-name"
    SAVE = "views-save"
    ERROR = "views-error"


class Remarks:
    """What people remark about a study."""

    LIST = "remarks-list"
    TEXT = "remarks-text"
    ADD = "remarks-add"


class Sharing:
    """A study's link, its activity, and its end."""

    COPY_LINK = "study-copy-link"
    ACTIVITY = "study-activity"
    DELETE = "study-delete"
    DELETE_MODAL = "study-delete-modal"
    DELETE_YES = "study-delete-yes"
    DELETE_NO = "study-delete-no"
