"""The size of the particle from its frames, whatever their brightness."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from orienteer.detector.masks import PixelUse
from orienteer.particle.named_bodies import random_blobs, two_domains, virus
from orienteer.reconstruction.frames.frame_store import FrameStore
from orienteer.reconstruction.frames.pixels import pixel_table
from orienteer.reconstruction.model.speckle import choose_diameter

BODIES = {"blobs": random_blobs(200.0, 20, 5), "two domains": two_domains(200.0), "virus": virus(200.0)}


def found_A(data: Any, given_A: float = 0.0) -> tuple[float, str]:
    source = data.source()
    return choose_diameter(FrameStore(source, pixel_table(source)), given_A)


def with_beam_stop(data: Any, radius_inv_A: float) -> Any:
    """The data without the pixels nearer to the centre than this."""
    source = data.source()
    length = pixel_table(source).length_inv_A
    mask = np.where(length < radius_inv_A, PixelUse.NEVER, data.detector.mask)
    return replace(data, detector=data.detector.with_mask(mask))


@pytest.mark.parametrize("body", list(BODIES))
@pytest.mark.parametrize("photons", [100, 100_000])
def test_the_size_is_found_however_bright_the_frames(simulated: Any, body: str, photons: int) -> None:
    data = simulated(BODIES[body], 40, 34.0, frames=200, photons_per_frame=photons)
    found, remark = found_A(data)
    assert 0.8 * 200 < found < 1.2 * 200
    assert not remark


@pytest.mark.parametrize("body", list(BODIES))
def test_the_size_is_found_behind_a_beam_stop_of_a_speckle(simulated: Any, body: str) -> None:
    data = simulated(BODIES[body], 48, 28.0, frames=400, photons_per_frame=20_000)
    found, remark = found_A(with_beam_stop(data, 1.0 / 200))
    assert 0.75 * 200 < found < 1.3 * 200
    assert not remark


@pytest.mark.parametrize("photons", [1000, 100_000])
@pytest.mark.parametrize("body", ["blobs", "two domains"])
def test_the_size_is_found_from_speckles_behind_a_beam_stop(simulated: Any, body: str, photons: int) -> None:
    data = simulated(BODIES[body], 40, 34.0, frames=400, photons_per_frame=photons)
    found, remark = found_A(with_beam_stop(data, 1.5 / 200))
    assert 0.75 * 200 < found < 1.3 * 200
    assert not remark


def test_the_brightness_of_shots_does_not_change_the_size(simulated: Any) -> None:
    body = random_blobs(200.0, 20, 5)
    constant, jittered = (
        simulated(body, 40, 40.0, frames=300, photons_per_frame=2000, fluence_jitter=jitter)
        for jitter in (0.0, 0.8)
    )
    assert found_A(jittered)[0] == pytest.approx(found_A(constant)[0], rel=0.1)
    hidden = [with_beam_stop(data, 1.5 / 200) for data in (constant, jittered)]
    assert found_A(hidden[1])[0] == pytest.approx(found_A(hidden[0])[0], rel=0.2)


def test_frames_without_speckles_tell_no_size(simulated: Any) -> None:
    """Photons that fall anywhere, and no centre to look at."""
    data = with_beam_stop(
        simulated(random_blobs(200.0, 20, 5), 40, 40.0, frames=50, photons_per_frame=50), 0.01
    )
    noise = np.random.default_rng(1).poisson(0.03, size=(50, 40 * 40)).astype(np.uint16)
    source = data.source(frames=noise)
    _, remark = choose_diameter(FrameStore(source, pixel_table(source)), 0.0)
    assert "cannot be measured" in remark


def test_what_the_user_says_holds(tiny: Any) -> None:
    assert found_A(tiny, 123.0) == (123.0, "")
