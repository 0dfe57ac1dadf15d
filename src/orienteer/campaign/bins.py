"""Bins: a histogram that grows with its values and stays exact.

Bins are 2^exponent wide and begin at multiples of their width.  An even bin and the next are therefore one of
twice the width: histograms of segments and of runs are joined, and made coarser, without looking at a value
again.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from orienteer.campaign.address import CampaignError

MOST_BINS = 512
# Numbers of bins stay so far below those of a double that they are exact.
_BITS = 40
_SMALLEST = -1000


@dataclass(frozen=True)
class Bins:
    """How many values lie in which bin: bin i holds those from (first + i) 2^exponent to below the next.

    counts : (B,) int64, B of at most ``MOST_BINS``; the first and the last are not empty.
    """

    exponent: int
    first: int
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, values: NDArray[Any]) -> Self:
        """The histogram of finite values (N,), at least one; whole numbers have bins of whole width."""
        is_whole = values.dtype.kind in "biu"
        values = values.astype(np.float64)
        finest = int(np.frexp(np.abs(values).max())[1]) - _BITS
        exponent = max(finest, 0 if is_whole else _SMALLEST)
        number = np.floor(np.ldexp(values, -exponent)).astype(np.int64)
        shift = _shift(int(number.min()), int(number.max()), MOST_BINS)
        number >>= shift
        first = int(number.min())
        return cls(exponent + shift, first, np.bincount(number - first).astype(np.int64))

    def __add__(self, other: Bins) -> Bins:
        exponent = max(self.exponent, other.exponent)
        one, two = (bins.coarser(exponent - bins.exponent) for bins in (self, other))
        first, last = min(one.first, two.first), max(one.last, two.last)
        shift = _shift(first, last, MOST_BINS)  # before anything of that length is made
        one, two = one.coarser(shift), two.coarser(shift)
        first, last = min(one.first, two.first), max(one.last, two.last)
        counts = np.zeros(last - first + 1, np.int64)
        for bins in (one, two):
            counts[bins.first - first : bins.last - first + 1] += bins.counts
        return Bins(exponent + shift, first, counts)

    @property
    def last(self) -> int:
        """The number of the last bin, in widths from 0."""
        return self.first + len(self.counts) - 1

    @property
    def edges(self) -> NDArray[np.float64]:
        """Where the bins begin and the last one ends, (B + 1,)."""
        numbers = np.arange(self.first, self.last + 2, dtype=np.float64)
        return np.asarray(np.ldexp(numbers, self.exponent))

    def coarser(self, shift: int) -> Bins:
        """The same values in bins that are 2^shift times as wide."""
        if not shift:
            return self
        number = np.arange(self.first, self.last + 1) >> min(shift, 63)
        first = int(number[0])
        counts = np.zeros(int(number[-1]) - first + 1, np.int64)
        np.add.at(counts, number - first, self.counts)
        return Bins(self.exponent + shift, first, counts)

    def at_most(self, n: int) -> Bins:
        """The same values in at most n bins, or in the two on either side of 0, which no width joins."""
        return self.coarser(_shift(self.first, self.last, n))

    def as_bytes(self) -> bytes:
        """The counts as the database keeps them."""
        return zlib.compress(self.counts.astype("<i8").tobytes(), level=1)

    @classmethod
    def from_bytes(cls, exponent: int, first: int, counts: bytes) -> Self:
        """What :meth:`as_bytes` gave."""
        try:
            plain = zlib.decompressobj().decompress(counts, 8 * MOST_BINS)
            found = np.frombuffer(plain, "<i8").astype(np.int64)
        except (zlib.error, ValueError) as error:
            raise CampaignError(
                "a histogram of the campaign is damaged.",
                "Take a copy of the database from before, or add the run again under another name.",
            ) from error
        return cls(exponent, first, found)


def _shift(first: int, last: int, most: int) -> int:
    """By how many halvings the numbers from first to last become at most so many, or -1 and 0."""
    shift = 0
    while (last >> shift) - (first >> shift) >= most and shift < 63:
        shift += 1
    return shift
