"""The axes of a symmetry are found however they lie, in an intensity with noise as well."""

import numpy as np
import pytest

from orienteer.compare.symmetrising import mean_over_group
from orienteer.compare.symmetry_axes import find_axes
from orienteer.compare.turning import rotate_volume
from orienteer.orientation.point_group import PointGroup
from orienteer.orientation.quaternion import compose, inverse, random_uniform
from orienteer.reconstruction.model.relative_intensity import random_start
from orienteer.reconstruction.model.symmetry import symmetric_start

N, SPECKLE, LAST = 41, 3.0, 16


def speckles(group: str, seed: int = 3) -> np.ndarray:
    return symmetric_start(random_start(N, seed, SPECKLE), PointGroup(group))


@pytest.mark.parametrize("name", ["I", "O", "T", "D3", "C5"])
def test_axes_that_are_turned_are_found(name: str) -> None:
    group, turn = PointGroup(name), random_uniform(1, 5)[0]
    turned = np.nan_to_num(rotate_volume(speckles(name), turn), nan=1.0)
    found = find_axes(turned, group, first_shell=4, last_shell=LAST)
    assert found.correlation > 0.9
    # The rotations of the group, turned in both ways, are the same set.
    ours, theirs = (compose(compose(q, group.quaternions), inverse(q)) for q in (found.quaternion, turn))
    nearest = np.abs(ours @ theirs.T).max(axis=1)
    assert np.degrees(2 * np.arccos(np.clip(nearest, 0, 1))).max() < 1.5


def test_an_intensity_turned_back_has_the_symmetry_about_the_axes_of_its_definition() -> None:
    group, turn = PointGroup("I"), random_uniform(1, 6)[0]
    turned = np.nan_to_num(rotate_volume(speckles("I"), turn), nan=1.0)
    found = find_axes(turned, group, first_shell=4, last_shell=LAST)
    back = np.nan_to_num(rotate_volume(turned, inverse(found.quaternion)), nan=1.0)
    x = np.arange(N) - N // 2
    inside = np.sqrt(x[:, None, None] ** 2 + x[:, None] ** 2 + x**2) < LAST
    mean = mean_over_group(back - 1, group)
    assert np.corrcoef(mean[inside], (back - 1)[inside])[0, 1] > 0.97


def test_noise_outweighing_the_symmetric_part_leaves_the_axes_where_they_are() -> None:
    group, turn = PointGroup("I"), random_uniform(1, 7)[0]
    turned = np.nan_to_num(rotate_volume(speckles("I"), turn), nan=1.0) - 1
    noise = random_start(N, 4, SPECKLE) - 1
    noisy = turned + 1.3 * noise * turned.std() / noise.std()
    found = find_axes(noisy, group, first_shell=4, last_shell=LAST)
    ours, theirs = (compose(compose(q, group.quaternions), inverse(q)) for q in (found.quaternion, turn))
    assert np.degrees(2 * np.arccos(np.clip(np.abs(ours @ theirs.T).max(axis=1), 0, 1))).max() < 4
    assert 0.2 < found.correlation < 0.6


def test_an_object_without_symmetry_looks_like_itself_about_no_axes() -> None:
    values = random_start(N, 8, SPECKLE)
    assert find_axes(values, PointGroup("I"), first_shell=4, last_shell=LAST).correlation < 0.2
    assert find_axes(values, PointGroup("T"), first_shell=4, last_shell=LAST).correlation < 0.35
