"""A schedule of iterations in the usual notation: ``"500*raar(0.87) 100*er"``."""

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from orienteer.errors import SettingsError

MethodName: TypeAlias = Literal["er", "hio", "raar", "dm"]
# The relaxation of each method if the schedule gives none; error reduction has none.
DEFAULT_BETA: dict[MethodName, float] = {"er": 0.0, "hio": 0.9, "raar": 0.87, "dm": 1.0}
_MOST_ITERATIONS = 1_000_000
_HINT = "Write for example '500*raar(0.87) 100*er' or '5*(80*hio(0.9) 20*er)'; methods are er, hio, raar, dm."
_TOKEN = re.compile(r"\s*(?:(\d+)\s*\*|([a-zA-Z]+)|([0-9.]+(?:[eE][-+]?\d+)?)|([()])|([+,;])|(\S))")


@dataclass(frozen=True)
class Phase:
    """Iterations of one kind: ``count`` of ``method`` with the relaxation ``beta``."""

    method: MethodName
    beta: float
    count: int

    def __str__(self) -> str:
        beta = "" if self.method == "er" else f"({self.beta:g})"
        return f"{self.count}*{self.method}{beta}"


def parse_schedule(text: str) -> tuple[Phase, ...]:
    """The phases that a text describes, in their order.

    ``N*method(beta)`` is N iterations; N and beta may be left out, and ``N*( ... )`` repeats its contents.
    Phases are separated by blanks, or by ``+``, ``,`` or ``;``.

    >>> [str(phase) for phase in parse_schedule("2*(30*hio 5*er) 10*dm(0.7)")]
    ['30*hio(0.9)', '5*er', '30*hio(0.9)', '5*er', '10*dm(0.7)']
    """
    tokens = [match.groups() for match in _TOKEN.finditer(text)]
    phases, rest = _parse(tokens, 0, text, inside=False)
    assert rest == len(tokens)
    if not sum(phase.count for phase in phases):
        raise _wrong(text, "it has no iterations")
    if sum(phase.count for phase in phases) > _MOST_ITERATIONS:
        raise _wrong(text, f"it has more than {_MOST_ITERATIONS} iterations")
    return tuple(phases)


_Groups: TypeAlias = tuple[str | None, ...]


def _parse(tokens: list[_Groups], at: int, text: str, inside: bool) -> tuple[list[Phase], int]:
    """Phases from token ``at`` on, to the end or the closing bracket, and the index of the next token."""
    phases: list[Phase] = []
    repeats: int | None = None
    while at < len(tokens):
        number, word, beta, bracket, separator, other = tokens[at]
        at += 1
        if number is not None:
            if repeats is not None:
                raise _wrong(text, f"'{number}*' follows another number")
            repeats = int(number)
        elif word is not None:
            phase, at = _method(word.lower(), tokens, at, text)
            phases.append(Phase(phase.method, phase.beta, 1 if repeats is None else repeats))
            repeats = None
        elif bracket == "(":
            group, at = _parse(tokens, at, text, inside=True)
            times = 1 if repeats is None else repeats
            if times * len(group) > _MOST_ITERATIONS:
                raise _wrong(text, f"it has more than {_MOST_ITERATIONS} iterations")
            phases += group * times
            repeats = None
        elif bracket == ")" and inside and repeats is None:
            return phases, at
        elif separator is None or repeats is not None:
            raise _wrong(text, f"'{beta or bracket or separator or other}' is out of place")
    if repeats is not None:
        raise _wrong(text, f"nothing follows '{repeats}*'")
    if inside:
        raise _wrong(text, "a bracket is not closed")
    return phases, at


def _method(word: str, tokens: list[_Groups], at: int, text: str) -> tuple[Phase, int]:
    """One method, with its relaxation if that follows in brackets."""
    if word not in DEFAULT_BETA:
        raise _wrong(text, f"there is no method '{word}'")
    method: MethodName = word
    if at >= len(tokens) or tokens[at][3] != "(":
        return Phase(method, DEFAULT_BETA[method], 1), at
    if at + 2 >= len(tokens) or tokens[at + 1][2] is None or tokens[at + 2][3] != ")":
        raise _wrong(text, f"the brackets after '{word}' must contain one number")
    if method == "er":
        raise _wrong(text, "er takes no number")
    try:
        beta = float(cast(str, tokens[at + 1][2]))
    except ValueError:
        raise _wrong(text, f"'{tokens[at + 1][2]}' is not a number") from None
    if not 0 < beta <= 1:
        raise _wrong(text, f"the number of {word} is {beta:g}; it must lie above 0 and be at most 1")
    return Phase(method, beta, 1), at + 3


def _wrong(text: str, why: str) -> SettingsError:
    return SettingsError(f"the schedule '{text}' cannot be read: {why}.", _HINT)
