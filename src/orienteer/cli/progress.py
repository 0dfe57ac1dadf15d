"""Progress bars with the time left on terminals; at most one line elsewhere."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from orienteer.cli.console import messages
from orienteer.compute.progress import listening

if TYPE_CHECKING:
    from rich.progress import Progress

T = TypeVar("T")


def track(
    items: Iterable[T], description: str, total: int, size: Callable[[T], int] = lambda _: 1
) -> Iterator[T]:
    """Pass the items on while a bar shows how many of ``total`` are done.

    size : how much one item counts, such as ``len`` for a batch of frames.
    """
    if not messages.is_terminal:
        yield from items
        return
    with _bars() as bars:
        bar = bars.add_task(description, total=total)
        for item in items:
            yield item
            bars.advance(bar, size(item))


@contextmanager
def show_steps(description: str, in_logs: bool = False) -> Iterator[None]:
    """Show one bar that follows the progress reports of the work inside the block.

    in_logs : without a terminal, print one line when it begins; for work that takes minutes.
    """
    if not messages.is_terminal:
        if in_logs:
            messages.print(f"{description}.", markup=False, soft_wrap=True)
        yield
        return
    with _bars() as bars:
        bar = bars.add_task(description, total=None)
        shown = description

        def show(what: str, done: int, total: int) -> None:
            nonlocal shown
            if what != shown:  # steps of another kind take another time: start a new estimate
                bars.reset(bar, description=what, total=total)
                shown = what
            bars.update(bar, completed=done, total=total)

        with listening(show):
            yield


def _bars() -> "Progress":
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=messages)
