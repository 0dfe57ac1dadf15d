"""The likelihood of a run and its nuisances: dispersion by shell, background, junk classes."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, to_numpy
from orienteer.errors import FileError
from orienteer.likelihood.base import Likelihood
from orienteer.likelihood.dispersion import dispersion_sums, estimate_dispersion, join_sums
from orienteer.likelihood.gaussian import Gaussian
from orienteer.likelihood.negative_binomial import NegativeBinomial
from orienteer.likelihood.poisson import Poisson
from orienteer.orientation.quaternion import to_matrix
from orienteer.reconstruction.expectation import Deposit
from orienteer.reconstruction.pixels import PixelTable
from orienteer.reconstruction.settings import EmcSettings
from orienteer.slicing.trilinear import slice_volume
from orienteer.source.sparse_photons import dense_from_photons

if TYPE_CHECKING:
    from orienteer.reconstruction.workspace import Workspace

_FRAMES = 256
# Fully developed speckles have a relative variance of 1: a model cannot be more wrong than not to know them.
_LARGEST_DISPERSION = 1.0


class NoiseModel:
    """How counts scatter about the model; learns from the residuals of frames that the model has not seen.

    dispersion : (shells,) relative variance of the model's own error; 0 is Poisson.
    background : (U,) photons per shot at the usable pixels, or None.
    """

    def __init__(self, settings: EmcSettings, pixels: PixelTable, n_frames: int) -> None:
        self._kind, self._n_frames = settings.likelihood, n_frames
        n_junk = settings.junk_classes
        self._n_junk = n_junk
        self.background = _read_background(settings.background_file, pixels)
        self.dispersion: NDArray[np.float64] = np.ones(1)
        self.sigma = 0.0

    def forget(self) -> None:
        """Nothing is known of the model yet: it may be wrong by all of its speckles."""
        self.dispersion = np.ones(1)

    def state(self) -> dict[str, Any]:
        """What the next iteration depends on."""
        return {"noise/dispersion": self.dispersion, "noise/sigma": self.sigma}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self.dispersion = np.array(state["noise/dispersion"], dtype=np.float64)
        self.sigma = float(state["noise/sigma"])

    def without_background(self, photons: NDArray[Any], n_frames: NDArray[Any]) -> NDArray[np.float64]:
        """Photons (U,) of all frames less those of the background, never negative."""
        if self.background is None:
            return np.asarray(photons, dtype=np.float64)
        return np.asarray(np.maximum(photons - self.background * n_frames, 0.0))

    def background_photons(self, work: "Workspace") -> float:
        """Background photons of one shot on the scored pixels."""
        return 0.0 if self.background is None else float(self.background[work.places[: work.n_scored]].sum())

    def likelihood(self, work: "Workspace") -> Likelihood:
        """The likelihood over the pixels of a stage."""
        if self._kind == "poisson":
            return Poisson(work.pixel_model)
        if self._kind == "gaussian":
            return Gaussian(work.pixel_model, self.sigma or self._first_sigma(work))
        shell = np.minimum(work.shell, len(self.dispersion) - 1)
        return NegativeBinomial(work.pixel_model, work.xp.asarray(self.dispersion[shell].astype(np.float32)))

    def _first_sigma(self, work: "Workspace") -> float:
        return float(np.sqrt(np.mean(to_numpy(work.pixel_weights[: work.n_scored]).astype(np.float64) ** 2)))

    def update(
        self, work: "Workspace", models: Array, poses: NDArray[Any], model: NDArray[Any],
        fluence: NDArray[np.float64], half: NDArray[np.int64],
    ) -> None:  # fmt: skip
        """Learn the dispersion from frames at their best poses in the model that oriented them."""
        if self._kind == "poisson":
            return
        parts, residuals = [], []
        n_shells = int(work.shell.max()) + 1
        for h in range(len(models)):
            batch = work.sample(h, fluence)
            if batch is None:
                continue
            own = models[len(models) - 1 - h]
            counts = work.xp.concatenate([_dense_counts(group.frames) for group in batch.groups])
            matrices = np.swapaxes(to_matrix(poses[batch.places]), 1, 2).astype(np.float32)
            expected = work.xp.empty(counts.shape, dtype=np.float32)
            which = np.maximum(model[batch.places], 0)
            for m in np.unique(which):
                rows = np.flatnonzero(which == m)
                slices = slice_volume(
                    own[int(m)], work.points, work.xp.asarray(np.ascontiguousarray(matrices[rows]))
                )
                expected[work.xp.asarray(rows)] = slices[:, : work.n_scored]
            expected *= work.pixel_weights[: work.n_scored]
            expected *= batch.fluence[:, None].astype(np.float32)
            background = work.pixel_model.background
            if background is not None:
                expected += background[: work.n_scored]
            good = work.xp.asarray(model[batch.places] >= 0)
            if not bool(good.any()):
                continue
            counts, expected = counts[good], expected[good]
            residuals.append(float(((counts - expected) ** 2).mean()))
            parts.append(
                dispersion_sums(counts, expected, work.xp.asarray(work.shell[: work.n_scored]), n_shells)
            )
        if parts:
            estimate = estimate_dispersion(join_sums(parts))
            self.dispersion = np.minimum(estimate, _LARGEST_DISPERSION)
            self.sigma = float(np.sqrt(np.mean(residuals)))

    def first_junk(self, n_pixels: int, seed: int, xp: Any) -> Array:
        """Relative patterns (J, U) of the junk classes to begin with: the radial mean, hardly disturbed."""
        noise = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2,))).normal(
            size=(self._n_junk, n_pixels)
        )
        return xp.asarray(np.exp(0.05 * noise).astype(np.float32))

    def solve_junk(self, deposits: list[Deposit], work: "Workspace", junk: Array) -> Array:
        """New patterns of the junk classes at the pixels of the stage."""
        xp = work.xp
        total: Array = sum(deposit.junk for deposit in deposits if deposit.junk is not None)
        new = junk.copy()
        new[:, xp.asarray(work.places)] = ((total[..., 0] + 0.25) / (total[..., 1] + 0.25)).astype(xp.float32)
        return new


def _dense_counts(frames: Any) -> Array:
    dense = dense_from_photons(frames.photons) if frames.dense is None else frames.dense
    return dense[:, : frames.n_scored].astype(np.float32)


def _read_background(path: str, pixels: PixelTable) -> NDArray[np.float64] | None:
    if not path:
        return None
    if path.endswith(".npy"):
        values = np.load(path, allow_pickle=False)
    else:
        from orienteer.compute.hdf5_reading import get_dataset, read_array
        from orienteer.compute.reading import reading

        with reading(Path(path)):
            import h5py

            with h5py.File(path) as file:
                values = read_array(get_dataset(file, "background"))
    values = np.asarray(values, dtype=np.float64).reshape(-1)
    if len(values) <= int(pixels.index.max()) or not np.isfinite(values).all() or values.min() < 0:
        raise FileError(
            Path(path),
            f"holds {len(values)} values, which must be one finite number, not negative, per pixel.",
            "Photons per shot of every pixel of the frame, as simulate and Dragonfly use them.",
        )  # fmt: skip
    return np.asarray(values[pixels.index])
