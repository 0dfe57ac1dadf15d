"""The expected signal of shots: the transforms of the particles, evaluated at the pixels of every shot."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, DeviceName, namespace_of_device, to_device
from orienteer.detector.beam import HC_EV_A
from orienteer.fourier.sampled_transform import SampledTransform
from orienteer.orientation.quaternion import to_matrix
from orienteer.simulation.centre_offset import OffsetGeometry
from orienteer.simulation.truth import ShotKind, Truth

# Memory for the fields and per-shot geometries that are computed at a time.
_CHUNK_BYTES = 64 * 2**20


@dataclass(frozen=True, eq=False)
class Scattering:
    """Expected photons in the used pixels: fluence x r_e^2 x |F|^2 x solid angle x polarisation x efficiency.

    If the particles of a shot interfere, as its truth states, their fields add, each with its phase
    exp(+2 pi i q.d); otherwise their intensities add.

    particles : one transform for each class.
    junk : one transform for each piece of junk.
    points : (P, 3) float64 Ewald vectors of the used pixels, on the device.
    correction : (P,) float32, on the device.
    offset_geometry : for shots whose beam is off centre; None if no shot is.
    order : (P,) int32 on the device, the order in which a GPU processes the pixels; None for their own order.
    """

    particles: tuple[SampledTransform, ...]
    junk: tuple[SampledTransform, ...]
    points: Array
    correction: Array
    offset_geometry: OffsetGeometry | None
    order: Array | None
    device: DeviceName

    def signal(self, truth: Truth, fluence_r_e2: float) -> Array:
        """Expected photons (N, P) float32 in the used pixels; ``fluence_r_e2``: mean fluence times r_e^2."""
        xp = namespace_of_device(self.device)
        out = xp.zeros((len(truth), len(self.points)), np.float32)
        chunk = max(1, len(truth))
        if self.offset_geometry is not None:
            chunk = max(1, _CHUNK_BYTES // (len(self.points) * 100))
        for first in range(0, len(truth), chunk):
            shots = truth[first : first + chunk]
            points, correction = self.points, self.correction
            if self.offset_geometry is not None:
                points, correction = self.offset_geometry.at(shots.offset_m)
            self._add_signal(out[first : first + chunk], shots, points, correction, fluence_r_e2)
        return out

    def _add_signal(
        self, out: Array, truth: Truth, points: Array, correction: Array, fluence_r_e2: float
    ) -> None:
        for shots, transform, m in self._groups(truth, ~truth.interferes):
            self._add_intensities(out, truth, shots, m, transform, points, correction, fluence_r_e2)
        chunk = max(1, _CHUNK_BYTES // (len(self.correction.T) * 40))
        chosen = np.flatnonzero(truth.interferes)
        for first in range(0, len(chosen), chunk):
            self._add_interfering(out, truth, chosen[first : first + chunk], points, correction, fluence_r_e2)

    def _groups(
        self, truth: Truth, among: NDArray[np.bool_]
    ) -> list[tuple[NDArray[np.int64], SampledTransform, int]]:
        """(shots, transform, m): all shots whose particle m has this transform."""
        is_junk = truth.kind == ShotKind.JUNK
        groups = []
        for m in range(truth.particle_class.shape[1]):
            for transforms, of_this_sort in ((self.particles, ~is_junk), (self.junk, is_junk)):
                for c, transform in enumerate(transforms):
                    shots = np.flatnonzero(among & of_this_sort & (truth.particle_class[:, m] == c))
                    if len(shots):
                        groups.append((shots, transform, m))
        return groups

    def _add_intensities(
        self, out: Array, truth: Truth, shots: NDArray[np.int64], m: int, transform: SampledTransform,
        points: Array, correction: Array, fluence_r_e2: float,
    ) -> None:  # fmt: skip
        whole = len(shots) == len(truth)
        target = out if whole else out[to_device(shots, self.device)]
        if points.ndim == 3 and not whole:
            points, correction = (
                points[to_device(shots, self.device)],
                correction[to_device(shots, self.device)],
            )
        for line in range(truth.energy_eV.shape[1]):
            matrices = _matrices(truth, shots, m, line)
            # A particle that is s times as large scatters s^3 times the field, so s^6 times the intensity.
            weights = _weights(truth, shots, line, fluence_r_e2) * truth.size[shots, m] ** 6
            transform.intensity(points, matrices, correction, weights, target, add=True, order=self.order)
        if not whole:
            out[to_device(shots, self.device)] = target

    def _add_interfering(
        self,
        out: Array,
        truth: Truth,
        shots: NDArray[np.int64],
        points: Array,
        correction: Array,
        fluence_r_e2: float,
    ) -> None:
        xp = namespace_of_device(self.device)
        on_device = to_device(shots, self.device)
        of_shots = points[on_device] if points.ndim == 3 else points[None]
        scale = correction[on_device] if points.ndim == 3 else correction
        chosen = truth[shots]
        total = xp.zeros((len(shots), out.shape[1]), np.float32)
        for line in range(truth.energy_eV.shape[1]):
            field = xp.zeros((len(shots), out.shape[1]), np.complex64)
            for some, transform, m in self._groups(chosen, np.ones(len(shots), bool)):
                index = to_device(some, self.device)
                own_points = of_shots[index] if points.ndim == 3 else points
                matrices = _matrices(chosen, some, m, line)
                # Position over wavelength, so that its product with an Ewald vector is a phase in turns.
                place = chosen.position_A[some, m] * chosen.energy_eV[some, line, None] / HC_EV_A
                turns = xp.matmul(own_points, to_device(place, self.device)[:, :, None])[..., 0]
                phase = xp.exp(2j * np.pi * (turns - xp.rint(turns))).astype(np.complex64)
                volume = to_device(chosen.size[some, m, None].astype(np.float32) ** 3, self.device)
                field[index] += transform.field(own_points, matrices, order=self.order) * phase * volume
            weights = to_device(_weights(chosen, np.arange(len(shots)), line, fluence_r_e2), self.device)
            total += (field.real**2 + field.imag**2) * scale * weights[:, None].astype(np.float32)
        out[on_device] += total


def _matrices(truth: Truth, shots: NDArray[np.int64], m: int, line: int) -> NDArray[np.float64]:
    """(K, 3, 3) from Ewald vectors to q of the unturned particle of nominal size: size x R^T / wavelength."""
    rotation = np.swapaxes(to_matrix(truth.orientation[shots, m]), 1, 2)
    scale = truth.size[shots, m] * truth.energy_eV[shots, line] / HC_EV_A
    return np.asarray(rotation * scale[:, None, None])


def _weights(truth: Truth, shots: NDArray[np.int64], line: int, fluence_r_e2: float) -> NDArray[np.float64]:
    """(K,) fluence of the line times r_e^2."""
    return np.asarray(fluence_r_e2 * truth.fluence[shots] * truth.line_weight[shots, line])
