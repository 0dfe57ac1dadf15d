"""MRC/CCP4 maps (MRC2014), so that a volume opens at the right place and size in ChimeraX.

The file stores x fastest, so the array is transposed on its way in and out; whatever axis order
(mapc, mapr, maps) a file declares, ``values`` is indexed [x, y, z].  The header's ``origin`` is the position
of the first voxel, and ``nstart`` repeats it in voxels if these are whole numbers, because programs read one
or the other.  On reading, ``origin`` is used, or ``nstart`` if ``origin`` is all zero.  An intensity of
another program that gives neither has its centre at n // 2, as all volumes have by convention.

MRC has lengths only.  For a volume in reciprocal space **one angstrom of the header stands for
0.001 1/A**: 0.0025 1/A per voxel is shown as 2.5 A.  The labels say so, and reading restores 1/A.

Header lengths are float32.  The labels repeat voxel size and origin in full; the reader uses them as long
as they agree with the header, so that a round trip is exact and a header changed by another program counts.
"""

import gzip
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import to_numpy
from orienteer.compute.atomic import atomic_path
from orienteer.compute.reading import COPY_AGAIN, Content, check_holds, open_unpacked, reading
from orienteer.errors import FileError
from orienteer.volume.volume import Space, Volume

# One angstrom of the header, in 1/A, for a volume in reciprocal space.
RECIPROCAL_SCALE = 0.001
HEADER_BYTES = 1024
# No byte of deflate output can stand for more bytes of input than this.
DEFLATE_LIMIT = 1032

_DTYPE_OF_MODE = {0: "i1", 1: "i2", 2: "f4", 6: "u2", 12: "f2"}
_REAL_LABEL = "Orienteer map in real space, lengths in A"
_RECIPROCAL_LABEL = "Orienteer map in reciprocal space, 1 A of this header stands for 0.001 1/A"


def recognise_mrc(head: bytes) -> bool:
    """Whether these first bytes (1024 or more, decompressed) are the header of an MRC map."""
    return len(head) >= HEADER_BYTES and head[208:211] == b"MAP"


def read_mrc(path: str | os.PathLike[str], voxel_size: Any = None, space: Space | None = None) -> Volume:
    """The map of an MRC/CCP4 file (plain or gzip compressed), indexed [x, y, z].

    voxel_size : overrides the header, in A or 1/A; needed if the header has none.
    space : overrides what the labels say; a map without Orienteer's labels lives in real space.
    """
    with reading(path, "volume file") as file, open_unpacked(file) as stream:
        most = file.stat().st_size * (DEFLATE_LIMIT if isinstance(stream, gzip.GzipFile) else 1)
        return _read_stream(stream, file, most, voxel_size, space)


def write_mrc(path: str | os.PathLike[str], volume: Volume) -> None:
    """Write a volume as an MRC2014 file (mode 2, float32), gzip compressed when the name ends in ``.gz``.

    Kept exactly: values, voxel size, origin, space, and up to 75 ASCII characters of the name.  MRC cannot
    mark voxels as never measured: these voxels, NaN in memory, become 0, and a label states how many there
    are.  It has no place for ``metadata``.  Write HDF5 to keep both.
    """
    import mrcfile

    scale = 1.0 if volume.space == "real" else RECIPROCAL_SCALE
    voxel_size, origin = np.array(volume.voxel_size), np.array(volume.origin)
    values = np.nan_to_num(to_numpy(volume.values), nan=0.0)
    compression = "gzip" if Path(path).suffix == ".gz" else None
    with (
        atomic_path(path) as temporary,
        mrcfile.new(temporary, overwrite=True, compression=compression) as mrc,
    ):
        mrc.set_data(np.ascontiguousarray(values.transpose(2, 1, 0)))
        mrc.set_volume()
        header = mrc.header
        header.cella = tuple(voxel_size / scale * values.shape)
        header.origin = tuple(origin / scale)
        header.nxstart, header.nystart, header.nzstart = _whole_voxels(origin, voxel_size)
        header.dmin, header.dmax, header.dmean, header.rms = _statistics(values)
        labels = _labels(volume)
        header.label[:] = b""
        header.label[: len(labels)] = labels
        header.nlabl = len(labels)


def _read_stream(
    stream: Content, file: Path, limit_bytes: int, voxel_size: Any, space: Space | None
) -> Volume:
    """Header and voxels of an open map that cannot hold more than ``limit_bytes``."""
    header = _parse_header(stream.read(HEADER_BYTES), file)
    shape_in_file = tuple(int(header[name]) for name in ("nz", "ny", "nx"))
    extended = int(header["nsymbt"])
    dtype = _dtype(header, file)
    if min(shape_in_file) < 1 or extended < 0:
        raise FileError(
            file,
            f"declares {shape_in_file} voxels and {extended} bytes of extended header.",
            COPY_AGAIN,
        )
    n_bytes = int(np.prod(shape_in_file, dtype=object)) * dtype.itemsize
    check_holds(file, "voxels", n_bytes, limit_bytes - HEADER_BYTES - extended)
    stream.seek(HEADER_BYTES + extended)
    body = stream.read(n_bytes)
    check_holds(file, "voxels", n_bytes, len(body))
    if stream.read(1):
        raise FileError(
            file,
            f"goes on after the {n_bytes} bytes of voxels that its header declares.",
            "The header is damaged.",
        )
    order = _file_axis_of_xyz(header, file)
    values = np.frombuffer(body, dtype).reshape(shape_in_file).transpose(order).astype(np.float32, order="C")
    return _place(values, header, order, file, voxel_size, space)


def _parse_header(head: bytes, file: Path) -> Any:
    """The 1024 bytes as named fields, in the byte order that the machine stamp declares."""
    from mrcfile.dtypes import HEADER_DTYPE

    if not recognise_mrc(head):
        raise FileError(
            file,
            "is not an MRC map (no 'MAP' in the header).",
            "Only MRC2000, MRC2014 and CCP4 maps are read.",
        )
    header = np.frombuffer(head, HEADER_DTYPE.newbyteorder("<"))[0]
    stamp = int(header["machst"][0])
    mode_if_little = int(header["mode"])
    # Some programs leave the stamp empty; the mode, a small number, then shows the byte order.
    big_endian = stamp == 0x11 or (stamp != 0x44 and not 0 <= mode_if_little <= 0xFFFF)
    return np.frombuffer(head, HEADER_DTYPE.newbyteorder(">"))[0] if big_endian else header


def _dtype(header: Any, file: Path) -> np.dtype[Any]:
    mode = int(header["mode"])
    if mode not in _DTYPE_OF_MODE:
        kind = "complex numbers" if mode in (3, 4) else "an unknown kind of number"
        raise FileError(file, f"holds {kind} (mode {mode}).", f"Modes {sorted(_DTYPE_OF_MODE)} are read.")
    byte_order = header.dtype["nx"].byteorder
    return np.dtype(_DTYPE_OF_MODE[mode]).newbyteorder(byte_order)


def _file_axis_of_xyz(header: Any, file: Path) -> tuple[int, int, int]:
    """Which axis of the (section, row, column) array is x, y and z."""
    axes = [int(header[name]) for name in ("maps", "mapr", "mapc")]
    if axes == [0, 0, 0]:  # files older than the axis words
        axes = [3, 2, 1]
    if sorted(axes) != [1, 2, 3]:
        raise FileError(
            file,
            f"declares the axes (mapc, mapr, maps) = {axes[::-1]}.",
            "They must be a permutation of 1, 2, 3.",
        )
    return axes.index(1), axes.index(2), axes.index(3)


def _place(
    values: Any, header: Any, order: tuple[int, int, int], file: Path, voxel_size: Any, space: Space | None
) -> Volume:
    """The values with voxel size, origin, space and name from header and labels."""
    angles = np.array(header["cellb"].tolist())
    if not (np.all(np.abs(angles - 90) < 0.01) or not angles.any()):
        raise FileError(
            file,
            f"has cell angles {tuple(angles)} degrees.",
            "Only rectangular maps are read; resample it first.",
        )
    sampling = np.array([int(header[name]) for name in ("mx", "my", "mz")])
    cell = np.array(header["cella"].tolist(), dtype=np.float64)
    step = np.divide(cell, sampling, out=np.zeros(3), where=sampling > 0)
    labels = [bytes(label).rstrip(b"\0 ").decode("ascii", "replace") for label in header["label"]]
    if space is None:
        space = "reciprocal" if _RECIPROCAL_LABEL in labels else "real"
    scale = RECIPROCAL_SCALE if _RECIPROCAL_LABEL in labels else 1.0
    step = _believe_label(labels, "voxel", step * scale)
    start = np.array([int(header[name]) for name in ("nzstart", "nystart", "nxstart")])[list(order)]
    origin = np.array(header["origin"].tolist(), dtype=np.float64) * scale
    origin = _believe_label(labels, "origin", origin if origin.any() else start * step)
    if space == "reciprocal" and not origin.any() and not labels[0].startswith("Orienteer"):
        # No program measures |q| from a corner: the header was never filled in.
        start = -(np.array(values.shape) // 2)
        origin = start * step
        warnings.warn(
            f"{file}: the header has no origin; q = 0 was taken to lie at voxel n // 2.", stacklevel=2
        )
    if voxel_size is not None:
        in_voxels = origin / step if np.all(step > 0) else start
        step = np.broadcast_to(np.asarray(voxel_size, dtype=np.float64), (3,))
        origin = in_voxels * step
    if not np.all(step > 0):
        raise FileError(
            file,
            f"does not say how large a voxel is: its cell is {' x '.join(f'{edge:g}' for edge in cell)} A.",
            "Write a copy that states the voxel size: orienteer convert IN OUT.mrc --voxel-A SIZE, or "
            "--voxel-inv-A for an intensity (voxel_size= in Python).",
        )
    name = next((label.removeprefix("name ") for label in labels if label.startswith("name ")), "")
    return Volume(values, tuple(step.tolist()), space, tuple(origin.tolist()), name)


def _believe_label(labels: list[str], word: str, header_value: NDArray[np.float64]) -> NDArray[np.float64]:
    """Three full-precision numbers from the label ``word``, when the float32 of the header agree."""
    if not labels[0].startswith("Orienteer"):
        return header_value
    for label in labels:
        first, *rest = label.split()[:4] or [""]
        if first == word:
            try:
                exact = np.array([float(number) for number in rest])
            except ValueError:
                return header_value
            agrees = exact.shape == (3,) and np.allclose(exact, header_value, rtol=1e-6, atol=1e-30)
            return exact if agrees else header_value
    return header_value


def _labels(volume: Volume) -> list[bytes]:
    kind = _REAL_LABEL if volume.space == "real" else _RECIPROCAL_LABEL
    lines = [
        kind,
        "voxel " + " ".join(map(repr, volume.voxel_size)),
        "origin " + " ".join(map(repr, volume.origin)),
    ]
    if volume.name:
        lines.append(f"name {volume.name}")
    if volume.n_missing:
        lines.append(f"{volume.n_missing} voxels were never measured and hold 0")
    return [line.encode("ascii", "replace")[:80] for line in lines]


def _whole_voxels(origin: NDArray[np.float64], voxel_size: NDArray[np.float64]) -> tuple[int, int, int]:
    """The origin in voxels for programs that read nstart; zero if they are not whole numbers."""
    start = origin / voxel_size
    nearest = np.round(start)
    if not np.allclose(start, nearest, rtol=0, atol=1e-6) or np.abs(nearest).max() > 2**30:
        return 0, 0, 0
    x, y, z = nearest.astype(int).tolist()
    return x, y, z


def _statistics(values: NDArray[np.float32]) -> tuple[float, float, float, float]:
    """Smallest, largest, mean and rms deviation of all voxels."""
    mean = float(values.mean(dtype=np.float64))
    rms = float(np.sqrt(np.square(values - mean, dtype=np.float64).mean()))
    return float(values.min()), float(values.max()), mean, rms
