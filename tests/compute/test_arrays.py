"""Devices and arrays: the array picks the library, and a missing GPU is said in one sentence."""

from typing import Any

import numpy as np
import pytest

from orienteer.compute import arrays
from orienteer.errors import DeviceError


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "import_cupy", lambda: None)


@pytest.mark.usefixtures("no_gpu")
def test_auto_falls_back_to_the_cpu_and_cuda_is_refused_with_a_hint() -> None:
    assert arrays.choose_device("auto") == "cpu"
    with pytest.raises(DeviceError, match="no CUDA device") as caught:
        arrays.choose_device("cuda")
    assert "orienteer doctor" in caught.value.hint


@pytest.mark.parametrize("device", ["x", "", None, 0])
def test_a_device_that_nobody_knows_is_refused_with_the_known_ones(device: Any) -> None:
    with pytest.raises(DeviceError, match="there is no device") as caught:
        arrays.choose_device(device)
    assert "auto, cpu, cuda" in caught.value.hint


def test_to_numpy_and_to_device_do_not_copy_on_the_cpu() -> None:
    x = np.arange(3)
    assert arrays.to_numpy(x) is x
    assert arrays.to_device(x, "cpu") is x
    assert not arrays.is_on_gpu(x)


@pytest.mark.gpu
def test_cupy_arrays_choose_cupy_and_come_back_equal() -> None:
    x = arrays.to_device(np.arange(3), "cuda")
    assert arrays.is_on_gpu(x)
    assert "cupy" in arrays.array_namespace(x).__name__
    np.testing.assert_array_equal(arrays.to_numpy(x), [0, 1, 2])
