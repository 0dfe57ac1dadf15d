"""Errors of voxels from groups of frames: their size, their coverage, and what they do not depend on."""

from dataclasses import replace
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

import orienteer
from orienteer.errors import OrienteerError
from orienteer.orientation.point_group import as_point_group
from orienteer.orientation.quaternion import random_uniform, to_matrix
from orienteer.reconstruction.frames.pixels import pixel_table
from orienteer.source.in_memory import InMemorySource
from orienteer.source.patterns import Patterns
from orienteer.validate.bootstrap import FEWEST_FRAMES, Bootstrap, _Spread, bootstrap_intensity
from orienteer.validate.remerging import Remerging, groups_of_events
from orienteer.volume.volume import Volume

WAVELENGTH_A, EDGE_A, N, N_PIXELS = 2.5, 40.0, 21, 15


class Data:
    """Frames of a smooth intensity with Poisson noise, at known poses and fluences."""

    def __init__(self, n_frames: int, level: float = 0.3, seed: int = 0, contrast: float = 0.4) -> None:
        rng = np.random.default_rng(seed)
        self.detector = orienteer.square_detector(
            N_PIXELS, edge_resolution_A=EDGE_A, wavelength_A=WAVELENGTH_A, pixel_size_m=5e-4
        )
        self.pixels: Any = None
        self.poses = random_uniform(n_frames, seed + 1)
        self.fluence = rng.gamma(9, 1 / 9, n_frames)
        columns = {"wavelength_A": np.full(n_frames, WAVELENGTH_A)}
        blank = InMemorySource(Patterns(np.zeros((n_frames, N_PIXELS**2), np.int32), None, columns))
        self.pixels = pixel_table(blank.with_detector(self.detector))
        self.voxel = float(self.pixels.length_inv_A.max()) / (N // 2 - 1)

        def intensity(x: Any, y: Any, z: Any) -> Any:
            waves = np.cos(0.5 * x) * np.cos(0.4 * y) + np.cos(0.6 * z)
            return level * np.exp(-(x**2 + y**2 + z**2) / 100) * (1 + contrast / 2 * waves)

        axis = np.arange(N) - N // 2
        grid = np.meshgrid(axis, axis, axis, indexing="ij")
        self.truth = Volume(intensity(*grid), self.voxel, "reciprocal")
        points = self.pixels.q_inv_A / self.voxel
        seen = np.matmul(points, to_matrix(self.poses))  # R^T q, row by row
        slices = intensity(*np.moveaxis(seen, -1, 0)) * self.pixels.correction
        counts = np.zeros((n_frames, N_PIXELS**2), np.int32)
        counts[:, self.pixels.index] = rng.poisson(slices * self.fluence[:, None])
        self.counts = counts
        self.event_id = np.arange(1000, 1000 + n_frames, dtype=np.uint64)
        self.columns = columns

    def source(self, order: Any = slice(None), **columns: Any) -> Any:
        patterns = Patterns(self.counts, self.event_id, {**self.columns, **columns})[order]
        return InMemorySource(patterns, self.detector.frame_shape).with_detector(self.detector)

    def orientations(self) -> dict[str, Any]:
        return {"event_id": self.event_id, "quaternion": self.poses, "fluence": self.fluence}

    def bootstrap(self, model: Volume | None = None, order: Any = slice(None), **settings: Any) -> Bootstrap:
        settings.setdefault("orientations", self.orientations())
        return bootstrap_intensity(
            self.source(order), intensity=self.truth if model is None else model, pixels=self.pixels,
            device="cpu", **settings,
        )  # fmt: skip


@pytest.fixture(scope="module")
def data() -> Data:
    return Data(400)


def covered(found: Bootstrap, truth: Volume, share: float) -> float:
    """Share of the voxels whose truth lies within the errors that would hold this share of a normal law."""
    reach = NormalDist().inv_cdf((1 + share) / 2) * found.error.values
    known = np.isfinite(reach)
    return float((np.abs(truth.values - found.intensity.values) < reach)[known].mean())


def test_bands_of_90_per_cent_hold_the_truth_in_about_90_per_cent_of_the_voxels(data: Data) -> None:
    found = data.bootstrap(replicates=64)
    assert np.isfinite(found.error.values).sum() > 2000
    assert covered(found, data.truth, 0.9) == pytest.approx(0.9, abs=0.04)
    assert covered(found, data.truth, 0.5) == pytest.approx(0.5, abs=0.06)


def test_bands_hold_also_for_an_intensity_that_is_wrong_by_a_smooth_tenth(data: Data) -> None:
    axis = np.arange(N) - N // 2
    wrong = 1 + 0.1 * np.cos(0.3 * axis)[:, None, None] * np.cos(0.4 * axis)
    found = data.bootstrap(data.truth.with_values(data.truth.values * wrong), replicates=32)
    assert covered(found, data.truth, 0.9) == pytest.approx(0.9, abs=0.05)


@pytest.mark.parametrize(("n_frames", "level"), [(400, 3.0), (1600, 0.3)])
def test_bands_hold_for_few_and_for_many_photons(n_frames: int, level: float) -> None:
    many = Data(n_frames, level)
    found = many.bootstrap(replicates=32)
    assert covered(found, many.truth, 0.9) == pytest.approx(0.9, abs=0.04)


def test_four_times_the_frames_halve_the_error(data: Data) -> None:
    few, many = (d.bootstrap(replicates=24) for d in (data, Data(1600)))
    both = np.isfinite(few.error.values) & np.isfinite(many.error.values)
    ratio = np.median(few.error.values[both] / many.error.values[both])
    assert ratio == pytest.approx(2.0, rel=0.12)


def test_the_error_is_that_of_repeated_experiments() -> None:
    again = [Data(120, seed=10 * i + 5).bootstrap(replicates=2).intensity.values for i in range(24)]
    measured = np.std(again, axis=0, ddof=1)
    found = Data(120).bootstrap(replicates=48)
    known = np.isfinite(found.error.values) & (found.frames > 15) & np.isfinite(measured)
    assert np.median(found.error.values[known] / measured[known]) == pytest.approx(1.0, abs=0.12)


def test_the_order_of_frames_changes_nothing(data: Data) -> None:
    one = data.bootstrap(replicates=4)
    other = data.bootstrap(order=np.random.default_rng(1).permutation(400), replicates=4)
    known = np.isfinite(one.error.values)
    assert np.allclose(one.error.values[known], other.error.values[known], rtol=1e-3)


def test_the_same_seed_gives_the_same_error_and_another_one_nearly_so(data: Data) -> None:
    one, same, other = (data.bootstrap(replicates=16, seed=seed).error.values for seed in (1, 1, 2))
    assert np.array_equal(one, same, equal_nan=True)
    known = np.isfinite(one) & np.isfinite(other)
    assert not np.array_equal(one[known], other[known])
    assert np.median(np.abs(one - other)[known] / one[known]) < 0.3


def test_groups_that_do_not_fit_into_memory_are_merged_in_turns(
    data: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once = data.bootstrap(replicates=5)
    monkeypatch.setattr("orienteer.validate.bootstrap._BYTES_PER_VOXEL", 1 << 40)
    in_turns = data.bootstrap(replicates=5)
    assert np.array_equal(at_once.error.values, in_turns.error.values, equal_nan=True)
    assert np.array_equal(at_once.intensity.values, in_turns.intensity.values, equal_nan=True)


def test_voxels_that_few_frames_saw_have_no_error() -> None:
    found = Data(6).bootstrap(replicates=16)
    assert np.isnan(found.error.values[found.frames < FEWEST_FRAMES]).all()
    assert np.isnan(found.error.values).mean() > 0.5


def test_sentinels_and_frames_of_something_else_are_not_merged(data: Data) -> None:
    spoilt = {**data.orientations(), "model": np.zeros(400, np.int64), "sentinel": np.zeros(400, bool)}
    spoilt["model"][:40] = -1
    spoilt["sentinel"][40:80] = True
    rest = {name: column[80:] for name, column in data.orientations().items()}
    one, other = (data.bootstrap(orientations=o, replicates=3) for o in (spoilt, rest))
    assert np.allclose(one.intensity.values, other.intensity.values, equal_nan=True)
    assert np.allclose(one.error.values, other.error.values, equal_nan=True)


def test_pixels_that_single_frames_forbid_are_left_out(data: Data) -> None:
    hidden = np.random.default_rng(3).random(data.counts.shape) < 0.2
    spoilt = Data(400)
    spoilt.counts = np.where(hidden, 99, data.counts).astype(np.int32)
    source = spoilt.source(frame_mask=np.where(hidden, 2, 0).astype(np.uint8))
    found = bootstrap_intensity(
        source, data.orientations(), data.truth, data.pixels, replicates=24, device="cpu"
    )
    assert covered(found, data.truth, 0.9) == pytest.approx(0.9, abs=0.05)


def test_a_known_background_is_taken_off(data: Data) -> None:
    spoilt = Data(400)
    behind = np.full(len(data.pixels), 0.2)
    rng = np.random.default_rng(8)
    spoilt.counts = data.counts.copy()
    spoilt.counts[:, data.pixels.index] += rng.poisson(behind, (400, len(behind))).astype(np.int32)
    assert covered(spoilt.bootstrap(background=behind, replicates=24), data.truth, 0.9) > 0.84
    assert covered(spoilt.bootstrap(replicates=24), data.truth, 0.9) < 0.7


def test_symmetry_makes_the_error_smaller_and_even(data: Data) -> None:
    round_truth = data.truth.with_values(np.full_like(data.truth.values, 0.3))
    even = replace_counts(data, round_truth)
    alone, cubic = (even.bootstrap(round_truth, replicates=24, group=group) for group in ("C1", "O"))
    ratio = np.nanmedian(alone.error.values) / np.nanmedian(cubic.error.values)
    assert 3.5 < ratio < 7  # 24 equivalents: nearly 5 times, and interpolation smooths a little more
    assert covered(cubic, round_truth, 0.9) > 0.8


def replace_counts(data: Data, truth: Volume) -> Data:
    other = Data(400, contrast=0.0)
    other.truth = truth
    slices = 0.3 * data.pixels.correction * other.fluence[:, None]
    other.counts = np.zeros_like(data.counts)
    other.counts[:, data.pixels.index] = np.random.default_rng(5).poisson(slices)
    return other


def test_the_error_is_the_spread_of_very_many_draws_of_groups(data: Data) -> None:
    """Poisson numbers of each group, drawn two thousand times, from the same groups."""
    merging = Remerging(data.orientations(), data.truth, data.pixels, as_point_group("C1"), None, "cpu")
    sums = np.stack(list(merging.sums(data.source(), range(40), 40, 3)))
    spread = _Spread()
    for one in sums:
        spread.add(one)
    _, variance, _, frames = spread.solved()
    many = frames > 40
    drawn = np.random.default_rng(1).poisson(1.0, (2000, 40))
    total = np.tensordot(drawn, sums[:, many], axes=1)
    measured = (total[..., 0] / total[..., 1]).std(axis=0)
    assert many.sum() > 100
    assert np.median(np.sqrt(variance[many]) / measured) == pytest.approx(1.0, abs=0.03)


def test_groups_are_of_one_size_and_have_nothing_to_do_with_the_order_of_events() -> None:
    ids = np.arange(50_000, dtype=np.uint64)
    one, other = (groups_of_events(ids, 10, seed) for seed in (0, 1))
    assert np.bincount(one) / 5000 == pytest.approx(np.ones(10), abs=0.06)
    for a, b in ((one, other), (one[1:], one[:-1])):
        assert abs(np.corrcoef(a, b)[0, 1]) < 0.02


def test_what_makes_no_sense_is_refused(data: Data) -> None:
    with pytest.raises(OrienteerError, match="no spread"):
        data.bootstrap(replicates=1)
    with pytest.raises(OrienteerError, match="reciprocal"):
        data.bootstrap(replace(data.truth, space="real"))
    with pytest.raises(OrienteerError, match="nowhere positive"):
        data.bootstrap(data.truth.with_values(np.zeros_like(data.truth.values)))
    with pytest.raises(OrienteerError, match="no frame was merged"):
        data.bootstrap(orientations={**data.orientations(), "model": np.full(400, -1)})


@pytest.mark.gpu
def test_the_gpu_gives_the_same_errors(data: Data) -> None:
    on_cpu = data.bootstrap(replicates=4)
    on_gpu = bootstrap_intensity(
        data.source(), data.orientations(), data.truth, data.pixels, replicates=4, device="cuda"
    )
    assert np.allclose(on_cpu.error.values, on_gpu.error.values, rtol=1e-3, equal_nan=True)
