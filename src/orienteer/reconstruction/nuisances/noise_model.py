"""The likelihood of a run and its parameters: dispersion of each shell, background, junk classes."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, array_namespace, to_numpy
from orienteer.errors import FileError, SettingsError
from orienteer.likelihood.base import Likelihood
from orienteer.likelihood.dispersion import dispersion_sums, estimate_dispersion, join_sums
from orienteer.likelihood.gaussian import Gaussian
from orienteer.likelihood.negative_binomial import NegativeBinomial
from orienteer.likelihood.poisson import Poisson
from orienteer.reconstruction.frames.frame_fit import DenseFrames, dense_frames, signal_at_poses
from orienteer.reconstruction.frames.pixels import PixelTable
from orienteer.reconstruction.orienting.deposit import Deposit
from orienteer.reconstruction.settings import EmcSettings

if TYPE_CHECKING:
    from orienteer.reconstruction.workspace import Workspace

_FRAMES = 256
# A model that knows nothing of fully developed speckles has a relative variance of 1; none can be worse.
_LARGEST_DISPERSION = 1.0


class NoiseModel:
    """How counts scatter about the model, learnt from the residuals of frames that were not merged into it.

    dispersion : (shells,) relative variance of the model's own error; 0 is Poisson.
    sigma : of the Gaussian likelihood, in photons at unit fluence; 0: not measured yet.
    background : (U,) photons per shot at the usable pixels, or None.
    """

    def __init__(self, settings: EmcSettings, pixels: PixelTable) -> None:
        self._kind = settings.likelihood
        n_junk = settings.junk_classes
        self._n_junk = n_junk
        if self._kind == "gaussian" and (settings.background_file or settings.background == "estimate"):
            raise SettingsError(
                "the Gaussian likelihood cannot use a background.",
                "Subtract the background from the frames, or use a likelihood that counts photons.",
            )
        self.background = _read_background(settings.background_file, pixels)
        self.dispersion: NDArray[np.float64] = np.ones(1)
        self.sigma = 0.0

    def forget(self) -> None:
        """Begin anew with a model of which nothing is known: it may be wrong by as much as its speckles."""
        self.dispersion = np.ones(1)

    def rescale_shells(self, zoom: float) -> None:
        """Interpolate the dispersion when shells become thinner by a factor."""
        if zoom != 1:
            n = round(len(self.dispersion) * zoom)
            self.dispersion = np.interp(np.arange(n) / zoom, np.arange(len(self.dispersion)), self.dispersion)

    def state(self) -> dict[str, Any]:
        """What the next iteration depends on."""
        return {
            "noise/dispersion": self.dispersion,
            "noise/sigma": self.sigma,
            "noise/background": np.zeros(0) if self.background is None else self.background,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self.dispersion = np.array(state["noise/dispersion"], dtype=np.float64)
        self.sigma = float(state["noise/sigma"])
        background = np.array(state["noise/background"], dtype=np.float64)
        self.background = background if len(background) else None

    def without_background(self, photons: NDArray[Any], n_frames: NDArray[Any]) -> NDArray[np.float64]:
        """Photons (U,) of all frames minus those of the background, never negative."""
        if self.background is None:
            return np.asarray(photons, dtype=np.float64)
        return np.asarray(np.maximum(photons - self.background * n_frames, 0.0))

    def background_photons(self, work: "Workspace") -> float:
        """Background photons of a shot on the scored pixels."""
        return 0.0 if self.background is None else float(self.background[work.places[: work.n_scored]].sum())

    def likelihood(self, work: "Workspace") -> Likelihood:
        """The likelihood over the pixels of a stage."""
        if self._kind == "poisson":
            return Poisson(work.pixel_model)
        if self._kind == "gaussian":
            return Gaussian(work.pixel_model, self.sigma or self._first_sigma(work))
        dispersion = self.dispersion_of_pixels(work).astype(np.float32)
        return NegativeBinomial(work.pixel_model, work.xp.asarray(dispersion))

    def _first_sigma(self, work: "Workspace") -> float:
        return float(np.sqrt(np.mean(to_numpy(work.pixel_weights[: work.n_scored]).astype(np.float64) ** 2)))

    def update(
        self, work: "Workspace", models: Array, poses: NDArray[Any], model: NDArray[Any],
        fluence: NDArray[np.float64],
    ) -> None:  # fmt: skip
        """Measure dispersion and sigma from frames at their best poses in the model that oriented them."""
        parts, noise = [], np.zeros(2)  # of which: sum of (K / phi - s)^2, and number of pixels
        n_shells = int(work.shell.max()) + 1
        shell = work.xp.asarray(work.shell[: work.n_scored])
        for h in range(len(models)):
            batch = work.sample(h, fluence, _FRAMES)
            if batch is None:
                continue
            for group in batch.groups:
                places = batch.places[group.columns]
                good = np.flatnonzero(model[places] >= 0)
                if not len(good):
                    continue
                places, frames = places[good], dense_frames(group.frames[good])
                expected = signal_at_poses(work, models[len(models) - 1 - h], poses[places], model[places])
                phi = work.xp.asarray(fluence[places, None].astype(np.float32))
                if self._kind == "gaussian":
                    noise += _noise_sums(frames, phi, expected)
                expected *= phi
                if work.pixel_model.background is not None:
                    expected += work.pixel_model.background[: work.n_scored]
                expected = frames.masked(expected)
                parts.append(dispersion_sums(frames.counts, expected, shell, n_shells))
        if parts:
            estimate = estimate_dispersion(join_sums(parts))
            self.dispersion = np.minimum(estimate, _LARGEST_DISPERSION)
        if noise[1]:
            self.sigma = float(np.sqrt(noise[0] / noise[1]))

    def dispersion_of_pixels(self, work: "Workspace") -> NDArray[np.float64]:
        """(P,) dispersion at the pixels of a stage."""
        return np.asarray(self.dispersion[np.minimum(work.shell, len(self.dispersion) - 1)])

    def first_junk(self, n_pixels: int, seed: int, xp: Any) -> Array:
        """First relative patterns (J, U) of the junk classes: the radial mean with a little noise."""
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


def _noise_sums(frames: DenseFrames, fluence: Array, signal: Array) -> NDArray[np.float64]:
    """Sum of (K / phi - s)^2 over the pixels that frames have seen, and their number; without dark frames.

    fluence : (D, 1); signal : (D, S), at unit fluence.
    """
    xp = array_namespace(signal)
    is_lit = fluence > 0
    seen = frames.masked(xp.ones_like(signal)) * is_lit
    residual = frames.counts / xp.where(is_lit, fluence, 1.0) - signal
    total = xp.sum(xp.astype(residual * residual * seen, xp.float64))
    return np.array([float(total), float(xp.sum(seen))])


def _read_background(path: str, pixels: PixelTable) -> NDArray[np.float64] | None:
    if not path:
        return None
    from orienteer.compute.hdf5_reading import get_dataset, open_hdf5, read_array
    from orienteer.compute.reading import reading

    with reading(Path(path)):
        if path.endswith(".npy"):
            values = np.load(path, allow_pickle=False)
        else:
            with open_hdf5(Path(path), "background file") as file:
                values = read_array(get_dataset(file, "background"))
        values = np.asarray(values, dtype=np.float64).reshape(-1)
    if len(values) <= int(pixels.index.max()) or not np.isfinite(values).all() or values.min() < 0:
        raise FileError(
            Path(path),
            f"holds {len(values)} values; it needs one finite number, not negative, per pixel.",
            "Give the photons per shot at every pixel of the frame, as for simulate and in Dragonfly.",
        )  # fmt: skip
    return np.asarray(values[pixels.index])
