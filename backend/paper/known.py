"""Where a trial may already have been trained: the shipped bundle and the local database."""

from collections.abc import Mapping, Sequence

from ib_core.reproduction import Bundle, Finder, shipped_folder
from ib_core.sweep import TrialResult


def everywhere(own: Bundle) -> Finder:
    """Return a finder that asks the shipped bundle, then the local database."""

    def find(addresses: Sequence[str]) -> Mapping[str, TrialResult]:
        found = _in_shipped(own, set(addresses))
        rest = [address for address in addresses if address not in found]
        return {**found, **_in_database(rest)}

    return find


def _in_shipped(own: Bundle, addresses: set[str]) -> dict[str, TrialResult]:
    folder = shipped_folder()
    if not folder.is_dir() or folder.resolve() == own.folder.resolve():
        return {}
    return {
        result.fingerprint: result
        for result in Bundle(folder).results.values()
        if result.fingerprint in addresses
    }


def _in_database(addresses: Sequence[str]) -> dict[str, TrialResult]:
    """Return what the database of this installation has; nothing where there is none yet."""
    from backend.services.bundles.stored import stored_results

    return stored_results(addresses)
