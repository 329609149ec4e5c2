"""The report: one HTML file that opens offline, made from a bundle and the recorded runs."""

import gzip
import json
from base64 import b64encode
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from backend.paper import read_findings
from backend.paper.pictures import (
    Look,
    Panel,
    Variants,
    clip_picture,
    curve_picture,
    methods_of,
    panels_of,
    tables_picture,
    templates,
    uci_pictures,
)
from backend.schemas import ExperimentRead, PaperRead
from ib_core.datasets import data_dir
from ib_core.metrics import Number, number_text, rank_test
from ib_core.reproduction import (
    PLAN,
    Bundle,
    Evidence,
    Study,
    TableNumbers,
    by_table,
    find,
    recorded_evidence,
    runs_of,
    values_by_table,
)
from ib_core.sweep import TrialResult

UCI_METHODS = "beyond/uci_methods"
COMMAND = "etascope report paper --run --out paper.html"


@dataclass(frozen=True, slots=True)
class BeyondSection:
    """One study beyond the paper, as the report shows it."""

    study: Study
    panels: list[tuple[str, Panel]]
    trials: int
    planned: int


def write_report(bundle: Bundle, out: Path, *, look: Look) -> PaperRead:
    """Judge a bundle, write the report, and return what it says.

    Args:
        bundle: What was trained.
        out: The file.
        look: How its pictures are drawn.
    """
    paper = judge(bundle)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(_render(bundle, paper, look), encoding="utf-8")
    return paper


def judge(bundle: Bundle) -> PaperRead:
    """Return the verdicts on a bundle, beside the recorded runs."""
    results = list(bundle.results.values())
    measured = bundle.run_times().get("overheads", {})
    return read_findings(
        find(
            text=Evidence.of(runs_of(results, "text"), measured),
            authors=Evidence.of(runs_of(results, "authors")),
            recorded=recorded_evidence(),
        )
    )


def _render(bundle: Bundle, paper: PaperRead, look: Look) -> str:
    from plotly.offline import get_plotlyjs

    figures: dict[str, Variants] = {}
    for experiment in paper.experiments:
        figures |= _experiment_figures(experiment, look)
    figures |= uci_pictures(look, paper)
    beyond = [_beyond(study, bundle, figures, look) for study in PLAN.values() if _is_beyond(study)]
    on_tables = bundle.results_of(PLAN[UCI_METHODS])
    tables = by_table(on_tables)
    if tables:
        figures["uci-methods"] = tables_picture(look, tables)
    environment = Environment(
        loader=PackageLoader("backend.paper", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html").render(
        paper=paper,
        made=_made(bundle),
        beyond=[section for section in beyond if section.trials],
        uci_methods=_medians(tables, methods_of(look, tables)),
        uci_tables=len({row.dataset for row in tables}),
        uci_seeds=_seeds(on_tables),
        names={name: style.short for name, style in look.methods.items()},
        ranks=_ranks(tables),
        figures=_packed(figures),
        figure_ids=set(figures),
        templates=_script(templates(look)),
        plotly=Markup(get_plotlyjs().replace("</script", "<\\/script")),  # noqa: S704
        command=COMMAND,
        data_folder=str(data_dir()),
    )


def _is_beyond(study: Study) -> bool:
    return not study.preset and study.name != UCI_METHODS


def _experiment_figures(experiment: ExperimentRead, look: Look) -> dict[str, Variants]:
    found = {}
    for profile in (experiment.text, experiment.authors):
        is_text = profile is experiment.text
        name = "text" if is_text else "authors"
        series = profile.series if is_text else [*experiment.recorded, *profile.series]
        title = f"{experiment.title}, {name} profile"
        if series:
            found[f"{experiment.id}-{name}"] = curve_picture(
                look, series, title, threshold=profile.threshold
            )
        if profile.clipping:
            found[f"{experiment.id}-{name}-clipping"] = clip_picture(
                look, profile.clipping, f"{title}: clipped minus unclipped"
            )
    return found


def _beyond(
    study: Study, bundle: Bundle, figures: dict[str, Variants], look: Look
) -> BeyondSection:
    results = bundle.results_of(study)
    panels = []
    for number, panel in enumerate(panels_of(results)):
        name = f"{study.name.replace('/', '-')}-{number}"
        figures[name] = curve_picture(look, panel.series, panel.title, initial=panel.initial)
        panels.append((name, panel))
    return BeyondSection(study, panels, len(results), sum(1 for _ in study.trials()))


def _medians(tables: Sequence[TableNumbers], methods: Sequence[str]) -> list[dict[str, Any]]:
    """Return each method's medians over the tables."""
    rows = []
    for method in methods:
        own = [row.numbers for row in tables if row.method == method]
        times = [numbers["headroom"] for numbers in own]
        rows.append(
            {
                "method": method,
                "tables": len(own),
                "lr_sensitivity": _median([numbers["lr_sensitivity"] for numbers in own]),
                "headroom": _median(times),
                "headroom_bounds": sum(v.censored == "above" for v in times),
            }
        )
    return rows


def _ranks(tables: Sequence[TableNumbers]) -> list[dict[str, Any]]:
    """Return mean ranks over the tables, with the difference that cannot be told apart."""
    titles = {"best_mean": "Best training loss", "lr_sensitivity": "LR sensitivity"}
    found = []
    for name, title in titles.items():
        values, methods = values_by_table(tables, name), {row.method for row in tables}
        whole = any(all(row.get(one) is not None for one in methods) for row in values.values())
        if whole and len(methods) > 1:
            test = rank_test(values)
            found.append(
                {
                    "title": title,
                    "ranks": test.ranks,
                    "n": test.n,
                    "difference": test.critical_difference,
                }
            )
    return found


def _seeds(results: Sequence[TrialResult]) -> str:
    """Return how many seeds the tables have, `1` or `2 to 5`."""
    found = Counter(task for task, _ in {(one.spec.task, one.spec.seed) for one in results})
    few, many = min(found.values(), default=0), max(found.values(), default=0)
    return f"{few}" if few == many else f"{few} to {many}"


def _median(values: Sequence[Number]) -> str:
    """Return a median in words; one that a bound could move is a bound itself."""
    known = [(value.value, value.censored) for value in values if value.value is not None]
    if not known:
        return "–"
    middle = median(value for value, _ in known)
    low = any(side == "above" and value <= middle for value, side in known)
    high = any(side == "below" and value >= middle for value, side in known)
    words = {(True, False): "at least ", (False, True): "at most ", (True, True): "about "}
    return f"{words.get((low, high), '')}{number_text(middle)}"


def _made(bundle: Bundle) -> dict[str, Any]:
    """Return what the results were made with, and how many there are."""
    records = [result.record for result in bundle.results.values()]
    times = bundle.run_times()

    def values(name: str) -> list[str]:
        counts = Counter(str(record.get(name)) for record in records).most_common()
        if len(counts) == 1:
            return [counts[0][0]]
        return [f"{value} ({count:,})" for value, count in counts]

    return {
        "trials": len(records),
        "engine": values("engine"),
        "torch": values("torch"),
        "device": values("device_name"),
        "git": values("git"),
        "measured_on": times.get("measured_on", {}),
        "quartiles": times.get("quartiles", {}),
    }


def _packed(content: Any) -> str:
    """Return JSON compressed, as text: four variants of a picture differ in little."""
    plain = json.dumps(content, separators=(",", ":")).encode()
    return b64encode(gzip.compress(plain, mtime=0)).decode()


def _script(content: Any) -> Markup:
    """Return JSON that can stand inside a script element."""
    text = json.dumps(content, separators=(",", ":")).replace("<", "\\u003c")
    return Markup(text)  # noqa: S704 - nothing in it can end the element
