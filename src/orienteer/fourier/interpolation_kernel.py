"""The short kernel that interpolates a band-limited function with the least error.

A function F whose transform lies within a radius R is known from samples of a *corrected* function G on a
grid of spacing s = 1 / (2 R sigma), sigma > 1 being the oversampling::

    F(x) = sum_l phi(x - l) G_l,       x in grid cells,
    G    = transform of  rho(r) / phi^(r s),   phi^(xi) = integral phi(x) exp(2 pi i xi x) dx.

Poisson's sum turns the left side into sum_n phi^(xi + n) exp(2 pi i (xi + n) x): the term n = 0 is exact,
and the images n != 0 are the error.  Its mean square, with density spread evenly over xi up to 1 / (2 sigma)
(a spherical shell of radius R does that along every axis, by Archimedes' theorem), is per axis::

    E^2 = mean over xi of  sum_{n != 0} [ phi^(xi + n) / phi^(xi) ]^2 .

Let phi be w pieces of polynomials, one per grid cell.  Then E^2 is quadratic in the coefficients but for the
denominator, and a few reweighted least-squares solutions give the best kernel.  It needs far fewer
taps than a Kaiser-Bessel window (w = 4, sigma = 3: 4e-5 against 2e-4), because only the bands around the
images are suppressed, and its polynomials are evaluated as they are, with no second approximation.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import ArrayLike, NDArray

WIDTHS = (3, 4, 5, 6, 7, 8)
# Images in the error: jumps between the pieces show in far ones, so with this many the pieces meet.
_IMAGES = tuple(n for n in range(-16, 17) if n != 0)
_NODES = 64  # of the quadrature over one cell, enough for the 17 periods of the last image


@dataclass(frozen=True, eq=False)
class InterpolationKernel:
    """An even kernel of ``width`` cells made of one polynomial per cell.

    width : taps along each axis.
    oversampling : sigma, the ratio of the grid's box to the object's diameter that it was made for.
    coefficients : (degree + 1, width), highest power first.  Tap t of a point that lies a fraction f into its
        cell has the weight sum_d coefficients[d, t] (f - 1/2)^(degree - d).
    error : expected relative L2 error of a 3D interpolation for an object that fills the diameter.
    """

    width: int
    oversampling: float
    coefficients: NDArray[np.float64]
    error: float

    @property
    def degree(self) -> int:
        """Degree of the polynomials."""
        return len(self.coefficients) - 1

    def weights(self, fraction: ArrayLike) -> NDArray[np.float64]:
        """Weights (..., width) of the taps of points that lie ``fraction`` (...) of a cell into the first."""
        power = np.asarray(fraction, float)[..., None] - 0.5
        result = np.zeros((*power.shape[:-1], self.width))
        for row in self.coefficients:
            result = result * power + row
        return result

    def transform(self, frequency: ArrayLike) -> NDArray[np.float64]:
        """phi^ at a frequency in cycles per cell: real, even, 1 at zero."""
        xi = np.asarray(frequency, float)
        node, quadrature = legendre.leggauss(_NODES)
        result = np.zeros_like(xi)
        weights = self.weights((node + 1) / 2)
        for t in range(self.width):
            offset = self.width / 2 - 1 - t + (node + 1) / 2
            result += np.cos(2 * np.pi * xi[..., None] * offset) @ (weights[:, t] * quadrature / 2)
        return result


@lru_cache(maxsize=256)
def best_kernel(width: int, oversampling: float) -> InterpolationKernel:
    """The kernel of least mean-square interpolation error for this width and oversampling.

    >>> best_kernel(4, 3.0).error < 5e-5
    True
    """
    degree = width
    half = (width + 1) // 2  # half of the pieces are free, the others follow by evenness
    frequency = (np.arange(24) + 0.5) / 24 / (2 * oversampling)
    within = _piece_transforms(width, degree, half, frequency)
    of_images = np.add.outer(_IMAGES, frequency).ravel()
    images = _piece_transforms(width, degree, half, of_images)
    at_zero = _piece_transforms(width, degree, half, np.zeros(1))[:, 0]

    weight = np.ones_like(frequency)
    for _ in range(8):
        normal = (images * np.tile(weight, len(_IMAGES))) @ images.T
        # The last digits of the smallest eigenvalues are noise; a ridge far below the error suppresses them.
        normal += 1e-14 * np.trace(normal) / len(normal) * np.eye(len(normal))
        solution = np.linalg.lstsq(normal, at_zero, rcond=1e-15)[0]
        solution /= at_zero @ solution
        weight = 1 / (solution @ within) ** 2
    image_power = ((solution @ images) ** 2).reshape(len(_IMAGES), -1).sum(0)
    error = float(np.sqrt(3 * np.mean(image_power * weight)))
    pieces = solution.astype(np.float64).reshape(half, degree + 1)
    coefficients = _coefficients_of_pieces(pieces, width)
    return InterpolationKernel(width, oversampling, coefficients, error)


@lru_cache(maxsize=256)
def kernel_for_error(width: int, error: float) -> InterpolationKernel | None:
    """The kernel of this width with the least oversampling that keeps the error; None if none does."""
    low, high = 1.2, 4.0 if width < 7 else 2.5  # wide kernels never need more, and rounding would spoil them
    if best_kernel(width, high).error > error:
        return None
    while high - low > 0.02:
        middle = (low + high) / 2
        low, high = (low, middle) if best_kernel(width, middle).error <= error else (middle, high)
    return best_kernel(width, high)


def _piece_transforms(
    width: int, degree: int, half: int, frequency: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Transforms (pieces, frequencies) of the free pieces: polynomial j on cell t and on its mirror image."""
    node, quadrature = legendre.leggauss(_NODES)
    polynomials = legendre.legvander(node, degree).T * quadrature / 2
    rows = []
    for t in range(half):
        offset = width / 2 - 1 - t + (node + 1) / 2
        rows.append(polynomials @ np.cos(2 * np.pi * np.outer(offset, frequency)) * 2)
        if 2 * t + 1 == width:  # the middle cell of an odd kernel is its own mirror image
            rows[-1] *= 0.5
            rows[-1][1::2] = 0.0
    return np.concatenate(rows)


def _coefficients_of_pieces(pieces: NDArray[np.float64], width: int) -> NDArray[np.float64]:
    """Horner coefficients in (f - 1/2) of all cells from the Legendre coefficients of the free half."""
    degree = pieces.shape[1] - 1
    coefficients = np.zeros((degree + 1, width))
    parity = (-1.0) ** np.arange(degree + 1)
    for t, piece in enumerate(pieces):
        if 2 * t + 1 == width:
            piece = piece * (parity > 0)
        power = np.zeros(degree + 1)
        series = legendre.leg2poly(piece)
        power[: len(series)] = series * 2.0 ** np.arange(len(series))  # the Legendre argument is 2 (f - 1/2)
        coefficients[:, t] = power[::-1]
        coefficients[:, width - 1 - t] = (power * parity)[::-1]
    return coefficients
