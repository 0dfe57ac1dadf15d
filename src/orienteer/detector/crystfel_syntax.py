"""The syntax of CrystFEL geometry files: lines, numbers with units, vectors such as ``+0.99x -0.01y``."""

import re
from dataclasses import dataclass
from math import isfinite
from os import PathLike

from orienteer.errors import FileError

LARGEST_TEXT_BYTES = 1 << 26
_SIZE = r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_TERM = re.compile(rf"([+-]?)\s*({_SIZE})?\s*([xyz])\s*")
_QUANTITY = re.compile(rf"([+-]?{_SIZE})\s*([A-Za-z]*)")


@dataclass(frozen=True)
class Directive:
    """One line ``owner/key = value``; the owner is a panel or a bad region, None for the whole detector."""

    path: str
    line: int
    owner: str | None
    key: str
    value: str

    def error(self, reason: str, hint: str = "") -> FileError:
        """A FileError that names the line."""
        return FileError(self.path, f"line {self.line}: {reason}", hint)

    def number(self) -> float:
        """The value as a finite number."""
        number = _finite(self.value)
        if number is None:
            raise self.error(f"'{self.key}' needs a number, not '{_short(self.value)}'.")
        return number

    def integer(self) -> int:
        """The value as a whole number; ``12.0`` is one, and so is ``0x1f``."""
        if re.fullmatch(r"0[xX][0-9a-fA-F]{1,16}", self.value):
            return int(self.value, 16)
        number = self.number()
        if not number.is_integer() or abs(number) >= 1 << 53:
            raise self.error(f"'{self.key}' needs a whole number, not '{_short(self.value)}'.")
        return int(number)

    def flag(self) -> bool:
        """The value as yes or no: ``1``, ``true``, ``0``, ``false``."""
        word = self.value.lower()
        if word not in ("0", "1", "true", "false"):
            raise self.error(f"'{self.key}' needs 0 or 1, not '{_short(self.value)}'.")
        return word in ("1", "true")

    def is_location(self) -> bool:
        """Whether the value is a location in the data files, such as ``/LCLS/photon_energy eV``."""
        return "/" in self.value or not re.match(r"[+-]?\.?\d", self.value)

    def quantity(self, units: dict[str, float]) -> float:
        """The value times the factor of its unit; ``units[""]`` is for a bare number."""
        match = _QUANTITY.fullmatch(self.value)
        number = None if match is None else _finite(match[1])
        unit = "" if match is None else match[2]
        if number is None or unit not in units:
            known = ", ".join(name for name in units if name)
            raise self.error(f"'{self.key}' needs a number in {known}, not '{_short(self.value)}'.")
        return number * units[unit]

    def vector(self) -> tuple[float, float, float]:
        """The value as a vector: a sum of multiples of x, y and z."""
        found: dict[str, float] = {}
        position = 0
        while position < len(self.value):
            term = _TERM.match(self.value, position)
            if term is None or (found and not term[1]) or term[3] in found:
                raise self.error(
                    f"'{self.key}' needs a vector such as '+1.0x -0.5y', not '{_short(self.value)}'."
                )
            size = 1.0 if term[2] is None else float(term[2])
            found[term[3]] = -size if term[1] == "-" else size
            position = term.end()
        x, y, z = (found.get(axis, 0.0) for axis in "xyz")
        if not all(map(isfinite, (x, y, z))):
            raise self.error(f"'{self.key}' is not finite.")
        return x, y, z


def read_directives(path: str | PathLike[str], text: str) -> list[Directive]:
    """The directives of a geometry file in their order; comments start with a semicolon."""
    directives = []
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.partition(";")[0].strip()
        if not line:
            continue
        left, equals, value = (part.strip() for part in line.partition("="))
        owner, slash, key = (part.strip() for part in left.rpartition("/"))
        if (
            not equals
            or not key
            or not value
            or (slash and not owner)
            or "/" in owner
            or not key.isprintable()
        ):
            raise FileError(
                path,
                f"line {number} is not a line of a geometry file: '{_short(line)}'.",
                "Lines read 'key = value' or 'panel/key = value'; comments start with a semicolon.",
            )
        directives.append(Directive(str(path), number, owner or None, key, value))
    return directives


def _finite(word: str) -> float | None:
    try:
        number = float(word) if "_" not in word else None
    except ValueError:
        return None
    return number if number is not None and isfinite(number) else None


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
