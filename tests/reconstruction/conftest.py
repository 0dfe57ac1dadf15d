"""Small experiments that a reconstruction works on in seconds, and what can be said against the truth."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

import orienteer
from orienteer.compare.alignment import Alignment, align_intensities
from orienteer.compare.shells import radial_mean, shell_index
from orienteer.fourier.sampled_transform import SampledTransform
from orienteer.particle.named_bodies import random_blobs
from orienteer.reconstruction.emc import Emc
from orienteer.reconstruction.settings import EmcSettings
from orienteer.source.in_memory import InMemorySource
from orienteer.source.patterns import Patterns

WAVELENGTH_A, DIAMETER_A = 2.5, 200.0


@dataclass(frozen=True, eq=False)
class Tiny:
    """A simulated data set in memory.

    particle : what scattered.
    detector, patterns : a square of pixels and the frames on it, with the truth beside them.
    """

    particle: Any
    detector: Any
    patterns: Patterns
    _truths: dict[tuple[int, float], Any] = field(default_factory=dict, repr=False)

    def source(self, **changes: Any) -> Any:
        """The data as a source; frames, columns or detector may be replaced."""
        patterns = Patterns(
            changes.get("frames", self.patterns.frames),
            changes.get("event_id", self.patterns.event_id),
            changes.get("columns", self.patterns.columns),
        )
        source = InMemorySource(patterns, self.detector.frame_shape)
        return source.with_detector(changes.get("detector", self.detector))

    def emc(self, seed: int = 1, **settings: Any) -> Emc:
        """A reconstruction of these data on the CPU."""
        settings.setdefault("diameter_A", DIAMETER_A)
        return Emc(self.source(), EmcSettings(**settings), seed=seed, device="cpu")

    def take_truth(self, emc: Emc) -> None:
        """Go on as if everything so far had led to the true model."""
        truth = self.truth_on(emc)
        index, mean = shell_index(len(truth)), radial_mean(truth)
        relative = np.where(index >= 0, truth / mean[np.maximum(index, 0)], 1.0).astype(np.float32)
        emc.models = np.stack([relative[None]] * emc.n_halves)

    def truth_on(self, emc: Emc) -> Any:
        """The true intensity on the cube of the reconstruction, to be read; the same cube is made once."""
        cube = (emc.work.edge_voxels, emc.work.stage.voxel_inv_A)
        if cube not in self._truths:
            self._truths[cube] = self._truth_on(*cube)
            self._truths[cube].flags.writeable = False
        return self._truths[cube]

    def _truth_on(self, n: int, voxel_inv_A: float) -> Any:
        axis = (np.arange(n) - n // 2) * voxel_inv_A
        points = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)
        transform = SampledTransform.from_particle(self.particle, 1.8 * n / 2 * voxel_inv_A)
        slices = transform.intensity(points.astype(np.float32), np.eye(3, dtype=np.float32)[None])
        return slices[0].reshape(n, n, n).astype(np.float32)

    def aligned(self, emc: Emc, model: int = 0, last_shell: int | None = None) -> Alignment:
        """The model turned onto the truth, with the correlation in every shell."""
        return align_intensities(self.truth_on(emc), emc.volumes()[model].values, last_shell=last_shell)


def simulate(particle: Any, n_pixels: int, edge_A: float, **settings: Any) -> Tiny:
    detector = orienteer.square_detector(
        n_pixels, edge_resolution_A=edge_A, wavelength_A=WAVELENGTH_A, pixel_size_m=5e-4
    )
    beam = orienteer.Beam(wavelength_A=WAVELENGTH_A)
    settings.setdefault("seed", 3)
    experiment = orienteer.simulate(
        particle, beam, detector, orienteer.SimulateSettings(**settings), device="cpu"
    )
    return Tiny(particle, detector, experiment.read())


@pytest.fixture(scope="session")
def simulated() -> Callable[..., Tiny]:
    return simulate


@pytest.fixture(scope="session")
def tiny() -> Tiny:
    """80 frames of 14 x 14 pixels, of an object without symmetry, three speckles from centre to side."""
    return simulate(
        random_blobs(DIAMETER_A, 20, 5), 14, 65.0, frames=80, photons_per_frame=300, fluence_jitter=0.5
    )


@pytest.fixture
def merge_whole_frames() -> Callable[[Emc], None]:
    """Makes a reconstruction merge frames as they are, not what they have more than the model."""

    def change(emc: Emc) -> None:
        made = emc.new_deposit
        emc.new_deposit = lambda work, half: replace(made(work, half), models=None)  # type: ignore[method-assign]

    return change
