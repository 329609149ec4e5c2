"""Ids of all components that callbacks know, by page; of Toy and Updates scripts know them, too."""

from typing import Any

# The shell around every page
LOCATION = "location"
PAGE = "page"
TITLE = "title"
SCHEME, SCHEME_BUTTON = "scheme", "scheme-button"
PROVIDER = "provider"
NARROW = "narrow"
NOTICES = "notices"
BREADCRUMBS, NAVIGATION = "breadcrumbs", "navigation"
MENU_BUTTON = "menu-button"
RECOVERIES = "recoveries"


def part(kind: str, key: Any) -> dict[str, Any]:
    """Return the id of one of many alike components."""
    return {"kind": kind, "key": key}


class Start:
    """The start page."""

    RATE = "start-rate"
    RACE = "start-race"
    ASKED = "start-asked"
    PICTURE = "start-picture"
    INTERVAL = "start-interval"
    TICK = "start-tick"
    BEGUN = "start-begun"
    STUDY = "start-study"
    CURVE = "start-curve"
    CHART = "start-chart"
    LATEST = "start-latest"
    VERDICTS = "start-verdicts"
    JUDGED = "start-judged"
    LOOK = "start-look"


class Bundle:
    """The offer to load the paper's reproduction, on whatever page it stands."""

    BUTTON = "bundle-button"
    WORDS = "bundle-words"
    INTERVAL = "bundle-interval"
    LOADED = "bundle-loaded"


class History:
    """The history of studies."""

    FOLD = "history-fold"
    OPEN = "history-open"
    FOLDED = "history-folded"
    FOLDED_ROWS = "history-folded-rows"

    TEXT = "history-text"
    TAG = "history-tag"
    TASK = "history-task"
    OWNER = "history-owner"
    STATE = "history-state"
    ARCHIVED = "history-archived"
    SORT = "history-sort"
    ROWS = "history-rows"
    TABLE = "history-table"
    LIST = "history-list"
    SELECTED = "history-selected"
    PRESSED = "history-pressed"
    MORE = "history-more"
    CURSOR = "history-cursor"
    COMPARE = "history-compare"
    CHANGES = "history-changes"
    UNDO = "history-undo"
    TICK = "history-tick"


class NewSweep:
    """The form of a sweep."""

    STUDY = "new-study"
    NAME = "new-name"
    MODE = "new-mode"
    PRESET = "new-preset"
    PRESET_FACTS = "new-preset-facts"
    TASK = "new-task"
    TASK_FACTS = "new-task-facts"
    METHODS = "new-methods"
    RATES_MODE = "new-rates-mode"
    RATE_FROM = "new-rate-from"
    RATE_TO = "new-rate-to"
    RATE_COUNT = "new-rate-count"
    RATE_LIST = "new-rate-list"
    RATES = "new-rates"
    SEEDS = "new-seeds"
    GRID = "new-grid"
    PRESET_PART = "new-preset-part"
    FORECAST = "new-forecast"
    SUBMIT = "new-submit"
    ASKED = "new-asked"
    ANSWERED = "new-answered"
    ERROR = "new-error"
    KEY = "new-key"
    OWN = "new-own-fields"


class Study:
    """One study."""

    ID = "study-id"
    VERSION = "study-version"
    INTERVAL = "study-interval"
    TICK = "study-tick"
    STATE = "study-state"
    STATUS = "study-status"
    HEAD = "study-head"
    GRAPH = "study-graph"
    FIGURE = "study-figure"
    CAPTION = "study-caption"
    MARK, KEPT = "study-mark", "study-kept"
    SCORECARD = "study-scorecard"
    SCORES = "study-scores"
    SCORED = "study-scored"
    ANSWER = "study-answer"
    ANSWERS = "study-answers"
    STRIP = "study-strip"
    LANES = "study-lanes"
    GAPS = "study-gaps"
    GAP_OFFERS = "study-gap-offers"
    NUMBERS = "study-numbers"
    MORE = "study-more"
    MEASURE = "study-measure"
    MEASURED = "study-measured"
    MEASURE_WORDS = "study-measure-words"
    MEASURE_TICK = "study-measure-tick"
    DRAWN = "study-drawn"
    TRIALS = "study-trials"
    SWEEPS = "study-sweeps"
    SWEEPS_MARK = "study-sweeps-mark"
    NOTES = "study-notes"
    TASK = "study-task"
    QUANTITY = "study-quantity"
    SPLIT = "study-split"
    REDUCER = "study-reducer"
    CLIPPING = "study-clipping"
    VIEW = "study-view"
    BAND = "study-band"
    SEEDS = "study-seeds"
    SCALE = "study-scale"
    COLOUR, PANEL, ONLY, RAIL = "study-colour", "study-panel", "study-only", "study-rail"
    OVER, CELL, SMOOTH, RATE = "study-over", "study-cell", "study-smooth", "study-rate"
    CHOICES, FAMILY, SCRUBBER = "study-choices", "study-family", "study-scrubber"
    ZOOM = "study-zoom"
    ZOOM_OUT = "study-zoom-out"
    CONTROLS = "study-controls"
    REASON = "study-reason"
    SELECTED = "study-selected"
    DRAWER = "study-drawer"
    DRAWER_BODY = "study-drawer-body"
    GRID = "study-grid"
    GRID_SWEEP = "study-grid-sweep"
    GRID_STATE = "study-grid-state"
    GRID_METHOD = "study-grid-method"
    GRID_CURSORS = "study-grid-cursors"
    EDIT = "study-edit"
    EDIT_MODAL = "study-edit-modal"
    EDIT_NAME = "study-edit-name"
    EDIT_TAGS = "study-edit-tags"
    EDIT_NOTES = "study-edit-notes"
    EDIT_SAVE = "study-edit-save"
    EDIT_ERROR = "study-edit-error"
    ARCHIVE = "study-archive"
    CONFIRM = "study-confirm"
    CONFIRM_WORDS = "study-confirm-words"
    CONFIRM_YES = "study-confirm-yes"
    CONFIRM_NO = "study-confirm-no"
    PENDING = "study-pending"
    DONE = "study-done"
    COPY_MODAL = "study-copy-modal"
    COPY_BODY = "study-copy-body"
    COPY_LINK = "study-copy-link"
    ACTIVITY = "study-activity"
    DELETE = "study-delete"
    FOR_PAPER = "study-for-paper"
    DELETE_MODAL = "study-delete-modal"
    DELETE_YES = "study-delete-yes"
    DELETE_NO = "study-delete-no"


class Compare:
    """Several studies on one axis."""

    STUDIES = "compare-studies"
    QUANTITY = "compare-quantity"
    SPLIT = "compare-split"
    REDUCER = "compare-reducer"
    BAND = "compare-band"
    SCALE = "compare-scale"
    SEEDS = "compare-seeds"
    COLOUR, PANEL, ONLY, RAIL = "compare-colour", "compare-panel", "compare-only", "compare-rail"
    OVER, CELL, SMOOTH, RATE = "compare-over", "compare-cell", "compare-smooth", "compare-rate"
    CHOICES, FAMILY, SCRUBBER = "compare-choices", "compare-family", "compare-scrubber"
    GRAPH, DRAWN, FIGURE = "compare-graph", "compare-drawn", "compare-figure"
    ZOOM, ZOOM_OUT = "compare-zoom", "compare-zoom-out"
    TABLE = "compare-table"
    FOR_PAPER = "compare-for-paper"
    ADVICE = "compare-advice"
    MESSAGE = "compare-message"
    ANSWER = "compare-answer"
    STRIP = "compare-strip"
    LANES = "compare-lanes"
    VIEW = "compare-view"
    NUMBERS = "compare-numbers"
    MORE = "compare-more"


class Paper:
    """The paper's experiments."""

    THEOREM = "paper-theorem"
    THEOREM_STUDY = "paper-theorem-study"
    THEOREM_WORDS = "paper-theorem-words"
    OFFER = "paper-offer"
    PICTURE = "paper-picture"
    EXPERIMENT = "paper-experiment"
    PROFILE = "paper-profile"
    LOSS = "paper-loss"
    VERDICT = "paper-verdict"
    GRAPH = "paper-graph"
    CLIPPING = "paper-clipping"
    MESSAGE = "paper-message"
    ACCURACIES = "paper-accuracies"
    AGREEMENT = "paper-agreement"
    RANKS = "paper-ranks"
    RANKS_STUDY = "paper-ranks-study"
    RANKS_WORDS = "paper-ranks-words"
    RUN = "paper-run"
    ERROR = "paper-error"


class Trial:
    """One trial."""

    ID = "trial-id"
    DRAWN = "trial-drawn"
    GRAPH = "trial-graph"
    SCALE = "trial-scale"
    INTERVAL = "trial-interval"
    FACTS = "trial-facts"
    STATE = "trial-state"
    STORY = "trial-story"
    REPLAY = "trial-replay"
    REPLAY_TICK = "trial-replay-tick"
    LAYERS = "trial-layers"
    BESIDE = "trial-beside"
    WAY_VIEW = "trial-way-view"
    WAY = "trial-way"
    WAY_DRAWN = "trial-way-drawn"
    WAY_GRAPH = "trial-way-graph"
    OTHER = "trial-other"
    OTHER_DRAWN = "trial-other-drawn"
    OTHER_GRAPH = "trial-other-graph"


class Workers:
    """Who trains."""

    INTERVAL = "workers-interval"
    TICK = "workers-tick"
    BODY = "workers-body"


class YourModel:
    """What workers bring along."""

    INTERVAL = "your-model-interval"
    TICK = "your-model-tick"
    BODY = "your-model-body"


class WhichMethod:
    """All methods compared."""

    STUDY, OFFER, GRAPH = "which-method-study", "which-method-offer", "which-method-graph"
    TABLES = "which-method-tables"


LOGOUT = "logout"


class Account:
    """One's own account."""

    CURRENT = "account-current"
    NEW = "account-new"
    REPEAT = "account-repeat"
    TOKENS_END = "account-tokens-end"
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
    KEEP_TOKENS = "admin-keep-tokens"
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


class Discussion:
    """What people say about a study."""

    LIST, SEEN = "discussion-list", "discussion-seen"
    TEXT, ADD = "discussion-text", "discussion-add"
    INTERVAL, TICK = "discussion-interval", "discussion-tick"


class Guide:
    """What the pictures mean."""

    CONTENT = "guide-content"


class Toy:
    """Descent on a one-dimensional loss."""

    LOSS = "toy-loss"
    CURVATURE = "toy-curvature"
    START = "toy-start"
    RATE = "toy-rate"
    RATE_MARK = "toy-rate-mark"
    STEPS = "toy-steps"
    LOG = "toy-log"
    PAPER = "toy-paper"
    FIGURES = "toy-figures"
    LOOKS = "toy-looks"
    EXPLICIT = "toy-explicit"
    IMPLICIT = "toy-implicit"
    LOSSES = "toy-losses"
    THETAS = "toy-thetas"
    WORDS = "toy-words"
    AT = "toy-at"
    AT_WORDS = "toy-at-words"
    PLAY = "toy-play"
    BACK = "toy-back"
    NEXT = "toy-next"
    TICK = "toy-tick"


class Updates:
    """One node's update."""

    ACTIVATION = "updates-activation"
    PUSH = "updates-push"
    PLACE = "updates-place"
    RATE = "updates-rate"
    INPUT = "updates-input"
    RIDGE = "updates-ridge"
    SPAN = "updates-span"
    RULE = "updates-rule"
    LOOKS = "updates-looks"
    PAPER = "updates-paper"
    DOWN = "updates-down"
    UP = "updates-up"
    DOWN_WORDS = "updates-down-words"
    UP_WORDS = "updates-up-words"
    NOTE = "updates-note"
    LIMIT = "updates-limit"
    LIMIT_WORDS = "updates-limit-words"
