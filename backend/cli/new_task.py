"""`etascope new-task`: a file to begin with, which runs as it is."""

from pathlib import Path
from typing import Annotated

import typer

from ib_core.errors import InvalidSpec

STARTING_FILE = '''"""A task of your own.

etascope sweep {name}:task --methods {name}:adamw,eb --vary width=16,64
"""

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

from ib_core import Data, Method, Task, choice, number, whole


# Any function that returns an nn.Module. It is called after torch.manual_seed(seed) with the
# options below by name, so that all methods of a seed start from the same weights.
def model(width=32, depth=2, norm="batch", dropout=0.0):
    layers, side = [], 64
    for _ in range(depth):
        layers.append(nn.Linear(side, width))
        if norm == "batch":
            layers.append(nn.BatchNorm1d(width))
        layers += [nn.ReLU(), nn.Dropout(dropout)]
        side = width
    return nn.Sequential(*layers, nn.Linear(side, 10))


# Pairs of tensors, or map-style data sets of pairs; called once.
def data():
    x, y = (torch.as_tensor(part) for part in load_digits(return_X_y=True))
    x = x.float() / 16
    return Data(train=(x[:1500], y[:1500]), test=(x[1500:], y[1500:]))


task = Task(
    model,
    data,
    loss=F.cross_entropy,  # loss(output, target): the mean over rows
    epochs=1,
    batch_size=50,
    learning_rates=(0.001, 0.01, 0.1, 1.0),  # where a sweep names none
    seeds=3,
    options={{  # what a sweep may change, with --vary
        "width": whole(4, 512),
        "depth": whole(1, 8),
        "norm": choice("batch", "none"),
        "dropout": number(0, 0.9),
    }},
)

# Any optimizer class, or any function (params, lr, **options) that returns an optimizer. Torch's
# own need no entry here: --methods torch.optim.RAdam.
adamw = Method(torch.optim.AdamW, options={{"weight_decay": number(0, 10)}})
'''


def new_task(
    file: Annotated[Path, typer.Argument(help="A file that does not exist yet, as my_file.py.")],
) -> None:
    """Write a commented file with a task and a method of your own, which runs at once."""
    if file.suffix != ".py":
        raise InvalidSpec(f"A task lies in a Python file, as my_file.py; got {file.name}.")
    if file.exists():
        raise InvalidSpec(f"{file} exists already; nothing was written.")
    try:
        file.write_text(STARTING_FILE.format(name=file.name), "utf-8")
    except OSError as error:
        raise InvalidSpec(f"Cannot write {file}: {error.strerror}.") from None
    typer.echo(f"Wrote {file}. Next:")
    typer.echo(f"  etascope sweep {file}:task --methods {file}:adamw,eb --vary width=16,64")
