"""Bins: a histogram that grows with its values and stays exact.

Bins are 2^exponent wide and begin at multiples of their width.  So an even bin and the next one together make
one bin of twice the width: histograms of segments and of runs can be joined, and made coarser, without
looking at the values again.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from orienteer.campaign.address import CampaignError

MOST_BINS = 512
# Numbers of bins have at most so many bits, fewer than the mantissa of a double, so that they are exact.
_BITS = 40
_SMALLEST = -1000


@dataclass(frozen=True)
class Bins:
    """Counts of values: bin i holds those from (first + i) 2^exponent up to the beginning of the next bin.

    counts : (B,) int64, B at most ``MOST_BINS``; the first and the last bin are not empty.
    """

    exponent: int
    first: int
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, values: NDArray[Any]) -> Self:
        """The histogram of finite values (N,), N at least 1; bins of integers are at least 1 wide."""
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
        shift = _shift(first, last, MOST_BINS)  # before an array of that length is made
        one, two = one.coarser(shift), two.coarser(shift)
        first, last = min(one.first, two.first), max(one.last, two.last)
        counts = np.zeros(last - first + 1, np.int64)
        for bins in (one, two):
            counts[bins.first - first : bins.last - first + 1] += bins.counts
        return Bins(exponent + shift, first, counts)

    @property
    def last(self) -> int:
        """The number of the last bin, counted in widths from 0."""
        return self.first + len(self.counts) - 1

    @property
    def edges(self) -> NDArray[np.float64]:
        """The edges of the bins, (B + 1,)."""
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
        """The same values in at most n bins; values on both sides of 0 always need two."""
        return self.coarser(_shift(self.first, self.last, n))

    def as_bytes(self) -> bytes:
        """The counts as the database stores them."""
        return zlib.compress(self.counts.astype("<i8").tobytes(), level=1)

    @classmethod
    def from_bytes(cls, exponent: int, first: int, counts: bytes) -> Self:
        """The histogram whose counts :meth:`as_bytes` gave."""
        try:
            plain = zlib.decompressobj().decompress(counts, 8 * MOST_BINS)
            found = np.frombuffer(plain, "<i8").astype(np.int64)
        except (zlib.error, ValueError) as error:
            raise CampaignError(
                "a histogram of the campaign is damaged.",
                "Restore the database from an earlier copy, or add the run again under another name.",
            ) from error
        return cls(exponent, first, found)


def _shift(first: int, last: int, most: int) -> int:
    """How often to halve the numbers so that at most ``most`` remain from first to last, or only -1 and 0."""
    shift = 0
    while (last >> shift) - (first >> shift) >= most and shift < 63:
        shift += 1
    return shift
