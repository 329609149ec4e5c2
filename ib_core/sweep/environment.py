"""What a result was made with: versions, device, threads and source revision."""

import platform
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import torch

from ib_core.errors import InvalidSpec


@cache
def source_revision() -> str | None:
    """Return the git commit of the source tree, `+` behind it if it has changes; None outside."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return None
    try:
        commit, changed = (
            subprocess.run(
                ["git", "-C", str(root), *command],
                capture_output=True,
                text=True,
                timeout=5,
                check=True,
            ).stdout.strip()
            for command in (("rev-parse", "--short=12", "HEAD"), ("status", "--porcelain", "-uno"))
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return commit + ("+" if changed else "")


def environment(device: torch.device) -> dict[str, str | int | None]:
    """Return the part of a trial's record that describes the machine and the software."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "platform": platform.system(),
        "device": str(device),
        "device_name": name,
        "threads": torch.get_num_threads(),
        "git": source_revision(),
    }


def choose_device(name: str = "auto") -> torch.device:
    """Return the torch device for `auto`, `cpu`, `cuda`, `cuda:1` or `mps`.

    Raises:
        InvalidSpec: If this machine has no such device.
    """
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    present = {
        "cpu": 1,
        "cuda": torch.cuda.device_count(),
        "mps": int(torch.backends.mps.is_available()),
    }
    kind, _, index = name.partition(":")
    number = int(index) if index.isdigit() else 0
    if kind not in present or (index and not index.isdigit()) or number >= present[kind]:
        have = ", ".join(kind for kind, count in present.items() if count)
        raise InvalidSpec(
            f"This machine has no device {name!r}; it has {have}.",
            field="device",
            hint="Use auto to take the best one there is.",
        )
    return torch.device(name)
