"""The guide's sections about what is trained, and how."""

from backend.schemas import CatalogRead
from dashboard.pages.guide.prose import Section, Term, prose, terms

#: What a reader of a curve should know beyond the catalogue's one sentence.
FURTHER = {
    "eb": "The yardstick: headroom and threshold are measured against it.",
    "ib": (
        "It costs a little more time a step than EB, and as the rate goes to 0 it becomes EB. "
        "Convolutions have no implicit step and are trained explicitly."
    ),
    "ib_plus": (
        "IB linearises the loss above every layer, so its last layer still takes steps of "
        "explicit size; IB+ solves that layer with its loss. Only for a linear last layer under "
        "squared error or softmax cross-entropy."
    ),
    "isgd": (
        "By default 100 inner gradient steps at a tenth of the rate. `text` pulls back with "
        "weight 1/rate, as the paper writes; `authors` with weight 1, as its runs did."
    ),
    "momentum": "For comparison; torch's own.",
    "adam": "For comparison; torch's own.",
}


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
                    f"{method.summary} {FURTHER.get(method.name, '')}".strip(),
                )
                for method in catalog.methods
            ),
            prose(
                "All methods with one seed start from the same weights and see the same batches; "
                "the record of every run holds the hashes that prove it."
            ),
        ),
    )


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
