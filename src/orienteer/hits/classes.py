"""Classes of hits: expectation maximisation over class and angle in the plane.

Each class is a mean pattern W in polar coordinates.  A hit of brightness f is a Poisson draw from f W
turned by an angle, times the sensitivity of the detector, plus background.  Two steps alternate: find the
probability of each class and angle for each hit, then compute each class as the mean of the hits, weighted
with these probabilities.  One additional class stays round, for hits without features in the plane.  After
N. D. Loh, V. Elser, Phys. Rev. E 80, 026705 (2009), with classes instead of orientations.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orienteer.detector.detector import Detector
from orienteer.errors import GeometryMismatch, OrienteerError
from orienteer.hits.class_sums import ClassModel, expect
from orienteer.hits.fringes import pixel_spacing_inv_A
from orienteer.hits.polar import PolarGrid
from orienteer.source.base import Source
from orienteer.source.patterns import Patterns

# The rings end where they contain this share of the photons of all hits.
_LIGHT = 0.9
# Share of one single hit in the first pattern of a class; the rest is the round mean.
_SEED_SHARE = 0.5
_MOST_RINGS = 20


@dataclass(frozen=True, eq=False)
class Classes:
    """N hits sorted into classes.  Class C, the last, is the round one.

    grid : the polar coordinates.
    average : (C + 1, R, A) mean pattern of each class, as photons per pixel of a hit of mean brightness.
    class_of : (N,) int32, the most likely class of each hit.
    angle_deg : (N,) angle by which the average of this class is turned.
    certainty : (N,) probability of that class.
    share : (C + 1,) share of the hits.
    log_likelihood : for each iteration, of the classes that it began with: the mean over hits, in nats.
    """

    grid: PolarGrid
    average: NDArray[np.float32]
    class_of: NDArray[np.int32]
    angle_deg: NDArray[np.float32]
    certainty: NDArray[np.float32]
    share: NDArray[np.float64]
    log_likelihood: NDArray[np.float64]

    @property
    def round_class(self) -> int:
        """The number of the round class."""
        return len(self.average) - 1

    def pictures(self, side: int = 128) -> NDArray[np.float32]:
        """The averages as pictures (C + 1, side, side) with y up; NaN where there are no pixels."""
        return np.stack([self.grid.picture(average, side) for average in self.average])


def classify(
    hits: Source | Patterns, detector: Detector, wavelength_A: float, n_classes: int = 10, *,
    background: NDArray[np.floating] | None = None, iterations: int = 30, seed: int = 0,
    q_max_inv_A: float | None = None,
) -> Classes:  # fmt: skip
    """Sort hits into classes of similar patterns, whatever their angle about the beam.

    background : (P,) expected photons of a shot without a particle.
    q_max_inv_A : largest |q| that is compared; by default 90 % of the photons above background lie inside.
    """
    if n_classes < 1 or iterations < 1 or len(hits) == 0:
        raise OrienteerError(
            "classes need at least one hit, one class and one iteration.", "Give more hits, or fewer classes."
        )
    if background is not None and np.shape(background) != (detector.n_pixels,):
        raise GeometryMismatch(
            f"the background has shape {np.shape(background)}, but the detector has "
            f"{detector.n_pixels} pixels.",
            "Give the background of frames of this detector.",
        )
    patterns = hits if isinstance(hits, Patterns) else hits.read()
    q_max = q_max_inv_A or _edge_of_light(patterns, detector, wavelength_A, background)
    # Rings narrower than a pixel would have empty bins.
    spacing = pixel_spacing_inv_A(detector, np.arange(detector.n_pixels), wavelength_A)
    grid = PolarGrid(detector, wavelength_A, q_max, int(np.clip(q_max / spacing, 2, _MOST_RINGS)))
    photons, behind = grid.photons(patterns), grid.background(background)
    brightness = np.maximum(photons.sum(axis=1, dtype=np.float64) - behind.sum(), 1.0)
    model = _first_model(grid, photons, behind, brightness, n_classes, np.random.default_rng(seed))
    history = []
    for _ in range(iterations):
        result = expect(grid, model, photons, behind, brightness)
        model = result.model
        history.append(float(result.log_evidence.mean()))
    result = expect(grid, model, photons, behind, brightness)
    return Classes(
        grid=grid,
        average=(model.template * brightness.mean()).astype(np.float32),
        class_of=result.best_class.astype(np.int32),
        angle_deg=(result.best_angle * 360 / grid.n_angles).astype(np.float32),
        certainty=result.certainty.astype(np.float32),
        share=model.share,
        log_likelihood=np.array(history),
    )


def _edge_of_light(
    patterns: Patterns, detector: Detector, wavelength_A: float, background: NDArray[np.floating] | None
) -> float:
    """|q| in 1/A within which 90 % of the light of all hits lies."""
    lists = patterns.sparse()
    light = np.bincount(lists.pixel, weights=lists.count, minlength=patterns.n_pixels)
    light = light - (0 if background is None else len(patterns) * np.asarray(background))
    length = detector.q_length_inv_A(wavelength_A)
    edges = np.linspace(0, length.max() * (1 + 1e-9), 61)
    # Count only the photons of a ring above the background, and no negative ones from noise.
    rings = np.maximum(np.histogram(length, edges, weights=light)[0], 0)
    if not rings.sum() > 0:
        return float(length.max())
    return float(edges[1 + int(np.searchsorted(np.cumsum(rings) / rings.sum(), _LIGHT))])


def _first_model(
    grid: PolarGrid, photons: NDArray[np.float32], background: NDArray[np.float64],
    brightness: NDArray[np.float64], n_classes: int, draw: np.random.Generator,
) -> ClassModel:  # fmt: skip
    """Each class begins as half the round mean and half a random bright hit, smoothed along its rings."""
    shape = (grid.n_rings, grid.n_angles)
    seen = np.maximum(grid.correction.reshape(shape).sum(axis=1), 1e-12)
    radial = (photons.sum(axis=0) - len(photons) * background).reshape(shape).sum(axis=1) / seen
    radial = np.maximum(radial / brightness.sum(), 1e-9)
    bright = np.flatnonzero(brightness >= np.median(brightness))
    chosen = draw.choice(bright, n_classes, replace=n_classes > len(bright))
    around = np.exp(-0.5 * (np.minimum(np.arange(shape[1]), shape[1] - np.arange(shape[1])) / 2.0) ** 2)
    smooth = np.fft.rfft(around)

    def blurred(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.fft.irfft(np.fft.rfft(values.reshape(shape), axis=1) * smooth, n=shape[1], axis=1)

    template = np.empty((n_classes + 1, *shape))
    template[-1] = radial[:, None]
    for c, d in enumerate(chosen):
        # Some of the mean is added to both the hit and the sensitivity, so bins without pixels get the mean.
        signal = blurred(np.maximum(photons[d] - background, 0)) / brightness[d] + 0.1 * radial[:, None]
        own = signal / (blurred(grid.correction) + 0.1)
        template[c] = (1 - _SEED_SHARE) * radial[:, None] + _SEED_SHARE * own
    return ClassModel(template, np.full(n_classes + 1, 1 / (n_classes + 1)))
