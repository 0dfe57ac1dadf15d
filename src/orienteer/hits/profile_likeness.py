"""Test whether the particle, in some orientation, has the radial profile of a hit.

The expected photons of a single hit in rings are f (p + z) + b: brightness f, mean profile p, a deviation z
with covariance C due to orientation and spread of sizes, and background b.  Counting adds Poisson noise of
known size, so faint hits may deviate more.  Brightness and strength of the background are free.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orienteer.hits.evidence import Evidence

N_GROUPS = 12
# Relative standard deviations by which brightness and background are free.
_BRIGHTNESS_FREE, _BACKGROUND_FREE = 1.0, 0.1
# Smallest relative spread of the profiles of a particle.
_LEAST_SPREAD = 0.01


@dataclass(frozen=True, eq=False)
class ProfileLikeness:
    """The profiles of a particle.

    group : (G,) number of the group that each ring belongs to; all groups are about equally informative.
    profile : (R,) mean share of the photons in each group.
    covariance : (R, R) of the deviations from this mean.
    """

    group: NDArray[np.int64]
    profile: NDArray[np.float64]
    covariance: NDArray[np.float64]

    @classmethod
    def of(cls, group: NDArray[np.int64], core: Evidence) -> "ProfileLikeness":
        """Learned from hits of the particle."""
        seen, background = _grouped(core.rings, group), _grouped(core.background, group)
        f = np.maximum(core.brightness, 1).astype(np.float64)
        profile = (seen - background).sum(axis=0) / f.sum()
        floor = 1e-3 / len(profile)
        profile = np.maximum(profile, floor)
        rest = seen - background - f[:, None] * profile
        # The brightness is free, so only deviations orthogonal to the mean profile count as spread.
        across = np.eye(len(profile)) - np.outer(profile, profile) / (profile @ profile)
        rest = rest @ across
        noise = np.maximum(f[:, None] * profile + background, 1e-9)
        weight = 1 / (f**2 + f * noise.sum(axis=1))
        spread = np.einsum("n,ni,nj->ij", weight, rest, rest)
        spread -= across @ np.diag((weight[:, None] * noise).sum(axis=0)) @ across
        values, vectors = np.linalg.eigh(spread / (weight * f**2).sum())
        covariance = (vectors * np.maximum(values, 0)) @ vectors.T
        return cls(group, profile, covariance + np.diag((_LEAST_SPREAD * profile) ** 2))

    def shares(self, hits: Evidence) -> NDArray[np.float64]:
        """(N, R) shares of the photons of each hit in the groups of rings."""
        signal = _grouped(hits.rings, self.group) - _grouped(hits.background, self.group)
        return np.asarray(signal / np.maximum(hits.brightness, 1).astype(np.float64)[:, None])

    def distance(self, hits: Evidence) -> NDArray[np.float64]:
        """(N,) squared distance from the particle, in units of the spread by noise and orientation."""
        seen, background = _grouped(hits.rings, self.group), _grouped(hits.background, self.group)
        f = np.maximum(hits.brightness, 1).astype(np.float64)
        p = self.profile
        rest = seen - background - f[:, None] * p
        R = len(p)
        of_signal = self.covariance + _BRIGHTNESS_FREE**2 * np.outer(p, p)
        total = f[:, None, None] ** 2 * of_signal
        total += _BACKGROUND_FREE**2 * background[:, :, None] * background[:, None, :]
        total[:, np.arange(R), np.arange(R)] += np.maximum(f[:, None] * p + background, 0.1)
        return np.asarray((rest * np.linalg.solve(total, rest[..., None])[..., 0]).sum(axis=1))


def ring_groups(hits: Evidence, n: int = N_GROUPS) -> NDArray[np.int64]:
    """(G,) group of each ring: at most n groups of neighbours with about equal sums of root intensity."""
    # The median ignores a few bright hits of something else; some of the mean helps where the median is 0.
    middle, mean = np.median(hits.signal, axis=0), hits.signal.mean(axis=0)
    light = np.sqrt(np.maximum(middle, 0)) + 0.02 * np.sqrt(np.maximum(mean, 0))
    if not light.sum() > 0:
        light = np.ones_like(light)
    place = np.cumsum(light) - light / 2
    _, group = np.unique(np.minimum((place / light.sum() * n).astype(np.int64), n - 1), return_inverse=True)
    return np.asarray(group)


def _grouped(values: NDArray[np.float32], group: NDArray[np.int64]) -> NDArray[np.float64]:
    """Sums (N, R) of values (N, G) over groups of rings."""
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    return np.asarray(np.add.reduceat(values, starts, axis=1, dtype=np.float64))
