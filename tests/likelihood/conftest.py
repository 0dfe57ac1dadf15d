"""A small world for tests of likelihoods: rows of expected photons, and frames drawn from some of them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from types import ModuleType

import numpy as np
import pytest

from orienteer.likelihood.frames import FrameBatch
from orienteer.likelihood.pixel_model import PixelModel
from orienteer.source.sparse_photons import photons_from_dense


@dataclass(frozen=True)
class Problem:
    """T rows, P pixels (S scored), D frames; ``rows`` the true row of each frame."""

    slices: np.ndarray  # (T, P) float32
    pixels: PixelModel
    fluence: np.ndarray  # (D,)
    rows: np.ndarray  # (D,)
    counts: np.ndarray  # (D, P) int64
    missing: np.ndarray | None  # (D, P) bool

    def frames(self, layout: str = "dense", xp: ModuleType = np) -> FrameBatch:
        """The frames as the engine holds them."""
        S = self.pixels.n_scored
        scored = self.counts[:, :S].astype(float)
        return FrameBatch(
            dense=xp.asarray(self.counts.astype(np.float32)) if layout == "dense" else None,
            photons=lists(self.counts, xp) if layout == "sparse" else None,
            missing=None if self.missing is None else lists(self.missing.astype(np.int32), xp),
            n_pixels=self.pixels.n_pixels,
            n_scored=S,
            scored_photons=xp.asarray(scored.sum(1)),
            photons_total=xp.asarray(self.counts.sum(1).astype(float)),
            squares=xp.asarray((scored**2).sum(1)),
        )

    def pixels_on_gpu(self) -> PixelModel:
        """The same pixels in GPU memory."""
        import cupy

        there = {
            name: None if getattr(self.pixels, name) is None else cupy.asarray(getattr(self.pixels, name))
            for name in ("correction", "reference", "background")
        }
        return replace(self.pixels, **there)

    def product(self, operand: np.ndarray, by_pixel: bool = False) -> np.ndarray:
        """sum_p operand[k, p] K[d, p], as the engine's products give it: float32."""
        rows = operand.T if by_pixel else operand
        S = self.pixels.n_scored
        return (rows.astype(float) @ self.counts[:, :S].T.astype(float)).astype(np.float32)

    def missing_product(self, per_pixel: np.ndarray) -> np.ndarray | None:
        if self.missing is None:
            return None
        return (per_pixel.astype(float) @ self.missing[:, : self.pixels.n_scored].T).astype(np.float32)

    def expected(self, fluence: float | np.ndarray) -> np.ndarray:
        """lambda of every scored pixel of every row, (T, S) float64, or (D, T, S) for fluences (D, 1, 1)."""
        S = self.pixels.n_scored
        signal = np.maximum(
            self.slices[:, :S].astype(float) * self.pixels.correction[:S], self.pixels.floor[:S].astype(float)
        )
        return fluence * signal + self.pixels.background_or_zero[:S].astype(float)


def lists(counts: np.ndarray, xp: ModuleType):
    """Lists of the lit pixels, on the device of ``xp``."""
    photons = photons_from_dense(np.asarray(counts).astype(np.int32))
    return replace(
        photons,
        start=xp.asarray(photons.start),
        pixel=xp.asarray(photons.pixel),
        count=xp.asarray(photons.count),
    )


def make_problem(
    photons: float = 300.0,
    background: float = 0.0,
    missing: bool = False,
    T: int = 33,
    P: int = 413,
    S: int = 350,
    D: int = 21,
    seed: int = 1,
    fluence_spread: float = 0.3,
) -> Problem:
    """Speckle-like rows under a steep radial mean, Poisson frames from random rows; frame 0 is empty."""
    rng = np.random.default_rng(seed)
    radial = 1.0 / (1.0 + np.linspace(0.0, 8.0, P) ** 3)
    radial *= photons / radial[:S].sum()
    slices = radial * rng.gamma(2.0, 0.5, (T, P))
    slices[3:4, 5:40] = 0.0  # empty voxels
    correction = rng.uniform(0.7, 1.3, P)
    level = np.full(P, background) * rng.uniform(0.5, 1.5, P)
    fluence = np.exp(rng.normal(0.0, fluence_spread, D))
    rows = rng.integers(0, T, D)
    forbidden = rng.random((D, P)) < 0.1 if missing else None
    counts = rng.poisson(fluence[:, None] * slices[rows] * correction + level)
    counts[0] = 0
    if forbidden is not None:
        counts[forbidden] = 0
    pixels = PixelModel(
        correction.astype(np.float32),
        (radial * correction).astype(np.float32),
        S,
        level.astype(np.float32) if background else None,
    )
    return Problem(slices.astype(np.float32), pixels, fluence, rows, counts, forbidden)


@pytest.fixture(name="make_problem")
def _make_problem() -> Callable[..., Problem]:
    """``make_problem(photons=..., background=..., missing=...)`` gives a :class:`Problem`."""
    return make_problem
