"""Long work says how far it is; whoever listens decides what to show."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, TypeAlias, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
# Called with what is being done, the steps that are done, and the steps in all.
Listener: TypeAlias = Callable[[str, int, int], None]
_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)
_n_told = 0


class Countable(Protocol[T_co]):
    """Items that come one after the other, and whose number is known before."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[T_co]: ...


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Inside the block the listener hears of every step."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def tell(what: str, done: int, total: int) -> None:
    """Say how far some work is, to whoever listens."""
    global _n_told
    _n_told += 1
    listener = _listener.get()
    if listener is not None:
        listener(what, done, total)


def n_told() -> int:
    """How often work has said how far it is; a number that stands still means that nothing is done."""
    return _n_told


def steps(items: Countable[T], what: str) -> Iterator[T]:
    """Pass the items on and say how many are done.

    >>> heard = []
    >>> with listening(lambda *step: heard.append(step)):
    ...     list(steps("ab", "Spelling"))
    ['a', 'b']
    >>> heard
    [('Spelling', 0, 2), ('Spelling', 1, 2), ('Spelling', 2, 2)]
    """
    for done, item in enumerate(items):
        tell(what, done, len(items))
        yield item
    tell(what, len(items), len(items))
