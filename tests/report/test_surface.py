"""The surface: where it is cut, how it is packed, and that pictures keep the hand of the particle."""

import numpy as np
import pytest

from orienteer.report.surface import LARGEST_EDGE, Packed, pack, surface_level, surface_picture
from orienteer.volume.volume import Volume

RNG = np.random.default_rng(1)


def blob(n: int, centre: tuple[float, float, float], width: float) -> np.ndarray:
    axes = np.meshgrid(*[np.arange(n)] * 3, indexing="ij")
    return np.exp(-sum((axis - c) ** 2 for axis, c in zip(axes, centre, strict=True)) / (2 * width**2))


def slow_level(values: np.ndarray) -> float:
    """The threshold that leaves the least variance in both parts, by trying all of them."""
    candidates = np.linspace(values.min(), values.max(), 257)[1:-1]
    spread = [
        sum(len(part) * part.var() for part in (values[values < level], values[values >= level]) if len(part))
        for level in candidates
    ]
    return float(candidates[int(np.argmin(spread))])


def test_the_level_parts_particle_from_surroundings() -> None:
    values = blob(16, (8, 8, 8), 3.0) + RNG.normal(0, 0.02, (16, 16, 16))
    assert surface_level(values) == pytest.approx(slow_level(values.ravel()), abs=0.03)
    with_holes = values.copy()
    with_holes[0] = np.nan
    assert np.isfinite(surface_level(with_holes))
    assert surface_level(np.zeros((3, 3, 3))) == 0.0
    assert surface_level(np.full((2, 2, 2), np.nan)) == 0.0


def test_the_surface_does_not_shred_a_layer_of_the_value_that_parts_best() -> None:
    around, layer, core = (RNG.normal(*one) for one in ((0, 0.02, 20000), (0.95, 0.1, 2000), (2, 0.2, 5000)))
    edges = [RNG.uniform(0, 0.8, 800), RNG.uniform(1.1, 1.8, 800)]
    values = np.concatenate([around, layer, core, *edges])
    assert 0.8 < slow_level(values) < 1.1  # where the layer is
    assert 0.2 < surface_level(values) < 0.75


@pytest.mark.parametrize("n", [12, 40, 140])
def test_a_packed_density_is_small_and_at_its_place(n: int) -> None:
    values = blob(n, (n * 0.5, n * 0.45, n * 0.55), n / 6)
    packed = pack(Volume(values, 300 / n))
    assert max(packed.voxels.shape) <= LARGEST_EDGE
    assert packed.voxels.max() == 255
    back = packed.low + packed.voxels / 255 * (packed.high - packed.low)
    assert back.max() == pytest.approx(values.max(), rel=0.06)
    volume_A3 = (back > 0.5).sum() * np.prod(packed.voxel_A)
    assert volume_A3 == pytest.approx((values > 0.5).sum() * (300 / n) ** 3, rel=0.12)
    assert packed.level == surface_level(values.astype(np.float32))


def picture_of(*blobs: tuple[tuple[float, float, float], float], along: str) -> np.ndarray:
    values = sum(blob(24, centre, width) for centre, width in blobs)
    packed = Packed(np.rint(values / values.max() * 255).astype(np.uint8), (1.0, 1.0, 1.0), 0.0, 1.0, 0.5)
    return surface_picture(packed, along, edge=48)


def middle_of(picture: np.ndarray) -> tuple[float, float]:
    """Mean place of what is seen, to the right and up, from -1 to 1."""
    row, column = np.argwhere(picture[..., 3] > 0).mean(axis=0)
    return column / 23.5 - 1, 1 - row / 23.5


@pytest.mark.parametrize(("along", "right", "up"), [("z", 0, 1), ("y", 0, 2), ("x", 1, 2)])
def test_each_picture_runs_to_the_right_and_up(along: str, right: int, up: int) -> None:
    for axis, place in ((right, 0), (up, 1)):
        centre = [11.5, 11.5, 11.5]
        centre[axis] = 17.0
        seen = middle_of(picture_of((tuple(centre), 2.0), along=along))
        assert seen[place] > 0.2
        assert abs(seen[1 - place]) < 0.1


@pytest.mark.parametrize(("along", "axis", "sign"), [("z", 2, 1), ("y", 1, -1), ("x", 0, 1)])
def test_the_eye_is_where_the_hand_stays(along: str, axis: int, sign: int) -> None:
    """Of two blobs one behind the other the nearer is seen: it is the smaller here, and leaves a rim."""
    near, far = [11.5] * 3, [11.5] * 3
    near[axis] += 6 * sign
    far[axis] -= 4 * sign
    centre = slice(22, 26)
    front = picture_of((tuple(near), 1.5), (tuple(far), 3.0), along=along)[centre, centre, :3].mean()
    behind = picture_of((tuple(far), 1.5), (tuple(near), 3.0), along=along)[centre, centre, :3].mean()
    alone = picture_of((tuple(far), 3.0), along=along)[centre, centre, :3].mean()
    assert front > alone  # what is nearer is brighter
    assert front != behind


def test_a_density_without_a_surface_has_an_empty_picture() -> None:
    packed = Packed(np.zeros((4, 4, 4), np.uint8), (1.0, 1.0, 1.0), 0.0, 1.0, 0.5)
    assert packed.fill == 1.0
    assert not surface_picture(packed, "z", edge=8).any()
