"""Which orientations of a frame may be dropped: the least likely ones, together less than a given mass.

Entries are counted in bins of their distance below the frame's best, a quarter of a nat wide.  Counts are
whole numbers, so the threshold does not depend on the order of the work; every entry of a bin is taken at its
upper edge, so at least the promised mass is kept.
"""

from typing import NamedTuple

from orienteer.compute.arrays import Array, array_namespace

BINS_PER_NAT = 4  # a power of two: the bin of a distance is exact
N_BINS = 128  # and one more for everything 32 nats and further below


class Threshold(NamedTuple):
    """lowest : (D,) float32, entries at or below this distance (<= 0, nats) are dropped; -inf keeps all.
    n_kept : (D,) int64, number of entries above it.
    """

    lowest: Array
    n_kept: Array


def threshold_of_counts(counts: Array, total: Array, kept_mass: float) -> Threshold:
    """The highest threshold that keeps the mass.

    counts : (N_BINS + 1, D) int, entries per bin: bin i holds distances x with i <= -4 x < i + 1.
    total : (D,) float64, sum of e^x over all entries of the frame.
    kept_mass : share of the total that must stay.
    """
    xp = array_namespace(counts)
    upper_edge = xp.exp(-xp.arange(N_BINS + 1, dtype=xp.float64) / BINS_PER_NAT)
    at_most = counts * upper_edge[:, None]
    dropped_from = xp.flip(xp.cumsum(xp.flip(at_most, axis=0), axis=0), axis=0)
    # Bin 0 holds the best entry and is always kept.
    n_bins = xp.maximum(xp.sum(dropped_from > (1 - kept_mass) * total, axis=0), 1)
    lowest = xp.asarray(xp.where(n_bins > N_BINS, -xp.inf, -n_bins / BINS_PER_NAT), dtype=xp.float32)
    return Threshold(lowest, kept_of_counts(counts, lowest))


def kept_of_counts(counts: Array, lowest: Array) -> Array:
    """Number of entries (D,) int64 above the threshold ``lowest`` (D,), of counts (N_BINS + 1, D)."""
    xp = array_namespace(counts)
    kept = xp.arange(N_BINS + 1)[:, None] < -lowest * BINS_PER_NAT
    return xp.sum(xp.where(kept, counts, 0), axis=0)
