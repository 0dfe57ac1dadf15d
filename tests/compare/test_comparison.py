"""A comparison from end to end: what agrees is found, and what stands in the way is said."""

from dataclasses import replace

import numpy as np
import pytest

from orienteer.compare import comparison
from orienteer.compare.comparison import compare
from orienteer.compare.scale import ScaleFit
from orienteer.compare.structure_density import density_of, intensity_of
from orienteer.errors import OrienteerError
from orienteer.orientation.distance import angular_distance_deg
from orienteer.orientation.quaternion import from_axis_angle
from orienteer.particle.named_bodies import random_blobs
from orienteer.particle.structure import blobs
from orienteer.volume.volume import Volume

BODY = random_blobs(90, 10, seed=4)
TURN = from_axis_angle([1, 2, 3], 77)
N, VOXEL_A = 25, 5.0


def noisy(volume: Volume, strength: float, seed: int) -> Volume:
    noise = np.random.default_rng(seed).normal(size=volume.shape) * strength * volume.values.std()
    return volume.with_values((volume.values + noise).astype(np.float32))


def test_a_density_is_compared_with_a_structure() -> None:
    mirrored = replace(BODY, positions_A=-BODY.positions_A).rotated(TURN).translated([4, -3, 6])
    density = noisy(density_of(mirrored, N, VOXEL_A), 0.5, 1)
    found = compare(density, BODY)
    assert found.kind == "densities"
    assert found.hand == -1
    assert angular_distance_deg(found.rotation, TURN) < 2
    assert found.shift_A == pytest.approx([4, -3, 6], abs=0.7)
    assert 0.7 < found.correlation < 0.99
    assert not [remark for remark in found.remarks if "seems wrong" in remark]
    assert found.resolution.resolution_A is not None
    assert list(found.resolutions) == ["0.143", "0.5", "half-bit"]
    report = found.as_report()
    assert report["resolution_A"] == found.resolution.resolution_A
    assert len(report["curve"]["q_inv_A"]) == len(report["curve"]["correlation"]) == 13


def test_a_wrong_voxel_size_is_noticed_and_the_right_one_suggested() -> None:
    density = density_of(BODY.rotated(TURN), N, VOXEL_A)
    found = compare(BODY, Volume(density.values, 1.2 * VOXEL_A))
    (remark,) = (remark for remark in found.remarks if "voxel size seems wrong" in remark)
    suggested = float(remark.split("with voxels of ")[1].split(" A")[0])
    assert suggested == pytest.approx(VOXEL_A, rel=0.02)


@pytest.mark.parametrize(
    ("factor", "hint"), [(10.0, "nm"), (0.1, "nm"), (1e3, "voxel size"), (30.0, "inspect")]
)
def test_a_voxel_size_in_another_unit_is_refused_at_once(factor: float, hint: str) -> None:
    density = density_of(BODY.rotated(TURN), N, VOXEL_A)
    other = Volume(density.values, factor * VOXEL_A)
    for pair in ((BODY, other), (other, density)):
        with pytest.raises(OrienteerError, match="a voxel size is wrong") as error:
            compare(*pair)
        assert hint in error.value.hint


@pytest.mark.parametrize(
    ("swapped", "words"),
    [(False, "with voxels of 5.5 A the"), (True, "with voxels of 4.545 A the"), (None, "1.1 times as large")],
)
def test_the_sentence_names_the_volume_whose_voxels_are_in_doubt(
    swapped: bool | None, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison, "better_scale", lambda found, moving: ScaleFit(1.1, 0.9, 0.5))
    density = density_of(BODY, 16, VOXEL_A)
    pair = (density, density) if swapped is None else (density, BODY) if swapped else (BODY, density)
    (remark,) = comparison._on_size(None, density, *pair)  # type: ignore[arg-type]
    assert words in remark
    assert "the correlation would be 0.90 instead of 0.50" in remark


def test_a_mask_sharpens_the_curve_and_is_corrected_for() -> None:
    pair = [noisy(density_of(BODY, N, VOXEL_A), 1.0, seed) for seed in (1, 2)]
    found = compare(*pair, criterion="0.143", mask=True, seed=3)
    assert found.masked is not None
    assert found.curve is found.masked.corrected
    assert found.curve.correlation[2:6].mean() > found.masked.unmasked.correlation[2:6].mean()
    assert "The mask holds" in found.remarks[-1]
    assert {"masked", "unmasked", "random"} <= set(found.as_report()["curve"])


def test_a_given_mask_is_taken_on_any_grid() -> None:
    pair = [density_of(BODY, 16, 8.0), noisy(density_of(BODY, 16, 8.0), 0.5, 1)]
    whole = compare(*pair, mask=Volume(np.ones((40, 40, 40)), 4.0)).masked
    assert whole is not None
    np.testing.assert_allclose(whole.masked.correlation, whole.unmasked.correlation, atol=1e-6)
    with pytest.raises(OrienteerError, match="0 everywhere"):
        compare(*pair, mask=Volume(np.zeros((16, 16, 16)), 8.0))


def test_a_body_that_is_its_own_mirror_image_has_no_hand() -> None:
    flat = blobs([[0, 0, 0], [30, 0, 0], [0, 25, 0], [-20, 10, 0]], [1, 0.8, 1.2, 0.9], 7)
    found = compare(density_of(flat.rotated(TURN), N, VOXEL_A), flat)
    assert found.hand == 1
    assert found.correlation > 0.99
    assert found.remarks == (
        "Both hands fit equally well: at this resolution the particle is its own mirror image.",
    )


def test_nothing_is_said_about_the_hand_of_what_does_not_fit() -> None:
    body = blobs([[0, 0, 0], [30, 0, 0], [0, 25, 0], [-20, 10, 0]], [1, 0.8, 1.2, 0.9], 7)
    density = density_of(body, N, VOXEL_A)
    found = compare(density, density.with_values(-density.values))
    assert found.correlation < 0.5
    assert not any("hands" in remark for remark in found.remarks)


@pytest.mark.parametrize("as_structure", [True, False])
def test_intensities_are_compared_without_hand_or_shift(as_structure: bool) -> None:
    reference = intensity_of(BODY.rotated(TURN), 31, 0.0022)
    values = reference.values * np.random.default_rng(1).gamma(50, 1 / 50, reference.shape)
    values[13:18, 13:18, 13:18] = np.nan  # behind the beam stop
    moving = BODY if as_structure else intensity_of(BODY, 27, 0.0025)
    found = compare(reference.with_values(values), moving)
    assert found.kind == "intensities"
    assert found.hand is None
    assert found.shift_A is None
    assert angular_distance_deg(found.rotation, TURN) < 1
    assert found.correlation > 0.8
    assert found.resolution.reaches_edge
    assert found.as_report()["hand"] is None


def test_intensities_of_mirror_images_agree_and_tell_no_hand() -> None:
    mirrored = replace(BODY, positions_A=-BODY.positions_A)
    found = compare(intensity_of(BODY, 25, 0.002), intensity_of(mirrored, 25, 0.002))
    assert found.correlation > 0.99
    assert found.hand is None


def test_what_cannot_be_compared_is_told() -> None:
    density, intensity = density_of(BODY, N, VOXEL_A), intensity_of(BODY, 21, 0.002)
    with pytest.raises(OrienteerError, match="neither of the two is a volume"):
        compare(BODY, BODY)
    with pytest.raises(OrienteerError, match="the first is a density and the second an intensity"):
        compare(density, intensity)
    with pytest.raises(OrienteerError, match="the first is an intensity and the second a density"):
        compare(intensity, density)
    with pytest.raises(OrienteerError, match="for densities"):
        compare(intensity, intensity, mask=True)
    with pytest.raises(OrienteerError, match="no shell"):
        empty = intensity.values.copy()
        empty[1:-1, 1:-1, 1:-1] = np.nan
        compare(intensity, intensity.with_values(empty))
