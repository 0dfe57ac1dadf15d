"""Long work reports its progress; a listener decides what to show."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, TypeAlias, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
# Called with the name of the work, the number of steps done, and the number of all steps.
Listener: TypeAlias = Callable[[str, int, int], None]
_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)
_n_told = 0


class Countable(Protocol[T_co]):
    """Items that come one after another, and whose number is known in advance."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[T_co]: ...


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Inside the block, the listener is called at every step."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def tell(what: str, done: int, total: int) -> None:
    """Report the progress of some work to the listener, if there is one."""
    global _n_told
    _n_told += 1
    listener = _listener.get()
    if listener is not None:
        listener(what, done, total)


def n_told() -> int:
    """Number of progress reports so far; while it does not change, no work is being done."""
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
