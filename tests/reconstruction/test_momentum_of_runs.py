"""Faint runs gather momentum, and go on with it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from orienteer.particle.named_bodies import random_blobs
from orienteer.reconstruction.emc import Emc


@pytest.fixture
def run_of(simulated: Callable[..., Any]) -> Callable[[float], Emc]:
    def make(photons: float) -> Emc:
        made = simulated(random_blobs(200.0, 20, 5), 14, 65.0, frames=60, photons_per_frame=photons)
        return made.emc(level=3, iterations=14, reject_junk=False)

    return make


def test_a_faint_run_goes_on_to_the_bit_with_the_step_before(run_of: Callable[[float], Emc]) -> None:
    run, other = run_of(15.0), run_of(15.0)
    states = []
    while not run.finished:
        run.step()
        states.append(run.state())
    moving = [i for i, state in enumerate(states) if state["momentum"].size]
    assert moving
    assert moving[0] + 1 < len(states)
    other.restore(states[moving[0]])
    other.step()
    for name in ("models", "full", "momentum", "frames/log_evidence"):
        np.testing.assert_array_equal(other.state()[name], states[moving[0] + 1][name], err_msg=name)


def test_frames_that_know_their_pose_need_none(run_of: Callable[[float], Emc]) -> None:
    run = run_of(20_000.0)
    while not run.finished:
        run.step()
        assert not run.state()["momentum"].size
