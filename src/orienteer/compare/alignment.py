"""Find the rotation that brings one intensity onto another.

An intensity is known only up to a rotation.  It is its own mirror image through the origin, so both hands of
a particle have the same intensity: there is no hand to search for, and no shift.

All rotations are tried on the inner shells, for which a coarse grid is sufficient.  The best are tried again
on more shells with half the step, until all shells take part.  The very best are then followed to the maximum
of the correlation.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orienteer.compare.rotation_search import OFFSETS, RotationSearch, around, small_turn
from orienteer.compare.shells import ShellCorrelation, n_shells, shell_correlation
from orienteer.compare.turning import CUBIC, LINEAR, rotate_volume
from orienteer.compute.arrays import Array
from orienteer.compute.progress import steps
from orienteer.errors import OrienteerError
from orienteer.orientation.quaternion import canonical, compose
from orienteer.orientation.six_hundred_cell import covering_bound_deg, six_hundred_cell

_COARSE_DIVISIONS = 6
# Rotations that go on from one level to the next, and that are followed to the maximum.
_KEPT, _FOLLOWED = 96, 3
# If many candidates are wanted: rotations that go on, and their least distance from each other at the end.
_KEPT_OF_MANY, _APART_DEG = 240, 6.0
# A candidate near a maximum has at least this share of the correlation at the maximum.
_LIKELY = 0.5
_POINTS_COARSE, _POINTS_FINE, _POINTS_LAST, _POINTS_OF_SHELLS = 800, 2000, 40_000, 200_000
_MOST_ROUNDS = 8


@dataclass(frozen=True, eq=False)
class Alignment:
    """The rotation of one intensity onto another, and their agreement.

    quaternion : (4,) float64; turning the moving volume by it gives the reference.
    correlation : mean over shells of the correlation of reference and turned volume.
    shells : the correlation of every shell.
    turned : (n, n, n) the moving volume, turned; NaN in corners that come from outside its cube.
    """

    quaternion: NDArray[np.float64]
    correlation: float
    shells: ShellCorrelation
    turned: Array


def align_intensities(
    reference: Array,
    moving: Array,
    *,
    last_shell: int | None = None,
    first_shell: int = 1,
    near: NDArray[np.float64] | None = None,
) -> Alignment:
    """The rotation of ``moving`` that agrees best with ``reference``.

    For a symmetric particle several rotations are equally good; one of them is returned.

    reference, moving : (n, n, n) intensities on the same grid, centre voxel n // 2; NaN where never measured.
        Both on the CPU or both on the GPU.
    first_shell, last_shell : the shells to align on, in voxels; by default all that lie in the cube.
    near : (4,), a rotation known to within half a speckle; None: all rotations are tried.

    >>> from orienteer.orientation.distance import angular_distance_deg
    >>> from orienteer.orientation.quaternion import from_axis_angle
    >>> x, y, z = np.mgrid[-12:12, -12:12, -12:12]
    >>> blob = np.exp(-((x - 3) ** 2 + (y + 6) ** 2 + z**2) / 8) + np.exp(-(x**2 + (z - 7) ** 2) / 8)
    >>> found = align_intensities(rotate_volume(blob, from_axis_angle([1, 2, 3], 77)), blob)
    >>> bool(angular_distance_deg(found.quaternion, from_axis_angle([1, 2, 3], 77)) < 0.5)
    True
    """
    if reference.shape != moving.shape:
        raise OrienteerError(f"volumes of {reference.shape} and {moving.shape} voxels cannot be aligned.")
    last = n_shells(reference.shape[0]) - 1 if last_shell is None else last_shell
    if not 0 <= first_shell <= last < n_shells(reference.shape[0]):
        raise OrienteerError(
            f"shells {first_shell} to {last} were asked for; a cube of {reference.shape[0]} voxels "
            f"has shells 0 to {n_shells(reference.shape[0]) - 1}."
        )
    search = RotationSearch(reference, moving, first_shell, last)
    starts = _descend(search, _KEPT, _FOLLOWED, 0.5, 0.0) if near is None else near[None]
    quaternions = _follow(search, starts)
    turned = rotate_volume(moving, quaternions)
    shells = shell_correlation(reference, turned)
    return Alignment(quaternions, shells.mean(np.arange(max(first_shell, 1), last + 1)), shells, turned)


def candidate_rotations(
    reference: Array, moving: Array, most: int, *, last_shell: int | None = None, first_shell: int = 1
) -> NDArray[np.float64]:
    """Promising rotations of ``moving`` onto ``reference``, (K, 4), at most ``most``, best first.

    Each is within about half a speckle of the last shell of the maximum near it, and some degrees from the
    others; arguments as in :func:`align_intensities`.
    """
    last = n_shells(reference.shape[0]) - 1 if last_shell is None else last_shell
    search = RotationSearch(reference, moving, first_shell, last)
    return _descend(search, _KEPT_OF_MANY, most, 1.0, _APART_DEG)


def look_alike_rotations(
    values: Array, least: float, *, last_shell: int, first_shell: int = 1, most: int = 120
) -> NDArray[np.float64]:
    """The rotations after which an intensity looks nearly the same, (K, 4); the first is the identity.

    The symmetry of the particle need not be known, nor be exact.

    values : (n, n, n) intensity; first_shell, last_shell : the shells that are compared, in voxels.
    least : correlation over these shells from which on two views count as the same.
    most : most rotations that are examined and returned.
    """
    search = RotationSearch(values, values, first_shell, last_shell)
    points = search.points(last_shell, _POINTS_FINE)
    found = _descend(search, _KEPT_OF_MANY, most, 1.0, _APART_DEG)
    likely = found[search.scores(found, points, LINEAR) >= _LIKELY * least]
    step_deg = float(np.degrees(search.speckle / 2 / max(last_shell, 1)))
    tops = [_climb(search, one, points, LINEAR, step_deg) for one in likely]
    alike = [top for top, score in zip(tops, search.scores(np.array(tops), points, LINEAR), strict=True)
             if score >= least] if tops else []  # fmt: skip
    return np.asarray(_distinct(np.array([[1.0, 0.0, 0.0, 0.0], *alike]), _APART_DEG, most))


def _descend(
    search: RotationSearch, n_kept: int, most: int, apart_steps: float, apart_deg: float
) -> NDArray[np.float64]:
    """The best rotations after search levels of ever finer steps on ever more shells, (K, 4), best first.

    n_kept : rotations that go on from one level to the next.
    most : most rotations that are returned.
    apart_steps, apart_deg : least distance of those that go on, in steps, and of those returned, in degrees.
    """
    speckle, last = search.speckle, search.last_shell
    levels_deg = [covering_bound_deg(_COARSE_DIVISIONS)]
    while np.radians(levels_deg[-1]) * last >= speckle / 2:
        levels_deg.append(levels_deg[-1] / 2)
    best = np.asarray(six_hundred_cell(_COARSE_DIVISIONS).quaternions)
    for level, step_deg in enumerate(steps(levels_deg, "Searching rotations")):
        if level > 0:
            best = around(_distinct(best, apart_steps * levels_deg[level - 1], n_kept), step_deg)
        # A rotation by one step moves the voxels of the last shell by one speckle, so no peak is missed.
        reach = int(np.ceil(speckle / np.radians(step_deg)))
        shell = min(last, max(search.first_shell, reach))
        points = search.points(shell, _POINTS_FINE if level > 0 else _POINTS_COARSE)
        best = best[np.argsort(-search.scores(best, points, LINEAR), kind="stable")]
    return _distinct(best, max(2 * levels_deg[-1], apart_deg), most)


def _distinct(quaternions: NDArray[np.float64], apart_deg: float, most: int) -> NDArray[np.float64]:
    """The first rotations that are at least ``apart_deg`` from each one before, at most ``most``, (K, 4)."""
    kept = np.empty((most, 4))
    kept[0], n_kept = quaternions[0], 1
    nearest = np.cos(np.radians(apart_deg) / 2)  # |a . b| is the cosine of half the angle between a and b
    for quaternion in quaternions[1:]:
        if n_kept == most:
            break
        if float(np.abs(kept[:n_kept] @ quaternion).max()) <= nearest:
            kept[n_kept] = quaternion
            n_kept += 1
    return kept[:n_kept]


def _follow(search: RotationSearch, starts: NDArray[np.float64]) -> NDArray[np.float64]:
    """The rotation at the highest of the maxima near the starts, (4,).

    Linear splines lead to the maxima; cubic ones, which cost ten times as much but blur little, locate the
    highest precisely.
    """
    points = search.points(search.last_shell, _POINTS_LAST)
    step_deg = float(np.degrees(search.speckle / 2 / max(search.last_shell, 1)))
    tops = np.array(
        [_climb(search, start, points, LINEAR, step_deg) for start in steps(starts, "Refining rotations")]
    )
    best = tops[np.argmax(search.scores(tops, points, CUBIC))]
    weights = _weights_of_agreement(search, best)
    return np.asarray(canonical(_climb(search, best, points, CUBIC, step_deg, weights)))


def _climb(
    search: RotationSearch, quaternion: NDArray[np.float64], points: NDArray[np.int64], order: int,
    step_deg: float, shell_weights: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:  # fmt: skip
    """The maximum near a rotation, from parabolas fitted to the rotation and its 26 neighbours.

    The step is halved whenever the maximum lies among these, three times in all.
    """
    least_deg = step_deg / 8
    for _ in range(_MOST_ROUNDS):
        scores = search.scores(around(quaternion[None], step_deg), points, order, shell_weights)
        move = _top_of_parabola(scores)
        quaternion = np.asarray(compose(small_turn(step_deg * move), quaternion))
        if np.linalg.norm(move) < 1:
            step_deg /= 2
        if step_deg <= least_deg:
            break
    return quaternion


def _top_of_parabola(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """The maximum, in steps, of the parabola fitted to the scores at OFFSETS, (3,).

    If it has no maximum, or one far outside, the best of the offsets.
    """
    x, y, z = OFFSETS.T
    terms = np.column_stack([np.ones(len(x)), x, y, z, x * x / 2, y * y / 2, z * z / 2, x * y, x * z, y * z])
    _, gx, gy, gz, xx, yy, zz, xy, xz, yz = np.linalg.lstsq(terms, scores, rcond=None)[0]
    curvature = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    if np.linalg.eigvalsh(curvature)[-1] < 0:
        top = -np.linalg.solve(curvature, np.array([gx, gy, gz]))
        if np.linalg.norm(top) < 2:
            return np.asarray(top)
    return np.asarray(OFFSETS[np.argmax(scores)])


def _weights_of_agreement(search: RotationSearch, quaternion: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weight of a voxel in every shell, (S,), from how well the shell agrees.

    Two shells of correlation c have a signal of c and a noise variance of about 1 - c^2.  Shells of pure
    noise get no weight; the bound of 1.05 keeps a perfect shell from deciding alone.
    """
    points = search.points(search.last_shell, _POINTS_OF_SHELLS)
    correlation = search.shell_agreement(quaternion, points)
    agreement = np.clip(correlation, 0.0, 1.0)
    weights = agreement / (1.05 - agreement**2)
    return weights if weights[search.first_shell : search.last_shell + 1].any() else np.ones_like(weights)
