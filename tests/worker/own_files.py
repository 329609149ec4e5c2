"""Users' files: a decent one in two versions, and one that does all that a worker must survive."""

from pathlib import Path

DECENT = """
import torch
import torch.nn.functional as F
from torch import nn

from ib_core import Data, Method, Task, whole


def model(width=3):
    return nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, 1))


def data():
    x = torch.linspace(-1, 1, 24).reshape(12, 2)
    return Data(train=(x, x.sum(1, keepdim=True) * FACTOR))


task = Task(model, data, loss=F.mse_loss, epochs=2, batch_size=6, options={"width": whole(1, 16)})
adamw = Method(torch.optim.AdamW)
"""

HOSTILE = """
import os
import sys

import torch
import torch.nn.functional as F
from torch import nn

from ib_core import Data, Task, choice


class Model(nn.Module):
    def __init__(self, how):
        super().__init__()
        self.how, self.layer = how, nn.Linear(2, 1)

    def forward(self, x):
        if self.how == "raises":
            raise ValueError("no luck")
        while self.how == "hangs":
            pass
        if self.how == "ends":
            os._exit(3)
        if self.how == "leaves":
            sys.exit(3)
        if self.how == "eats":
            torch.empty(10**16)
        if self.how == "misshapes":
            return self.layer(x.reshape(-1, 7))
        return self.layer(x) * (float("nan") if self.how == "nan" else 1.0)


def model(how="works"):
    return Model(how)


KINDS = ("works", "raises", "hangs", "ends", "leaves", "eats", "misshapes", "nan")
task = Task(
    model,
    Data(train=(torch.zeros(6, 2), torch.zeros(6, 1))),
    loss=F.mse_loss,
    batch_size=6,
    title="<img src=x onerror=alert(1)> <b>task</b>",
    options={"how": choice(*KINDS)},
)
"""


SPOILING = """
import torch

torch.set_default_dtype(torch.float64)
torch.nn.functional.cross_entropy = torch.manual_seed = torch.bmm = None
"""


def decent(folder: Path, factor: float = 1.0) -> Path:
    """Return a file with a task and a method; another factor is another version."""
    folder.mkdir(exist_ok=True)
    file = folder / "my_file.py"
    file.write_text(DECENT.replace("FACTOR", str(factor)))
    return file


def hostile(folder: Path) -> Path:
    """Return a file with a task that does what its option `how` says, once it trains."""
    folder.mkdir(exist_ok=True)
    file = folder / "hostile.py"
    file.write_text(HOSTILE)
    return file
