"""What the README shows is executed, so that it stays true."""

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def section(title: str) -> str:
    text = README.read_text()
    return text.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]


def test_the_training_loop_runs_as_printed(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", section("Use it in your own training loop"), re.S)
    exec(compile(code, "README.md", "exec"), {})
    assert float(capsys.readouterr().out) < 0.1


def test_plain_sgd_explodes_at_the_rate_the_loop_uses():
    (code,) = re.findall(r"```python\n(.*?)```", section("Use it in your own training loop"), re.S)
    plain = code.replace(
        'ImplicitSGD(model, lr=10.0, output_loss="cross_entropy")',
        "torch.optim.SGD(model.parameters(), lr=10.0)",
    )
    assert plain != code
    found: dict[str, object] = {}
    exec(compile(plain, "README.md", "exec"), found)
    assert found["loss"].item() > 20


def test_every_picture_and_file_it_names_is_there():
    text = README.read_text()
    for name in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text):
        assert (README.parent / name).exists(), name
