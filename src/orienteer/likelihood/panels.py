"""Operands in the form that photon lists read on the CPU: panels of rows that lie side by side."""

from dataclasses import dataclass

import numpy as np

from orienteer.compute.arrays import Array

WIDE, NARROW = 64, 16  # rows of a panel


@dataclass(frozen=True, eq=False)
class Panels:
    """An operand (S, T) cut into panels.

    array : (B, S, width) float32; row k is ``array[k // width, :, k % width]``.
    n_rows : T.
    signal : (T,) float64, photons of each row at unit fluence on the S pixels: sum_p c_p W_kp.
    """

    array: Array
    n_rows: int
    signal: Array


def panel_width(n_rows: int) -> int:
    """Rows of a panel for a tile of rows."""
    return NARROW if n_rows <= NARROW else WIDE


def aligned_panels(memory: Array | None, n: int, n_rows: int) -> tuple[Array, Array]:
    """Memory, kept from call to call and enlarged if needed, and an array (panels, n, width) float32 in it.

    Panels begin at the start of a cache line, because a vector across two lines takes twice the time.
    """
    width = panel_width(n_rows)
    n_panels = -(-n_rows // width)
    size = n_panels * n * width
    if memory is None or memory.size < size + NARROW:
        memory = np.zeros(size + NARROW, dtype=np.float32)
    first = -(memory.ctypes.data // 4) % NARROW
    return memory, memory[first : first + size].reshape(n_panels, n, width)
