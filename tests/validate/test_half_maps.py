"""The agreement of two densities: known noise, mirror images, and nothing in common."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from orienteer.compare.criteria import CRITERIA, resolution_at
from orienteer.compare.turning import rotate_volume
from orienteer.orientation.quaternion import from_axis_angle
from orienteer.validate.half_maps import HalfMaps, compare_half_maps
from orienteer.volume.volume import Volume

N, VOXEL_A = 24, 5.0


def body(width: float = 2.0) -> np.ndarray:
    axis = np.arange(N) - N // 2
    x, y, z = np.meshgrid(axis, axis, axis, indexing="ij")
    places = [((4, 0, 1), 1.0), ((0, 4, -2), 0.8), ((-2, -2, 4), 1.2), ((-4, 2, -3), 0.9), ((2, -4, -3), 0.7)]
    return sum(
        w * np.exp(-((x - a) ** 2 + (y - b) ** 2 + (z - c) ** 2) / width**2) for (a, b, c), w in places
    )


def halves(noise: float, turn: bool = True) -> tuple[Volume, Volume]:
    rng = np.random.default_rng(4)
    one, other = (body() + noise * rng.normal(size=(N, N, N)) for _ in range(2))
    if turn:
        other = np.nan_to_num(rotate_volume(other, from_axis_angle([1, 2, 3], 35)))
        other = np.roll(other, (1, -1, 1), axis=(0, 1, 2))[::-1, ::-1, ::-1]
    return Volume(one, VOXEL_A), Volume(other, VOXEL_A)


@pytest.fixture(scope="module")
def noisy() -> HalfMaps:
    return compare_half_maps(*halves(0.15), seed=1)


def test_a_turned_and_mirrored_half_is_brought_onto_the_other(noisy: HalfMaps) -> None:
    straight = compare_half_maps(*halves(0.15, turn=False), seed=1)
    found, expected = (maps.resolutions["0.143"].resolution_A for maps in (noisy, straight))
    assert found == pytest.approx(expected, rel=0.2)
    assert noisy.second.shape == noisy.first.shape == noisy.mask.shape


def test_stricter_criteria_give_coarser_resolutions(noisy: HalfMaps) -> None:
    by_name = {name: noisy.resolutions[name].resolution_A for name in CRITERIA}
    assert by_name["0.143"] < by_name["0.5"]
    assert by_name["0.143"] <= by_name["half-bit"]
    assert len(noisy.half_bit) == len(noisy.curves.corrected.q_inv_A)


def test_what_no_frame_has_shown_is_in_neither_curves_nor_maps() -> None:
    cut = compare_half_maps(*halves(0.15), edge_A=40.0, seed=1)
    step = cut.curves.corrected.q_inv_A[1]
    for curve in (cut.curves.corrected, cut.curves.masked, cut.curves.unmasked, cut.curves.random):
        assert 1 / 40.0 - 1.5 * step < curve.q_inv_A[-1] <= 1 / 40.0 - step / 2
        assert len(curve.q_inv_A) == len(curve.correlation) == len(curve.n_voxels)
    assert resolution_at(cut.curves.corrected, 0.01).reaches_edge
    q = np.fft.fftfreq(N, VOXEL_A)
    beyond = np.sqrt(q[:, None, None] ** 2 + q[:, None] ** 2 + q**2) > 1 / 40.0 + step
    for volume in (cut.first, cut.second):
        power = np.abs(np.fft.fftn(volume.values)) ** 2
        assert power[beyond].sum() < 1e-3 * power[~beyond].sum()


def test_supports_go_the_way_of_their_densities() -> None:
    """A hollow half, turned, shifted and mirrored, is compared as if it had stayed where it was."""
    walls = body(3.0) > 0.3
    rng = np.random.default_rng(4)
    one, other = ((body() + 0.3 * rng.normal(size=(N, N, N))) * walls for _ in range(2))
    moved = [np.roll(x, (1, -1, 2), axis=(0, 1, 2))[::-1, ::-1, ::-1] for x in (other, walls)]
    moved = [np.swapaxes(x, 0, 1) for x in moved]
    first, support = Volume(one, VOXEL_A), Volume(walls.astype(float), VOXEL_A)
    straight = compare_half_maps(first, Volume(other, VOXEL_A), supports=(support, support), seed=1)
    turned = compare_half_maps(
        first, Volume(moved[0], VOXEL_A), supports=(support, Volume(moved[1].astype(float), VOXEL_A)), seed=1
    )
    assert turned.alignment.correlation == pytest.approx(straight.alignment.correlation, abs=0.02)
    differ = turned.curves.random.correlation - straight.curves.random.correlation
    assert np.nanmax(np.abs(differ)) < 0.1


def test_noise_alone_agrees_on_nothing_beyond_the_first_shells() -> None:
    rng = np.random.default_rng(7)
    one, other = (Volume(rng.normal(size=(N, N, N)), VOXEL_A) for _ in range(2))
    maps = compare_half_maps(one, other)
    assert np.nanmax(maps.curves.corrected.correlation[6:]) < 0.143


@pytest.mark.parametrize("outer", [1.0, 3e-4])
def test_grains_inside_of_like_walls_agree_no_further_than_the_walls(outer: float) -> None:
    """What phasing makes of noise: like balls, each with an uneven wall and grains of its own.

    outer : what is left of fine waves in the mean of many starts, which do not repeat there.
    """
    n, radius = 40, 10
    axis = np.arange(n) - n // 2
    distance = np.sqrt(axis[:, None, None] ** 2 + axis[:, None] ** 2 + axis**2)
    waves = np.fft.ifftshift(distance) * 2 * radius / n  # in speckles

    def made_up(seed: int) -> tuple[Volume, Volume]:
        rng = np.random.default_rng(seed)
        wall, grains = (gaussian_filter(rng.normal(size=(n, n, n)), sigma) for sigma in (2.5, 0.8))
        support = distance < radius + 0.8 * wall / wall.std()
        density = np.maximum(1 + 0.8 * grains / grains.std(), 0) * support
        transform = np.fft.fftn(density)
        density = np.fft.ifftn(np.where(waves < 2.5, transform, outer * transform)).real
        return Volume(density, VOXEL_A), Volume(support.astype(float), VOXEL_A)

    (one, wall), (other, other_wall) = made_up(0), made_up(1)
    maps = compare_half_maps(
        one, other, supports=(wall, other_wall), agrees_to_A=np.inf, edge_A=12.0, seed=1,
        near=np.array([1.0, 0, 0, 0]),
    )  # fmt: skip
    speckles = maps.curves.corrected.q_inv_A * 2 * radius * VOXEL_A
    inner, beyond = (speckles > 1) & (speckles < 3), speckles >= 4
    assert maps.curves.masked.correlation[inner].mean() > 0.3
    if outer < 1:  # the mask carries the inner waves outwards
        assert maps.curves.masked.correlation[beyond].mean() > 0.3
    assert maps.curves.corrected.correlation[beyond].mean() < 0.143
