"""What several pages are made of; pages import from here, not from the modules below.

| module | what it has |
| --- | --- |
| `elements` | the small things: links, cards, badges, moments, people's own text, trouble |
| `shell` | what surrounds every page: header, navigation, who is logged in |
| `controls` | labelled controls, whose values live in the address |
| `family` | controls of pictures with many series, and the rate scrubber |
| `number_fields` | the one field for numbers, and one with a slider |
| `browser_drawn` | a graph that keeps its zoom, and plain elements: drawn from a store |
| `illustrated` | what the illustrated pages share: looks, sliders, places to draw in |
| `progress` | how far trials are: counts, a bar, a sentence; how often a page that follows asks |
| `study_words` | what a study says |
| `strip` | what was tested of every series, on the axis of a picture |
| `scorecard` | the robustness numbers |
| `trial_words` | a trial's settings, its outcome and its record |
| `paper_figure` | a picture made ready for a paper |
| `people` | what somebody did, and what is shown only once |
| `bundle` | the offer to load the paper's reproduction |
"""

from dashboard.components.browser_drawn import draw_from, fill_from, plain_elements
from dashboard.components.bundle import bundle_offer
from dashboard.components.controls import (
    BANDS,
    QUANTITIES,
    REDUCERS,
    SCALES,
    SPLITS,
    VALIDATION,
    Choice,
    Control,
    control_group,
    keep_in_url,
    read_controls,
    segmented,
    switch,
    values_of,
    view_control,
)
from dashboard.components.elements import (
    STATE_COLOUR,
    age,
    button_link,
    card,
    code,
    empty_state,
    error_panel,
    explained,
    guide_link,
    link,
    local_time,
    markdown,
    method_swatch,
    not_found,
    state_badge,
    with_code,
)
from dashboard.components.family import (
    arrange_from,
    choices_of,
    family_controls,
    family_of,
    family_panel,
    scrubber,
)
from dashboard.components.illustrated import (
    drawing_place,
    looks,
    slider_inputs,
    sliders_for_browser,
)
from dashboard.components.number_fields import NumberSlider, number_field
from dashboard.components.paper_figure import figure_dialog, figure_from
from dashboard.components.people import activity, refused, shown_once
from dashboard.components.progress import (
    STATES,
    answering,
    ended,
    goes_on,
    progress_bar,
    progress_panel,
    progress_words,
    retriable,
    tick_from,
    tick_stores,
    unfinished,
)
from dashboard.components.scorecard import more_numbers, scorecard_table, show_more_from
from dashboard.components.shell import account_links, breadcrumbs, navigation, page_shell
from dashboard.components.strip import MOST_LANES, lane_name, strip_lanes
from dashboard.components.study_words import advice, answer_words, movement
from dashboard.components.trial_words import (
    at_rate,
    facts,
    outcome_pairs,
    record_facts,
    setting_pairs,
    trial_facts,
)

__all__ = [
    "BANDS",
    "MOST_LANES",
    "QUANTITIES",
    "REDUCERS",
    "SCALES",
    "SPLITS",
    "STATES",
    "STATE_COLOUR",
    "VALIDATION",
    "Choice",
    "Control",
    "NumberSlider",
    "account_links",
    "activity",
    "advice",
    "age",
    "answer_words",
    "answering",
    "arrange_from",
    "at_rate",
    "breadcrumbs",
    "bundle_offer",
    "button_link",
    "card",
    "choices_of",
    "code",
    "control_group",
    "draw_from",
    "drawing_place",
    "empty_state",
    "ended",
    "error_panel",
    "explained",
    "facts",
    "family_controls",
    "family_of",
    "family_panel",
    "figure_dialog",
    "figure_from",
    "fill_from",
    "goes_on",
    "guide_link",
    "keep_in_url",
    "lane_name",
    "link",
    "local_time",
    "looks",
    "markdown",
    "method_swatch",
    "more_numbers",
    "movement",
    "navigation",
    "not_found",
    "number_field",
    "outcome_pairs",
    "page_shell",
    "plain_elements",
    "progress_bar",
    "progress_panel",
    "progress_words",
    "read_controls",
    "record_facts",
    "refused",
    "retriable",
    "scorecard_table",
    "scrubber",
    "segmented",
    "setting_pairs",
    "show_more_from",
    "shown_once",
    "slider_inputs",
    "sliders_for_browser",
    "state_badge",
    "strip_lanes",
    "switch",
    "tick_from",
    "tick_stores",
    "trial_facts",
    "unfinished",
    "values_of",
    "view_control",
    "with_code",
]
