"""Volume: where its voxels lie, and what it refuses."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orienteer.errors import OrienteerError
from orienteer.volume.volume import Volume


@given(st.tuples(*[st.integers(1, 6)] * 3), st.tuples(*[st.floats(0.01, 10)] * 3))
@settings(max_examples=30, deadline=None)
def test_the_centre_voxel_lies_at_zero_for_even_and_odd_sizes(shape, voxel_size) -> None:
    volume = Volume(np.zeros(shape), voxel_size)
    for axis, index, step in zip(volume.axes(), volume.centre_index, volume.voxel_size, strict=True):
        assert axis[index] == pytest.approx(0, abs=1e-12)
        assert np.diff(axis) == pytest.approx(step)
    assert volume.shape == shape


def test_values_become_float32_and_one_voxel_size_becomes_three() -> None:
    volume = Volume(np.arange(24).reshape(2, 3, 4), 1.5, "reciprocal")
    assert volume.values.dtype == np.float32
    assert volume.voxel_size == (1.5, 1.5, 1.5)
    assert volume.unit == "1/A"


def test_an_origin_moves_the_axes() -> None:
    volume = Volume(np.zeros((2, 2, 2)), 2.0, origin=(10, 20, 30))
    assert volume.axes()[1].tolist() == [20, 22]


def test_missing_voxels_are_kept_and_counted() -> None:
    values = np.zeros((3, 3, 3))
    values[0, 1, 2] = np.nan
    volume = Volume(values, 1.0)
    assert volume.n_missing == 1
    assert "1 voxel missing" in repr(volume)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"values": np.zeros((3, 3))}, "three axes"),
        ({"values": np.zeros((3, 0, 3))}, "at least one voxel"),
        ({"values": np.full((2, 2, 2), np.inf)}, "infinite"),
        ({"values": np.full((2, 2, 2), 1e300)}, "too large"),
        ({"values": np.zeros((2, 2, 2), complex)}, "real numbers"),
        ({"voxel_size": 0}, "not positive"),
        ({"voxel_size": (1, 2)}, "one number or three"),
        ({"voxel_size": np.nan}, "not finite"),
        ({"voxel_size": "big"}, "one number or three"),
        ({"space": "momentum"}, "'real' or 'reciprocal'"),
        ({"origin": (0, 0)}, "one number or three"),
    ],
)
def test_what_is_no_volume_is_refused(arguments, reason) -> None:
    with pytest.raises(OrienteerError, match=reason):
        Volume(**{"values": np.zeros((2, 2, 2)), "voxel_size": 1.0, **arguments})


def test_other_values_on_the_same_grid_must_fit() -> None:
    volume = Volume(np.zeros((2, 2, 2)), 1.0, name="a")
    assert volume.with_values(np.ones((2, 2, 2))).name == "a"
    with pytest.raises(OrienteerError, match="do not fit"):
        volume.with_values(np.ones((2, 2, 3)))


@pytest.mark.gpu
def test_values_may_live_on_the_gpu_and_are_written_from_there(tmp_path) -> None:
    import cupy

    from orienteer.volume.mrc import read_mrc, write_mrc

    values = cupy.arange(24, dtype=cupy.float64).reshape(2, 3, 4)
    volume = Volume(values, 1.5)
    assert isinstance(volume.values, cupy.ndarray)
    assert volume.values.dtype == np.float32
    assert volume.n_missing == 0
    write_mrc(tmp_path / "map.mrc", volume)
    assert np.array_equal(read_mrc(tmp_path / "map.mrc").values, values.get())
    with pytest.raises(OrienteerError, match="infinite"):
        Volume(values / 0, 1.0)
