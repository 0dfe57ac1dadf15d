"""HitFinder: finds the shots of a stream that met a particle; it learns how from the stream itself."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orienteer.detector.detector import Detector
from orienteer.detector.masks import PixelUse
from orienteer.errors import GeometryMismatch, OrienteerError
from orienteer.hits.first_background import expected_form, pixel_groups
from orienteer.hits.model import HitModel
from orienteer.hits.photon_sums import PixelSums
from orienteer.hits.powder import PowderSums
from orienteer.hits.settings import HitSettings
from orienteer.hits.warm_up import WarmUp, learn_first
from orienteer.source.patterns import Patterns

# Shots between updates of the model, counted from the first shot, so that results do not depend on batches.
BLOCK = 512
# Shots at a time on the CPU: they stay in its cache between the sums over pixels and those over shots.
_NEAR = 64


class HitFinder:
    """Separates hits from empty shots, batch by batch, with a background that follows the stream.

    Each shot is tested against the running background of shots without a particle.  Its score is the
    logarithm of a likelihood ratio, in standard deviations of recent empty shots
    (:class:`orienteer.hits.score.Score`); the threshold keeps the share of empty shots among the hits small
    (:class:`orienteer.hits.empirical_null.EmpiricalNull`).  The background is never learned from hits.

    Nothing has to be known beforehand: during the first ``warm_up_shots``, empty shots are recognised by what
    most shots have in common.  The very first decisions rest on few shots and are less certain.  After the
    warm-up, results do not depend on how the stream is divided into batches.

    detector : where the pixels are, and which of them may be used; None: all are used, at unknown positions.
    calibrate : converts to photons the file of empty shots that the settings may name; the shots given to
        ``look`` must already be in photons.
    background : (P,) float64, mean photons of a recent shot without particle.
    powder : sums over all hits and all other shots.
    n_seen : number of shots so far.
    """

    def __init__(
        self,
        settings: HitSettings,
        n_pixels: int,
        detector: Detector | None = None,
        calibrate: Callable[[Patterns], Patterns] = lambda raw: raw,
    ) -> None:
        if detector is not None and detector.n_pixels != n_pixels:
            raise GeometryMismatch(
                f"shots have {n_pixels} pixels, but detector '{detector.name}' has {detector.n_pixels}.",
                "Give the geometry of these data.",
            )
        self.settings, self.n_pixels = settings, n_pixels
        used = np.ones(n_pixels, bool) if detector is None else detector.mask < PixelUse.NEVER
        if not used.any():
            raise OrienteerError(
                "every pixel of the detector is masked, so no hit can be seen.", "Give another mask."
            )
        self._group = pixel_groups(n_pixels, used, detector)
        self._form = None if detector is None else expected_form(used, detector)
        self._model = self._new_model()
        self._warm_up: WarmUp | None = WarmUp()
        self.powder = PowderSums(n_pixels)
        self.n_seen = 0
        if settings.background:
            from orienteer.hits.empty_shots import read_empty_shots

            self.teach_background(read_empty_shots(settings.background, settings.memory_shots, calibrate))

    @property
    def background(self) -> NDArray[np.float64]:
        """(P,) mean photons of a recent shot without particle; 0 in unused pixels and before one is known."""
        return self._model.background if self._model.empty.n else np.zeros(self.n_pixels)

    @property
    def threshold(self) -> float:
        """Score from which a shot is currently called a hit."""
        return self._model.threshold

    def teach_background(self, empty: Patterns) -> None:
        """Learn from shots that are known to be empty, instead of the warm-up; call it before ``look``."""
        self._check(empty)
        if self.n_seen or len(empty) == 0:
            raise OrienteerError(
                "a background must be taught before the first shot, with at least one empty shot.",
                "Teach it to a new HitFinder.",
            )
        self._model, _ = learn_first(self._new_model, empty, self._group, are_empty=True)
        self._warm_up = None

    def look(self, patterns: Patterns) -> dict[str, NDArray[Any]]:
        """Judge these shots, learn from them, and return columns (N,).

        photons : on used pixels (int64; float64 if frames are a float signal).
        n_lit : int32, number of lit pixels: so bright that the background alone is in < 1 % of shots.
        hit_score : float32, standard deviations above empty shots.
        is_hit : bool.
        """
        self._check(patterns)
        parts, first = [], 0
        while first < len(patterns):
            last = min(len(patterns), first + self._until_next_block())
            if self._warm_up is None and not patterns.is_on_gpu:
                last = min(last, first + _NEAR)
            parts.append(self._look_within_block(patterns[first:last]))
            first = last
        if not parts:
            parts = [self._columns(self._model.sums(patterns), np.zeros(0))]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def begin_again(self) -> None:
        """Forget the shots but keep what was learned from them, to judge the same shots a second time."""
        if self._warm_up is None:
            self._model.close()
        else:
            # The waiting shots will come again, and shots that are in the warm-up twice cannot be judged.
            self._warm_up = None if self._model.empty.n else WarmUp()
        self.powder = PowderSums(self.n_pixels)
        self.n_seen = 0

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that the next ``look`` depends on, as arrays for ``restore``."""
        is_warm = self._warm_up is None
        waiting = {} if self._warm_up is None else self._warm_up.state()
        counts = {"n_seen": np.array([self.n_seen], np.int64), "is_warm": np.array([is_warm])}
        return {**counts, **self._model.state(), **self.powder.state(), **waiting}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Continue from the state of a finder with the same settings and pixels."""
        if "empty_sums" not in state or len(state["empty_sums"]) != self.n_pixels:
            raise OrienteerError(
                f"the saved state is not that of a hit finder for {self.n_pixels} pixels.",
                "Begin a new run: the detector or the version may have changed.",
            )
        self.n_seen = int(state["n_seen"][0])
        self._model = self._new_model()
        self._model.restore(state)
        self.powder.restore(state)
        self._warm_up = None
        if not bool(state["is_warm"][0]):
            self._warm_up = WarmUp()
            self._warm_up.restore(state, self.n_pixels)

    def _new_model(self) -> HitModel:
        settings = self.settings
        return HitModel(
            self._group, self._form, settings.memory_shots, settings.false_hits, settings.threshold
        )

    def _check(self, patterns: Patterns) -> None:
        if patterns.n_pixels != self.n_pixels:
            raise GeometryMismatch(
                f"shots have {patterns.n_pixels} pixels, but the hit finder is set up for {self.n_pixels}.",
                "Give the geometry of these data, or begin a new run.",
            )

    def _until_next_block(self) -> int:
        if self._warm_up is not None:
            return self.settings.warm_up_shots - len(self._warm_up)
        return BLOCK - self.n_seen % BLOCK

    def _look_within_block(self, patterns: Patterns) -> dict[str, NDArray[Any]]:
        if self._warm_up is not None:
            columns = self._look_at_first(self._warm_up, patterns)
            self.powder.add(patterns, columns["is_hit"])
        else:
            model = self._model
            sums = model.sums(patterns)
            z = model.standardised(sums)
            empty = model.surely_empty(z)
            of_empty = model.learn(patterns, sums, empty, z >= model.threshold)
            columns = self._columns(sums, z)
            if self.settings.find:
                self.powder.add(patterns, columns["is_hit"], empty, of_empty)
            else:
                self.powder.add(patterns, columns["is_hit"])
        self.n_seen += len(patterns)
        if self._warm_up is None and self.n_seen % BLOCK == 0:
            self._model.close()
        return columns

    def _look_at_first(self, warm_up: WarmUp, patterns: Patterns) -> dict[str, NDArray[Any]]:
        """Judge shots during the warm-up, with a model that is learned from all shots so far."""
        is_complete = len(warm_up) + len(patterns) >= self.settings.warm_up_shots
        z = np.zeros(len(patterns))  # no shot is a hit until there are enough shots to compare it with
        if (warm_up.add(patterns) or is_complete) and warm_up.shots is not None:
            self._model, of_all = learn_first(self._new_model, warm_up.shots, self._group)
            z = of_all[len(of_all) - len(patterns) :]
        elif self._model.empty.n:
            z = self._model.standardised(self._model.sums(patterns))
        if is_complete:
            self._warm_up = None
        return self._columns(self._model.sums(patterns), z)

    def _columns(self, sums: PixelSums, z: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
        is_hit = z >= self._model.threshold if self.settings.find else np.ones(len(z), bool)
        score = z.astype(np.float32)
        return {"photons": sums.photons, "n_lit": sums.n_lit, "hit_score": score, "is_hit": is_hit}
