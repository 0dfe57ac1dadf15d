"""Convert read-out to photons on the device where the frames are."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, array_namespace, is_on_gpu, to_device
from orienteer.compute.kernels import load_kernels

_THREADS = 256
_BLOCKS = 4096
_ON_GPU = ("uint16", "int16", "int32", "float32")
# Frames for which one launch finds the offsets of panels; the second axis of a grid is limited to 65535.
_FRAMES_AT_ONCE = 32768


@dataclass(frozen=True, eq=False)
class Conversion:
    """x = (raw - pedestal - offset of the panel) / gain, and photons = whole part of x + 1 - threshold.

    pedestal, inverse_gain : (S, P) float32, of S gain stages.
    photon_adu : (P,) float32, ADU of a photon in the first stage, even if frames are not divided by the gain.
    panel : (P,) int32, number of the panel whose common offset is subtracted; -1: none.
    threshold : signal from which a pixel has its first photon; None: the signal is kept, (N, P) float32.
    """

    pedestal: NDArray[np.float32]
    inverse_gain: NDArray[np.float32]
    photon_adu: NDArray[np.float32]
    panel: NDArray[np.int32]
    threshold: float | None

    @property
    def n_panels(self) -> int:
        """Panels that have a common offset of their own."""
        return int(self.panel.max(initial=-1)) + 1

    def __call__(self, raw: Array, stage: Array | None = None) -> Array:
        """Photons (N, P) uint16, or signal (N, P) float32.

        raw : (N, P) read-out.  stage : (N, P) uint8, the gain stage of each value; None: the first.
        """
        if is_on_gpu(raw):
            return self._on_gpu(raw, stage)
        from orienteer.calibration import _conversion_numba as numba_twin

        lift = np.float32(0 if self.threshold is None else 1 - self.threshold)
        counts = self.threshold is not None
        out = np.empty(raw.shape, np.uint16 if counts else np.float32)
        if counts and stage is None and not self.n_panels:
            numba_twin.convert(raw, self.pedestal[0], self.inverse_gain[0], lift, out)
            return out
        stage = np.zeros((1, 1), np.uint8) if stage is None else np.ascontiguousarray(stage, np.uint8)
        offset = np.zeros((len(raw), max(self.n_panels, 1)), np.float32)
        constants = (raw, stage, self.pedestal, self.inverse_gain)
        if self.n_panels:
            numba_twin.find_offsets(*constants[:3], *self._pixels_by_panel, offset)
        numba_twin.convert_stages(*constants, self.panel, offset, lift, counts, out)
        return out

    @cached_property
    def _pixels_by_panel(self) -> tuple[NDArray[np.float32], NDArray[np.int32], NDArray[np.int32]]:
        """ADU of a photon (L,), pixels sorted by panel (P,), and where each panel begins in them (L + 1,)."""
        order = np.argsort(self.panel, kind="stable").astype(np.int32)
        first = np.searchsorted(self.panel[order], np.arange(self.n_panels + 1)).astype(np.int32)
        of_panels = np.split(self.photon_adu[order], first)[1:-1]
        photon = [np.median(one) if len(one) else 1.0 for one in of_panels]
        return np.array(photon, np.float32), order, first

    def _on_gpu(self, raw: Array, stage: Array | None) -> Array:
        xp: Any = array_namespace(raw)
        name = str(raw.dtype)
        if name not in _ON_GPU:
            name = "float32" if raw.dtype.kind == "f" else "int32"
        raw = xp.ascontiguousarray(raw, dtype=name)
        D, P = raw.shape
        kernels = load_kernels(Path(__file__).with_suffix(".cu"))
        pedestal, inverse_gain, panel, photon, order, first = (
            to_device(array, "cuda")
            for array in (self.pedestal, self.inverse_gain, self.panel, *self._pixels_by_panel)
        )
        stages: Any = np.uintp(0) if stage is None else xp.ascontiguousarray(stage, dtype=np.uint8)
        offset = xp.zeros((D, max(self.n_panels, 1)), dtype=np.float32)
        S, L, n = np.int32(len(self.pedestal)), np.int32(max(self.n_panels, 1)), np.int32(P)
        if self.n_panels:
            kernel = kernels.get_function(f"find_offsets_{name}")
            for d in range(0, D, _FRAMES_AT_ONCE):
                part = slice(d, d + _FRAMES_AT_ONCE)
                of_part = stages if stage is None else stages[part]
                grid = (self.n_panels, len(raw[part]))
                arguments = (raw[part], of_part, pedestal, photon, order, first, n, offset[part])
                kernel(grid, (_THREADS,), arguments)
        counts = self.threshold is not None
        out = xp.empty(raw.shape, dtype=np.uint16 if counts else np.float32)
        lift = np.float32(0 if self.threshold is None else 1 - self.threshold)
        outputs = (out, np.uintp(0)) if counts else (np.uintp(0), out)
        arguments = (raw, stages, pedestal, inverse_gain, panel, offset, S, L, np.int64(D), n, lift, *outputs)
        kernels.get_function(f"convert_{name}")((_BLOCKS,), (_THREADS,), arguments)
        return out
