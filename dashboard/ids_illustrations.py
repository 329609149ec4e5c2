"""Ids of the illustrated pages' components that callbacks know."""


class Toy:
    """Descent on a one-dimensional loss."""

    LOSS = "toy-loss"
    CURVATURE = "toy-curvature"
    START = "toy-start"
    RATE = "toy-rate"
    RATE_MARK = "toy-rate-mark"
    STEPS = "toy-steps"
    LOG = "toy-log"
    PAPER = "toy-paper"
    FIGURES = "toy-figures"
    LOOKS = "toy-looks"
    EXPLICIT = "toy-explicit"
    IMPLICIT = "toy-implicit"
    LOSSES = "toy-losses"
    THETAS = "toy-thetas"
    WORDS = "toy-words"
    AT = "toy-at"
    AT_WORDS = "toy-at-words"
    PLAY = "toy-play"
    BACK = "toy-back"
    NEXT = "toy-next"
    TICK = "toy-tick"


class Updates:
    """One node's update."""

    ACTIVATION = "updates-activation"
    PUSH = "updates-push"
    PLACE = "updates-place"
    RATE = "updates-rate"
    INPUT = "updates-input"
    RIDGE = "updates-ridge"
    SPAN = "updates-span"
    RULE = "updates-rule"
    LOOKS = "updates-looks"
    PAPER = "updates-paper"
    DOWN = "updates-down"
    UP = "updates-up"
    DOWN_WORDS = "updates-down-words"
    UP_WORDS = "updates-up-words"
    NOTE = "updates-note"


class Guide:
    """What the pictures mean."""

    CONTENT = "guide-content"
