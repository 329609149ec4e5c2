"""Which method? All of them on a few tasks with equal care, told from stored trials.

Nothing here is a conclusion that somebody wrote down: words, ranks and table follow from the study
that the preset `compare/methods` makes, whoever trained it. What all methods do on every UCI table
is read from trials that come along: a hundred thousand, too many for everybody's history.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from dash import Input, Output, State

from backend.client import calls
from backend.schemas import (
    AcrossRead,
    BundleRead,
    Metric,
    NumberRead,
    OnTableNumber,
    RanksRead,
    ScorecardRead,
    StudyRead,
    TablesRead,
)
from dashboard import ids as shared
from dashboard.api_client import (
    FRESH_SECONDS,
    Cache,
    ask,
    asked_client,
    get_catalog,
    get_visitor,
    may_write,
    now_in_steps,
    task_names,
)
from dashboard.components import (
    bundle_offer,
    button_link,
    card,
    empty_state,
    guide_link,
    link,
    method_swatch,
    with_code,
)
from dashboard.dash_blocks import Component, browser_callback, callback, dcc, html
from dashboard.figures import NOTHING_YET, Picture, across_figure
from dashboard.ids import Bundle
from dashboard.ids import WhichMethod as ids
from dashboard.router import Page
from dashboard.theme import NONE, counted, graph_config, number, scheme_of
from ib_core.methods import METHODS
from ib_core.metrics import Said, counts_told, ranks_told, which_method

#: How the study is found: by the tags that its import gives it, and anybody may.
TAGS = ("compare", "methods")
PRESET = "compare/methods"
#: The same on every UCI table: what it says comes along, its trials once somebody loads them.
TABLES_TAGS = ("compare", "uci")
#: How the names of its tasks begin.
UCI = "uci/"
#: Losses on rows that no method has seen; rates are chosen on others.
METRIC: Metric = "test_loss"
#: Who competes: IB, those that cut their rate by the loss, those with a rate a weight, the rest.
FAMILIES = {
    "IB": ("ib", "ib_plus", "ib_momentum", "ib_conv"),
    "SPS and NGN": ("sps", "ngn", "ngn_m", "momo"),
    "Adam and its kin": (
        *("adam", "adamw", "nadam", "rmsprop", "lion", "muon", "schedule_free", "prodigy"),
    ),
    "EB": ("eb", "momentum"),
    "Prox": ("proxprop",),
}
#: What came along, by whose it is.
TABLES: Cache[TablesRead] = Cache(4, owner=asked_client)
#: What the methods are called in sentences.
SHORT = {name: method.short for name, method in METHODS.items()}
#: A scorecard's numbers by task, method and name.
Tasks = dict[str, dict[str, Mapping[str, NumberRead | OnTableNumber]]]
#: By what methods are ranked, as the sentences say it.
RANKED = {"best_mean": "each at its best rate", "lr_sensitivity": "by what any rate gives up"}
#: Who competes, in words.
ALL, ALL_BUT_EXACT = (
    "All methods",
    "All methods but exact ISGD, whose step costs a hundred times EB's,",
)
HEADINGS = ("Method", "Rank, tuned", "Rank, untuned", "Step", "Memory", "What it costs and needs")


async def layout(**_: str) -> Component:
    """Return the page."""
    page, found_tables, catalog, bundle, visitor = await asyncio.gather(
        ask(calls.studies(tag=TAGS[0], limit=50)),
        _tables(),
        get_catalog(),
        ask(calls.bundle()),
        get_visitor(),
    )
    study, on_tables = (
        next((one for one in page.items if set(tags) <= set(one.tags)), None)
        for tags in (TAGS, TABLES_TAGS)
    )
    every = [one.name.removeprefix(UCI) for one in catalog.tasks if one.name.startswith(UCI)]
    tables = _on_every_table(found_tables, on_tables, every)
    if study is None:
        return html.Div([_head(None, None), _offer(bundle, writes=may_write(visitor)), tables])
    found = await ask(calls.scorecard(study.id, metric=METRIC))
    titles = await task_names(list(dict.fromkeys(row.task for row in found.rows)))
    return html.Div(
        [
            dcc.Store(id=ids.STUDY, data=study.id),
            _head(study, found),
            card(
                html.Ul([_line(one) for one in sentences(found, titles)], className="headline"),
                html.P(
                    [
                        "Every curve, best of k and trial: ",
                        link(study.name, f"/studies/{study.id}"),
                        ". What a step costs is measured there as well.",
                    ],
                    className="history-meta",
                ),
                title="What the trials say",
                mb=16,
            ),
            card(_graph(), className="figure-card", mb=16),
            tables,
            card(_table(found), title="Method by method"),
        ]
    )


async def _tables() -> TablesRead:
    """Return what came along: a megabyte that never changes, for the words and for the picture."""
    version = now_in_steps(FRESH_SECONDS)
    return await TABLES.get("tables", version, lambda: ask(calls.tables()))


def _on_every_table(found: TablesRead, study: StudyRead | None, every: Sequence[str]) -> Component:
    """Return the card of what all methods do on all tables, not on some chosen by size."""
    tasks: Tasks = {}
    for row in found.rows:
        tasks.setdefault(row.table, {})[row.method] = row.metrics
    methods = len({row.method for row in found.rows})
    words = (
        f"{counted(methods, 'method')}, {counted(len(tasks), 'table')}, "
        f"{counted(len(found.rates), 'rate')} from {number(found.rates[0])} to "
        f"{number(found.rates[-1])}, {counted(found.seeds, 'seed')} each: "
        f"{counted(found.trials, 'trial')}; the rate chosen on a fifth of the training rows, test "
        "losses. On a table alone so few seeds show little; the ranks say what can be told apart."
    )
    if missing := [name for name in every if name not in tasks]:
        words += f" Not among them: {', '.join(missing)}."
    said = counts_told(tasks, FAMILIES, SHORT, noun="table")
    said += _ranks_of(found.across, tasks, "tables")
    return card(
        html.P(words, className="history-meta"),
        html.Ul([_line(one) for one in said], className="headline"),
        html.P(_trials_of_tables(study), className="history-meta"),
        dcc.Graph(
            id=ids.TABLES,
            figure=NOTHING_YET,
            config=graph_config("etascope-methods-on-tables"),
            responsive=True,
        ),
        title="On every UCI table",
        mb=16,
    )


def _trials_of_tables(study: StudyRead | None) -> list[Component | str]:
    """Return where every trial of it is, or how they come here."""
    if study is not None:
        return ["Every trial: ", link(study.name, f"/studies/{study.id}"), "."]
    command = html.Code("etascope import-bundle tables")
    return ["Its trials come with Etascope; ", command, " puts them into the history."]


@callback(
    Output(ids.TABLES, "figure"),
    Output(ids.TABLES, "style"),
    Input(shared.SCHEME, "data"),
    Input(shared.NARROW, "data"),
)
async def draw_tables(scheme: str, narrow: bool) -> tuple[Any, Any]:
    """Draw the ranks over all tables; of so many methods the rest fills a page of its own."""
    across = (await _tables()).across
    rest: dict[str, Any] = {name: [] for name in ("profiles", "times", "chances", "iqm")}
    return await _drawn(across and across.model_copy(update=rest), scheme, narrow)


def _head(study: StudyRead | None, found: ScorecardRead | None) -> Component:
    here = set() if found is None else {row.method for row in found.rows}
    exact = any(METHODS[name].exact for name in here if name in METHODS)
    words = (
        f"{ALL if exact else ALL_BUT_EXACT} on one grid of rates a task, the best rate chosen on "
        "rows that are neither trained on nor reported. "
    )
    if study is not None and found is not None:
        tasks = len({row.task for row in found.rows})
        words += (
            f"{counted(len(here), 'method')}, {counted(tasks, 'task')}, "
            f"{counted(sum(row.trials for row in found.rows), 'trial')}; test losses. "
        )
    return html.Div(
        html.Div(
            [
                html.H1("Which method?"),
                html.P([words, guide_link("methods", "What each does")], className="page-lead"),
            ]
        ),
        className="page-head",
    )


def _offer(bundle: BundleRead, *, writes: bool) -> Component:
    """Return how the comparison comes here: with one click, or trained by oneself."""
    ways = [button_link("Train it here", f"/new?preset={PRESET}", primary=False)]
    if writes:
        known = (
            bundle.model_copy(update={"state": "absent"}) if bundle.state == "loaded" else bundle
        )
        ways.insert(0, bundle_offer(known, "Load the comparison", primary=True))
    return html.Div(
        [
            dcc.Store(id=Bundle.LOADED),
            empty_state(
                "The comparison is not loaded",
                "It comes with Etascope, as the paper's reproduction does: bundled sets and "
                "networks, UCI tables, JSB Chorales. Load both, or train it here, as far as the "
                "data are; that takes half an hour.",
                *(ways if writes else ()),
            ),
        ],
        id=ids.OFFER,
    )


browser_callback(
    "function(loaded) { if (loaded) { window.location.reload(); } "
    "return window.dash_clientside.no_update; }",
    Output(ids.OFFER, "title"),  # never written: without it other pages' offers would call this
    Input(Bundle.LOADED, "data"),
    prevent_initial_call=True,
)


def _line(said: Said) -> Component:
    """Return a sentence whose question stands out, with what stands behind it folded."""
    asked = [html.B(f"{said.asked}: ")] if said.asked else []
    behind = html.Details([html.Summary("In full"), html.P(said.behind)], className="folded")
    return html.Li([*asked, said.told, *([behind] if said.behind else [])])


def sentences(found: ScorecardRead, titles: Mapping[str, str]) -> list[Said]:
    """Return what the scorecard says about families of methods; tasks by what they are called."""
    tasks = _by_task(found, titles)
    told = which_method(tasks, FAMILIES, SHORT)
    if told:
        told += _ranks_of(found.across, tasks, "tasks")
    return told or [Said("", "Too little has been trained yet.")]


def _by_task(found: ScorecardRead, titles: Mapping[str, str]) -> Tasks:
    tasks: Tasks = {}
    for row in found.rows:
        tasks.setdefault(titles.get(row.task, row.task), {}).setdefault(row.method, row.metrics)
    return tasks


def _ranks_of(across: AcrossRead | None, tasks: Tasks, noun: str) -> list[Said]:
    told = []
    for one in [] if across is None else across.ranks:
        part = "" if one.tasks == len(tasks) else f" of {len(tasks)}"
        over = f"{one.tasks}{part} {noun}, {RANKED[one.number]}"
        said = ranks_told(one.mean_ranks, one.critical_difference, over, SHORT)
        missing = f" {_unranked(tasks, one)}" if part else ""
        told.append(said._replace(behind=said.behind + missing))
    return told


def _unranked(tasks: Tasks, ranks: RanksRead) -> str:
    """Return which tasks are in no rank, and for want of which methods."""
    known = [one for one in ranks.mean_ranks if one in METHODS]
    wanting: dict[tuple[str, ...], list[str]] = {}
    for title, there in tasks.items():
        none = [m for m in known if m not in there or there[m][ranks.number].value is None]
        if none:
            wanting.setdefault(tuple(none), []).append(title)
    return " ".join(
        f"Not ranked on {', '.join(titles)}, for want of {', '.join(map(_short, none))}."
        for none, titles in wanting.items()
    )


def _short(name: str) -> str:
    """Return what a method is called, and why it may not have been trained."""
    method = METHODS[name]
    return (
        f"{method.short} (it needs a linear last layer)" if method.implicit_output else method.short
    )


def _graph() -> Component:
    return dcc.Graph(
        id=ids.GRAPH, figure=NOTHING_YET, config=graph_config("etascope-methods"), responsive=True
    )


@callback(
    Output(ids.GRAPH, "figure"),
    Output(ids.GRAPH, "style"),
    Input(shared.SCHEME, "data"),
    Input(shared.NARROW, "data"),
    State(ids.STUDY, "data"),
)
async def draw(scheme: str, narrow: bool, study_id: int) -> tuple[Any, Any]:
    """Draw ranks, profiles and chances over the tasks."""
    found = await ask(calls.scorecard(study_id, metric=METRIC))
    return await _drawn(found.across, scheme, narrow)


async def _drawn(across: AcrossRead | None, scheme: str, narrow: bool) -> tuple[Any, Any]:
    if across is None:
        return NOTHING_YET, {"display": "none"}
    picture = Picture(title="", metric=METRIC, scheme=scheme_of(scheme), narrow=bool(narrow))
    figure = await asyncio.to_thread(across_figure, across, picture)
    return figure, {"height": f"{figure.layout.height}px"}


def _table(found: ScorecardRead) -> Component:
    ranks = {} if found.across is None else {one.number: one for one in found.across.ranks}
    here = {row.method for row in found.rows}
    return html.Table(
        [
            html.Thead(html.Tr([html.Th(heading, scope="col") for heading in HEADINGS])),
            html.Tbody([_row(name, found, ranks) for name in METHODS if name in here]),
        ],
        className="table responsive",
    )


def _row(name: str, found: ScorecardRead, ranks: Mapping[Any, RanksRead]) -> Component:
    method = METHODS[name]
    cells = [
        html.Span([method_swatch(name), html.B(f" {method.title}")]),
        *(_rank(ranks.get(one), name) for one in ("best_mean", "lr_sensitivity")),
        _cost([row.metrics["step_cost"] for row in found.rows if row.method == name]),
        f"{counted(method.copies, 'number')} a weight" if method.copies else NONE,
        html.Span(with_code(method.further)),
    ]
    labels = (None, *HEADINGS[1:])  # the name tells what it is
    return html.Tr(
        [
            html.Td(cell, **({"data-label": label} if label else {}))
            for cell, label in zip(cells, labels, strict=True)
        ]
    )


def _rank(ranks: RanksRead | None, name: str) -> str:
    value = None if ranks is None else ranks.mean_ranks.get(name)
    return NONE if value is None else number(value, 2)


def _cost(costs: Sequence[NumberRead]) -> str:
    """Return the range of a step's cost over the tasks."""
    known = sorted(cost.value for cost in costs if cost.value is not None)
    if not known:
        return NONE
    low, high = number(known[0], 2), number(known[-1], 2)
    return low if low == high else f"{low} to {high}"


PAGE = Page("/methods", "Which method?", layout, navigation="Methods")
