"""From phased starts to the result: choose, align, average, judge, scale."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, array_namespace, to_numpy
from orienteer.compute.progress import steps
from orienteer.phase.alignment import agreement_with_other_hand, level_shells
from orienteer.phase.data import PhasingData
from orienteer.phase.ensemble import average_cluster, cluster_starts
from orienteer.phase.filled import filled_voxels
from orienteer.phase.half_grid import shell_sums, transform_of
from orienteer.phase.prtf import prtf
from orienteer.phase.r_factor import r_factor
from orienteer.phase.result import Phasing
from orienteer.phase.scale import find_scale
from orienteer.phase.weak_modes import weak_modes
from orienteer.volume.volume import Volume


def conclude(
    densities: Array,
    supports: Array,
    background: Array,
    scores: Any,
    judged: Any,
    data: PhasingData,
    *,
    centred: bool = True,
    metadata: Mapping[str, Any] | None = None,
    electrons: float = 0.0,
    mass_kDa: float = 0.0,
    facts: Mapping[str, Any] | None = None,
) -> Phasing:
    """The density that the starts agree on, and how far to trust it.

    densities : (B, n, n, n) float32 that obey all constraints, in amplitude units per voxel.
    supports : (B, n, n, n) bool.
    background : (B,) flat background of the intensity.
    scores : (B,), larger is better; log-likelihood of the held-out voxels that choose.
    judged : (B,), that of the held-out voxels that judge.
    centred : whether the mean is moved to the middle of the box; not if symmetry axes fix its place.
    metadata : of the intensity, which may contain its unit.
    electrons, mass_kDa : of the particle; 0 if not known.
    facts : further fields of the :class:`Phasing`, such as ``seed`` and ``settings``.
    """
    xp: Any = array_namespace(densities)
    done = iter(steps(range(4), "Comparing starts"))
    next(done)
    clusters = cluster_starts(transform_of(densities), data.measured, scores)
    next(done)
    members = clusters.clusters[0].members
    average = average_cluster(densities, supports, data.measured, members, centred)
    next(done)
    flat = float(np.mean(to_numpy(background)[list(members)]))
    known = data.amplitudes, data.measured, 1 / data.box_A, max(flat, 0.0)
    repeats = prtf(average.transforms, *known)
    wrong = r_factor(transform_of(average.density), *known)
    next(done)
    mean = level_shells(transform_of(average.density)[None], data.measured)[0]
    weak = weak_modes(average.density, average.support, data.measured)
    next(done, None)
    scale = find_scale(average.density, average.support, data.voxel_A, metadata, electrons, mass_kDa)
    told: dict[str, str | int] = {
        "unit": scale.unit,
        "starts_averaged": len(members),
        "starts": clusters.n_starts,
    }
    values = to_numpy(average.density) * np.float32(scale.factor)
    return Phasing(
        density=Volume(values, data.voxel_A, "real", name=f"density, {scale.unit}", metadata=told),
        support=Volume(to_numpy(average.support.astype(xp.float32)), data.voxel_A, "real", name="support"),
        clusters=clusters,
        prtf=repeats,
        r_factor=wrong,
        weak_modes=weak,
        scale=scale,
        background=flat,
        particle_volume_A3=float(filled_voxels(average.density, data.measured).sum()) * data.voxel_A**3,
        judged=float(np.mean(to_numpy(judged)[list(members)])),
        data_error=data_error(data),
        shell_error=shell_error(data),
        other_hand=agreement_with_other_hand(mean),
        edge_A=data.edge_A,
        diameter_A=data.diameter_A,
        **(facts or {}),
    )


def data_error(data: PhasingData) -> float:
    """Relative error of the measured amplitudes: the geometric mean over shells, weighted by their voxels."""
    xp: Any = array_namespace(data.amplitudes)
    square, sigma = data.amplitudes.astype(xp.float64) ** 2, data.sigma.astype(xp.float64)
    # The error of an amplitude is that of the intensity over twice the amplitude, unless the latter is small.
    error = xp.where(data.measured, sigma**2 / (4 * (square + sigma) + 1e-300), 0)
    power, wrong, number = (
        to_numpy(shell_sums(part, data.measured)) for part in (square, error, xp.ones_like(square))
    )
    return _mean_over_shells(wrong, power, number)


def shell_error(data: PhasingData) -> float:
    """Relative error if every amplitude is replaced by the mean of its shell, averaged in the same way.

    A density that predicts amplitudes no better knows nothing of the speckles.
    """
    xp: Any = array_namespace(data.amplitudes)
    amplitudes = data.amplitudes.astype(xp.float64)
    power, total, number = (
        to_numpy(shell_sums(part, data.measured))
        for part in (amplitudes**2, amplitudes, xp.ones_like(amplitudes))
    )
    return _mean_over_shells(power - total**2 / np.maximum(number, 1), power, number)


def _mean_over_shells(wrong: NDArray[Any], power: NDArray[Any], number: NDArray[Any]) -> float:
    seen = (power > 0) & (wrong > 1e-12 * power)
    if not seen.any():
        return 0.0
    logarithm = np.log(wrong[seen] / power[seen])
    return float(np.exp((number[seen] * logarithm).sum() / number[seen].sum() / 2))
