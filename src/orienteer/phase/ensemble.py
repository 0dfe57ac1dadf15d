"""From many starts to one density: which of them found the same density, and their mean.

Starts that fail end differently each time; a density that many starts find is likely to be the one that the
data determine.  The rule is simple enough to check by eye:

1. The start that predicts held-out voxels best leads the first cluster.
2. All other starts are aligned with it.  Those whose agreement with it (mean over shells of the Fourier shell
   correlation) is above a threshold belong to it.  If the agreements of all pairs clearly fall into two
   groups, high and low, the threshold lies between the groups; otherwise it is 0.6.
3. The best of the remaining starts leads the next cluster, and so on.
4. Among clusters with at least a tenth of the starts and two members, the one whose members predict held-out
   voxels best on average is averaged.  If there is none, the first cluster is taken, with a remark.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import Array, array_namespace, to_numpy
from orienteer.errors import OrienteerError
from orienteer.phase.alignment import StartAlignment, align_starts, apply_alignment, level_shells, shifted
from orienteer.phase.half_grid import density_of, edge_of, transform_of, voxel_counts

# Below the first agreement two starts always count as different, above the second as the same.  Failed starts
# inside the same support reach 0.5; successful ones on data that end in noise fall to 0.65.
DIFFERENT, SAME = 0.6, 0.9
# Two groups must have at least this share of the variance between them; an even spread has 0.75.
CLEARLY_TWO = 0.8
# Smallest gap between two groups, on the scale artanh(agreement).  Few pairs have gaps by chance, so the
# second number over the number of pairs is added.
SMALLEST_GAP, GAP_OF_FEW = 0.05, 0.5
MOST_CLUSTERS = 6
SMALLEST_SHARE = 0.1
# Times that members are aligned again with the mean of the cluster, which has less noise than its leader.
ROUNDS_TO_THE_MEAN = 2
# A cluster of this share of the winning one is a rival.
RIVAL = 0.5


@dataclass(frozen=True)
class Cluster:
    """Starts that found the same density.

    members : numbers of the starts, the leader first, then by agreement with it.
    agreement : of each member with the leader, from -1 to 1; 1 for the leader itself.
    threshold : agreement needed to belong to the cluster.
    score : mean score of the members, such as the free log-likelihood.
    """

    members: tuple[int, ...]
    agreement: tuple[float, ...]
    threshold: float
    score: float

    @property
    def leader(self) -> int:
        """The best start of the cluster."""
        return self.members[0]

    def __len__(self) -> int:
        return len(self.members)


@dataclass(frozen=True, eq=False)
class Clusters:
    """All starts in clusters, the one to average first.

    clusters : the chosen one first, the others in the order in which they were found.
    agreement : (B, B) float64, agreement of each pair: the best found, with both aligned to one leader.
    scores : (B,) float64, larger is better.
    """

    clusters: tuple[Cluster, ...]
    agreement: NDArray[np.float64]
    scores: NDArray[np.float64]

    @property
    def n_starts(self) -> int:
        """Starts in all."""
        return len(self.scores)

    @property
    def share(self) -> float:
        """Share of all starts that the chosen cluster has."""
        return len(self.clusters[0]) / self.n_starts

    def remarks(self) -> list[str]:
        """What a user should know before believing the mean."""
        chosen, *others = self.clusters
        said = []
        if self.n_starts == 1:
            return ["There was only one start, so it is not known whether another would find the same."]
        if len(chosen) == 1:
            said.append(
                "No two starts agree: the density is that of the best start, and should not be trusted."
            )
        elif self.share < 0.5:
            said.append(f"Only {len(chosen)} of {self.n_starts} starts found the resulting density.")
        rivals = [other for other in others if len(other) > 1 and len(other) >= RIVAL * len(chosen)]
        if rivals:
            better = " and it fits better" if rivals[0].score > chosen.score else ""
            said.append(f"Another density was found by {len(rivals[0])} starts{better}.")
        return said


@dataclass(frozen=True, eq=False)
class Average:
    """The mean of the starts of a cluster.

    density : (n, n, n) float32, its centre of mass at voxel n // 2.
    support : (n, n, n) bool, voxels in the supports of more than half of the members.
    transforms : (M, n, n, n // 2 + 1) complex, the members, aligned.
    alignment : of each member.
    """

    density: Array
    support: Array
    transforms: Array
    alignment: StartAlignment


def cluster_starts(transforms: Array, measured: Array, scores: Any) -> Clusters:
    """Sort starts into clusters that found the same density, whatever its place, hand and sign.

    transforms : (B, n, n, n // 2 + 1) complex, of the densities.
    measured : (n, n, n // 2 + 1) bool; starts are compared only in these voxels.
    scores : (B,), such as the free log-likelihood; larger is better.
    """
    scores = to_numpy(scores).astype(np.float64)
    if scores.shape != (len(transforms),) or len(scores) == 0:
        raise OrienteerError(f"{len(transforms)} starts came with scores of shape {scores.shape}.")
    levelled = level_shells(transforms, measured)
    xp: Any = array_namespace(levelled)
    shows_something = np.array([float(xp.abs(one).max()) > 0 for one in levelled])
    # Starts without a score, or with an empty density, come last.
    ranked = np.where(np.isfinite(scores) & shows_something, scores, -np.inf)
    if not shows_something.any():
        raise OrienteerError(
            "every start has ended with an empty density.",
            "Look at the intensity with 'orienteer inspect', and check the diameter of the particle.",
        )
    left = np.argsort(-ranked, kind="stable").tolist()
    agreement = np.full((len(scores), len(scores)), -1.0)
    found: list[Cluster] = []
    while left and len(found) < MOST_CLUSTERS:
        leader, others = left[0], left[1:]
        found.append(_cluster(levelled, leader, others, agreement, ranked))
        left = [start for start in left if start not in found[-1].members]
    np.fill_diagonal(agreement, 1.0)
    return Clusters(_chosen_first(found, len(scores)), agreement, scores)


def threshold_of(agreement: Any) -> float:
    """The agreement above which two starts found the same density, from the agreements of all pairs.

    Agreements are split where the variance between the two groups is largest (Otsu's rule), on the scale
    artanh(agreement), which stretches steps near 1.  If much of the variance remains within the groups, or
    the gap between them is small, they count as one group, and the threshold is 0.6.

    >>> [round(threshold_of(a), 2) for a in ([0.9, 0.85, 0.65, 0.6], [0.8, 0.78], [0.95, 0.3], [0.2, 0.1])]
    [0.77, 0.6, 0.79, 0.6]
    """
    values = np.sort(np.arctanh(np.clip(np.asarray(agreement, np.float64).ravel(), DIFFERENT, SAME)))
    n = len(values)
    if n < 2 or values[-1] - values[0] < 1e-6:
        return DIFFERENT
    below = np.arange(1, n)
    sums = np.cumsum(values)
    mean_below, mean_above = sums[:-1] / below, (sums[-1] - sums[:-1]) / (n - below)
    between = below * (n - below) / n**2 * (mean_above - mean_below) ** 2
    split = int(np.argmax(between))
    gap = values[split + 1] - values[split]
    if between[split] < CLEARLY_TWO * values.var() or gap < SMALLEST_GAP + GAP_OF_FEW / n:
        return DIFFERENT
    return float(np.tanh((values[split] + values[split + 1]) / 2))


def average_cluster(
    densities: Array, supports: Array, measured: Array, members: Sequence[int], centred: bool = True
) -> Average:
    """The mean of the members, aligned to a small fraction of a voxel, and centred in the box.

    densities : (B, n, n, n) real.
    supports : (B, n, n, n) bool.
    measured : (n, n, n // 2 + 1) bool.
    members : numbers of the starts; the others are aligned with the first one, then with their mean.
    centred : whether the centre of mass is moved to voxel n // 2.  A particle with imposed symmetry stays
        where the symmetry axes are.
    """
    xp: Any = array_namespace(densities)
    chosen = list(members)
    transforms = transform_of(densities[chosen])
    levelled = level_shells(transforms, measured)
    reference = levelled[0]
    for _ in range(ROUNDS_TO_THE_MEAN + 1):
        alignment = align_starts(reference, levelled)
        reference = level_shells(apply_alignment(levelled, alignment).mean(axis=0)[None], measured)[0]
    alignment = _in_the_frame_of_the_first(alignment)
    masks = apply_alignment(transform_of(supports[chosen].astype(xp.float32)), _without_sign(alignment))
    aligned = apply_alignment(transforms, alignment)
    mean = density_of(aligned.mean(axis=0))
    if float((mean * xp.abs(mean)).sum()) < 0:  # most of the scattering density must be positive
        aligned, mean = -aligned, -mean
        alignment = replace(alignment, sign=-alignment.sign)
    if centred:
        by = centre_index(mean) - centre_of_mass(mean)
        alignment = replace(alignment, shift=alignment.shift + by)
        for start in range(len(chosen)):
            aligned[start] = shifted(aligned[start], by)
            masks[start] = shifted(masks[start], by)
        mean = density_of(aligned.mean(axis=0))
    support = density_of(masks.mean(axis=0)) > 0.5
    return Average(mean.astype(xp.float32), support, aligned, alignment)


def centre_index(density: Array) -> NDArray[np.float64]:
    """The centre voxel n // 2, (3,)."""
    return np.array([n // 2 for n in density.shape], np.float64)


def centre_of_mass(density: Array) -> NDArray[np.float64]:
    """Centre of the positive density (n, n, n) in voxels, (3,); opposite sides of the box are neighbours.

    >>> centre_of_mass(np.eye(4)[:, :, None] * np.array([1.0, 0, 0, 1.0])).round(2).tolist()[2]
    3.5
    """
    xp: Any = array_namespace(density)
    positive = xp.where(density > 0, density, 0)
    centre = []
    for axis, n in enumerate(density.shape):
        others = tuple(a for a in range(3) if a != axis)
        profile = to_numpy(positive.sum(axis=others, dtype=xp.float64))
        angle = np.angle((profile * np.exp(2j * np.pi * np.arange(n) / n)).sum())
        centre.append(angle * n / (2 * np.pi) % n)
    return np.array(centre)


def _cluster(
    levelled: Array,
    leader: int,
    others: Sequence[int],
    agreement: NDArray[np.float64],
    scores: NDArray[np.float64],
) -> Cluster:
    """The cluster of a leader among the others; writes the agreements of pairs into ``agreement``."""
    xp: Any = array_namespace(levelled)
    group = [leader, *others]
    found = align_starts(levelled[leader], levelled[group])
    aligned = apply_alignment(levelled[group], found)
    aligned *= xp.sqrt(xp.asarray(voxel_counts(edge_of(levelled)))).astype(xp.float32)
    # With real and imaginary parts as separate numbers, products give the real part without copies.
    parts = aligned.reshape(len(group), -1).view(xp.float32)
    pairs = to_numpy(parts @ parts.T)
    at = np.ix_(group, group)
    agreement[at] = np.maximum(agreement[at], pairs)
    with_leader = dict(zip(others, found.agreement[1:].tolist(), strict=True))
    threshold = threshold_of(pairs[np.triu_indices(len(group), 1)])
    joined = [start for start in others if with_leader[start] > threshold]
    joined.sort(key=lambda start: -with_leader[start])
    members = (leader, *joined)
    kept = (1.0, *(with_leader[start] for start in joined))
    return Cluster(members, kept, threshold, float(np.mean(scores[list(members)])))


def _chosen_first(found: Sequence[Cluster], n_starts: int) -> tuple[Cluster, ...]:
    large = [cluster for cluster in found if len(cluster) >= max(2, SMALLEST_SHARE * n_starts)]
    chosen = max(large, key=lambda cluster: cluster.score) if large else found[0]
    return (chosen, *(cluster for cluster in found if cluster is not chosen))


def _in_the_frame_of_the_first(alignment: StartAlignment) -> StartAlignment:
    """The alignment relative to the first start, which then keeps its hand, sign and place."""
    if alignment.hand[0] < 0:  # inverting a shifted density reverses the shift
        alignment = replace(alignment, hand=-alignment.hand, shift=-alignment.shift)
    return replace(
        alignment, sign=alignment.sign * alignment.sign[0], shift=alignment.shift - alignment.shift[0]
    )


def _without_sign(alignment: StartAlignment) -> StartAlignment:
    return replace(alignment, sign=np.ones_like(alignment.sign))
