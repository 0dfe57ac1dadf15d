"""Items of a slow source, read by a thread while the caller works on the one before."""

from collections.abc import Iterable, Iterator
from queue import SimpleQueue
from threading import Semaphore, Thread
from typing import Generic, TypeVar

T = TypeVar("T")


class Prefetched(Generic[T]):
    """The items in order, read ahead, so that the time is the longer of reading and working, not their sum.

    An error of the source is raised where its item would have come.  If a loop is left early, the thread
    stops after the item that it is reading.  Each loop reads the items anew.

    items : read in a thread of its own; it must not start parallel work of its own.
    ahead : number of items read ahead; these and the one in use are in memory.

    >>> list(Prefetched("abc"))
    ['a', 'b', 'c']
    """

    def __init__(self, items: Iterable[T], ahead: int = 1) -> None:
        self._items, self._ahead = items, ahead

    def __iter__(self) -> Iterator[T]:
        arrived: SimpleQueue[tuple[list[T], BaseException | None]] = SimpleQueue()
        room = Semaphore(self._ahead)
        is_left = False

        def read() -> None:
            error = None
            try:
                items = iter(self._items)
                while True:
                    room.acquire()
                    if is_left:
                        return
                    arrived.put(([next(items)], None))
            except StopIteration:
                pass
            except BaseException as raised:
                error = raised
            arrived.put(([], error))

        thread = Thread(target=read, name="reading ahead", daemon=True)
        thread.start()
        try:
            while True:
                items, error = arrived.get()
                if error is not None:
                    raise error
                if not items:
                    return
                room.release()
                # No name holds the item here, so that it lives only as long as the caller needs it.
                yield items.pop()
        finally:
            is_left = True
            room.release()
            thread.join()
