import json

import pytest

from ib_core.errors import CorruptData, InvalidSpec
from ib_core.reproduction.studies import FORMAT, read_studies

SWEEP = {"task": "toy/quadratic", "learning_rates": [0.5], "seeds": 1, "epochs": 1}
STUDY = {
    "name": "text/toy",
    "title": "Toy",
    "question": "Does it diverge?",
    "preset": "",
    "sweeps": [SWEEP],
}


@pytest.fixture
def file(tmp_path):
    return tmp_path / "studies.json"


def write(file, *studies, **more):
    file.write_text(json.dumps({"format": FORMAT, "studies": studies, **more}))


def test_a_list_of_studies_is_read(file):
    write(file, STUDY)
    (study,) = read_studies(file)
    assert (study.name, len(list(study.trials()))) == ("text/toy", 2)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"format": 1,\n "studies": [', "line 2 is not JSON"),
        ("[]", "which format"),
        ('{"studies": []}', "which format"),
        ('{"format": 1}', "no list of studies"),
    ],
)
def test_a_file_that_is_no_list_is_named_with_its_line(file, text, why):
    file.write_text(text)
    with pytest.raises(CorruptData, match=why) as raised:
        read_studies(file)
    assert str(file) in raised.value.message
    assert raised.value.hint


def test_another_format_is_refused(file):
    write(file, STUDY, format=FORMAT + 1)
    with pytest.raises(InvalidSpec, match=f"has the format {FORMAT + 1}") as raised:
        read_studies(file)
    assert "newer" in raised.value.hint


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        ({k: v for k, v in STUDY.items() if k != "title"}, "no 'title'"),
        ("a study", "cannot be read"),
        ({**STUDY, "sweeps": [{**SWEEP, "task": "nothing"}]}, "called 'nothing'"),
        ({**STUDY, "sweeps": [{**SWEEP, "warmth": 1}]}, "warmth"),
        ({**STUDY, "sweeps": ["all"]}, "cannot be read"),
    ],
)
def test_a_study_that_is_not_whole_is_named_with_its_place(file, broken, why):
    write(file, STUDY, broken)
    with pytest.raises(CorruptData, match="study 2") as raised:
        read_studies(file)
    assert why in raised.value.message
