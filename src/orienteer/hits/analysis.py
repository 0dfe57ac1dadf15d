"""HitAnalysis: size, brightness and kind of each hit, while hits arrive."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.detector.detector import Detector
from orienteer.errors import GeometryMismatch
from orienteer.hits.evidence import Evidence, join
from orienteer.hits.fringes import N_BANDS, Fringes, pixel_spacing_inv_A
from orienteer.hits.kinds import HitKind
from orienteer.hits.rings import Rings
from orienteer.hits.selection import FAINTEST, FEWEST_HITS, Selection
from orienteer.hits.selection_state import selection_from_state, selection_state
from orienteer.hits.settings import HitSettings
from orienteer.hits.sizing import Sizes, SphereSizing
from orienteer.source.patterns import Patterns

# Number of first clear hits; their median size sets the cell size of the search for fringes.
_SIZED_FIRST = 20
# Cells of that search per fringe of two particles that touch.
_CELLS_PER_FRINGE = 2


class HitAnalysis:
    """Judges hits by what most of the recent hits have in common.

    The result for a hit depends only on this hit and on those before it, not on the batches.  The first hits
    are UNSURE, until there are enough to learn the particle from.
    """

    def __init__(self, settings: HitSettings, detector: Detector, wavelength_A: float) -> None:
        self.settings, self._detector, self._wavelength_A = settings, detector, wavelength_A
        self.rings = Rings(detector, wavelength_A)
        self._pixel_spacing = pixel_spacing_inv_A(detector, self.rings.pixels, wavelength_A)
        self._sizing = SphereSizing(self.rings, self._pixel_spacing)
        self._first_sizes = np.zeros(0, dtype=np.float32)
        self._fringes: Fringes | None = None
        self._window = _nothing(self.rings.n)
        self._n_seen = 0
        self.selection: Selection | None = None

    def look(
        self, hits: Patterns, background: NDArray[np.floating] | None = None, learns: bool = True
    ) -> dict[str, NDArray[Any]]:
        """Columns (N,): size_A, brightness, fit_quality, and kind (uint8, :class:`HitKind`).

        background : (P,) expected photons of a shot without a particle; None: no background.
        learns : False judges with what is already known and learns nothing, to judge the first hits again.
        """
        of_pixels = self._background(background)
        of_rings = self.rings.sums(of_pixels[self.rings.pixels])
        photons = self.rings.photons(hits)
        sizes = self._sizing.fit(photons, of_rings)
        kind = np.full(len(hits), HitKind.UNSURE, dtype=np.uint8)
        first = 0 if self.settings.judge_kinds else len(hits)
        if learns and self.settings.judge_kinds:
            first = self._learn_size(sizes, of_rings)
        if first < len(hits) and self._fringes is not None:
            strengths = self._fringes.strengths(
                hits[first:], photons[first:], of_pixels, sizes.background[first:]
            )
            behind = (sizes.background[first:, None] * of_rings).astype(np.float32)
            misfit = (1 / sizes.fit_quality[first:]).astype(np.float32)
            brightness, size_A = sizes.brightness[first:], sizes.size_A[first:]
            evidence = Evidence(photons[first:], behind, strengths, brightness, size_A, misfit)
            kind[first:] = self._judge_and_learn(evidence) if learns else self._judge(evidence)
        return {
            "size_A": sizes.size_A,
            "brightness": sizes.brightness,
            "fit_quality": sizes.fit_quality,
            "kind": kind,
        }

    @property
    def size_A(self) -> float:
        """Diameter of the particle in A; 0 until it is known."""
        return 0.0 if self.selection is None else self.selection.size_A

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that the next result depends on, with the ``wavelength_A`` for which it holds."""
        state: dict[str, NDArray[Any]] = {
            f"window_{name}": array.copy() for name, array in zip(Evidence._fields, self._window, strict=True)
        }
        state["wavelength_A"] = np.array([self._wavelength_A])
        state["first_sizes"], state["n_seen"] = self._first_sizes.copy(), np.array([self._n_seen])
        state["spacing_inv_A"] = np.array([0.0 if self._fringes is None else self._fringes.spacing_inv_A])
        return state | ({} if self.selection is None else selection_state(self.selection))

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Continue from a saved state."""
        self._window = Evidence(*(np.array(state[f"window_{name}"]) for name in Evidence._fields))
        self._first_sizes, self._n_seen = np.array(state["first_sizes"]), int(state["n_seen"][0])
        spacing = float(state["spacing_inv_A"][0])
        self._fringes = self._make_fringes(spacing) if spacing > 0 else None
        self.selection = selection_from_state(state)
        if self.selection is None and "limits" in state:
            # An earlier version saved other tests of the particle; learn it anew from the saved hits.
            self.selection = Selection.learn(self._window, self.settings.keep_singles)

    def _background(self, given: NDArray[np.floating] | None) -> NDArray[np.float64]:
        if given is None:
            return np.zeros(self._detector.n_pixels)
        if given.shape != (self._detector.n_pixels,):
            raise GeometryMismatch(
                f"the background has shape {given.shape}, but the detector has "
                f"{self._detector.n_pixels} pixels.",
                "Give the background of frames of this detector.",
            )
        return np.maximum(np.nan_to_num(np.asarray(given, dtype=np.float64)), 0)

    def _learn_size(self, sizes: Sizes, background: NDArray[np.float64]) -> int:
        """Collect the sizes of the first clear hits; returns how many of these hits cannot be judged yet."""
        if self._fringes is not None:
            return 0
        clear = np.flatnonzero(sizes.brightness > FAINTEST * np.sqrt(background.sum() + 1))
        new = clear[: _SIZED_FIRST - len(self._first_sizes)]
        self._first_sizes = np.concatenate([self._first_sizes, sizes.size_A[new]])
        if len(self._first_sizes) < _SIZED_FIRST:
            return len(sizes.size_A)
        # Two particles that touch have fringes 1 / diameter wide; the fringes of separate ones are finer.
        finest = 1 / (2 * _CELLS_PER_FRINGE * float(np.median(self._first_sizes)))
        bins = max(1, int(finest / self._pixel_spacing))
        self._fringes = self._make_fringes(bins * self._pixel_spacing)
        return int(new[-1]) + 1

    def _make_fringes(self, spacing_inv_A: float) -> Fringes:
        return Fringes(self._detector, self.rings, self._wavelength_A, spacing_inv_A)

    def _judge(self, hits: Evidence) -> NDArray[np.uint8]:
        if self.selection is None or self._fringes is None:
            return np.full(len(hits.size_A), HitKind.UNSURE, dtype=np.uint8)
        return self.selection.kinds(hits, self._fringes.separation_A)

    def _judge_and_learn(self, hits: Evidence) -> NDArray[np.uint8]:
        kinds, first = [], 0
        while first < len(hits.size_A):
            last = min(first + self._until_learning(), len(hits.size_A))
            piece = hits.of(slice(first, last))
            kinds.append(self._judge(piece))
            self._window = join([self._window, piece]).of(slice(-self.settings.window_hits, None))
            self._n_seen += last - first
            if self._n_seen == self._next_learning(self._n_seen):
                self.selection = Selection.learn(self._window, self.settings.keep_singles) or self.selection
            first = last
        return np.concatenate(kinds)

    def _until_learning(self) -> int:
        return self._next_learning(self._n_seen + 1) - self._n_seen

    def _next_learning(self, n: int) -> int:
        """The next number of hits, n or more, at which the particle is learned anew; often at first."""
        step, at = self.settings.window_hits // 4, FEWEST_HITS
        while at < n and at + at // 2 <= self.settings.window_hits:
            at += at // 2
        return at if at >= n else at + -(-(n - at) // step) * step


def _nothing(n_rings: int) -> Evidence:
    rows = np.zeros((0, n_rings), dtype=np.float32)
    return Evidence(rows, rows, np.zeros((0, N_BANDS), np.float32), *np.zeros((3, 0), dtype=np.float32))
