"""Find frames that cannot show the same particle as the others, before anything is known of it.

In every orientation, a particle scatters about the same share of its photons to each distance from the
centre; something larger or smaller scatters another.  Frames whose radial profile is far from that of the
others are left out at first.  They are judged again by the model as soon as there is one.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from orienteer.reconstruction.frames.frame_fit import dense_frames
from orienteer.reconstruction.frames.frame_store import FrameStore

_RINGS, _FRAMES_AT_ONCE = 40, 2000
_ROUNDS = 6
# A frame is unlike the others if it is this many robust standard deviations above the typical deviation.
_FAR = 6.0
# Quantiles of brightness: the frames between them determine how the others look.
_MIDDLING = (0.4, 0.8)
# Median of the square of a standard normal number.
_MEDIAN_OF_SQUARE = 0.4549


class RingPhotons(NamedTuple):
    """Photons of frames in rings of the detector.

    signal : (N, R) float64, without the background; noise may make it negative.
    background : (R,) float64 photons per shot that were subtracted.
    """

    signal: NDArray[np.float64]
    background: NDArray[np.float64]

    def of(self, frames: NDArray[np.bool_]) -> "RingPhotons":
        """The photons of chosen frames, (N,) bool."""
        return RingPhotons(self.signal[frames], self.background)


def ring_photons(store: FrameStore, background: NDArray[np.float64] | None) -> RingPhotons:
    """Photons of every frame in rings about the centre, minus those of the background (U,).

    Rings are thin where there are many photons, so that their numbers of photons do not differ much.
    """
    length = store.pixels.length_inv_A
    order = np.argsort(length, kind="stable")
    light = np.sqrt(np.maximum(store.pixel_photons, 0.0))[order] + 1e-12
    ring = np.empty(len(length), dtype=np.int64)
    ring[order] = np.minimum((np.cumsum(light) / light.sum() * _RINGS).astype(np.int64), _RINGS - 1)
    member = np.zeros((len(length), _RINGS), dtype=np.float32)
    member[np.arange(len(length)), ring] = 1
    behind = np.zeros(_RINGS) if background is None else background @ member.astype(np.float64)
    everything = np.arange(len(length))
    parts = []
    for frames in store.chunks(np.arange(store.read.start, store.read.stop), _FRAMES_AT_ONCE):
        batch = store.batch(frames, everything, len(length), "cpu", "sparse" if store.is_counts else "dense")
        if batch.photons is not None and batch.missing is None:
            # Lists of photons are summed directly, without making arrays of them.
            of_frame = np.repeat(np.arange(len(batch)), np.diff(batch.photons.start))
            place = of_frame * _RINGS + ring[batch.photons.pixel]
            sums = np.bincount(place, batch.photons.count, minlength=len(batch) * _RINGS)
            parts.append(sums.reshape(-1, _RINGS) - behind)
            continue
        dense = dense_frames(batch)
        photons = dense.counts @ member
        if dense.seen is not None:
            # A ring that is partly hidden is scaled up to what the whole ring would have shown.
            mean = (store.pixel_photons / np.maximum(store.pixel_frames, 1)).astype(np.float32)
            seen, all_of_it = (dense.seen * mean) @ member, mean @ member
            photons = photons * all_of_it / np.maximum(seen, 1e-3 * all_of_it + 1e-30)
        parts.append(photons.astype(np.float64) - behind)
    return RingPhotons(store.mesh.all.rows(np.concatenate(parts)), behind)


def unlike_others(rings: RingPhotons) -> NDArray[np.bool_]:
    """Whether the radial profile of a frame is unlike that of the others, (N,) bool.

    The profile of the others is a trimmed mean, and their scatter about it a median, both over frames of
    medium brightness: faint frames are noise, and the brightest are most often something else.  Both are
    computed again without the unlike frames, a few times.  Never more than half of the frames are left out.
    """
    photons = np.maximum(rings.signal, 0.0)
    noise = photons + rings.background + 1
    total = photons.sum(axis=1)
    lit = total > 0
    kept = lit.copy()
    deviation = np.zeros(len(photons))
    for _ in range(_ROUNDS):
        if kept.sum() < 8:
            return np.zeros(len(photons), dtype=bool)
        low, high = np.quantile(total[kept], _MIDDLING)
        middling = kept & (total >= low) & (total <= high)
        shares = np.sort(photons[middling] / total[middling, None], axis=0)
        quarter = len(shares) // 4
        profile = np.maximum(shares[quarter : len(shares) - quarter].mean(axis=0), 1e-9)
        expected = total[:, None] * profile / profile.sum()
        square = (photons - expected) ** 2
        beyond_noise = (square / _MEDIAN_OF_SQUARE - noise)[middling] / expected[middling] ** 2
        excess = np.maximum(np.median(beyond_noise, axis=0), 0.0)
        deviation = (square / (noise + excess * expected**2)).mean(axis=1)
        middle = np.median(deviation[kept])
        spread = 1.4826 * np.median(np.abs(deviation[kept] - middle))
        limit = max(middle + _FAR * spread, float(np.median(deviation[lit])))
        kept = lit & (deviation <= limit)
    return np.asarray(lit & ~kept)
