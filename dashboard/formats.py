"""Numbers in words a person reads: three significant digits, units always."""

import math

_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_UNITS = ("B", "kB", "MB", "GB", "TB")
NONE = "–"


def number(value: float | None, digits: int = 3) -> str:
    """Return a number with so many significant digits.

    Scientific notation only below .001 and above 9999; what is not a number is a dash.
    """
    if value is None or not math.isfinite(value):
        return NONE
    if value == 0:
        return "0"
    text = f"{value:.{digits - 1}e}"
    mantissa, exponent = text.split("e")
    power = int(exponent)
    if -3 <= power <= 3 or 0.001 <= abs(value) < 10_000:
        return _trimmed(f"{float(text):.{max(0, digits - 1 - power)}f}")
    return f"{_trimmed(mantissa)}×10{str(power).translate(_SUPERSCRIPT)}".replace("-", "−")


def _trimmed(text: str) -> str:
    short = text.rstrip("0").rstrip(".") if "." in text else text
    return short.replace("-", "−")


def signed(value: float | None) -> str:
    """Return a difference, with its sign."""
    text = number(value)
    return f"+{text}" if value is not None and math.isfinite(value) and value > 0 else text


def count(value: int | None) -> str:
    """Return a whole number with its thousands set apart."""
    return NONE if value is None else f"{value:,}".replace(",", "\u202f")


def percent(share: float | None) -> str:
    """Return a share of one as a percentage."""
    return NONE if share is None else f"{number(100 * share)} %"


def duration(seconds: float | None) -> str:
    """Return a length of time in its two largest units."""
    if seconds is None or not math.isfinite(seconds):
        return NONE
    if seconds < 0.9995:
        return f"{number(1000 * seconds)} ms"
    if seconds < 10:
        return f"{number(seconds)} s"
    whole = round(seconds)
    for name, size, part, smaller in (("d", 86400, "h", 3600), ("h", 3600, "min", 60)):
        if whole >= size:
            rest = whole % size // smaller
            return f"{whole // size} {name}" + (f" {rest} {part}" if rest else "")
    if whole >= 60:
        return f"{whole // 60} min" + (f" {whole % 60} s" if whole % 60 else "")
    return f"{whole} s"


def rough(seconds: float) -> str:
    """Return an estimated length of time, no finer than an estimate is: it would only flicker."""
    if seconds < 7.5:
        return "a few seconds"
    if seconds < 55:
        return f"{round(seconds) if seconds < 20 else 5 * round(seconds / 5)} s"
    if seconds < 225:
        return duration(30 * round(seconds / 30))
    minutes = round(seconds / 60)
    if minutes < 58:
        return f"{minutes if minutes < 10 else 5 * round(minutes / 5)} min"
    return duration(600 * round(seconds / 600))


def size(count_of_bytes: float | None) -> str:
    """Return an amount of memory."""
    if count_of_bytes is None:
        return NONE
    amount, unit = float(count_of_bytes), 0
    while amount >= 999.5 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1000, unit + 1
    return f"{number(amount)} {_UNITS[unit]}"


def counted(amount: int, noun: str, plural: str | None = None) -> str:
    """Return "1 seed" or "3 seeds"."""
    return f"{count(amount)} {noun if amount == 1 else plural or noun + 's'}"
