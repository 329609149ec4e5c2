import inspect

import pytest

from ib_core import metrics
from ib_core.metrics.registry import METRICS


@pytest.mark.parametrize("metric", METRICS.values(), ids=lambda metric: metric.name)
def test_every_function_quotes_the_definition_that_screens_show(metric):
    quoted = " ".join(inspect.getdoc(metric.function).split())
    assert metric.definition in quoted


@pytest.mark.parametrize("metric", METRICS.values(), ids=lambda metric: metric.name)
def test_every_metric_has_a_title_a_unit_and_a_source(metric):
    assert metric.title
    assert metric.unit
    assert metric.citation
    assert metric.definition.endswith((".", '").'))


def test_every_public_name_exists():
    assert all(hasattr(metrics, name) for name in metrics.__all__)
