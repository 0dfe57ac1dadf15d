"""The turn between two models by the frames that both have oriented."""

import numpy as np
import pytest

from orienteer.orientation.distance import angular_distance_deg
from orienteer.orientation.point_group import as_point_group
from orienteer.orientation.quaternion import compose, from_axis_angle, inverse, random_uniform
from orienteer.validate.relative_turn import turn_between, turn_of_tables

TURN = random_uniform(1, 5)[0]


def poses(n: int, error_deg: float, wrong: float = 0.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Poses in two models, of which the second is turned by TURN to give the first; some are made up."""
    rng = np.random.default_rng(seed)
    second = random_uniform(n, seed)
    errors = np.array([from_axis_angle(rng.normal(size=3), error_deg * rng.normal()) for _ in range(n)])
    first = compose(errors, compose(second, inverse(TURN)))
    made_up = rng.random(n) < wrong
    return np.where(made_up[:, None], random_uniform(n, seed + 1), first), second


def test_the_turn_is_found_better_than_any_frame_knows_it() -> None:
    first, second = poses(300, 1.5, wrong=0.5)
    found = turn_between(first, second, 3.0)
    assert found is not None
    assert angular_distance_deg(found, TURN) < 0.5


@pytest.mark.parametrize("n", [0, 5, 400, 5000])
def test_made_up_poses_name_no_turn(n: int) -> None:
    assert turn_between(random_uniform(n, 1), random_uniform(n, 2), 3.0) is None


def test_of_a_symmetric_particle_one_of_the_equivalent_turns_is_found() -> None:
    group = as_point_group("D7")
    first, second = poses(400, 0.5)
    equivalent = group.quaternions[np.random.default_rng(1).integers(0, group.order, 400)]
    found = turn_between(compose(first, equivalent), second, 3.0)
    assert found is not None
    candidates = [compose(inverse(one), TURN) for one in group.quaternions]
    assert min(float(angular_distance_deg(found, one)) for one in candidates) < 0.5


def test_tables_are_joined_by_event_and_leave_out_what_shows_something_else() -> None:
    first, second = poses(200, 0.5)
    order = np.random.default_rng(3).permutation(200)
    junk = np.arange(200) % 4 == 0
    first[junk] = TURN  # all of which would name turns of their own
    one = {"event_id": np.arange(200), "quaternion": first, "model": np.where(junk, -1, 0)}
    other = {"event_id": order, "quaternion": second[order], "model": np.zeros(200, int)}
    found = turn_of_tables(one, other, 3.0)
    assert found is not None
    assert angular_distance_deg(found, TURN) < 0.3
