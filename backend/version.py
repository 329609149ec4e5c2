"""This installation's version."""

from importlib.metadata import PackageNotFoundError, version


def _installed() -> str:
    try:
        return version("etascope")
    except PackageNotFoundError:  # run from a source tree
        return "0.1.0"


VERSION = _installed()
