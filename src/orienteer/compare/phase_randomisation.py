"""What a mask adds to a Fourier shell correlation, measured and taken away.

Beyond the resolution where the unmasked densities still agree well, the phases of both are replaced by random
ones.  What then agrees under the mask agrees because of the mask, and

    FSC_true = (FSC_masked - FSC_random) / (1 - FSC_random)

(Chen et al. 2013).  Several draws are averaged, since each has the scatter of a curve of its own.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orienteer.compare.fsc import (
    Fsc,
    check_density,
    fourier_shell_correlation,
    from_half_transform,
    half_radius,
    half_transform,
)
from orienteer.compute.arrays import Array, array_namespace
from orienteer.errors import OrienteerError

# The shells next to the first random one share some of its phases through the mask.
_MARGIN_SHELLS = 2


@dataclass(frozen=True, eq=False)
class MaskedFsc:
    """The curves of two densities under a mask, on the same shells.

    corrected : what is left when the agreement by the mask is taken away; quote this one.
    masked, unmasked : as they are.
    random : mean over the draws of the curves with random phases.
    random_from_inv_A : phases are random beyond this; None where the densities agree up to the edge.
    """

    corrected: Fsc
    masked: Fsc
    unmasked: Fsc
    random: Fsc
    random_from_inv_A: float | None


def masked_fsc(
    a: Array, b: Array, mask: Array, voxel_size_A: float = 1.0, *, seed: int = 0, n_draws: int = 3,
    random_below: float = 0.8,
) -> MaskedFsc:  # fmt: skip
    """The Fourier shell correlation of two densities under a mask, corrected for what the mask adds.

    a, b, mask : (n, n, n), all on the CPU or all on the GPU; a and b are not masked yet.
    seed : of the random phases; the same seed gives the same curve.
    n_draws : how often phases are drawn.
    random_below : phases are random from the shell on where the unmasked curve first falls below this.
    """
    n = check_density(a)
    check_density(mask, "the mask")
    if mask.shape != a.shape:
        raise OrienteerError(
            f"the mask has {mask.shape[0]} voxels along an edge, the density {n}.",
            "Make the mask on the grid of the density.",
        )
    if n_draws < 1:
        raise OrienteerError(f"random phases must be drawn at least once, not {n_draws} times.")
    unmasked = fourier_shell_correlation(a, b, voxel_size_A)
    masked = fourier_shell_correlation(a * mask, b * mask, voxel_size_A)
    below = np.flatnonzero(~(unmasked.correlation[1:] >= random_below)) + 1
    if not len(below):
        return MaskedFsc(masked, masked, unmasked, masked, None)
    first = int(below[0])
    draws = np.random.default_rng(seed).spawn(n_draws)
    curves = [_random_curve(a, b, mask, voxel_size_A, first, draw) for draw in draws]
    random = np.mean(curves, axis=0)
    corrected = masked.correlation.copy()
    beyond = np.arange(len(corrected)) >= first + _MARGIN_SHELLS
    # Where random phases agree fully under the mask, nothing about the densities can be told.
    told = beyond & (random < 0.999)
    corrected[beyond] = np.nan
    corrected[told] = (masked.correlation[told] - random[told]) / (1 - random[told])
    return MaskedFsc(
        _with(masked, corrected), masked, unmasked, _with(masked, random), float(masked.q_inv_A[first])
    )


def randomise_phases(density: Array, first_shell: int, draw: np.random.Generator) -> Array:
    """The density with the phases of white noise from a shell on, (n, n, n) float64; moduli stay."""
    xp = array_namespace(density)
    n = density.shape[0]
    transform = half_transform(density)
    # Noise that is real has a transform with the symmetry that a real density needs.
    noise = half_transform(xp.asarray(draw.standard_normal((n, n, n))))
    strength = xp.abs(noise)
    phase = noise / xp.where(strength > 0, strength, 1.0)
    beyond = half_radius(n, xp) >= first_shell - 0.5
    return from_half_transform(xp.where(beyond, xp.abs(transform) * phase, transform), n)


def _random_curve(
    a: Array, b: Array, mask: Array, voxel_size_A: float, first_shell: int, draw: np.random.Generator
) -> NDArray[np.float64]:
    first, second = (randomise_phases(x, first_shell, draw) * mask for x in (a, b))
    return fourier_shell_correlation(first, second, voxel_size_A).correlation


def _with(curve: Fsc, correlation: NDArray[np.float64]) -> Fsc:
    return Fsc(curve.q_inv_A, correlation, curve.n_voxels, curve.voxel_size_A)
