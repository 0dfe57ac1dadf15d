"""Looking: what a worker does with frames: calibration, hit finding, and the analysis of hits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.arrays import DeviceName, choose_device
from orienteer.errors import OrienteerError
from orienteer.source.patterns import Patterns
from orienteer.source.wavelength import WAVELENGTH, usual_wavelength

if TYPE_CHECKING:
    from orienteer.detector.detector import Detector
    from orienteer.run.settings import Settings

Columns = dict[str, NDArray[Any]]


class Keeps(Protocol):
    """An object whose state is stored in every segment."""

    def state(self) -> dict[str, NDArray[Any]]:
        """The state, as ``restore`` takes it."""
        ...

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on from a state."""
        ...


class Finder(Keeps, Protocol):
    """Finds hits, as :class:`orienteer.hits.finding.HitFinder` does."""

    @property
    def background(self) -> NDArray[Any]:
        """(P,) mean photons of a shot without a particle."""
        ...

    @property
    def powder(self) -> Any:
        """Sums (P,) of all ``hits``."""
        ...

    def look(self, patterns: Patterns) -> Columns:
        """Columns (N,), ``is_hit`` among them."""
        ...


class Analysis(Keeps, Protocol):
    """Finds the size and kind of hits, as :class:`orienteer.hits.analysis.HitAnalysis` does."""

    def look(self, hits: Patterns, background: NDArray[Any] | None) -> Columns:
        """Columns (N,), ``size_A`` and ``kind`` among them."""
        ...


class Looking:
    """Calibration, hit finding and analysis, with all that they have learned.

    make_analysis : makes the analysis for a wavelength in angstrom; None if the detector is not known.
    wavelength_A : of all events; 0: each event has its own.
    device : on which dense frames are calibrated and searched for hits; hits are returned on the CPU.
    """

    def __init__(
        self,
        calibrate: Callable[[Patterns], Patterns],
        finder: Finder,
        make_analysis: Callable[[float], Analysis] | None = None,
        wavelength_A: float = 0.0,
        device: DeviceName = "cpu",
    ) -> None:
        self._calibrate, self.finder, self._make_analysis = calibrate, finder, make_analysis
        self._wavelength_A, self._device = wavelength_A, device
        self._analysis: Analysis | None = None
        self._analysis_state: Mapping[str, NDArray[Any]] = {}

    def look(self, raw: Patterns) -> tuple[Columns, Patterns]:
        """Columns of all shots, and the calibrated frames of those that are hits."""
        patterns = self._calibrate(raw if raw.is_sparse else raw.to(self._device))
        found = dict(self.finder.look(patterns))
        hits = patterns[np.asarray(found["is_hit"], dtype=bool)].to("cpu")
        if not hits.is_sparse and hits.frames.dtype.kind == "f":
            raise OrienteerError(
                "the calibrated frames are signal, but hits are kept as photons.",
                "Set  count_photons = true  under [calibration].",
            )
        return found, Patterns(hits.sparse(), hits.event_id, hits.columns)

    def analyse(self, hits: Patterns) -> Columns:
        """Size, kind and brightness of hits; empty if the detector or the wavelength is not known."""
        wavelength_A = self._wavelength_of(hits)
        if not len(hits) or self._make_analysis is None or not wavelength_A:
            return {}
        if self._analysis is None:
            # The wavelength may vary from shot to shot: use that of the first hits, also after a restart.
            before = self._analysis_state.get(WAVELENGTH)
            self._analysis = self._make_analysis(wavelength_A if before is None else float(before[0]))
            if self._analysis_state:
                self._analysis.restore(self._analysis_state)
        return self._analysis.look(hits, self.finder.background)

    def state(self) -> dict[str, Columns]:
        """Everything learned so far, by part."""
        analysis = self._analysis.state() if self._analysis is not None else dict(self._analysis_state)
        powder = {"hits": self.finder.powder.hits, "background": self.finder.background}
        return {"finder": self.finder.state(), "analysis": analysis, "powder": powder}

    def restore(self, state: Mapping[str, Mapping[str, NDArray[Any]]]) -> None:
        """Go on from a state."""
        if state.get("finder"):
            self.finder.restore(state["finder"])
        self._analysis_state = state.get("analysis", {})

    def _wavelength_of(self, hits: Patterns) -> float:
        if self._wavelength_A or WAVELENGTH not in hits.columns or not len(hits):
            return self._wavelength_A
        return usual_wavelength(hits.columns[WAVELENGTH]) or 0.0


def looking_of(
    settings: Settings, n_pixels: int, detector: Detector | None, device: DeviceName = "cpu"
) -> Looking:
    """Make calibration, hit finding and analysis from the settings."""
    from orienteer.calibration.calibration import Calibration
    from orienteer.hits.finding import HitFinder

    def make_analysis(wavelength_A: float) -> Analysis:
        from orienteer.hits.analysis import HitAnalysis

        assert detector is not None
        return HitAnalysis(settings.hits, detector, wavelength_A)

    calibration = Calibration(settings.calibration, n_pixels, detector)
    return Looking(
        calibration,
        HitFinder(settings.hits, n_pixels, detector, calibration),
        None if detector is None else make_analysis,
        settings.run.wavelength_A,
        choose_device(device),
    )
