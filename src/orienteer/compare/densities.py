"""Find the rotation, shift and hand that bring one density onto another.

Phasing leaves all three open: an intensity determines neither the place of the particle nor its hand, and is
known only up to a rotation.  Rotations are searched on |F|², which does not depend on shift and hand, so the
search has three dimensions instead of seven.  Each promising rotation is then tried in both hands, with the
shift from one cross-correlation.  The best of each hand are refined in rotation and shift together, first as
they are, then with every shell weighted by its information about the placement.  The hand whose shells agree
better at full resolution is chosen; the difference may be small, because it is in the phases only.
"""

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from orienteer.compare.alignment import candidate_rotations
from orienteer.compare.common_grid import border_level, on_one_grid
from orienteer.compare.fsc import (
    Fsc,
    fourier_shell_correlation,
    from_half_transform,
    half_shells,
    half_transform,
    independent_voxels,
    shell_products,
    within_shells,
)
from orienteer.compare.mask import soft_mask
from orienteer.compare.moving import MovableDensity, move_density
from orienteer.compare.refinement import Placement, Refinement
from orienteer.compare.resampling import resample
from orienteer.compute.arrays import Array, array_namespace, to_numpy
from orienteer.compute.progress import steps
from orienteer.errors import OrienteerError
from orienteer.orientation.distance import angular_distance_deg
from orienteer.orientation.quaternion import canonical, rotate
from orienteer.volume.volume import Volume

# The reference and the density to move, (n, n, n) both.
Pair: TypeAlias = tuple[Array, Array]
# Most voxels along the edge of the cubes on which rotations are searched, and on which hands are tried.
_SEARCH_VOXELS, _TRIAL_VOXELS = 44, 32
_N_CANDIDATES = 48
# Placements of each hand that are refined on the small cubes, and then at full resolution.
_REFINED, _FINISHED = 16, 2
# Placements closer than this refine to the same one.
_APART_DEG = 5.0
_MARGIN = 1.15
# Least noise that is assumed, as a share of the strongest shell.
_LEAST_NOISE = 1e-3
_CHANCE = 3.0


@dataclass(frozen=True, eq=False)
class DensityAlignment:
    """The placement of one density on another: r' = hand * R r + shift, from centre voxel to centre voxel.

    quaternion : (4,) float64, of R; shift_A : (3,) float64; hand : 1, or -1 if the moving density is the
        mirror image: it is first reflected through its centre voxel, then turned, then shifted.
    correlation : of the reference and the turned density, over all voxels.
    other_hand_correlation : the highest with the other hand; equally high for a particle that is its own
        mirror image, whose hand has no meaning.
    fsc : Fourier shell correlation of the two.
    reference : the reference on the grid of the comparison.
    turned : the moving density after alignment, on the same grid.
    remarks : decisions that were made, in sentences.
    """

    quaternion: NDArray[np.float64]
    shift_A: NDArray[np.float64]
    hand: int
    correlation: float
    other_hand_correlation: float
    fsc: Fsc
    reference: Volume
    turned: Volume
    remarks: tuple[str, ...] = ()


def align_densities(
    reference: Volume,
    moving: Volume,
    *,
    hands: tuple[int, ...] = (1, -1),
    near: NDArray[np.float64] | None = None,
) -> DensityAlignment:
    """The rotation, shift and hand of ``moving`` that agree best with ``reference``.

    For a symmetric particle several rotations are equally good; one of them is returned.

    reference, moving : densities, both on the CPU or both on the GPU; NaN counts as 0.  If their grids
        differ, both are brought onto one grid, and ``remarks`` say so.
    hands : the hands to try.
    near : (4,), a rotation known to within half a speckle, such as that between the intensities; None: all
        rotations are tried.

    >>> x, y, z = np.mgrid[-10:11, -10:11, -10:11]
    >>> blobs = [((4, 0, 0), 1.0), ((0, 5, 1), 0.8), ((-1, -2, 4), 1.2), ((-4, 1, -3), 0.9)]
    >>> density = sum(w * np.exp(-((x - a) ** 2 + (y - b) ** 2 + (z - c) ** 2) / 6) for (a, b, c), w in blobs)
    >>> mirrored = Volume(density[::-1, ::-1, ::-1], voxel_size=2.0)
    >>> found = align_densities(Volume(density, voxel_size=2.0), mirrored)
    >>> found.hand, round(found.correlation, 3)
    (-1, 1.0)
    """
    if not hands or any(hand not in (1, -1) for hand in hands):
        raise OrienteerError(f"the hands to try are {hands}; a hand is 1 or -1.")
    first, second, voxel_A, remarks = on_one_grid(reference, moving)
    # Empty space need not be 0: subtract its level, because beyond the moved box the density is 0.
    level = border_level(second.values)
    own = second.values - level
    place, other = _best_placements(first.values - border_level(first.values), own, hands, near)
    within = within_shells(first.values)
    turned = level + move_density(own, place.quaternion, place.shift, place.hand)
    other_correlation = np.nan
    if other is not None:
        lost = move_density(own, other.quaternion, other.shift, other.hand)
        other_correlation = _correlation(within, lost)
    return DensityAlignment(
        np.asarray(canonical(place.quaternion)),
        voxel_A * place.shift,
        place.hand,
        _correlation(within, turned),
        other_correlation,
        fourier_shell_correlation(first.values, turned, voxel_A),
        first,
        replace(first, values=turned, name=moving.name, metadata=moving.metadata),
        remarks,
    )


def _best_placements(
    reference: Array, moving: Array, hands: tuple[int, ...], near: NDArray[np.float64] | None
) -> tuple[Placement, Placement | None]:
    """The best placement on the whole cubes, and the best of the other hand if that was tried."""
    cuts = _Cuts(reference, moving)
    pair = (cuts.reference, cuts.moving)
    rotations = _searched(pair) if near is None else near[None]
    small = (in_fewer_voxels(pair[0], _TRIAL_VOXELS), in_fewer_voxels(pair[1], _TRIAL_VOXELS))
    coarse = _refined(small, _tried(small, rotations, hands), _REFINED)
    larger = cuts.n / small[0].shape[0]
    starts = [replace(place, shift=larger * place.shift) for place in coarse]
    finished = _weighted(pair, _refined(pair, starts, _FINISHED))
    other = next((place for place in finished if place.hand != finished[0].hand), None)
    return cuts.on_whole(finished[0]), None if other is None else cuts.on_whole(other)


def _searched(pair: Pair) -> NDArray[np.float64]:
    """Promising rotations (K, 4), from the intensities of both."""
    first, second = (_intensity(in_fewer_voxels(values, _SEARCH_VOXELS)) for values in pair)
    return candidate_rotations(first, second, _N_CANDIDATES)


class _Cuts:
    """The parts of two densities that contain the particle, as cubes of one size.

    They are centred on the particle, so that a rotation moves it little.
    """

    def __init__(self, reference: Array, moving: Array) -> None:
        n = reference.shape[0]
        extents = [_extent(values) for values in (reference, moving)]
        radius = max(radius for _, radius in extents)
        self.n = min(n, 2 * int(np.ceil(_MARGIN * radius + 2)) + 1)
        if self.n == n:
            extents = [(np.zeros(3, np.int64), radius)] * 2
        self.centres = [centre for centre, _ in extents]
        self.reference, self.moving = (
            _cut(values, centre, self.n)
            for values, centre in zip((reference, moving), self.centres, strict=True)
        )

    def on_whole(self, place: Placement) -> Placement:
        """The placement of the whole densities for a placement of the cuts."""
        to, start = self.centres
        moved = place.hand * np.asarray(rotate(place.quaternion, start.astype(np.float64)))
        return replace(place, shift=place.shift + to - moved)


def _extent(values: Array) -> tuple[NDArray[np.int64], float]:
    """Centre of the particle, in whole voxels from the centre voxel, and the radius that contains it."""
    n = values.shape[0]
    try:
        mask = to_numpy(soft_mask(values, 1.0, dilate_A=2, edge_A=0)) > 0.5
    except OrienteerError:
        return np.zeros(3, np.int64), float(n)
    places = np.argwhere(mask) - n // 2
    centre = np.rint((places.min(axis=0) + places.max(axis=0)) / 2).astype(np.int64)
    return centre, float(np.linalg.norm(places - centre, axis=1).max())


def _cut(values: Array, centre: NDArray[np.int64], n: int) -> Array:
    """The cube of n voxels around a voxel, 0 where it extends beyond the given one."""
    xp = array_namespace(values)
    whole = values.shape[0]
    result = xp.zeros((n, n, n), dtype=xp.float64)
    first = centre + whole // 2 - n // 2
    source = tuple(slice(max(0, f), min(whole, f + n)) for f in first.tolist())
    target = tuple(slice(s.start - f, s.stop - f) for s, f in zip(source, first.tolist(), strict=True))
    result[target] = values[source]
    return result


def in_fewer_voxels(values: Array, most: int) -> Array:
    """The same box with at most ``most`` voxels along an edge."""
    n = values.shape[0]
    m = min(n, most)
    return values if m == n else resample(values, 1.0, m, n / m)


def _intensity(values: Array) -> Array:
    """|F|² with the origin in the middle, on a grid twice as fine as that of the box."""
    xp = array_namespace(values)
    n = 2 * values.shape[0]
    padded = _cut(values - xp.mean(values), np.zeros(3, np.int64), n)
    return xp.fft.fftshift(xp.abs(xp.fft.fftn(padded)) ** 2)


def _tried(pair: Pair, rotations: NDArray[np.float64], hands: tuple[int, ...]) -> list[Placement]:
    """Each rotation in each hand with the best whole-voxel shift, best first."""
    reference, moving = pair
    xp = array_namespace(reference)
    n = reference.shape[0]
    movable = MovableDensity(moving)
    # Make shells more equal in strength, so that fine detail, in which the hands differ, counts as well.
    own = _even(half_transform(reference))
    places = []
    for hand, quaternion in steps([(hand, one) for hand in hands for one in rotations], "Trying both hands"):
        turned = movable.moved(quaternion, np.zeros(3), hand)
        products = from_half_transform(own * xp.conj(_even(half_transform(turned))), n)
        best = int(xp.argmax(products))
        voxel = np.array(np.unravel_index(best, (n, n, n)))
        shift = np.where(voxel > n // 2, voxel - n, voxel).astype(np.float64)
        places.append(Placement(quaternion, shift, hand, float(xp.reshape(products, (-1,))[best])))
    return sorted(places, key=lambda place: -place.correlation)


def _even(transform: Array) -> Array:
    """The transform with the square root of its strength on every shell: flatter, yet noise stays weak."""
    xp = array_namespace(transform)
    n = transform.shape[0]
    power = shell_products(transform, transform, n)[1]
    inverse = np.divide(1, power**0.25, out=np.zeros_like(power), where=power > 0)
    return transform * xp.asarray(np.append(inverse, 0.0)[half_shells(n)])


def _refined(pair: Pair, starts: list[Placement], most: int) -> list[Placement]:
    """The best starts of each hand, refined, sorted by the agreement of their shells, best first."""
    reference, moving = pair
    refinement, movable = Refinement(reference), MovableDensity(moving)
    hands = sorted({place.hand for place in starts})
    chosen = [one for hand in hands for one in _distinct([s for s in starts if s.hand == hand], most)]
    places = [refinement.refine(movable, place) for place in steps(chosen, "Refining placements")]
    return _ranked(reference, movable, places)


def _distinct(places: list[Placement], most: int) -> list[Placement]:
    """The first placements without close neighbours, which refinement would bring to the same place."""
    kept: list[Placement] = []
    for place in places:
        if len(kept) == most:
            break
        if all(angular_distance_deg(place.quaternion, one.quaternion) > _APART_DEG for one in kept):
            kept.append(place)
    return kept


def _weighted(pair: Pair, starts: list[Placement]) -> list[Placement]:
    """The placements refined again, with shells weighted by their information about the placement."""
    reference, moving = pair
    movable = MovableDensity(moving)
    places = []
    for place in starts:
        turned = movable.moved(place.quaternion, place.shift, place.hand)
        agreement = fourier_shell_correlation(reference, turned).correlation
        agreement = np.clip(np.nan_to_num(agreement), 0, 1)
        if agreement[1:].any():
            filtered = [_filtered(values, agreement) for values in (reference, moving)]
            mask = _mask(reference / _spread(reference) + turned / _spread(turned))
            place = Refinement(filtered[0], mask).refine(MovableDensity(filtered[1]), place)
        places.append(place)
    return _ranked(reference, movable, places)


def _mask(values: Array) -> Array | None:
    """A wide mask around the particle; None if it does not stand out from the box."""
    try:
        return soft_mask(values, 1.0, dilate_A=3, edge_A=4)
    except OrienteerError:
        return None


def _spread(values: Array) -> float:
    return float(array_namespace(values).std(values)) or 1.0


def _filtered(values: Array, agreement: NDArray[np.float64]) -> Array:
    """The density with every shell weighted down by its noise, (n, n, n) float64.

    A shell of power P and agreement c has noise of P (1 - c), and its weight is c over that.  The lower bound
    of the noise prevents very weak outer shells of a density without noise from being amplified.
    """
    xp = array_namespace(values)
    n = values.shape[0]
    transform = half_transform(values)
    power = shell_products(transform, transform, n)[1] / independent_voxels(n)
    noise = power * (1 - agreement) + _LEAST_NOISE * power[1:].max()
    factor = np.sqrt(agreement / noise)
    factor[0] = 0
    return from_half_transform(transform * xp.asarray(np.append(factor, 0.0)[half_shells(n)]), n)


def _ranked(reference: Array, movable: MovableDensity, places: list[Placement]) -> list[Placement]:
    """The placements with their correlations, sorted by the agreement of their shells, best first.

    Agreement is the information that one density gives about the other, -Σ n log(1 - FSC²): shells are
    weighted by their voxels, so that neither the strong inner shells nor the noise of the outer ones decides.
    """
    within = within_shells(reference)
    agreement, found = [], []
    for place in places:
        turned = movable.moved(place.quaternion, place.shift, place.hand)
        curve = fourier_shell_correlation(reference, turned)
        shells = np.clip(np.nan_to_num(curve.correlation[1:]), 0, 0.9999)
        agreement.append(float(-(curve.n_voxels[1:] * np.log1p(-(shells**2))).sum()))
        found.append(replace(place, correlation=_correlation(within, turned)))
    # Differences of a few nats are chance; if the hands agree equally well, prefer the original one.
    order = sorted(range(len(found)), key=lambda i: (-round(agreement[i] / _CHANCE), -found[i].hand))
    return [found[i] for i in order]


def _correlation(a: Array, b: Array) -> float:
    """Pearson correlation over all voxels; 0 if one of the volumes is constant."""
    xp = array_namespace(a, b)
    a, b = (xp.astype(x, xp.float64) for x in (a, b))
    a, b = a - xp.mean(a), b - xp.mean(b)
    power = float(xp.sum(a * a)) * float(xp.sum(b * b))
    return float(xp.sum(a * b) / np.sqrt(power)) if power > 0 else 0.0
