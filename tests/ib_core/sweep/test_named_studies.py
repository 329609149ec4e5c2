"""The studies by name: runnable on what comes with the program, small, and with a picture."""

import pytest

from ib_core.sweep import PRESETS
from ib_core.sweep.bodies import specs_of
from ib_core.sweep.named_studies import STUDIES
from ib_core.tasks import find_task

#: Views of a study's page.
PICTURES = {"curves", "map", "against", "steps", "best_of", "across"}
BUNDLED = {"digits", "iris", "wine", "breast_cancer", "python_zen", "procedural_music"}


def test_the_ten_are_there():
    assert len(STUDIES) == 10
    assert [name for name in PRESETS if name.startswith("study/")] == [
        f"study/{study.name}" for study in STUDIES
    ]


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_a_study_needs_no_download_and_few_trials(study):
    specs = specs_of({"preset": f"study/{study.name}"})
    assert {find_task(spec.task).dataset for spec in specs} <= BUNDLED
    assert sum(spec.size for spec in specs) <= 1000
    assert PRESETS[f"study/{study.name}"].picture in PICTURES
    assert study.summary.endswith((".", "?"))


def test_a_study_s_settings_can_be_said_beside_it():
    specs = specs_of({"preset": "study/scale", "width": [4, 8], "seeds": 1})
    assert [spec.options.width for spec in specs] == [4, 8]
    (slow,) = specs_of({"preset": "study/warmup", "warmup": 7, "seeds": 1})
    assert all("warmup=7" in method for method in slow.methods)
