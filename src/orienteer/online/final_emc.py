"""The end of a growing reconstruction: all stages with all hits, as in a batch run."""

from __future__ import annotations

from orienteer.compute.arrays import DeviceName
from orienteer.reconstruction.emc import Emc
from orienteer.reconstruction.handing_over import LearntMap, begin_from
from orienteer.reconstruction.settings import EmcSettings
from orienteer.source.base import Source


class FinalEmc(Emc):
    """EMC that begins with a map that has grown.

    learnt : the map; None: begin at random, as a batch run does.
    tries_both : also make the random starts of a batch run, and continue with the likeliest of all; otherwise
        the map is the only start, whatever the symmetry or the settings ask for.
    """

    def __init__(
        self, source: Source, settings: EmcSettings, *, seed: int, device: DeviceName,
        learnt: LearntMap | None, tries_both: bool,
    ) -> None:  # fmt: skip
        self._learnt_map, self._from_map = learnt, 0
        super().__init__(source, settings, seed=seed, device=device)
        if learnt is not None and tries_both:
            self._from_map = self.course.n_starts
            self.course.n_starts += 1
            self.begin_start(0)
        elif learnt is not None:
            self.course.n_starts, self.course.has_start = 1, True

    def begin_start(self, start: int) -> None:
        super().begin_start(start)
        if self._learnt_map is not None and start == self._from_map:
            begin_from(self, self._learnt_map)
