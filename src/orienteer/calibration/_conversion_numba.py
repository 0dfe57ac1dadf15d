"""Convert read-out to photons on the CPU; the twin of ``conversion.cu``."""

import numpy as np
from numba import njit

N_BINS = 64  # each a sixteenth of a photon wide


@njit(nogil=True, cache=True)
def convert(raw, pedestal, inverse_gain, lift, out):  # type: ignore[no-untyped-def]
    """out[d, p] = whole part of (x + lift), clipped to 0 ... 65535; x = (raw - pedestal) / gain, in photons.

    raw : (D, P);  pedestal, inverse_gain : (P,) float32;  out : (D, P) uint16
    """
    D, P = raw.shape
    for d in range(D):
        adu, photons = raw[d], out[d]
        for p in range(P):
            x = (np.float32(adu[p]) - pedestal[p]) * inverse_gain[p] + lift
            # NaN becomes 0, because every comparison with it is false.
            x = x if x > np.float32(0) else np.float32(0)
            x = x if x < np.float32(65535) else np.float32(65535)
            photons[p] = np.uint16(np.int32(x))


@njit(nogil=True, cache=True)
def convert_stages(raw, stage, pedestal, inverse_gain, panel, offset, lift, count, out):  # type: ignore[no-untyped-def]
    """As ``convert``, with a gain stage for each value and, in the first stage, an offset for each panel.

    stage : (D, P) uint8, or (1, 1) if all values are of the first;  pedestal, inverse_gain : (S, P) float32
    panel : (P,) int32, -1 for none;  offset : (D, L) float32 in ADU
    count : whether photons are counted; otherwise out is float32 and gets x itself
    """
    D, P = raw.shape
    one_stage = stage.shape[1] != P
    for d in range(D):
        for p in range(P):
            s = np.int64(0) if one_stage else min(np.int64(stage[d, p]), len(pedestal) - 1)
            x = np.float32(raw[d, p]) - pedestal[s, p]
            if s == 0 and panel[p] >= 0:
                x -= offset[d, panel[p]]
            x *= inverse_gain[s, p]
            if count:
                x = x + lift
                x = x if x > np.float32(0) else np.float32(0)
                x = x if x < np.float32(65535) else np.float32(65535)
                out[d, p] = np.int32(x)
            else:
                out[d, p] = x


@njit(nogil=True, cache=True)
def find_offsets(raw, stage, pedestal, photon, order, first, offset):  # type: ignore[no-untyped-def]
    """offset[d, l] = median signal, in ADU, of the dark pixels of panel l in the first gain stage.

    photon : (L,) float32, ADU of a photon in panel l
    order, first : the pixels of panel l are order[first[l] : first[l + 1]]
    Dark pixels are those of the main peak, a photon wide, in the histogram of signals within 2 photons of 0.
    """
    D, P = raw.shape
    one_stage = stage.shape[1] != P
    bins = np.zeros(N_BINS, np.int32)
    for d in range(D):
        for l in range(len(first) - 1):  # noqa: E741
            bins[:] = 0
            scale = np.float32(16) / photon[l]
            for i in range(first[l], first[l + 1]):
                p = order[i]
                if one_stage or stage[d, p] == 0:
                    b = np.floor((np.float32(raw[d, p]) - pedestal[0, p]) * scale + np.float32(32))
                    if b >= 0 and b < N_BINS:
                        bins[np.int32(b)] += 1
            offset[d, l] = middle_of_fullest(bins) * photon[l]


@njit(nogil=True, cache=True)
def middle_of_fullest(bins):  # type: ignore[no-untyped-def]
    """Median, in photons, of the 16 bins around the 8 successive ones that hold most; linear within a bin."""
    inside = 0
    for b in range(8):
        inside += bins[b]
    most, best = inside, 0
    for b in range(1, N_BINS - 7):
        inside += bins[b + 7] - bins[b - 1]
        if inside > most:
            most, best = inside, b
    low, high = max(best - 4, 0), min(best + 12, N_BINS)
    total = 0
    for b in range(low, high):
        total += bins[b]
    if total == 0:
        return np.float32(0)
    below = 0
    for b in range(low, high):
        if 2 * (below + bins[b]) >= total:
            part = (np.float32(0.5) * total - below) / bins[b]
            return np.float32((b + part) / 16 - 2)
        below += bins[b]
    return np.float32(0)
