"""Which tests share a lane and which begin first, when pytest runs in several lanes (`-n`)."""

from xdist.scheduler import LoadFileScheduling

#: Tests of a browser look at one installation with one trained study: one lane makes it, once,
#: and few browsers compete. A newcomer and who logs in have installations of their own; scripts and
#: published pages need none.
SHARED = "tests/e2e"
ALONE = (f"{SHARED}/test_newcomer.py", f"{SHARED}/test_team.py")
WITHOUT = tuple(
    f"{SHARED}/test_{name}.py"
    for name in ("illustration_scripts", "illustration_twins", "published", "scripts")
)
#: What takes longest or waits most begins first: begun last, it would keep one lane busy alone.
LONGEST = (
    SHARED,
    "tests/integration",
    "tests/worker",
    ALONE[0],
    "tests/backend/test_schemathesis.py",
    "tests/backend/operations",
    ALONE[1],
    "tests/backend/bench",
    "tests/backend/cli",
    "tests/backend/matrix",
    "tests/test_docs.py",
    "tests/test_run_py.py",
    *WITHOUT,
)


class Lanes(LoadFileScheduling):
    """A file's tests run in one lane; files that share an installation share it too."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)


def scope_of(nodeid: str) -> str:
    """Return what a test is kept together with: its file, or all that looks at the same site."""
    file = nodeid.split("::", 1)[0]
    own = file in (*ALONE, *WITHOUT)
    return SHARED if file.startswith(f"{SHARED}/") and not own else file


def place_of(nodeid: str) -> int:
    """Return how early a test's file begins; what is named in full counts before its folder."""
    named = [start for start in LONGEST if nodeid.startswith(start)]
    return LONGEST.index(max(named, key=len)) if named else len(LONGEST)
