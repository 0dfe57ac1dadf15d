"""A figure: what it is, its goal, and where among the kept results the answer stands."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Result = dict[str, Any]
# A kept result by its name, None where there is none.
Results = Callable[[str], Result | None]


class Goal(NamedTuple):
    """At most or at least so much of a unit, or only that it be reported (``is_met`` is None)."""

    words: str
    is_met: Callable[[float], bool] | None
    unit: str

    def say(self, value: float) -> str:
        """A measured value in the same unit, with three digits that mean something."""
        if value == float("inf"):
            return "none"
        digits = f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"
        number = f"{int(digits):,}".replace(",", " ") if abs(value) >= 1000 else digits
        return f"{number} {self.unit}".strip()


def at_most(most: float, unit: str = "") -> Goal:
    """No more than this."""
    goal = Goal("", lambda value: value <= most, unit)
    return goal._replace(words=f"{'≤ ' if most else ''}{goal.say(most)}")


def at_least(least: float, unit: str = "") -> Goal:
    """No less than this."""
    goal = Goal("", lambda value: value >= least, unit)
    return goal._replace(words=f"≥ {goal.say(least)}")


def told(unit: str = "") -> Goal:
    """A figure without a bound."""
    return Goal("reported", None, unit)


@dataclass(frozen=True)
class Figure:
    """One line of the page.

    what : the figure, in words
    goal : what it is held to
    result : name of the file in ``bench/results``, without its ending
    value : the figure from that file, in the unit of the goal; None where it does not hold it
    command : what measures it again
    limit : the share of what the machine could do at best, in words, from the file
    remark : what a reader must know to understand the number, from the file
    because : why it fell short, by the day of the result of which that is known; a newer one drops it
    plain : how the README names it to somebody who is new here; empty where it does not show it
    published : what others have published or shown when we timed them, and who
    """

    what: str
    goal: Goal
    result: str
    value: Callable[[Result], float | None]
    command: str
    limit: Callable[[Result], str] = lambda result: ""
    remark: Callable[[Result], str] = lambda result: ""
    because: Mapping[str, str] = field(default_factory=dict)
    plain: str = ""
    published: str = ""


def plain_number(value: float) -> str:
    """A whole number with spaces between thousands."""
    return f"{value:,.0f}".replace(",", " ")


def share(words: str) -> float:
    """``"13/16"`` in per cent."""
    part, _, whole = words.partition("/")
    return 100 * int(part) / int(whole)


def machine_words(result: Result) -> str:
    """The machine of a result; a load above its cores is told, since it makes seconds longer."""
    machine = result.get("machine")
    if not machine:
        return "not kept"
    words = f"1 × {machine['gpu']}" if "gpu" in machine else f"{machine['cores']} cores, {machine['cpu']}"
    load = machine.get("load_average", 0)
    is_busy = "gpu" not in machine and load > machine.get("cores", 1)
    return f"{words}, shared (load {load:g})" if is_busy else words


def date_words(result: Result) -> str:
    """The day on which a result was kept."""
    return str((result.get("machine") or result).get("date", "not kept"))
