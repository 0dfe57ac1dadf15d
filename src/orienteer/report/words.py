"""Numbers and lists as people write them."""

import math
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

NOT_KNOWN = "not known"


def number(value: Any, digits: int = 3) -> str:
    """A number with ``digits`` digits and commas between thousands; anything else is "not known".

    >>> [number(v) for v in (1234567, 3.14159, 0.000123, None, float("nan"))]
    ['1,234,567', '3.14', '0.000123', 'not known', 'not known']
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return NOT_KNOWN
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{value:.{digits}g}"


def with_unit(value: Any, unit: str, digits: int = 3) -> str:
    """A number and its unit.

    >>> with_unit(12.345, "Å"), with_unit(None, "Å")
    ('12.3 Å', 'not known')
    """
    text = number(value, digits)
    return text if text == NOT_KNOWN else f"{text} {unit}"


def listed(parts: Sequence[str]) -> str:
    """The parts as a list in a sentence.

    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else "".join(parts)


def moment(text: Any) -> str:
    """A time of the log for people; a text that is not a time stays as it is.

    >>> moment("2026-11-15T13:18:23.688+00:00")
    '2026-11-15 13:18 UTC'
    """
    try:
        when = datetime.fromisoformat(str(text))
    except ValueError:
        return str(text)
    return f"{when:%Y-%m-%d %H:%M} {when.tzname() or ''}".strip()


def with_angstrom(text: str) -> str:
    """A text for the page from one for a terminal, which writes the unit Å as A.

    >>> with_angstrom("A diameter of 152 A, or 3 A^3 of it at 5 1/A")
    'A diameter of 152 Å, or 3 Å^3 of it at 5 1/Å'
    """
    return re.sub(r"(?<=\d )A(?![\w])|(?<=1/)A(?!\w)", "Å", text)


def sentence(text: str) -> str:
    """The text with a full stop and, unless it begins with the name of a file, a capital letter.

    >>> sentence("it does not exist"), sentence("runs/run.json: is damaged")
    ('It does not exist.', 'runs/run.json: is damaged.')
    """
    text = " ".join(text.split())
    if not text:
        return ""
    is_name = text.partition(" ")[0].endswith(":")
    return (
        (text[:1] if is_name else text[:1].upper())
        + text[1:]
        + ("" if text.endswith((".", "!", "?")) else ".")
    )
