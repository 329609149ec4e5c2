"""Every page, in the order of the navigation. A new one is a module with a `PAGE`, and a line.

| page | what it shows |
| --- | --- |
| `start` | an experiment to turn, a study that runs, and where to go from there |
| `history` | every study, filtered and paged by the API |
| `new_sweep` | what to train, and what that would cost |
| `study` | a study: its curve, live; scorecard, trials, notes |
| `trial` | one trial: its curve, its outcome, and what proves it |
| `compare` | several studies on one axis |
| `paper` | the paper's experiments beside this installation's |
| `which_method` | all methods on a few tasks with equal care, in words |
| `toy` | explicit against implicit descent on a one-dimensional loss |
| `updates` | one node's explicit and implicit step |
| `workers` | who trains, on what, and how much waits; your model: what workers bring along |
| `guide` | what every picture and number means; a page of its own for the numbers |
| `account`, `admin` | one's own account; everybody's, and what they did |
"""

from dashboard.pages import (
    account,
    admin,
    compare,
    guide,
    history,
    new_sweep,
    paper,
    start,
    study,
    toy,
    trial,
    updates,
    which_method,
    workers,
)
from dashboard.router import Page

__all__ = ["PAGES"]

PAGES: tuple[Page, ...] = (
    start.PAGE,
    history.PAGE,
    new_sweep.PAGE,
    study.PAGE,
    trial.PAGE,
    compare.PAGE,
    paper.PAGE,
    which_method.PAGE,
    toy.PAGE,
    updates.PAGE,
    workers.MODEL_PAGE,
    workers.PAGE,
    guide.PAGE,
    guide.NUMBERS_PAGE,
    account.PAGE,
    admin.PAGE,
)
