"""Networks of today, small, by the contract that anybody's are: a GPT, a residual CNN, an LSTM.

All of them read data that come with the program or with Python, and are ordinary torch modules:
nothing here knows about stacks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ib_core.options import choice, whole
from ib_core.tasks.task import Data, Task

if TYPE_CHECKING:
    from torch import Tensor, nn

#: Bytes a GPT reads at once, and bytes there are.
CONTEXT, BYTES = 32, 256
#: Where muP is the standard network; see `ib_core.tasks.networks`.
BASE_WIDTH = 32
#: Frames of music an LSTM reads at once, and notes there are.
FRAMES, NOTES = 24, 88


def _gpt(width: int = 32, depth: int = 2, scaling: str = "standard") -> nn.Module:
    from ib_core.tasks.modules import GPT
    from ib_core.tasks.networks import Scaling

    return GPT(BYTES, CONTEXT, width, depth, Scaling(scaling, width / BASE_WIDTH))


def _mlp(
    width: int = 32, depth: int = 2, scaling: str = "standard", norm: str = "none"
) -> nn.Module:
    from ib_core.tasks.modules import MLP
    from ib_core.tasks.networks import Scaling

    return MLP(64, 10, width, depth, Scaling(scaling, width / BASE_WIDTH), norm)


def _residual(width: int = 8, depth: int = 2) -> nn.Module:
    from ib_core.tasks.modules import ResidualCNN

    return ResidualCNN(width, depth)


def _lstm(width: int = 32, depth: int = 1) -> nn.Module:
    from ib_core.tasks.modules import NextChord

    return NextChord(NOTES, width, depth)


def _text() -> Data:
    """Return windows of The Zen of Python, each with itself one byte on."""
    from ib_core.datasets import Split, load_dataset

    dataset = load_dataset("python_zen")
    assert isinstance(dataset.train, Split)
    assert isinstance(dataset.test, Split)
    return Data(
        train=(dataset.train.x.long(), dataset.train.y.long()),
        test=(dataset.test.x.long(), dataset.test.y.long()),
    )


def _digits() -> Data:
    from ib_core.datasets import Split, load_dataset

    dataset = load_dataset("digits")
    assert isinstance(dataset.train, Split)
    assert isinstance(dataset.test, Split)
    return Data(train=(dataset.train.x, dataset.train.y), test=(dataset.test.x, dataset.test.y))


def _images() -> Data:
    from ib_core.datasets import Split, load_dataset

    dataset = load_dataset("digits")
    assert isinstance(dataset.train, Split)
    assert isinstance(dataset.test, Split)
    return Data(
        train=(dataset.train.x.view(-1, 1, 8, 8), dataset.train.y),
        test=(dataset.test.x.view(-1, 1, 8, 8), dataset.test.y),
    )


def _chords() -> Data:
    """Return windows of the procedural pieces, each with itself one frame on."""
    import torch

    from ib_core.datasets import Pieces, load_dataset

    dataset = load_dataset("procedural_music")

    def windows(pieces: Any) -> tuple[Tensor, Tensor]:
        assert isinstance(pieces, Pieces)
        cut = [
            piece[start : start + FRAMES + 1].float()
            for piece in pieces
            for start in range(0, len(piece) - FRAMES, FRAMES)
        ]
        whole_windows = torch.stack(cut)
        return whole_windows[:, :-1], whole_windows[:, 1:]

    return Data(train=windows(dataset.train), test=windows(dataset.test))


def _next_byte(output: Tensor, target: Tensor) -> Tensor:
    import torch.nn.functional as F

    return F.cross_entropy(output.flatten(0, 1), target.flatten())


def _right_bytes(output: Tensor, target: Tensor) -> Tensor:
    return (output.argmax(-1) == target).to(output.dtype).mean()


def _of_classes(output: Tensor, target: Tensor) -> Tensor:
    import torch.nn.functional as F

    return F.cross_entropy(output, target)


def _right_classes(output: Tensor, target: Tensor) -> Tensor:
    return (output.argmax(-1) == target).to(output.dtype).mean()


def _notes(output: Tensor, target: Tensor) -> Tensor:
    import torch.nn.functional as F

    return F.binary_cross_entropy_with_logits(output, target)


_SCALING = choice(
    "standard",
    "mup",
    "mup_adam",
    help="Of layers over width 32: muP for SGD's kind of steps, or for Adam's.",
    later=True,
)
MODERN = (
    Task(
        _gpt,
        _text,
        loss=_next_byte,
        metric=_right_bytes,
        epochs=2,
        batch_size=8,
        options={
            "width": whole(8, 512, help="Numbers a byte is told by; heads of 8."),
            "depth": whole(1, 12, help="Blocks of attention and two layers."),
            "scaling": _SCALING,
        },
        learning_rates=(1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0),
        seeds=2,
        name="gpt_bytes",
        title="The Zen of Python, small GPT",
        summary="Predict the next byte of The Zen of Python with a small transformer.",
        source="beyond the paper",
        dataset="python_zen",
    ),
    Task(
        _mlp,
        _digits,
        loss=_of_classes,
        metric=_right_classes,
        epochs=5,
        batch_size=50,
        options={
            "width": whole(2, 4096, help="Relus of every layer."),
            "depth": whole(1, 16, help="Layers of relus."),
            "scaling": _SCALING,
            "norm": choice(
                *("none", "layer", "batch"),
                help="Before every layer's relus: LayerNorm, or BatchNorm.",
                later=True,
            ),
        },
        learning_rates=(0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0),
        seeds=3,
        name="digits_wide",
        title="Digits, relu MLP of any width",
        summary="Layers of relus of one width on 8x8 digits; muP scaling and norms as options.",
        source="beyond the paper",
        dataset="digits",
    ),
    Task(
        _residual,
        _images,
        loss=_of_classes,
        metric=_right_classes,
        epochs=2,
        batch_size=50,
        options={
            "width": whole(2, 256, help="Filters of every convolution."),
            "depth": whole(1, 16, help="Residual blocks."),
        },
        learning_rates=(0.001, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0),
        seeds=2,
        name="digits_resnet",
        title="Digits, residual CNN",
        summary="Residual blocks of two convolutions with BatchNorm on 8x8 digits.",
        source="beyond the paper",
        dataset="digits",
    ),
    Task(
        _lstm,
        _chords,
        loss=_notes,
        epochs=5,
        batch_size=10,
        options={
            "width": whole(4, 512, help="Units of every layer."),
            "depth": whole(1, 4, help="Layers."),
        },
        learning_rates=(0.01, 0.1, 0.3, 1.0, 3.0, 10.0),
        seeds=2,
        name="procedural_lstm",
        title="Procedural music, LSTM",
        summary="Predict the next frame of 88 notes with torch's LSTM.",
        source="beyond the paper",
        dataset="procedural_music",
    ),
)
