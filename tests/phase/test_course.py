"""The volume of supports on their way: soon small, with room at first, the last one long before the end."""

from typing import Any

import numpy as np
import pytest

from orienteer.phase.course import LARGEST_SUPPORT, Course
from orienteer.phase.data import phasing_data
from orienteer.phase.settings import PhaseSettings


@pytest.fixture
def course(body: Any) -> Course:
    settings = PhaseSettings(diameter_A=100.0, background=False)
    return Course.of(phasing_data(body(speckles=4.0).intensity, settings, device="cpu"), settings)


def volumes_on_the_way(course: Course, last: float, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    """Volumes of the support of a start at 101 moments of the exploring."""
    seen: list[float] = []
    monkeypatch.setattr(Course, "renew", lambda self, state, volume, *_: seen.append(float(volume[0])))
    state = course.start([0], np.array([last]), seed=0)
    for moment in np.linspace(0, 1, 101):
        course.look(state, float(moment), 1)
    return np.array(seen)


def test_supports_have_room_before_they_close(course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    last = course.first_volume / 3
    seen = volumes_on_the_way(course, last, monkeypatch)
    assert seen[0] == pytest.approx(course.first_volume)
    assert (np.diff(seen) <= 1e-6 * last).all()
    # In the last volume from the beginning, starts get stuck; without time in it, clouds in cavities stay.
    assert (seen[20:31] > 1.1 * last).all()
    assert seen[60:] == pytest.approx(last)


def test_room_is_not_more_than_amplitudes_can_tell(course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    most = LARGEST_SUPPORT * course.data.n**3
    seen = volumes_on_the_way(course, 0.95 * most, monkeypatch)
    assert (seen[20:] <= most * (1 + 1e-9)).all()
