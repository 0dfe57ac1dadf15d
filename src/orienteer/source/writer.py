"""PatternWriter: frames go in batch by batch, and the file appears whole or not at all."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.atomic import atomic_path
from orienteer.compute.reading import writing
from orienteer.detector.masks import PixelUse, combine_masks
from orienteer.errors import FileError, GeometryMismatch, OrienteerError
from orienteer.source.base import Source, shapes_fit
from orienteer.source.patterns import FRAME_MASK, Patterns, first_bad_frame

if TYPE_CHECKING:
    from orienteer.detector.detector import Detector, Polarisation

_LARGEST_ID = 2**64 - 1
_ZERO_FOR_FORBIDDEN = (
    "pixels that they forbid, such as saturated ones, are written as 0 and look like dark ones"
)


class PatternWriter(ABC):
    """Base of all writers: a context manager with ``append(patterns)``.

    The file is written under a temporary name and takes its place when the block ends; on an exception the
    old file stays.  A format implements ``_start`` (called with the first batch, which fixes storage, dtype
    and columns), ``_write`` and ``_finish``, and releases what it holds in ``_discard``.

    Parameters
    ----------
    path : the final name.
    detector : the pixels; formats without geometry ignore it.
    frame_shape : shape of one frame; by default that of the detector, else flat.
    metadata : constant facts of the whole file, such as ``seed`` and ``settings``: text or numbers.
    mask : (P,) levels of ``PixelUse`` of the data, combined with the mask of the detector.
    polarisation : of the beam; by default ``metadata["polarisation"]``.

    Frames without event ids are numbered, starting after the largest id that was written.  A format that
    cannot store masks writes 0 to pixels of level "never", so that a hot pixel does not come back as signal.
    """

    format: ClassVar[str] = ""
    # What the format cannot store, in words for the user.
    lost_on_write: ClassVar[tuple[str, ...]] = ()
    keeps_mask: ClassVar[bool] = True
    keeps_frame_mask: ClassVar[bool] = True

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        detector: Detector | None = None,
        frame_shape: tuple[int, ...] | None = None,
        metadata: Mapping[str, Any] | None = None,
        mask: NDArray[np.uint8] | None = None,
        polarisation: Polarisation | None = None,
    ) -> None:
        self.path = Path(path)
        self.metadata = dict(metadata or {})
        self.polarisation = _polarisation(polarisation or self.metadata.get("polarisation"))
        self.frame_shape = frame_shape if frame_shape is not None else getattr(detector, "frame_shape", None)
        if detector is not None and not shapes_fit(detector.frame_shape, self.frame_shape or ()):
            raise GeometryMismatch(
                f"{self.path}: frames of shape {self.frame_shape} do not fit a detector of "
                f"{detector.n_pixels} pixels ({detector.frame_shape}).",
                "Give the detector that these frames were taken with.",
            )
        if mask is not None and detector is not None:
            detector = detector.with_mask(combine_masks(detector.mask, mask))
        self.detector = detector
        self.mask = mask if detector is None else detector.mask
        self.n_written = 0
        self.next_id = 0
        self._started = False
        self._closing: ExitStack | None = None

    def losses(self, source: Source) -> list[str]:
        """What this source has that the format cannot store, in words for the user."""
        names = source.column_names
        mask = source.mask if source.detector is None else source.detector.mask
        there: dict[str, Any] = {
            "event ids": source.read(slice(0, 1)).has_event_ids,
            "columns": ", ".join(name for name in self._lost_columns(names) if name != FRAME_MASK),
            "detector": source.detector is not None,
            "mask": mask is not None and bool(mask.any()),
            "frame shape": len(source.frame_shape) > 1,
            "metadata": ", ".join({**source.metadata, **self.metadata}),
            "polarisation": source.polarisation,
            "sparse storage: frames are written dense": source.is_sparse,
        }
        lost = [(words, there.get(words, True)) for words in self.lost_on_write]
        said = [f"{words} ({what})" if isinstance(what, str) else words for words, what in lost if what]
        if FRAME_MASK in names and not (self.keeps_mask and self.keeps_frame_mask):
            said.append(f"masks of single frames ({FRAME_MASK}): {_ZERO_FOR_FORBIDDEN}")
        return said

    def _lost_columns(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Which of these columns are not kept; a format that keeps some overrides this."""
        return names

    @abstractmethod
    def _start(self, temporary: Path, first: Patterns) -> None:
        """Create the file for frames like those of ``first`` (which may be empty and is not written here)."""

    @abstractmethod
    def _write(self, patterns: Patterns) -> None:
        """Add the frames (in host memory, checked) to the file."""

    @abstractmethod
    def _finish(self) -> None:
        """Write what is still held back and close the file."""

    def _discard(self) -> None:  # noqa: B027 - most writers hold nothing open
        """Close and release everything; called after an error, too."""

    def _changing(self) -> AbstractContextManager[None]:
        """The context in which the steps above run."""
        return nullcontext()

    def __enter__(self) -> Self:
        with writing(self.path), ExitStack() as stack:
            self._temporary = self._place(stack)
            self._closing = stack.pop_all()
        return self

    def _place(self, stack: ExitStack) -> Path:
        """Where to write; closing the stack puts the file in place."""
        return stack.enter_context(atomic_path(self.path))

    def append(self, patterns: Patterns) -> None:
        """Add frames after those already written."""
        if self._closing is None:
            raise OrienteerError(f"{self.path}: use the writer in a 'with' block before adding frames.")
        patterns = patterns.to("cpu")
        self._check(patterns)
        patterns = self._named(self._obeying_masks(patterns))
        with _naming(self.path), writing(self.path), self._changing():
            if not self._started:
                self.frame_shape = self.frame_shape or (patterns.n_pixels,)
                self._start(self._temporary, patterns)
                self._started = True
            if len(patterns):
                self._write(patterns)
        self.n_written += len(patterns)
        self.next_id = max(self.next_id, int(patterns.event_id.max()) + 1 if len(patterns) else 0)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        stack, self._closing = self._closing, None
        if stack is None:
            return
        # Close the file first, then put it in place or remove it.
        stack.callback(self._discard)
        with writing(self.path):
            if error is not None:
                stack.__exit__(kind, error, trace)
                return
            with stack, _naming(self.path), writing(self.path), self._changing():
                if not self._started:
                    self._start_empty()
                self._finish()

    def _start_empty(self) -> None:
        if self.frame_shape is None:
            raise OrienteerError(
                f"{self.path}: no frames were written and their shape is unknown.",
                "Give a detector or frame_shape= for a file that may stay empty.",
            )
        self._start(self._temporary, Patterns(np.zeros((0, math.prod(self.frame_shape)), dtype=np.int32)))

    def _named(self, patterns: Patterns) -> Patterns:
        """The patterns with event ids: their own, or numbers that continue after those written."""
        if patterns.has_event_ids:
            return patterns
        if self.next_id + len(patterns) > _LARGEST_ID:
            raise OrienteerError(
                f"{self.path}: frames without event ids cannot be numbered after {self.next_id - 1}.",
                "Give them event ids.",
            )
        first = np.uint64(self.next_id)
        return patterns.with_event_ids(first + np.arange(len(patterns), dtype=np.uint64))

    def _obeying_masks(self, patterns: Patterns) -> Patterns:
        """The patterns with 0 in pixels that masks forbid, for masks that the file cannot store."""
        if not self.keeps_mask:
            return patterns.without_forbidden(self._never_used)
        return patterns if self.keeps_frame_mask else patterns.without_forbidden()

    @property
    def _never_used(self) -> NDArray[np.bool_] | None:
        return None if self.mask is None else np.asarray(self.mask) == PixelUse.NEVER

    def _check(self, patterns: Patterns) -> None:
        if self.frame_shape is not None and math.prod(self.frame_shape) != patterns.n_pixels:
            raise GeometryMismatch(
                f"{self.path}: frames have {patterns.n_pixels} pixels, but the file holds frames of "
                f"{math.prod(self.frame_shape)} ({' x '.join(str(n) for n in self.frame_shape)}).",
                "Write them to a file of their own.",
            )
        bad = first_bad_frame(patterns, self._never_used)
        if bad is not None:
            raise OrienteerError(
                f"{self.path}: frame {self.n_written + bad[0]} {bad[1]}; it is not written.",
                "Mask the pixel, or leave the frame out.",
            )


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Give every error the name of the final file: formats know only the temporary one."""
    try:
        yield
    except OrienteerError as error:
        if str(path) in error.message:
            raise
        raise FileError(path, error.message, error.hint) from error


def _polarisation(kind: Any) -> Polarisation | None:
    from orienteer.detector.polarisation import check_polarisation

    return None if kind is None else check_polarisation(kind)
