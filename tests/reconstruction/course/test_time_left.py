"""The estimate of the time that is left."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from orienteer.reconstruction.course.course import Course
from orienteer.reconstruction.course.ladder import ladder
from orienteer.reconstruction.course.time_left import seconds_left
from orienteer.reconstruction.frames.pixels import pixel_table
from orienteer.reconstruction.orienting.temperature import Annealing


def estimate(tiny: Any, course: Course, **changes: Any) -> float:
    pixels = pixel_table(tiny.source())
    stages = ladder(pixels.edge_inv_A(0), 2000.0, 0)
    annealing = Annealing(round(stages[course.stage].n_poses()), is_first=course.stage == 0)
    for name, value in changes.items():
        setattr(annealing, name, value)
    course.n_stages = len(stages)
    return seconds_left(2.0, course, annealing, stages, pixels, 1, 9.0)


def test_it_falls_as_the_run_goes_on_and_ends_at_nothing(tiny: Any) -> None:
    first = estimate(tiny, Course(0, 1, 400))
    cooled = estimate(tiny, Course(0, 1, 400), target=8.0)
    assert first > cooled > 0
    assert estimate(tiny, Course(0, 1, 400, finished=True)) == 0


def test_later_stages_with_more_poses_take_longer(tiny: Any) -> None:
    """At the last stage nothing but its own iterations is left."""
    pixels = pixel_table(tiny.source())
    n = len(ladder(pixels.edge_inv_A(0), 2000.0, 0))
    last = estimate(tiny, Course(0, 1, 400, stage=n - 1), iterations_done=2)
    assert last == pytest.approx(2 * 2.0)
    assert estimate(tiny, Course(0, 1, 400), target=8.0) > 10 * last


def test_a_stage_whose_changes_hardly_shrink_goes_on_for_long(tiny: Any) -> None:
    """A change of 0.01 that shrinks to 0.99 each time is below a tenth in all after 230 more."""
    course = Course(0, 1, 4000, last_change=0.01, log_ratio=np.log(0.99))
    slow = estimate(tiny, course, target=8.0, iterations_done=20)
    course = Course(0, 1, 4000, last_change=0.01, log_ratio=np.log(0.5))
    quick = estimate(tiny, course, target=8.0, iterations_done=20)
    # The stage is given up 60 iterations after annealing; the other has little to come, and ends.
    assert slow - quick == pytest.approx(2.0 * (60 - 20 - 1))
    course = Course(0, 1, 4000, last_change=0.01, log_ratio=np.log(0.9))
    # 0.01 * 0.9 / (1 - 0.9) is below 0.1 already.
    assert estimate(tiny, course, target=8.0, iterations_done=20) == quick


def test_more_starts_take_longer_and_a_limit_bounds_it(tiny: Any) -> None:
    once, thrice = (estimate(tiny, Course(0, n, 4000)) for n in (1, 3))
    assert thrice > once
    pixels = pixel_table(tiny.source())
    n = len(ladder(pixels.edge_inv_A(0), 2000.0, 0))
    limited = estimate(tiny, Course(0, 1, 3, iteration=2, stage=n - 1))
    assert limited == pytest.approx(2.0)


def test_states_that_are_yet_to_begin_take_their_time(tiny: Any) -> None:
    pixels = pixel_table(tiny.source())
    stages = ladder(pixels.edge_inv_A(0), 2000.0, 0)
    course = Course(len(stages), 1, 4000, grows=True)
    poses = round(stages[0].n_poses())

    def left(n_models: int, most_models: int) -> float:
        annealing = Annealing(poses, is_first=n_models == 1, after_split=n_models > 1)
        return seconds_left(2.0 * n_models, course, annealing, stages, pixels, 1, 9.0, n_models, most_models)

    assert left(1, 3) > 2 * left(1, 1)
    # An iteration of two models takes twice as long, and nothing else is different: what is left falls.
    assert left(1, 3) > left(2, 3) > left(3, 3)
    course.grows = False
    assert left(1, 3) == left(1, 1)


def test_a_stage_in_two_passes_costs_its_coarse_grid(tiny: Any) -> None:
    """All frames meet all poses of half as many divisions; of the fine grid each meets a few."""
    pixels = pixel_table(tiny.source())
    first = replace(ladder(pixels.edge_inv_A(0), 2000.0, 0)[0], level=12)
    course, annealing = Course(2, 1, 4000), Annealing(8, is_first=True)
    here, at_once, in_two, coarse = (
        seconds_left(1.0, course, annealing, [first, *later], pixels, 1, 9.0)
        for later in ([], [first], [replace(first, in_two_passes=True)], [replace(first, level=6)])
    )
    assert in_two - here == pytest.approx(coarse - here)
    assert at_once - here > 7 * (in_two - here) > 0
