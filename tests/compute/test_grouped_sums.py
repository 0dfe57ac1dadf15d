"""Sums by group, against a loop over the groups."""

import numpy as np
import pytest

from orienteer.compute.arrays import to_device
from orienteer.compute.grouped_sums import Groups
from orienteer.errors import OrienteerError

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("n_groups", [1, 7, 300])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_are_those_of_a_loop(device, n_groups, dtype):
    draw = np.random.default_rng(3)
    # The last group stays empty, the first has most members: more than one block of threads takes.
    index = np.minimum(draw.integers(0, 3 * n_groups, size=(25, 40, 50)), max(n_groups - 2, 0))
    a, b = draw.normal(size=(2, *index.shape)).astype(dtype)
    groups = Groups(to_device(index, device), n_groups)
    found = groups.sums(to_device(a, device), to_device(b, device))
    expected = [[x[index == g].sum(dtype=np.float64) for x in (a, b)] for g in range(n_groups)]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-10)
    np.testing.assert_array_equal(groups.n_members, [(index == g).sum() for g in range(n_groups)])


@pytest.mark.parametrize("device", DEVICES)
def test_strided_arrays_are_summed_by_place(device):
    index = np.arange(24).reshape(2, 3, 4) % 3
    values = np.random.default_rng(1).normal(size=(2, 3, 4, 2))
    found = Groups(to_device(index, device), 3).sums(to_device(values, device)[..., 1])
    np.testing.assert_allclose(found[:, 0], [values[..., 1][index == g].sum() for g in range(3)])


@pytest.mark.gpu
def test_the_gpu_gives_the_same_bits_every_time():
    import cupy

    draw = cupy.random.default_rng(2)
    index, values = draw.integers(0, 50, 1 << 20), draw.random(1 << 20)
    first = Groups(index, 50).sums(values)
    for _ in range(5):
        np.testing.assert_array_equal(Groups(index, 50).sums(values), first)


def test_an_array_of_another_shape_is_refused():
    with pytest.raises(OrienteerError, match="cannot be summed"):
        Groups(np.zeros(5, int), 1).sums(np.zeros(4))
