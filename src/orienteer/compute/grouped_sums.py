"""Sums of numbers by the group that each belongs to, such as the voxels of every shell of a cube."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, array_namespace, is_on_gpu, to_numpy
from orienteer.compute.kernels import load_kernels
from orienteer.errors import OrienteerError

_THREADS = 256
# Members of a group that are summed by one block of threads on the GPU.
_CHUNK = 4096


class Groups:
    """Members of groups, sorted once so that many arrays can be summed.

    index : whole numbers from 0 to n_groups - 1, of any shape; on the CPU or the GPU.
    n_members : (n_groups,) int64.

    >>> Groups(np.array([[1, 0], [1, 2]]), 4).sums(np.array([[1.0, 2.0], [3.0, 4.0]]))[:, 0]
    array([2., 4., 4., 0.])
    """

    def __init__(self, index: Array, n_groups: int) -> None:
        xp = array_namespace(index)
        flat = index.ravel()
        self.n_groups, self.shape = n_groups, index.shape
        self._on_gpu = is_on_gpu(index)
        if not self._on_gpu:
            self._index = flat
            self.n_members: NDArray[np.int64] = np.bincount(flat, minlength=n_groups)
            return
        n = len(flat)
        if n > np.iinfo(np.int32).max:
            raise OrienteerError(f"{n} numbers are too many to be summed by group on the GPU.")
        # Keys of group and place are unique, so they are sorted in the same way in every run.
        keys = xp.sort(flat.astype(np.int64) * max(n, 1) + xp.arange(n, dtype=np.int64))
        self._order = (keys % max(n, 1)).astype(np.int32)
        bounds = to_numpy(xp.searchsorted(keys, xp.arange(n_groups + 1, dtype=np.int64) * max(n, 1)))
        self.n_members = np.diff(bounds).astype(np.int64)
        n_chunks = np.maximum(-(-self.n_members // _CHUNK), 1)
        self._first_chunk = np.cumsum(n_chunks) - n_chunks
        group = np.repeat(np.arange(n_groups), n_chunks)
        within = (np.arange(len(group)) - self._first_chunk[group]) * _CHUNK
        start = np.append(bounds[:-1][group] + within, bounds[-1])
        self._start = xp.asarray(start.astype(np.int64))

    def sums(self, *terms: Array) -> NDArray[np.float64]:
        """Sums over every group, (n_groups, number of terms) float64; the same bits in every run.

        terms : real arrays of the shape of the index, on the device of the index.
        """
        for term in terms:
            if term.shape != self.shape:
                raise OrienteerError(f"an array {term.shape} cannot be summed by groups of {self.shape}.")
        if not self._on_gpu:
            sums = [np.bincount(self._index, weights=t.ravel(), minlength=self.n_groups) for t in terms]
            return np.stack(sums, axis=1)
        xp = array_namespace(self._start)
        n_chunks = len(self._start) - 1
        parts = xp.empty((len(terms), n_chunks), dtype=np.float64)
        module = load_kernels(Path(__file__).with_suffix(".cu"))
        for term, part in zip(terms, parts, strict=True):
            single = term.dtype == np.float32
            values = xp.ascontiguousarray(term, dtype=np.float32 if single else np.float64)
            kernel = module.get_function("sum_float32" if single else "sum_float64")
            kernel((n_chunks,), (_THREADS,), (values, self._order, self._start, part))
        return np.add.reduceat(to_numpy(parts), self._first_chunk, axis=1).T
