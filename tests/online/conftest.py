"""A few hundred small hits in memory that arrive when a test says so."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orienteer.online.online_emc import OnlineEmc, OnlineStep
from orienteer.reconstruction.settings import EmcSettings
from orienteer.run.online_settings import OnlineSettings
from orienteer.source.in_memory import InMemorySource
from orienteer.source.patterns import Patterns

_path = Path(__file__).parent.parent / "made_up_frames.py"
_spec = importlib.util.spec_from_file_location("made_up_frames", _path)
assert _spec is not None
assert _spec.loader is not None
_module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_module)
DIAMETER_A: float = _module.DIAMETER_A


class Growing(InMemorySource):
    """Frames of which the first few have arrived."""

    arrived = 0

    def arrive(self, n: int) -> None:
        self.arrived = min(self.arrived + n, len(self._all))

    def refresh(self) -> int:
        self.n_frames = self.arrived
        return self.n_frames


@pytest.fixture(scope="session")
def frames() -> InMemorySource:
    """240 frames of 13 x 13 pixels."""
    return _module.made_up_frames(240, n_pixels=13, photons=500.0)  # type: ignore[no-any-return]


@pytest.fixture
def growing(frames: InMemorySource) -> Callable[..., Growing]:
    """Makes a source of which some frames have arrived; they may be others, or in another order."""

    def make(arrived: int = 0, order: Any = None, patterns: Patterns | None = None) -> Growing:
        given = frames.read() if patterns is None else patterns
        given = given if order is None else given[np.asarray(order)]
        source = Growing(given, frames.frame_shape).with_detector(frames.detector)
        source.arrived = arrived
        source.refresh()
        return source

    return make


@pytest.fixture(scope="session")
def online() -> Callable[..., OnlineEmc]:
    """Makes a growing reconstruction on the CPU."""

    def make(
        source: Any, emc: dict[str, Any] | None = None, select: Any = None, **settings: Any
    ) -> OnlineEmc:
        given = {"diameter_A": DIAMETER_A, "deterministic": True, **(emc or {})}
        defaults = {"first_hits": 60, "round_hits": 120}
        return OnlineEmc(
            source, EmcSettings(**given), OnlineSettings(**{**defaults, **settings}), seed=1, device="cpu",
            select=select,
        )  # fmt: skip

    return make


@pytest.fixture
def to_the_end() -> Callable[..., list[OnlineStep]]:
    """Carries a growing reconstruction out; after each look so many more hits arrive."""

    def carry_out(method: OnlineEmc, at_once: int = 40) -> list[OnlineStep]:
        steps, source = [], method.source
        while not method.finished:
            source.arrive(at_once)
            method.look(source.arrived == len(source._all))
            if method.has_work:
                steps.append(method.step())
        return steps

    return carry_out
