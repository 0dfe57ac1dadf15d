"""PatternWriter: frames go in batch by batch, and the file appears whole or not at all."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import ExitStack
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from orienteer.compute.atomic import atomic_path
from orienteer.compute.reading import writing
from orienteer.errors import GeometryMismatch, OrienteerError
from orienteer.source.base import NEVER
from orienteer.source.patterns import Patterns, first_bad_frame

if TYPE_CHECKING:
    from orienteer.detector.detector import Detector


class PatternWriter(ABC):
    """Base of all writers: a context manager with ``append(patterns)``.

    The file is written under a temporary name and takes its place when the block ends; on an exception the
    old file stays.  A format gives ``_start`` (called with the first batch, which fixes storage, dtype and
    columns), ``_write`` and ``_finish``, and releases what it holds in ``_discard``.

    Parameters
    ----------
    path : the final name.
    detector : the pixels; formats without geometry ignore it.
    frame_shape : shape of one frame; by default that of the detector, else flat.
    metadata : constant facts of the whole file, such as ``seed`` and ``settings``: text or numbers.
    """

    format: ClassVar[str] = ""
    # What the format has no place for, in words for the user.
    lost_on_write: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        detector: Detector | None = None,
        frame_shape: tuple[int, ...] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        self.path = Path(path)
        self.detector = detector
        self.metadata = dict(metadata or {})
        self.frame_shape = frame_shape if frame_shape is not None else getattr(detector, "frame_shape", None)
        if detector is not None and math.prod(self.frame_shape or ()) != detector.n_pixels:
            raise GeometryMismatch(
                f"{self.path}: frames of shape {self.frame_shape} do not fit a detector of "
                f"{detector.n_pixels} pixels."
            )
        self.n_written = 0
        self._started = False
        self._closing: ExitStack | None = None

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
        """Let go of everything after an error."""

    def __enter__(self) -> Self:
        with writing(self.path), ExitStack() as stack:
            self._temporary = self._place(stack)
            self._closing = stack.pop_all()
        return self

    def _place(self, stack: ExitStack) -> Path:
        """Where to write; what the stack holds puts the file in place when it closes."""
        return stack.enter_context(atomic_path(self.path))

    def append(self, patterns: Patterns) -> None:
        """Add frames after those already written."""
        if self._closing is None:
            raise OrienteerError(f"{self.path}: use the writer in a 'with' block before adding frames.")
        patterns = patterns.to("cpu")
        self._check(patterns)
        with writing(self.path):
            if not self._started:
                self.frame_shape = self.frame_shape or (patterns.n_pixels,)
                self._start(self._temporary, patterns)
                self._started = True
            if len(patterns):
                self._write(patterns)
        self.n_written += len(patterns)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        stack, self._closing = self._closing, None
        if stack is None:
            return
        if error is not None:
            self._discard()
            stack.__exit__(kind, error, trace)
            return
        with stack:
            try:
                with writing(self.path):
                    if not self._started:
                        self._start_empty()
                    self._finish()
            except BaseException:
                self._discard()
                raise

    def _start_empty(self) -> None:
        if self.frame_shape is None:
            raise OrienteerError(
                f"{self.path}: no frames were written and their shape is unknown.",
                "Give a detector or frame_shape= for a file that may stay empty.",
            )
        self._start(self._temporary, Patterns(np.zeros((0, math.prod(self.frame_shape)), dtype=np.int32)))

    def _check(self, patterns: Patterns) -> None:
        if self.frame_shape is not None and math.prod(self.frame_shape) != patterns.n_pixels:
            raise GeometryMismatch(
                f"{self.path}: frames have {patterns.n_pixels} pixels, but the file holds frames of "
                f"{math.prod(self.frame_shape)} ({' x '.join(str(n) for n in self.frame_shape)})."
            )
        mask = getattr(self.detector, "mask", None)
        bad = first_bad_frame(patterns, None if mask is None else np.asarray(mask) == NEVER)
        if bad is not None:
            raise OrienteerError(f"{self.path}: frame {self.n_written + bad[0]} {bad[1]}; it is not written.")
