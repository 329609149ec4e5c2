"""A study that is trained in a moment."""

from ib_core.reproduction.studies import Portion, Study

TOY = {
    "task": "toy/quadratic",
    "methods": ["eb", "ib"],
    "learning_rates": [0.5, 3.0],
    "seeds": 2,
    "epochs": 1,
}
STUDY = Study("text/toy", "Toy", "Does it diverge?", (Portion(TOY),))
