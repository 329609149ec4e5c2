"""Every page, in the order of the navigation. A new one is a module with a `PAGE`, and a line."""

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
    workers,
)
from dashboard.router import Page

PAGES: tuple[Page, ...] = (
    start.PAGE,
    history.PAGE,
    new_sweep.PAGE,
    study.PAGE,
    trial.PAGE,
    compare.PAGE,
    paper.PAGE,
    toy.PAGE,
    updates.PAGE,
    workers.PAGE,
    guide.PAGE,
    account.PAGE,
    admin.PAGE,
)
