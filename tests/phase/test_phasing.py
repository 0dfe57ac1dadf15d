"""From an intensity to a density, unattended: the right one, from nearly every start, whatever is missing."""

import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from orienteer.compute.arrays import to_numpy
from orienteer.errors import OrienteerError
from orienteer.orientation.point_group import as_point_group
from orienteer.particle.structure import blobs as gaussian_balls
from orienteer.phase.alignment import align_starts, apply_alignment, level_shells
from orienteer.phase.batches import refuse_too_many_starts, starts_at_once
from orienteer.phase.constraints import project_symmetry
from orienteer.phase.data import PhasingData, phasing_data
from orienteer.phase.filled import filled_voxels
from orienteer.phase.half_grid import density_of, transform_of
from orienteer.phase.phasing import phase, phase_starts, prepared_course
from orienteer.phase.settings import PhaseSettings
from orienteer.volume.volume import Volume

QUICK = "120*dm 80*raar(0.87) 40*er"


@pytest.fixture(scope="session")
def agreement(transform_on_grid) -> Callable[..., np.ndarray]:
    """Mean Fourier shell correlation of densities (B, n, n, n) with the truth, after shift and inversion."""

    def compare(densities: np.ndarray, made: Any, data: PhasingData) -> np.ndarray:
        truth = level_shells(transform_on_grid(made.transform, data)[None], data.measured)[0]
        return align_starts(truth, level_shells(transform_of(densities), data.measured)).agreement

    return compare


def test_starts_find_the_body_and_its_volume_behind_a_missing_centre(body, agreement, truth_of) -> None:
    made = body(speckles=7.0, hole=2.0, noise=0.1)
    settings = PhaseSettings(starts=6, schedule="200*dm 100*raar(0.87) 50*er")
    data = phasing_data(made.intensity, settings, device="cpu")
    course, volume = prepared_course(data, settings, seed=1)
    state = phase_starts(course, settings, volume, seed=1)
    assert (agreement(state.density, made, data) > 0.95).mean() > 0.9
    true_volume = filled_voxels(truth_of(made, data), data.measured).sum()
    filled = [filled_voxels(one, data.measured).sum() for one in state.density]
    assert np.median(filled) == pytest.approx(true_volume, rel=0.05)
    assert 0.95 < volume / true_volume < 1.5
    assert state.support.sum(axis=(1, 2, 3)) == pytest.approx(volume, abs=1)
    assert (state.density[~state.support] == 0).all()
    assert (state.density >= 0).all()
    # The missing centre is filled with what belongs there, and with no more.
    total = np.median(state.density.sum(axis=(1, 2, 3))) / np.abs(made.transform).max()
    assert total == pytest.approx(1.0, abs=0.05)


def test_an_even_box_is_phased_as_an_odd_one_is(body, agreement) -> None:
    made = body(speckles=6.0, even=True)
    settings = PhaseSettings(starts=4, schedule=QUICK, support_volume_A3=90000.0)
    data = phasing_data(made.intensity, settings, device="cpu")
    course, volume = prepared_course(data, settings, seed=1)
    state = phase_starts(course, settings, volume, seed=1)
    assert (agreement(state.density, made, data) > 0.95).all()


@pytest.fixture(scope="module")
def plain_and_with_background(body) -> tuple[Any, Any, Any]:
    settings = PhaseSettings(starts=4, schedule=QUICK, support_volume_A3=90000.0)
    made = body(speckles=6.0)
    flat = body(speckles=6.0, background=0.05)
    return made, phase(made.intensity, settings, device="cpu"), phase(flat.intensity, settings, device="cpu")


def test_a_flat_background_changes_little_and_makes_no_spot_in_the_middle(plain_and_with_background) -> None:
    made, plain, flat = plain_and_with_background
    mean = float(np.nanmean(made.intensity.values))
    assert flat.background == pytest.approx(0.05 * mean, rel=0.2)
    assert plain.background < 0.002 * mean
    first, second = (to_numpy(result.density.values).astype(np.float64) for result in (plain, flat))
    # Beyond the edge of the data a density is what its support makes of it.
    data = phasing_data(made.intensity, device="cpu")
    transforms = [transform_of(one)[None].astype(np.complex64) * data.measured for one in (first, second)]
    levelled = [level_shells(one, data.measured) for one in transforms]
    found = align_starts(levelled[0][0], levelled[1])
    first, moved = density_of(transforms[0])[0], density_of(apply_alignment(transforms[1], found))[0]
    moved *= (moved * first).sum() / (moved**2).sum()  # the unit of a density is not known
    change = np.sqrt(((moved - first) ** 2).sum() / (first**2).sum())
    assert change < 0.05
    middle = (slice(len(first) // 2 - 1, len(first) // 2 + 2),) * 3
    typical = (first**2).sum() / np.maximum(first, 0).sum()
    assert abs(moved[middle].mean() - first[middle].mean()) < 0.05 * typical


def test_the_result_is_the_body_and_says_what_it_rests_on(plain_and_with_background, agreement) -> None:
    made, result, _ = plain_and_with_background
    data = phasing_data(made.intensity, device="cpu")
    density = to_numpy(result.density.values)
    assert agreement(density[None], made, data)[0] > 0.95
    assert result.density.voxel_size[0] == pytest.approx(data.voxel_A)
    assert result.settings["schedule"] == QUICK
    assert result.seed == 0
    assert result.clusters.n_starts == 4
    assert any("diameter" in remark for remark in result.remarks)


def test_the_same_seed_gives_the_same_and_batches_do_not_matter(body, monkeypatch) -> None:
    settings = PhaseSettings(starts=3, schedule="30*dm 10*er", support_volume_A3=90000.0)
    data = phasing_data(body(speckles=5.0).intensity, settings, device="cpu")
    course, volume = prepared_course(data, settings, seed=3)
    heard: list[tuple[str, int, int]] = []
    first = phase_starts(course, settings, volume, 3, lambda *told: heard.append(told))
    monkeypatch.setattr("orienteer.phase.batches.starts_at_once", lambda data, starts: 2)
    again = phase_starts(course, settings, volume, 3)
    other = phase_starts(course, settings, volume, 4)
    assert np.array_equal(first.density, again.density)
    assert not np.array_equal(first.density, other.density)
    what, *done = heard[-1]
    assert done == [120, 120]
    assert f"3 starts of {data.n}^3 voxels" in what


def test_a_single_start_is_enough(body, agreement) -> None:
    made = body(speckles=6.0)
    settings = PhaseSettings(starts=1, schedule=QUICK, support_volume_A3=90000.0)
    result = phase(made.intensity, settings, seed=2, device="cpu")
    data = phasing_data(made.intensity, settings, device="cpu")
    assert agreement(to_numpy(result.density.values)[None], made, data)[0] > 0.9


def test_the_density_may_be_negative_where_that_is_allowed(body) -> None:
    settings = PhaseSettings(starts=1, schedule="20*dm 10*er", support_volume_A3=90000.0, positivity=False)
    data = phasing_data(body(speckles=5.0).intensity, settings, device="cpu")
    course, volume = prepared_course(data, settings, seed=0)
    state = phase_starts(course, settings, volume, seed=0)
    assert (state.density[state.support] < 0).any()
    assert (state.density[~state.support] == 0).all()


def test_a_known_symmetry_is_in_the_density(agreement) -> None:
    corners = np.array([[20.0, 4.0, 9.0], [6.0, 22.0, -14.0], [10.0, -8.0, 20.0]])
    positions = np.concatenate([corners, corners * [-1, -1, 1]])
    particle = gaussian_balls(positions, np.tile([1e4, 2e4, 1.5e4], 2), np.full(6, 5.0))
    axis = np.arange(-15, 16) / 160.0
    q = np.sqrt(axis[:, None, None] ** 2 + axis[:, None] ** 2 + axis**2)
    transform = particle.amplitude_on_grid(axis)
    values = np.where(q <= 0.09, np.abs(transform) ** 2, np.nan)
    settings = PhaseSettings(
        starts=2, schedule=QUICK, symmetry="C2", diameter_A=75.0, support_volume_A3=60000.0, background=False
    )
    intensity = Volume(values, 1 / 160.0, "reciprocal")
    result = phase(intensity, settings, device="cpu")
    density = to_numpy(result.density.values)[None]
    turned = project_symmetry(density, as_point_group("C2"), 15.0)
    assert np.abs(turned - density).max() < 0.01 * density.max()
    truth = SimpleNamespace(transform=transform)
    assert agreement(density, truth, phasing_data(intensity, settings, device="cpu"))[0] > 0.9


def _as_it_is(values: np.ndarray) -> np.ndarray:
    return values


def _in_another_unit(values: np.ndarray) -> np.ndarray:
    return values * 1e26


def _with_too_much_background_taken_off(values: np.ndarray) -> np.ndarray:
    return values - np.nanmean(values)


def _with_an_empty_shell(values: np.ndarray) -> np.ndarray:
    axis = np.arange(len(values)) - len(values) // 2
    radius = np.sqrt(axis[:, None, None] ** 2 + axis[:, None] ** 2 + axis**2)
    return np.where((radius > 6) & (radius < 8) & np.isfinite(values), 0, values)


@pytest.mark.parametrize(
    "change", [_as_it_is, _in_another_unit, _with_too_much_background_taken_off, _with_an_empty_shell]
)
def test_strange_intensities_give_finite_densities_and_no_warning_of_numpy(body, change) -> None:
    made = body(speckles=5.0, hole=1.0, noise=0.1)
    intensity = made.intensity.with_values(change(made.intensity.values.astype(np.float64)))
    settings = PhaseSettings(starts=2, schedule="25*dm 5*er", support_volume_A3=60000.0, diameter_A=100.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = phase(intensity, settings, device="cpu")
    assert np.isfinite(to_numpy(found.density.values)).all()


@pytest.mark.parametrize(("volume_A3", "why"), [(1.0, "is too small"), (1e9, "does not fit a box")])
def test_a_support_that_no_density_could_have_is_refused(body, volume_A3, why) -> None:
    with pytest.raises(OrienteerError, match=why) as error:
        phase(body(speckles=5.0).intensity, PhaseSettings(support_volume_A3=volume_A3), device="cpu")
    assert "It may have from" in error.value.hint


def test_more_starts_than_memory_holds_are_refused_before_any_work(body, monkeypatch) -> None:
    monkeypatch.setattr("orienteer.phase.batches.memory_GiB", lambda: (1.0, 0.01))
    heard: list[tuple[str, int, int]] = []
    with pytest.raises(OrienteerError, match=r"100 starts of 27\^3 voxels take") as error:
        phase(
            body(speckles=5.0).intensity,
            PhaseSettings(starts=100),
            device="cpu",
            progress=lambda *told: heard.append(told),
        )
    assert not heard
    fits = int(error.value.hint.split("up to ")[1].split(" ")[0])
    data = phasing_data(body(speckles=5.0).intensity, device="cpu")
    assert 0 < refuse_too_many_starts(data, fits) <= 0.01
    assert starts_at_once(data, 100) < fits


@pytest.mark.gpu
def test_the_gpu_finds_the_same_density(body, agreement) -> None:
    made = body(speckles=6.0, hole=2.0, noise=0.1)
    settings = PhaseSettings(starts=6, schedule=QUICK)
    data = phasing_data(made.intensity, settings, device="cpu")
    result = phase(made.intensity, settings, device="cuda")
    assert agreement(to_numpy(result.density.values)[None], made, data)[0] > 0.9
    assert len(result.clusters.clusters[0]) >= 5
