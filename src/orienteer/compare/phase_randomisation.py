"""Measure and subtract what a mask adds to a Fourier shell correlation.

Beyond the resolution to which the unmasked densities agree well, the phases of both are replaced by random
ones.  Any agreement that remains under the mask comes from the mask, and

    FSC_true = (FSC_masked - FSC_random) / (1 - FSC_random)

(Chen et al. 2013).  Several draws are averaged, because a single one scatters like any curve.

Densities also agree if both are round: the mean of a shell about the middle of the particle is determined
well by very few data, even by noise.  So in the shells whose phases become random this round part is
subtracted, from the original densities and from those with random phases, before they are compared.

A phased density already has a mask: its support, which is sharp.  Supports found from independent data are
similar, because the particle is the same, and solid bodies with similar walls have similar fine waves,
whatever their data say about these.  So each density with random phases is alternately cut to its own support
and given its inner shells and the power of the other shells, until it satisfies both.  It then contains
everything that inner shells and support predict, and nothing else.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compare.fsc import (
    Fsc,
    check_density,
    fourier_shell_correlation,
    from_half_transform,
    half_transform,
    shell_products,
    shells_within,
    within_shells,
)
from orienteer.compare.round_part import RoundPart, centroid
from orienteer.compute.arrays import Array, array_namespace
from orienteer.errors import OrienteerError

# The first shells with random phases are not corrected: the mask mixes them with shells whose phases are not
# random.
_MARGIN_SHELLS = 2
# Shells of the unmasked densities with a correlation below this do not agree.
_NOTHING = 0.143
# Alternations of support and shells.  With 20, the corrected curve of simulated halves falls below 0.143
# within about two shells of where they stop showing the truth, for solid bodies and for soft ones that are
# cut by their supports.  Fewer attribute too little agreement to the supports, more attribute to them what
# the data show.
_TURNS = 20


@dataclass(frozen=True, eq=False)
class MaskedFsc:
    """The curves of two densities under a mask, on the same shells.

    corrected : the curve without the agreement that comes from the mask; quote this one.
    masked, unmasked : curves without correction.
    random : curve with random phases, without the round part, averaged over the draws; NaN where phases are
        not random.  If phases were made random from several shells on in turn, the largest of these curves.
    random_from_inv_A : phases are random beyond this; None if the densities agree up to the edge.
    """

    corrected: Fsc
    masked: Fsc
    unmasked: Fsc
    random: Fsc
    random_from_inv_A: float | None


def masked_fsc(
    a: Array, b: Array, mask: Array, voxel_size_A: float = 1.0, *,
    supports: tuple[Array, Array] | None = None, edge_inv_A: float = np.inf,
    seed: int = 0, n_draws: int = 3, random_below: float = 0.8, random_from_inv_A: float = np.inf,
) -> MaskedFsc:  # fmt: skip
    """The Fourier shell correlation of two densities under a mask, corrected for what the mask adds.

    a, b, mask : (n, n, n), all on the CPU or all on the GPU; a and b are not masked yet.
    supports : (n, n, n) bool each, to which a and b were confined in phasing.
    edge_inv_A : edge of the data.  What the densities contain beyond it was not measured: it is removed
        before the mask is applied, which would mix it in, and the curves end there.
    seed : of the random phases; the same seed gives the same curve.
    n_draws : how often phases are drawn.
    random_below : phases are random from the first shell on in which the unmasked curve is below this.
    random_from_inv_A : phases are random from here on at the latest.  Give the resolution to which the data
        themselves agree if it is known: soft bodies cut by similar supports agree well at any resolution.
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
    end = shells_within(edge_inv_A * n * voxel_size_A, n)
    unmasked = _cut(fourier_shell_correlation(a, b, voxel_size_A), end)

    def under_mask(one: Array, other: Array) -> Fsc:
        one, other = (x if np.isinf(edge_inv_A) else within_shells(x, end) for x in (one, other))
        return _cut(fourier_shell_correlation(one * mask, other * mask, voxel_size_A), end)

    masked = under_mask(a, b)
    starts = _starts(unmasked, random_below, random_from_inv_A)
    if not starts:
        return MaskedFsc(masked, masked, unmasked, _with(masked, np.full(end, np.nan)), None)
    walls = (None, None) if supports is None else supports
    near = centroid(within_shells(a + b, end) * mask)
    corrected, random = masked.correlation.copy(), np.full(end, np.nan)
    for start in starts:
        rounds = [RoundPart(half_transform(x), near, start, end) for x in (a, b)]
        is_first = start == starts[0]

        def uneven(x: Array, own: RoundPart, start: int = start, is_first: bool = is_first) -> Array:
            left = own.taken_off(x, start)
            return left if is_first else left - within_shells(left, start)

        real = under_mask(*(uneven(x, own) for x, own in zip((a, b), rounds, strict=True))).correlation
        curves = []
        for draw in np.random.default_rng(seed).spawn(n_draws):
            found = [
                randomised(x, start, draw, own) if wall is None else confined(x, wall, start, end, draw, own)
                for x, wall, own in zip((a, b), walls, rounds, strict=True)
            ]
            found = [uneven(x, own) for x, own in zip(found, rounds, strict=True)]
            curves.append(under_mask(*found).correlation)
        by_chance = np.mean(curves, axis=0)
        beyond = np.arange(end) >= start + _MARGIN_SHELLS
        # Where even random phases agree fully under the mask, the densities cannot be judged.
        told = beyond & (by_chance < 0.999)
        left = np.full(end, np.nan)
        left[told] = np.maximum((real[told] - by_chance[told]) / (1 - by_chance[told]), -1)
        corrected[beyond] = left[beyond] if is_first else np.minimum(corrected[beyond], left[beyond])
        random[start:] = by_chance[start:] if is_first else np.maximum(random[start:], by_chance[start:])
    return MaskedFsc(
        _with(masked, corrected), masked, unmasked, _with(masked, random), float(masked.q_inv_A[starts[0]])
    )


def _starts(unmasked: Fsc, random_below: float, random_from_inv_A: float) -> list[int]:
    """Shells from which on phases are made random, one after the other, in ascending order.

    If the data agree less far than the densities, the correction is repeated without the inner shells in
    which the densities agree for whatever reason.  Outer shells may be almost empty, as in the mean of starts
    that do not repeat; they then agree only because the mask carries power there from the inner shells.
    """
    shells = np.arange(len(unmasked.q_inv_A)) >= 1

    def first(found: NDArray[np.bool_]) -> list[int]:
        return [int(shell) for shell in np.flatnonzero(shells & found)[:1]]

    usual = first(~(unmasked.correlation >= random_below))
    by_data = first(unmasked.q_inv_A >= random_from_inv_A)
    if not by_data or (usual and usual <= by_data):
        return usual
    return sorted({*by_data, *usual, *first(~(unmasked.correlation >= _NOTHING))})


def randomised(density: Array, start: int, draw: np.random.Generator, round_part: RoundPart) -> Array:
    """The density with random phases from a shell on, (n, n, n) float64.

    The round part stays, and so do the moduli of the deviations from it.
    """
    xp = array_namespace(density)
    n = density.shape[0]
    transform = half_transform(density)
    same = round_part.of(transform)
    random = xp.abs(transform - same) * _random_phases(n, draw, xp)
    return from_half_transform(xp.where(round_part.radius >= start - 0.5, same + random, transform), n)


def confined(
    density: Array, support: Array, start: int, end: int, draw: np.random.Generator, round_part: RoundPart
) -> Array:
    """A density with random phases from shell ``start`` on, confined to a support like the given density.

    It keeps the inner shells of the given density, and the round part and the power of the others.  Shells
    from ``end`` on have no data: they follow from the support.
    """
    xp = array_namespace(density)
    n = density.shape[0]
    wanted = half_transform(density)
    same = round_part.of(wanted)
    power = shell_products(wanted - same, wanted - same, n)[1]
    inner, unmeasured = round_part.radius < start - 0.5, round_part.radius >= end - 0.5
    # Random phases spread the density over the box, so the support keeps only its share: scale to make up.
    share = float(xp.mean(xp.astype(support, xp.float64)))
    rest = xp.abs(wanted - same) * _random_phases(n, draw, xp) * share**-0.5
    found = from_half_transform(xp.where(inner, wanted, same + rest), n)
    for _ in range(_TURNS):
        own = half_transform(found * support)
        rest = own - round_part.of(own)
        gain = np.sqrt(power / np.maximum(shell_products(rest, rest, n)[1], 1e-300))
        outer = same + rest * xp.asarray(np.append(gain, 1.0))[round_part.shells]
        found = from_half_transform(xp.where(inner, wanted, xp.where(unmeasured, own, outer)), n)
    return found * support


def _random_phases(n: int, draw: np.random.Generator, xp: Any) -> Array:
    """Random numbers of modulus 1 on a half transform, with the symmetry that a real density needs."""
    noise = half_transform(xp.asarray(draw.standard_normal((n, n, n))))
    strength = xp.abs(noise)
    return noise / xp.where(strength > 0, strength, 1.0)


def _cut(curve: Fsc, end: int) -> Fsc:
    return Fsc(curve.q_inv_A[:end], curve.correlation[:end], curve.n_voxels[:end], curve.voxel_size_A)


def _with(curve: Fsc, correlation: NDArray[np.float64] | Sequence[float]) -> Fsc:
    return Fsc(curve.q_inv_A, np.asarray(correlation), curve.n_voxels, curve.voxel_size_A)
