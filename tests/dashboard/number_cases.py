"""Texts people type into number fields: what is understood, and what is said to the rest.

The Python reader and the field in the browser are both held to these.
"""

from ib_core.written import NumberKind

RATE = NumberKind("A learning rate", 1e-12, 1e12, needed=True)
RIDGE = NumberKind("Ridge mu", 0, 1e6)
START = NumberKind("Start", -4, 4, needed=True)
POWER = NumberKind("Power", 0.5, 1, beyond=True)
EPOCHS = NumberKind("Epochs", 1, 10_000, whole=True)

WHOLE = "Epochs must be a whole number from 1 to 10,000; got"
CASES: tuple[tuple[NumberKind, str, float | str | None], ...] = (
    (RATE, "1e-4", 0.0001),
    (RATE, "1E-1", 0.1),
    (RATE, "1e\u22124", 0.0001),
    (RATE, ".5", 0.5),
    (RATE, "5.", 5),
    (RATE, "1_000", 1000),
    (RATE, "1_000.000_1", 1000.0001),
    (RATE, "+2", 2),
    (RATE, "  0.25\t", 0.25),
    (RATE, "\u00a00.25\u00a0", 0.25),
    (RATE, "007", 7),
    (RATE, "0.1", 0.1),
    (RATE, "1e12", 1e12),
    (RIDGE, "0", 0),
    (RIDGE, "-0", 0),
    (RIDGE, "", None),
    (RIDGE, "   ", None),
    (START, "-1.5", -1.5),
    (START, "\u22121.5", -1.5),
    (POWER, ".75", 0.75),
    (EPOCHS, "5", 5),
    (EPOCHS, "5.0", 5),
    (EPOCHS, "1e3", 1000),
    (EPOCHS, "", None),
    (RATE, "", "A learning rate is needed."),
    (RATE, "1,5", "Write 1.5, with a point; got 1,5."),
    (RATE, ",5", "Write .5, with a point; got ,5."),
    (EPOCHS, "2,5", "One whole number belongs here, without a comma; got 2,5."),
    (RATE, "16, 64", "One number belongs here, not a list; got 16, 64."),
    (RATE, "1 000", "One number belongs here, not a list; got 1 000."),
    (RATE, "1;2", "One number belongs here, not a list; got 1;2."),
    (RATE, "1,2,3", "One number belongs here, not a list; got 1,2,3."),
    (RATE, "abc", "That is no number: write it as 0.01 or 1e-2; got abc."),
    (RATE, "nan", "That is no number: write it as 0.01 or 1e-2; got nan."),
    (RATE, "inf", "That is no number: write it as 0.01 or 1e-2; got inf."),
    (RATE, "Infinity", "That is no number: write it as 0.01 or 1e-2; got Infinity."),
    (RATE, "0x10", "That is no number: write it as 0.01 or 1e-2; got 0x10."),
    (RATE, "1e", "That is no number: write it as 0.01 or 1e-2; got 1e."),
    (RATE, ".", "That is no number: write it as 0.01 or 1e-2; got .."),
    (RATE, "1__0", "That is no number: write it as 0.01 or 1e-2; got 1__0."),
    (RATE, "--1", "That is no number: write it as 0.01 or 1e-2; got --1."),
    (RATE, "10^-4", "That is no number: write it as 0.01 or 1e-2; got 10^-4."),
    (RATE, "٣", "That is no number: write it as 0.01 or 1e-2; got ٣."),
    (EPOCHS, "abc", "That is no number: write it as 20; got abc."),
    (RATE, "x" * 50, f"That is no number: write it as 0.01 or 1e-2; got {'x' * 40}…."),
    (RATE, "-5", "A learning rate must be above 0; got -5."),
    (RATE, "0", "A learning rate must be above 0; got 0."),
    (RATE, "1e13", "A learning rate must be a number from 1e-12 to 1e12; got 1e13."),
    (RATE, "1e999", "A learning rate must be a number from 1e-12 to 1e12; got 1e999."),
    (RATE, "1e-999", "A learning rate must be a number from 1e-12 to 1e12; got 1e-999."),
    (RIDGE, "1e-999", "Ridge mu must be a number from 0 to 1,000,000; got 1e-999."),
    (RIDGE, "-5", "Ridge mu must be a number from 0 to 1,000,000; got -5."),
    (START, "4.5", "Start must be a number from -4 to 4; got 4.5."),
    (POWER, "0.5", "Power must be a number above 0.5, at most 1; got 0.5."),
    (EPOCHS, "2.5", f"{WHOLE} 2.5."),
    (EPOCHS, "-5", f"{WHOLE} -5."),
    (EPOCHS, "0", f"{WHOLE} 0."),
    (EPOCHS, "10001", f"{WHOLE} 10001."),
)

#: Numbers, and how a field writes them.
WRITTEN: tuple[tuple[float | None, str], ...] = (
    (None, ""),
    (0, "0"),
    (1.0, "1"),
    (0.1, "0.1"),
    (0.0001, "0.0001"),
    (0.000001, "0.000001"),
    (1e-7, "1e-7"),
    (1.25e-12, "1.25e-12"),
    (100000000.0, "100000000"),
    (1e12, "1000000000000"),
    (0.1 + 0.2, "0.30000000000000004"),
    (-1.5, "-1.5"),
)
