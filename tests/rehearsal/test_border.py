"""Between arrays of the host and of the device nothing passes by itself."""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from orienteer.compute.arrays import array_namespace, import_cupy, is_on_gpu

pytestmark = pytest.mark.gpu

MIXTURES: list[Callable[[Any, Any, Any], Any]] = [
    lambda cupy, far, near: far + near,
    lambda cupy, far, near: near * far,
    lambda cupy, far, near: far < near,
    lambda cupy, far, near: operator.iadd(far, near),
    lambda cupy, far, near: operator.iadd(near, far),
    lambda cupy, far, near: far @ near,
    lambda cupy, far, near: np.asarray(far),
    lambda cupy, far, near: np.add(near, far),
    lambda cupy, far, near: np.concatenate([near, far]),
    lambda cupy, far, near: cupy.concatenate([far, near]),
    lambda cupy, far, near: cupy.where(far > 0, far, near),
    lambda cupy, far, near: cupy.maximum(far, near),
    lambda cupy, far, near: near[far.astype(int)],
    lambda cupy, far, near: cupy.maximum.at(far, cupy.arange(4), near),
]


@pytest.mark.parametrize("mix", MIXTURES)
def test_arrays_of_host_and_device_are_not_mixed(mix: Callable[[Any, Any, Any], Any]) -> None:
    cupy = import_cupy()
    near = np.arange(4.0)
    with pytest.raises((TypeError, IndexError)):
        mix(cupy, cupy.asarray(near), near)


def test_an_array_of_the_host_does_not_fill_one_of_the_device() -> None:
    cupy: Any = import_cupy()
    far = cupy.zeros(4)
    with pytest.raises(ValueError, match="non-scalar"):
        far[...] = np.arange(4.0)
    far[...] = np.float64(2)
    far[1:3] = cupy.ones(2)
    assert far.get().tolist() == [2, 1, 1, 2]


def test_a_number_of_the_device_stays_there_until_it_is_asked_for() -> None:
    cupy: Any = import_cupy()
    far = cupy.arange(4, dtype=np.float32)
    for found in (far.sum(), far[2], far.max(), cupy.count_nonzero(far), far @ far, np.sum(far)):
        assert isinstance(found, cupy.ndarray)
        assert found.shape == ()
    assert (float(far.sum()), far[2].item(), bool(far.any()), int(far.argmax())) == (6, 2, True, 3)
    assert (np.float32(2) * far).dtype == (2 * far).dtype == np.float32
    with pytest.raises(TypeError):
        range(far.argmax())


def test_what_comes_back_is_a_copy() -> None:
    cupy: Any = import_cupy()
    far = cupy.arange(4)
    here = far.get()
    far[0] = 7
    assert here[0] == 0
    part = far[1:]
    part += 1
    assert far.get().tolist() == [7, 2, 3, 4]


def test_the_array_api_and_the_package_know_the_arrays() -> None:
    cupy: Any = import_cupy()
    far = cupy.arange(3)
    assert array_namespace(far).__name__ == "array_api_compat.cupy"
    assert is_on_gpu(far)


def test_memory_of_another_layout_is_not_set_from_the_host() -> None:
    cupy: Any = import_cupy()
    with pytest.raises(RuntimeError, match="non-contiguous"):
        cupy.zeros((4, 4))[:, :2].set(np.zeros((4, 2)))
    with pytest.raises(TypeError):
        cupy.zeros(4).set(np.zeros(4, np.float32))


@pytest.mark.usefixtures("only_rehearsed")
def test_what_cupy_lacks_is_lacking() -> None:
    cupy: Any = import_cupy()
    for name in ("insert", "nanpercentile", "put_mask", "histogram_bin_edges"):
        assert not hasattr(cupy, name)
    far = cupy.arange(4)
    with pytest.raises(TypeError, match="where"):
        cupy.sum(far, where=far > 1)
    with pytest.raises(TypeError, match="initial"):
        far.max(initial=0)
    with pytest.raises(ValueError, match="repeats"):
        cupy.repeat(far, far)
    with pytest.raises(NotImplementedError):
        cupy.multiply.at(far, 0, 2)


@pytest.mark.usefixtures("only_rehearsed")
def test_new_memory_shows_who_reads_it_before_writing() -> None:
    cupy: Any = import_cupy()
    assert np.isnan(cupy.empty(3, np.float32).get()).all()
    assert (cupy.empty(3, np.int32).get() == -1).all()
