"""Blind reconstructions: random starts, nothing known but the frames."""

from typing import Any

import numpy as np
import pytest

from orienteer.orientation.distance import angular_distance_deg
from orienteer.orientation.quaternion import compose, inverse
from orienteer.particle.named_bodies import random_blobs


@pytest.mark.timeout(600)
def test_an_object_without_symmetry_is_found(simulated: Any) -> None:
    data = simulated(random_blobs(200.0, 20, 5), 20, 50.0, frames=500, photons_per_frame=1000)
    emc = data.emc(level=4)
    steps = []
    while not emc.finished:
        steps.append(emc.step())
    aligned = data.aligned(emc, last_shell=16)
    correlation = aligned.shells.correlation
    # To here a merge with the true orientations would show the speckles; beyond, photons are too few.
    signal = slice(2, 16)
    assert correlation[signal].min() > 0.85
    assert correlation[signal].mean() > 0.95
    # The halves knew it without the truth.
    found = np.array(steps[-1].radial["half_correlation"])
    assert found[signal].mean() > 0.85
    assert emc.reason == "An iteration at full resolution gains nothing any more."
    assert steps[-1].log_likelihood > steps[0].log_likelihood + 40
    assert steps[-1].sentinel_agreement_deg < 4
    # After one turn for all, frames lie within a step of the grid of their true orientations.
    turned = compose(emc.orientations()["quaternion"], inverse(aligned.quaternion))
    errors = angular_distance_deg(turned, data.patterns.columns["truth_orientation"], flat_ewald=True)
    assert np.median(errors) < 12.0  # neighbours on this grid are 17 degrees apart
