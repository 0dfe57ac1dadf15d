"""The size of the particle from its speckles."""

from typing import Any

import pytest

from orienteer.particle.named_bodies import random_blobs
from orienteer.reconstruction.frame_store import FrameStore
from orienteer.reconstruction.pixels import pixel_table
from orienteer.reconstruction.speckle import choose_diameter


def found_A(data: Any, given_A: float = 0.0) -> tuple[float, str]:
    source = data.source()
    return choose_diameter(FrameStore(source, pixel_table(source)), given_A)


@pytest.mark.parametrize("diameter_A", [120.0, 200.0])
def test_the_size_is_found_to_a_third_or_so(simulated: Any, diameter_A: float) -> None:
    data = simulated(random_blobs(diameter_A, 20, 5), 40, 40.0, frames=300, photons_per_frame=2000)
    found, remark = found_A(data)
    assert 0.6 * diameter_A < found < 1.4 * diameter_A
    assert not remark


def test_the_brightness_of_shots_does_not_change_the_size(simulated: Any) -> None:
    body = random_blobs(200.0, 20, 5)
    constant, jittered = (
        found_A(simulated(body, 40, 40.0, frames=300, photons_per_frame=2000, fluence_jitter=jitter))[0]
        for jitter in (0.0, 0.8)
    )
    assert jittered == pytest.approx(constant, rel=0.2)


def test_what_the_user_says_holds(tiny: Any) -> None:
    assert found_A(tiny, 123.0) == (123.0, "")
