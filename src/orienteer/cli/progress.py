"""A progress bar with the time left, on terminals only."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from orienteer.cli.console import messages

T = TypeVar("T")


def track(
    items: Iterable[T], description: str, total: int, size: Callable[[T], int] = lambda _: 1
) -> Iterator[T]:
    """Pass the items on while a bar shows how far they are of ``total``.

    size : how much one item counts, such as ``len`` for batches of frames.
    """
    if not messages.is_terminal:
        yield from items
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=messages) as bars:
        bar = bars.add_task(description, total=total)
        for item in items:
            yield item
            bars.advance(bar, size(item))
