"""Sums of values and of weights over a cube, into which slices are inserted, on either device."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, DeviceName, array_namespace, choose_device, import_cupy
from orienteer.compute.ranks.comm import Comm
from orienteer.errors import OrienteerError

# Rows that float32 sums may take before they go to float64.
_ROWS_IN_SINGLE, _ROWS_ON_CPU = 1 << 16, 1 << 12
# Sums of magnitudes below 2^_SMALLEST count as none.  A sum of 0 gets the same, finest unit, which may grow.
_SMALLEST = -900
# Spare bits in units that are chosen from the first values, and from predicted magnitudes of all values.
_ROOM, _ROOM_PREDICTED = 2, 3


@dataclass(frozen=True, eq=False)
class FinishedSums:
    """Sums (n, n, n, 2) float64 to which nothing is added any more."""

    total: Array

    def finish(self) -> Array:
        """The sums, as from the other classes."""
        return self.total


class CpuSums:
    """Sums (n, n, n, 2) of values and weights in the memory of the CPU.

    Rows are added to ``single`` in float32, which is moved to ``double`` in float64 before it has taken many.
    by_call : move it before every call, so that the order of calls changes no bit of ``single``.
    magnitudes : as in :class:`GpuSums`.  With it (and ``by_call``), sums are moved to ``fixed``, whole
        numbers as there, whose total does not depend on the order of calls; None: to ``double``.
    """

    def __init__(self, n: int, by_call: bool = False, magnitudes: tuple[float, float] | None = None) -> None:
        self.n, self._by_call = n, by_call
        self.single: NDArray[np.float32] = np.zeros((n, n, n, 2), np.float32)
        self.exponents = _predicted(magnitudes) if by_call else None
        self.double: Any = None if self.exponents else np.zeros((n, n, n, 2))
        self.fixed: Any = np.zeros((n, n, n, 2), np.int64) if self.exponents else None
        self.magnitudes = np.zeros(2)
        self._rows = 0

    @classmethod
    def around(cls, double: NDArray[np.float64]) -> "CpuSums":
        """Sums that are collected in the given array (n, n, n, 2) float64."""
        sums = cls.__new__(cls)
        sums.n, sums.double, sums._rows, sums._by_call = len(double), double, 0, False
        sums.fixed = sums.exponents = None
        sums.single = np.zeros(double.shape, np.float32)
        return sums

    def expect_rows(self, n_rows: int) -> None:
        """Called before rows are added: float32 sums that have taken many rows go to float64 first."""
        if self._by_call or self._rows + n_rows > _ROWS_ON_CPU:
            self._move()
        self._rows += n_rows

    def finish(self) -> Array:
        """(n, n, n, 2): sums of f * value and of f * weight.  More may be inserted afterwards."""
        self._move()
        return self.double if self.fixed is None else _of_fixed(self.fixed, self.exponents)

    def joined(self, comm: Comm) -> FinishedSums:
        """The sums over all ranks; nothing may be added afterwards."""
        self._move()
        return _joined(self, comm)

    def _move(self) -> None:
        if not self._rows:
            return
        from orienteer.slicing._insert_numba import largest_sums, move_sums, move_to_fixed

        self._rows = 0
        if self.exponents is None:
            move_sums(self.single.reshape(self.n, -1), self.double.reshape(self.n, -1))
            return
        single, largest = self.single.reshape(self.n, -1, 2), np.empty((self.n, 2))
        largest_sums(single, largest)
        self.magnitudes += largest.max(axis=0)
        if not np.all(np.isfinite(self.magnitudes)):
            raise OrienteerError("values or weights to be inserted are not finite.")
        self.exponents = _made_room(self.fixed, self.exponents, _exponents(self.magnitudes, 0))
        move_to_fixed(single, self.fixed.reshape(self.n, -1, 2), np.ldexp(1.0, self.exponents))


class GpuSums:
    """Sums on the GPU, in a form that suits its atomic additions.

    Fast form: four float32 copies, ``sectors`` (2, 2, n, h, h, 8), h = (n + 1) // 2.  Copy (i, j) holds the
    voxels y = 2 a + i + (0, 1), z = 2 b + j + (0, 1) at (x, a, b), each as value and weight: the four
    neighbours of any point in a plane x lie in 32 bytes of one copy, which takes a single memory access.

    Deterministic form: ``fixed`` (n, n, n, 2) int64 in units of 2^-``exponents``.  Integers have the same
    sum in any order.  The unit is chosen such that the sum of all magnitudes, a bound for every voxel, stays
    below 2^61, and grows when values need it.

    magnitudes : approximate sums of the magnitudes of all values and of all weights, including those that
        other ranks add to their own sums: then all ranks have the same unit and round in the same way.
        None: the unit is chosen from the first values.
    """

    def __init__(
        self, n: int, deterministic: bool = False, magnitudes: tuple[float, float] | None = None
    ) -> None:
        self.cupy: Any = import_cupy()
        if self.cupy is None:
            raise RuntimeError("GpuSums needs CuPy and a CUDA device")
        self.n, self.deterministic = n, deterministic
        h = (n + 1) // 2
        self.sectors: Array = None if deterministic else self.cupy.zeros((2, 2, n, h, h, 8), np.float32)
        self.fixed: Array = self.cupy.zeros((n, n, n, 2), np.int64) if deterministic else None
        self.exponents: tuple[int, int] | None = _predicted(magnitudes)
        self.magnitudes: NDArray[np.float64] = np.zeros(2)
        self._total: Array = None
        self._rows = 0

    def expect_rows(self, n_rows: int) -> None:
        """Called before rows are added: float32 sums that have taken many rows go to float64 first."""
        self._rows += n_rows
        if self._rows > _ROWS_IN_SINGLE and self.sectors is not None:
            self._total = self.finish()
            self.sectors[...] = 0
            self._rows = n_rows

    def expect_magnitudes(self, values: float, weights: float) -> tuple[int, int]:
        """Called before values with these sums of magnitudes are added; returns the units' exponents."""
        self.magnitudes += values, weights
        if not np.all(np.isfinite(self.magnitudes)):
            raise OrienteerError("values or weights to be inserted are not finite.")
        needed = _exponents(self.magnitudes, 0)
        if self.exponents is None:  # with room, so that the unit seldom has to grow
            self.exponents = _exponents(self.magnitudes, _ROOM)
        self.exponents = _made_room(self.fixed, self.exponents, needed)
        return self.exponents

    def finish(self) -> Array:
        """(n, n, n, 2) float64 CuPy: sums of f * value and f * weight.  More may be inserted afterwards."""
        if self.fixed is not None:
            return _of_fixed(self.fixed, self.exponents)
        n, h = self.n, self.sectors.shape[3]
        joined = self.cupy.zeros((n, n, n, 2))
        for y in range(2):
            for z in range(2):
                voxels = self.sectors[y, z].reshape(n, h, h, 2, 2, 2).transpose(0, 1, 3, 2, 4, 5)
                joined[:, y:, z:] += voxels.reshape(n, 2 * h, 2 * h, 2)[:, : n - y, : n - z]
        if self._total is not None:
            joined += self._total
        return joined

    def joined(self, comm: Comm) -> FinishedSums:
        """The sums over all ranks; nothing may be added afterwards."""
        return _joined(self, comm)


def _joined(sums: CpuSums | GpuSums, comm: Comm) -> FinishedSums:
    """The sums over all ranks; whole numbers are added before they are converted to float64."""
    if sums.fixed is None:
        return FinishedSums(comm.sum(sums.finish()))
    none = np.iinfo(np.int64).max  # of a rank without predicted magnitudes to which nothing was added
    first, second = (int(e) for e in comm.min(np.array(sums.exponents or (none, none), dtype=np.int64)))
    needed = _exponents(comm.sum(sums.magnitudes), 0)
    exponents = (0, 0) if none in (first, second) else (min(first, needed[0]), min(second, needed[1]))
    _made_room(sums.fixed, sums.exponents or exponents, exponents)
    return FinishedSums(_of_fixed(comm.sum(sums.fixed), exponents))


def _of_fixed(fixed: Array, exponents: tuple[int, int] | None) -> Array:
    """Whole numbers (n, n, n, 2) of units of 2^-exponents as float64."""
    xp = array_namespace(fixed)
    return fixed * xp.asarray(np.ldexp(1.0, [-e for e in exponents or (0, 0)]))


def _made_room(fixed: Array, exponents: tuple[int, int], needed: tuple[int, int]) -> tuple[int, int]:
    """Exponents not above the needed ones; the numbers are shifted in place to these units."""
    for channel in range(2):
        shift = exponents[channel] - needed[channel]
        if shift > 0:
            fixed[..., channel] >>= min(shift, 63)
    return (min(exponents[0], needed[0]), min(exponents[1], needed[1]))


def _predicted(magnitudes: tuple[float, float] | None) -> tuple[int, int] | None:
    """Exponents of units for predicted sums of magnitudes; None if they are missing or not positive."""
    if magnitudes is None or not np.all(np.isfinite(magnitudes)) or not min(magnitudes) > 0:
        return None
    return _exponents(magnitudes, _ROOM_PREDICTED)


def _exponents(magnitudes: Iterable[float], room: int) -> tuple[int, int]:
    """Exponents of the units in which the magnitudes of values and of weights stay below 2^(61 - room)."""
    values, weights = (
        61 - room - (max(_SMALLEST, int(np.frexp(m)[1])) if m else _SMALLEST) for m in magnitudes
    )
    return values, weights


def make_sums(
    n: int, device: DeviceName = "auto", deterministic: bool = False,
    magnitudes: tuple[float, float] | None = None,
) -> Any:  # fmt: skip
    """Empty sums for ``insert_slices`` on a device: ``CpuSums`` or ``GpuSums``.

    deterministic : whether equal rows give equal bits every time on the GPU (slower).  On the CPU they always
        do; there, with it, the order of calls changes only the last bits, and with ``magnitudes`` none.
    magnitudes : as in :class:`GpuSums`, for sums to which several ranks add.
    """
    if choose_device(device) == "cpu":
        return CpuSums(n, deterministic, magnitudes)
    return GpuSums(n, deterministic, magnitudes)
