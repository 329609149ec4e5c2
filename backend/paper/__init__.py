"""The paper's reproduction: training it, keeping it, judging it and showing it."""
