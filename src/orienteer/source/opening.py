"""Open any file of patterns: its content decides the format, never its name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import ExitStack
from importlib import import_module
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array
from orienteer.compute.reading import is_hdf5, read_head, reading
from orienteer.detector.geometry_file import GeometryFile
from orienteer.errors import FileError, OrienteerError
from orienteer.source.base import Source
from orienteer.source.file_source import FileSource
from orienteer.source.geometry import with_geometry, with_wavelength
from orienteer.source.in_memory import InMemorySource
from orienteer.source.patterns import Patterns
from orienteer.source.unknown_file import unknown_file
from orienteer.source.writer import PatternWriter

if TYPE_CHECKING:
    from orienteer.detector.detector import Detector, Polarisation

# One module per format, tried in this order; each offers what FormatModule lists.
FORMATS: tuple[str, ...] = (
    "orienteer.source.cxi",
    # Their endings .emc.h5 and .spinifel.h5 must be tried before Orienteer's .h5.
    "orienteer.source.dragonfly_hdf5",
    "orienteer.source.spinifel",
    "orienteer.source.orienteer_hdf5",
    "orienteer.source.numpy_npy",
    "orienteer.source.numpy_npz",
    # Last, because its binary header is the weakest signature of all.
    "orienteer.source.dragonfly_emc",
)


class FormatModule(Protocol):
    """What a format module offers.

    FORMAT_NAME : the name that ``recognise`` returns and ``format=`` takes, such as "CXI".
    EXTENSIONS : the file endings that choose this format for a new file.
    Writer : its :class:`PatternWriter`.
    """

    FORMAT_NAME: str
    EXTENSIONS: tuple[str, ...]
    Writer: type[PatternWriter]

    def recognise(self, path: Path, head: bytes, hdf5: Any | None) -> bool:
        """Whether the file is of this format, from its first bytes and, for HDF5, the open ``h5py.File``."""
        ...

    def open_file(self, path: Path) -> FileSource:
        """The source; it reads no frames."""
        ...


def open(
    data: str | PathLike[str] | Patterns | Source | Array,
    geometry: str | PathLike[str] | Detector | GeometryFile | None = None,
    wavelength_A: float | None = None,
) -> Source:
    """The patterns in a file of any known format, in a live run or in an array; no frames are read yet.

    Parameters
    ----------
    data : a path, an array of frames (N, ...), :class:`Patterns` or any other source.
    geometry : a detector or the path of a geometry file; it replaces the data's own detector, whose mask is
        kept.
    wavelength_A : for all events; a warning is given if the data hold another one.

    >>> import numpy as np
    >>> import orienteer
    >>> detector = orienteer.square_detector(16, pixel_size_m=0.001, distance_m=0.1)
    >>> source = orienteer.open(np.ones((100, 16, 16), dtype=np.uint8), detector, wavelength_A=2.0)
    >>> source
    <array 'array': 100 frames of 16 x 16 pixels, dense, columns wavelength_A>
    >>> source.read(slice(3))
    <Patterns: 3 frames x 256 pixels, dense uint8, columns wavelength_A>
    """
    if isinstance(data, str | PathLike):
        source: Source = _open_path(Path(data))
    elif isinstance(data, Patterns):
        source = InMemorySource(data)
    elif isinstance(data, Source):
        source = data
    else:
        if not hasattr(data, "dtype"):
            raise OrienteerError(f"cannot open {type(data).__name__}; give a path, an array or Patterns.")
        if data.ndim < 2:
            raise OrienteerError(f"an array of shape {data.shape} holds no frames; expected (n_frames, ...).")
        shape = tuple(data.shape[1:])
        source = InMemorySource(Patterns(data.reshape(len(data), math.prod(shape))), shape)
    source = with_wavelength(source, wavelength_A)
    return source if geometry is None else with_geometry(source, _geometry_of(geometry))


def recognise(path: str | PathLike[str]) -> str:
    """The name of the format of a file, from its content."""
    return _find_format(Path(path)).FORMAT_NAME


def format_names() -> tuple[str, ...]:
    """The names of all formats, as ``writer_for`` takes them."""
    return tuple(module.FORMAT_NAME for module in _modules())


def writer_for(
    path: str | PathLike[str],
    format: str | None = None,
    *,
    like: Source | None = None,
    detector: Detector | None = None,
    frame_shape: tuple[int, ...] | None = None,
    metadata: Mapping[str, Any] | None = None,
    mask: NDArray[np.uint8] | None = None,
    polarisation: Polarisation | None = None,
    **options: Any,
) -> PatternWriter:
    """A writer for a new file, in the named format or in the one that the ending of the path belongs to.

    like : a source whose detector, mask, polarisation, frame shape and metadata are used if none are given.
    options : arguments that only some formats take, such as ``live=True`` of Orienteer's own files.

    >>> import orienteer
    >>> source = orienteer.open(np.eye(4, dtype=np.uint8).reshape(2, 2, 4))
    >>> with orienteer.writer_for("frames.h5", like=source) as writer:
    ...     for patterns in source.batches():
    ...         writer.append(patterns)
    >>> orienteer.open("frames.h5")
    <Orienteer 'frames.h5': 2 frames of 2 x 4 pixels, dense, no geometry>
    """
    common: dict[str, Any] = {
        "detector": detector,
        "frame_shape": frame_shape,
        "metadata": metadata,
        "mask": mask,
        "polarisation": polarisation,
    }
    if like is not None:
        common = {name: getattr(like, name) if value is None else value for name, value in common.items()}
    for module in _modules():
        if (
            format.lower() == module.FORMAT_NAME.lower()
            if format is not None
            else fspath(path).lower().endswith(module.EXTENSIONS)
        ):
            try:
                return module.Writer(path, **common, **options)
            except TypeError as error:
                if not options:
                    raise
                raise OrienteerError(
                    f"format '{module.FORMAT_NAME}' does not take {', '.join(sorted(options))}.",
                    "Leave it out, or write another format.",
                ) from error
    known = "; ".join(f"{module.FORMAT_NAME} ({', '.join(module.EXTENSIONS)})" for module in _modules())
    if format is not None:
        raise OrienteerError(f"format '{format}' is not known.", f"Known formats: {known}.")
    raise FileError(
        path, "has an ending of no known format.", f"Use one of these endings, or name the format: {known}."
    )


def _open_path(path: Path) -> Source:
    if path.is_dir():
        from orienteer.source.journal import JournalSource, is_live_run

        if is_live_run(path):
            return JournalSource(path)
    module = _find_format(path)
    with reading(path):
        return module.open_file(path)


def _geometry_of(geometry: str | PathLike[str] | Detector | GeometryFile) -> GeometryFile:
    if isinstance(geometry, str | PathLike):
        from orienteer.detector.opening import open_geometry

        return open_geometry(geometry)
    return geometry if isinstance(geometry, GeometryFile) else GeometryFile(geometry)


def _modules() -> tuple[FormatModule, ...]:
    return tuple(cast(FormatModule, import_module(name)) for name in FORMATS)


def _find_format(path: Path) -> FormatModule:
    head = read_head(path)
    with reading(path), ExitStack() as stack:
        hdf5 = None
        if is_hdf5(head):
            from orienteer.compute.hdf5_reading import open_hdf5

            hdf5 = stack.enter_context(open_hdf5(path))
        for module in _modules():
            if module.recognise(path, head, hdf5):
                return module
    raise unknown_file(path, head, {module.FORMAT_NAME: module.EXTENSIONS for module in _modules()})
