"""The guide's sections about what is trained, and how."""

from backend.schemas import CatalogRead
from dashboard.pages.guide.prose import Section, Term, prose, terms
from ib_core.methods import METHODS


def sections(catalog: CatalogRead) -> list[Section]:
    """Return what is compared with what."""
    return [_methods(catalog), _batch_rules(), _profiles()]


def _methods(catalog: CatalogRead) -> Section:
    return Section(
        "methods",
        "Methods",
        (
            terms(
                Term(
                    f"method-{method.name}",
                    method.title,
                    f"{method.summary} {_further(method.name)}".strip(),
                )
                for method in catalog.methods
            ),
            prose(
                "All methods with one seed start from the same weights and see the same batches; "
                "the record of every run holds the hashes that prove it."
            ),
        ),
    )


def _further(method: str) -> str:
    """Return what a reader of a curve should know beyond the catalogue's one sentence."""
    return METHODS[method].further if method in METHODS else ""


def _batch_rules() -> Section:
    return Section(
        "batch-rules",
        "Batch rules: own and share",
        (
            prose(
                "The paper defines IB for one data point. Its step is not linear in the gradient, "
                "so a batch (or a sequence) can be treated in two ways, and they differ:"
            ),
            terms(
                (
                    Term(
                        "own",
                        "own (default)",
                        "Every row solves its own problem with the gradient of its own loss, and "
                        "the steps are averaged. The paper's equation read literally.",
                    ),
                    Term(
                        "share",
                        "share",
                        "Every row solves with its share of the mean loss's gradient, and the "
                        "steps are summed. What the authors' runs did.",
                    ),
                )
            ),
            prose(
                "Neither is better everywhere: on music own is far more robust, on a relu "
                "autoencoder share may be. Curves with different rules are never averaged."
            ),
        ),
    )


def _profiles() -> Section:
    return Section(
        "profiles",
        "Profiles: text and authors",
        (
            prose(
                "The paper's text and its authors' recorded runs differ in details. A profile is "
                "a set of such details: initial weights, wiring, order of the data, how a loss is "
                "reported, and the batch rule."
            ),
            terms(
                (
                    Term(
                        "profile-text",
                        "text (default)",
                        "What the paper says: Glorot weights, separate random streams for weights, "
                        "order and dropout, data reshuffled every epoch, losses over the whole "
                        "set in evaluation mode, batch rule own.",
                    ),
                    Term(
                        "profile-authors",
                        "authors",
                        "What its published runs did: weights uniform between -0.1 and 0.1, one "
                        "random stream, data in the order of its file, batch rule share. It "
                        "reproduces the recorded numbers.",
                    ),
                )
            ),
        ),
    )
