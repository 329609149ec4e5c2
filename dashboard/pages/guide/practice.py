"""The guide's sections about running, moving and citing studies.

The guide's sections about what is trained, and how.
"""

from dash import html

from backend.schemas import CatalogRead
from dashboard.components import code
from dashboard.pages.guide.material import Section, Term, points, prose, terms
from ib_core.methods import METHODS

PAPER = """@article{fagan2018robust,
  title   = {Robust Implicit Backpropagation},
  author  = {Fagan, Francois and Iyengar, Garud},
  journal = {arXiv preprint arXiv:1808.02433},
  year    = {2018}
}"""

TOOL = """@software{{etascope,
  title   = {{Etascope: learning-rate robustness studies}},
  author  = {{{{Etascope contributors}}}},
  note    = {{engine version {version}}},
  year    = {{2026}}
}}"""

CURL = """curl -X POST localhost:8050/api/studies \\
  -H 'Content-Type: application/json' -d '{"name": "Digits"}'
curl -X POST localhost:8050/api/studies/1/sweeps \\
  -H 'Content-Type: application/json' \\
  -d '{"task": "digits_mlp", "methods": ["eb", "ib"], "seeds": 3,
       "learning_rates": {"from": 0.01, "to": 100, "count": 9}}'
curl localhost:8050/api/studies/1/scorecard"""

PYTHON = """from backend.client import Client

with Client("http://127.0.0.1:8050") as client:
    study = client.create_study("Digits: EB against IB")
    sweep = client.submit(study.id, {"task": "digits_mlp", "methods": ["eb", "ib"],
                                     "learning_rates": [0.1, 1, 10], "seeds": 3})
    client.wait(sweep.id)
    print(client.scorecard(study.id))"""

SHELL = """etascope sweep digits_mlp --methods eb,ib --lrs 0.01:100:9 --csv runs.csv --png curve.png
etascope submit digits_mlp --methods eb,ib --lrs 0.01:100:9 --seeds 3
etascope submit --preset paper/05_jsb_chorales
etascope data list"""

CSV = """dataset,method,lr,seed,epochs,initial_loss,train_loss,test_loss
my_data,adam,0.001,1,10,2.30,0.21,0.25
my_data,adam,0.1,1,10,2.30,nan,nan"""

IMPORT = "curl --data-binary @runs.csv 'localhost:8050/api/import?name=My%20runs'"

CELLS = """from backend.client import Client

with Client("http://127.0.0.1:8050") as client:
    for cell in client.cells(12):
        for step in range(cell.epochs):
            loss = train(cell.method, cell.lr, cell.seed)
            if not cell.log(step, train_loss=loss):
                break  # cancelled, or given to another
        else:
            cell.finish(train_loss=loss)"""

AGENT = "etascope agent 12 -- python train.py --lr {lr} --seed {seed} --method {method}"

UNINSTALL = """etascope db backup keep.db      # if you want to keep the history
rm -rf ~/.local/share/etascope  # database, broker files, logs (or your ETASCOPE_HOME)
rm -rf .venv                    # in the project's folder; then the folder itself"""


def sections(catalog: CatalogRead) -> list[Section]:
    """Return how to work with Etascope outside of its pages."""
    return [
        _edge(),
        _elsewhere(),
        _import(),
        _interfaces(),
        _record(catalog),
        _cite(catalog),
        _uninstall(),
    ]


def _edge() -> Section:
    return Section(
        "edge-finder",
        "Finding the edge without a grid",
        (
            prose(
                "Under Learning rates, Find the edge asks only for the lowest and the highest "
                "rate and for a factor. A few rates over the whole range come first; then each "
                "seed's interval between its last sound and its first broken rate is halved until "
                "its ends lie within the factor. The study shows beside it how many trials a grid "
                "as fine would have taken."
            ),
            points(
                "A seed that breaks, holds and breaks again further up is told as such; its edge "
                "is the lowest of them.",
                "Narrow it, beside a gap of the strip, searches on within a smaller factor and "
                "trains only what is missing.",
                "In the shell: `etascope sweep digits_mlp --lrs edge:0.01:100:1.1`.",
            ),
        ),
    )


def _elsewhere() -> Section:
    return Section(
        "agents",
        "Training that happens elsewhere",
        (
            prose(
                "A sweep with `where: agents` waits for programs of your own, in JAX, on a "
                "cluster, in any language: each claims a cell, logs its losses and finishes it. A "
                "program that dies loses its cell after the lease, and another one trains it."
            ),
            code(CELLS, "A training loop as an agent"),
            code(AGENT, "Any command as an agent"),
        ),
    )


def _import() -> Section:
    return Section(
        "import",
        "Importing runs made elsewhere",
        (
            prose(
                "A CSV file, plain or gzip, with one line a run. Needed are `dataset` (or `task`), "
                "`method` and `lr`; the rest is optional: `seed`, `train_loss`, `test_loss`, "
                "`validation_loss`, `train_accuracy`, `test_accuracy`, `validation_accuracy`, "
                "`initial_loss`, `epochs`, `clip` (0 means none), `outcome`, `seconds`. Write "
                "a loss that is not a number as `nan` or `inf`: the run is then on the rail."
            ),
            code(CSV, "An example file"),
            code(IMPORT, "The call that imports it"),
            points(
                "A method `exact` is read as `isgd`. An export of Etascope can be imported as it "
                "is.",
                "Imported runs are grey, marked as imported, and overlaid like any other.",
                "An import is all or nothing: an unreadable line refuses the file and is named.",
            ),
        ),
    )


def _interfaces() -> Section:
    return Section(
        "api",
        "API, Python and the command line",
        (
            prose(
                "Everything on these pages comes from the HTTP API; a study's page offers its "
                "sweeps as curl and Python."
            ),
            html.A("Documentation of the API", href="/api/docs"),
            code(CURL, "A sweep by curl"),
            code(PYTHON, "A sweep in Python"),
            code(SHELL, "The command line"),
            prose(
                "`etascope sweep` trains here and needs no server; `etascope submit` hands the "
                "sweep to a running one. Where accounts are on, make a token on the account page "
                "and pass it as `ETASCOPE_TOKEN` or in the header `Authorization: Bearer`."
            ),
        ),
    )


def _record(catalog: CatalogRead) -> Section:
    return Section(
        "record",
        "What is recorded, and when runs are shared",
        (
            prose(
                "A run is addressed by its content: a fingerprint of everything that decides its "
                "result, from task, method, rate and seed to the hash of the data and the engine's "
                f"version (here {catalog.engine_version}). Two sweeps that contain the same "
                "fingerprint share the run: extending a grid or adding seeds trains only what is "
                "missing."
            ),
            points(
                "Versions of Python, torch, numpy and of the engine; the source's git revision.",
                "Device, its name and the number of threads.",
                "Seed; hashes of the data, the initial weights and the order of batches.",
                "Initial loss, losses by step, outcome; for a diverged run when and where.",
                "Results of different engine versions are never mixed silently.",
            ),
        ),
    )


def _cite(catalog: CatalogRead) -> Section:
    return Section(
        "cite",
        "How to cite",
        (
            prose("The method:"),
            code(PAPER, "BibTeX entry of the paper"),
            prose("The tool; name the engine's version, as only its results are comparable:"),
            code(TOOL.format(version=catalog.engine_version), "BibTeX entry of Etascope"),
        ),
    )


def _uninstall() -> Section:
    return Section(
        "uninstall",
        "Uninstalling",
        (
            prose(
                "Stop it with Ctrl-C. Everything it writes is in two folders: its home "
                "(`ETASCOPE_HOME`; on macOS `~/Library/Application Support/etascope`) and the "
                "environment `.venv` beside `run.py`. Data sets are below its home, unless "
                "`ETASCOPE_DATA_DIR` put them elsewhere."
            ),
            code(UNINSTALL, "The commands that remove it"),
        ),
    )


def learning_sections(catalog: CatalogRead) -> list[Section]:
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
