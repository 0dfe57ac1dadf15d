"""An intensity is laid out for the FFT, and what cannot be phased is refused in a sentence."""

from dataclasses import replace

import numpy as np
import pytest

from orienteer.errors import OrienteerError
from orienteer.phase.data import phasing_data
from orienteer.phase.half_grid import frequencies
from orienteer.phase.settings import PhaseSettings
from orienteer.volume.volume import Volume


@pytest.mark.parametrize("even", [False, True])
def test_amplitudes_lie_where_the_fft_has_them(body, even) -> None:
    made = body(even=even)
    data = phasing_data(made.intensity, device="cpu")
    voxel, n_given = made.intensity.voxel_size[0], made.intensity.shape[0]
    whole, half = frequencies(data.n)
    assert data.n >= n_given
    assert data.voxel_A == pytest.approx(1 / (data.n * voxel))
    amplitude = np.abs(made.transform)
    for i, j, k in [(0, 0, 3), (2, data.n - 4, 5), (data.n - 1, 1, 0), (data.n - 5, data.n - 6, 2)]:
        place = tuple(int(f) + n_given // 2 for f in (whole[i], whole[j], half[k]))
        assert data.measured[i, j, k]
        assert data.amplitudes[i, j, k] == pytest.approx(amplitude[place], rel=1e-4)


def test_what_was_not_measured_is_free_and_the_hole_is_bounded(body) -> None:
    made = body(hole=2.0)
    data = phasing_data(made.intensity, device="cpu")
    assert not data.measured[0, 0, 0]
    bound = -data.target[0, 0, 0]
    assert np.abs(made.transform).max() < bound < 20 * np.abs(made.transform).max()
    corner = data.n // 2
    assert data.target[corner, corner, -1] == -np.inf
    seen = data.measured & ~data.held_out
    assert (data.target[seen] == data.amplitudes[seen]).all()
    assert (data.target[~seen] < 0).all()


@pytest.mark.parametrize(("told", "given"), [(70.0, 0.0), (70.0, 60.0), ("large", 0.0), (-1.0, 0.0)])
def test_a_diameter_that_comes_with_the_intensity_is_taken_unless_another_is_given(body, told, given) -> None:
    intensity = replace(body().intensity, metadata={"diameter_A": told})
    data = phasing_data(intensity, PhaseSettings(diameter_A=given), device="cpu")
    found = phasing_data(replace(intensity, metadata={}), device="cpu").diameter_A
    expected = given or (70.0 if told == 70.0 else found)
    assert data.diameter_A == expected
    assert data.autocorrelation.is_found == (expected == found)


def test_all_voxels_come_back_for_the_polish(body) -> None:
    data = phasing_data(body(hole=1.0).intensity, device="cpu")
    everything = data.with_all_voxels()
    assert (everything.target[data.measured] == data.amplitudes[data.measured]).all()
    assert everything.target[0, 0, 0] == data.target[0, 0, 0]
    assert not everything.held_out.any()


def test_mates_are_averaged_and_stand_for_each_other(body) -> None:
    made = body()
    values = made.intensity.values.copy()
    centre = values.shape[0] // 2
    values[centre + 3, centre, centre] *= 1.2
    values[centre - 3, centre, centre] *= 0.8
    values[centre, centre + 4, centre] = np.nan
    data = phasing_data(made.intensity.with_values(values), device="cpu")
    expected = np.abs(made.transform[centre + 3, centre, centre])
    assert data.amplitudes[3, 0, 0] == pytest.approx(expected, rel=1e-4)
    assert data.amplitudes[data.n - 3, 0, 0] == pytest.approx(expected, rel=1e-4)
    assert data.measured[0, 4, 0]


def test_a_resolution_makes_a_smaller_box_of_larger_voxels(body) -> None:
    made = body()
    whole = phasing_data(made.intensity, device="cpu")
    coarse = phasing_data(made.intensity, PhaseSettings(resolution_A=20.0), device="cpu")
    assert coarse.n < whole.n
    assert coarse.box_A == pytest.approx(whole.box_A)
    assert coarse.edge_A >= 20.0
    assert whole.edge_A == pytest.approx(100 / 7, rel=0.05)


def cube(n: int = 21) -> np.ndarray:
    return np.ones((n, n, n), np.float32)


@pytest.mark.parametrize(
    ("volume", "why"),
    [
        (Volume(0 * cube(), 0.01, "reciprocal"), "nowhere positive"),
        (Volume(-cube(), 0.01, "reciprocal"), "nowhere positive"),
        (Volume(np.nan * cube(), 0.01, "reciprocal"), "all voxels of the intensity are NaN"),
        (Volume(cube()[:, :, :20], 0.01, "reciprocal"), "needs a cube of voxels, not 21 x 21 x 20"),
        (Volume(cube(), 0.01, "real"), "in real space"),
        (Volume(cube(), (0.01, 0.01, 0.02), "reciprocal"), "needs cubic voxels"),
        (Volume(cube(9), 0.01, "reciprocal"), "too small to phase"),
        (Volume(cube(), 0.01, "reciprocal", origin=0.0), "q = 0 must lie at voxel 10"),
    ],
)
def test_what_cannot_be_phased_is_refused_in_a_sentence(volume: Volume, why: str) -> None:
    with pytest.raises(OrienteerError, match=why):
        phasing_data(volume, device="cpu")


def test_few_voxels_a_coarse_limit_and_a_small_box_are_refused(body) -> None:
    made = body()
    values = np.full(made.intensity.shape, np.nan, np.float32)
    values[10, 10, :10] = 1
    with pytest.raises(OrienteerError, match="too few to phase"):
        phasing_data(made.intensity.with_values(values), device="cpu")
    with pytest.raises(OrienteerError, match="only 3 voxels are left"):
        phasing_data(made.intensity, PhaseSettings(resolution_A=80.0), device="cpu")
    with pytest.raises(OrienteerError, match="too coarse"):
        phasing_data(made.intensity, PhaseSettings(diameter_A=200.0), device="cpu")


def test_an_intensity_without_speckles_asks_for_the_diameter() -> None:
    with pytest.raises(OrienteerError, match="no speckles") as error:
        phasing_data(Volume(cube(), 0.01, "reciprocal"), device="cpu")
    assert "diameter" in error.value.hint
