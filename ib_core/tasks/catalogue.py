"""The tasks themselves: the paper's experiments, and the same networks on bundled data."""

from dataclasses import replace

from ib_core.datasets import UCI_NAMES
from ib_core.tasks.modern import MODERN
from ib_core.tasks.paper import PaperTask
from ib_core.tasks.task import CONV_FILTERS, Defaults, Recipe, Task

UCI_RATES = (0.001, 0.01, 0.1, 0.5, 1.0, 3.0, 5.0, 10.0, 30.0, 50.0)
MUSIC_RATES = (0.5, 2.0, 5.0, 20.0, 50.0, 200.0, 500.0)
AUTOENCODER_WIDTHS = (500, 300, 100, 30, 100, 300, 500)


def _square(inputs: int, outputs: int, recipe: Recipe) -> tuple[int, ...]:
    """Return `depth` hidden layers of one width, by default three as wide as the input."""
    return (inputs, *[recipe.width or inputs] * (recipe.depth or 3), outputs)


def _hourglass(inputs: int, outputs: int, recipe: Recipe) -> tuple[int, ...]:
    """Return 784:500:300:100:30:100:300:500:784, or the same shape for a smaller input.

    `width` scales the widest hidden layer, and the others with it.
    """
    scale = (recipe.width or max(2, inputs * 500 // 784)) / 500
    return (inputs, *(max(1, round(width * scale)) for width in AUTOENCODER_WIDTHS), outputs)


def _recurrent(inputs: int, outputs: int, recipe: Recipe) -> tuple[int, ...]:
    return (inputs, recipe.width or 300, outputs)


def _single(inputs: int, outputs: int, recipe: Recipe) -> tuple[int, ...]:
    del recipe
    return (inputs, outputs)


def _after_convolutions(features: int, outputs: int, recipe: Recipe) -> tuple[int, ...]:
    return (features, recipe.width or 50, outputs)


_UCI = PaperTask(
    name="uci",
    title="UCI, three arctan layers",
    dataset="uci",
    family="dense",
    loss="cross_entropy",
    activation="arctan",
    output="linear",
    layers=_square,
    text=Defaults(epochs=10, batch_size=100, learning_rates=UCI_RATES, seeds=5),
    source="Sec. 5, App. E.4",
    summary="A table of the UCI collection: three arctan layers as wide as it has columns.",
)
_MUSIC = PaperTask(
    name="music",
    title="Music, arctan RNN",
    dataset="music",
    family="music",
    loss="note_loss",
    activation="arctan",
    output="arctan",
    layers=_recurrent,
    text=Defaults(epochs=5, batch_size=1, learning_rates=MUSIC_RATES, seeds=5),
    adjustable=frozenset({"width"}),
    fixed_batch_size=1,
    source="Sec. 5, App. D.3",
    summary="Predict the next frame of 88 notes; a simple recurrent network of 300 units.",
    sizes=(88, 88),
)
_CLASSIFIER = PaperTask(
    name="mnist_classifier",
    title="MNIST, convolutional classifier",
    dataset="mnist",
    family="conv",
    loss="cross_entropy",
    activation="arctan",
    output="relu",
    layers=_after_convolutions,
    text=Defaults(
        epochs=1,
        batch_size=100,
        learning_rates=(0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0),
        seeds=20,
    ),
    adjustable=frozenset({"width"}),
    evaluate_at=(0.02, 0.1, 0.3, 0.6),
    source="Sec. 5, App. D.3",
    summary="Two explicit convolutions, then an implicit arctan and an implicit relu layer.",
    filter_sizes=(5, 5),
    sizes=(320, 10),
)
_AUTOENCODER = PaperTask(
    name="mnist_autoencoder",
    title="MNIST, relu autoencoder",
    dataset="mnist",
    family="dense",
    loss="squared_error",
    activation="relu",
    output="relu",
    layers=_hourglass,
    text=Defaults(
        epochs=1, batch_size=100, learning_rates=(0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0), seeds=5
    ),
    authors=Defaults(
        epochs=1,
        batch_size=1,
        learning_rates=(
            *(0.0001, 0.001, 0.0025, 0.005, 0.006, 0.007),
            *(0.008, 0.009, 0.01, 0.0125, 0.015, 0.02),
        ),
        seeds=5,
    ),
    adjustable=frozenset({"width"}),
    evaluate_at=(0.02, 0.1, 0.3, 0.6),
    targets="input",
    source="Sec. 5, App. D.3",
    summary="784:500:300:100:30:100:300:500:784 relu units that rebuild their input.",
    sizes=(784, 784),
)
_MUSIC_TITLES = {
    "jsb_chorales": "JSB Chorales",
    "musedata": "MuseData",
    "nottingham": "Nottingham",
    "piano_midi": "Piano-midi.de",
}
_BUNDLED_TITLES = {
    "iris": ("Iris", (4, 3)),
    "wine": ("Wine", (13, 3)),
    "breast_cancer": ("Breast cancer", (30, 2)),
}
_OFFLINE = Defaults(epochs=10, batch_size=100, learning_rates=(0.1, 0.3, 1, 3, 10, 30), seeds=5)

TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        _CLASSIFIER,
        _AUTOENCODER,
        *(
            replace(_MUSIC, name=f"music/{name}", title=f"{title}, arctan RNN", dataset=name)
            for name, title in _MUSIC_TITLES.items()
        ),
        replace(
            _UCI,
            name="digits_mlp",
            title="Digits, three arctan layers",
            dataset="digits",
            source="after Sec. 5",
            summary="Handwritten digits of 8x8 pixels; the paper's UCI network, no download.",
            text=Defaults(5, 50, (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0), 5),
            sizes=(64, 10),
        ),
        replace(
            _AUTOENCODER,
            name="digits_autoencoder",
            title="Digits, relu autoencoder",
            dataset="digits",
            source="after Sec. 5",
            summary="The paper's autoencoder scaled to digits of 8x8 pixels, no download.",
            text=replace(_OFFLINE, learning_rates=(0.1, 0.3, 1.0, 3.0, 10.0, 30.0)),
            authors=None,
            evaluate_at=(),
            sizes=(64, 64),
        ),
        replace(
            _CLASSIFIER,
            name="digits_conv",
            title="Digits, convolutional classifier",
            dataset="digits",
            source="after Sec. 5",
            summary="The paper's classifier on digits of 8x8 pixels, no download.",
            text=Defaults(5, 50, (0.03, 0.1, 0.3, 1.0, 3.0), 5),
            evaluate_at=(),
            filter_sizes=(3, 2),
            sizes=(CONV_FILTERS[1], 10),
        ),
        replace(
            _MUSIC,
            name="music/procedural",
            title="Procedural music, arctan RNN",
            dataset="procedural_music",
            source="after Sec. 5",
            summary="Chords made by a small generator; the paper's RNN with 100 units.",
            text=Defaults(5, 1, (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0), 3),
            layers=lambda i, o, recipe: (i, recipe.width or 100, o),
        ),
        *(
            replace(
                _UCI,
                name=f"bundled/{name}",
                title=f"{title}, three arctan layers",
                dataset=name,
                source="after Sec. 5",
                summary=f"The {title.lower()} data that come with scikit-learn; no download.",
                sizes=sizes,
            )
            for name, (title, sizes) in _BUNDLED_TITLES.items()
        ),
        *MODERN,  # gpt_bytes, digits_wide, digits_resnet, procedural_lstm
        replace(
            _UCI,
            name="toy/quadratic",
            title="The quadratic theta²/2",
            dataset="toy_quadratic",
            loss="half_squared_error",
            activation="linear",
            layers=_single,
            text=Defaults(1, 1, (0.1, 0.5, 1.0, 1.5, 1.75, 2.0, 2.5, 3.0), 3),
            adjustable=frozenset(),
            source="Fig. 1",
            summary="One weight and the loss theta²/2: explicit steps diverge above rate 2.",
            sizes=(1, 1),
        ),
        *(
            replace(
                _UCI,
                name=f"uci/{name}",
                title=f"UCI {name}, three arctan layers",
                dataset=f"uci/{name}",
            )
            for name in UCI_NAMES
        ),
    )
}
