"""EventSource: events as they are recorded, one interface for streams, files and facilities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from orienteer.errors import OrienteerError
from orienteer.stream.counters import StreamCounters
from orienteer.stream.events import Events, Position

if TYPE_CHECKING:
    from orienteer.detector.detector import Detector


class NoAnswer(OrienteerError):  # noqa: N818 - users read it as a statement
    """Nothing answers at the address of a stream; its server may still be started."""


@runtime_checkable
class EventSource(Protocol):
    """A stream of events, read batch by batch.

    A source with positions (files, Orienteer's own pull stream) can go on after any batch with ``seek``, also
    in another process and after both sides have died, so that every event comes exactly once.  A source that
    only pushes has no positions: ``seek`` cannot go back, and ``counters.gaps`` counts what was missed.
    """

    @property
    def name(self) -> str:
        """The address or path."""
        ...

    @property
    def frame_shape(self) -> tuple[int, ...]:
        """Shape of one frame; its product is ``n_pixels``."""
        ...

    @property
    def n_pixels(self) -> int:
        """Pixels of a frame."""
        ...

    @property
    def detector(self) -> Detector | None:
        """The pixels; None if the stream does not describe them."""
        ...

    @property
    def is_finished(self) -> bool:
        """Whether everything was handed out and nothing more will come."""
        ...

    @property
    def counters(self) -> StreamCounters:
        """What came since the source was opened: received, dropped, duplicates, malformed, gaps, late."""
        ...

    def next(self, timeout_s: float = 1.0) -> Events | None:
        """The next batch; None if nothing came in this time."""
        ...

    def seek(self, position: Position) -> None:
        """Go on right after the batch that had this position."""
        ...

    def close(self) -> None:
        """Close what is open."""
        ...
