"""The volume of the support comes from held-out voxels, even where the first support is too small."""

import numpy as np
import pytest

from orienteer.phase.course import Course
from orienteer.phase.data import phasing_data
from orienteer.phase.settings import PhaseSettings
from orienteer.phase.support_volume import choose_volume


@pytest.mark.parametrize("share", [None, 1.1])
def test_the_choice_is_the_smallest_volume_that_costs_nothing(body, share) -> None:
    made = body(speckles=5.0, noise=0.05)
    data = phasing_data(made.intensity, device="cpu")
    course = Course.of(data, PhaseSettings())
    if share is not None:  # a first support that the blurred body does not fit into
        course = course.of_volume(share * made.volume_A3 / data.voxel_A**3)
    told: list[tuple[int, int]] = []
    choice = choose_volume(course, 0, lambda *step: told.append(step))
    assert 1.0 < choice.volume * data.voxel_A**3 / made.volume_A3 < 2.0
    place = int(np.flatnonzero(choice.volumes == choice.volume)[0])
    assert choice.score[place] > choice.score.max() - 0.1
    assert choice.score[place + 1 :].max() < choice.score[place]
    assert all(0 < done <= total for done, total in told)
