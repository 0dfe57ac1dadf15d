"""Halves agree about what is in the frames, and not about what they have made up together."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from orienteer.mtip.mtip import Mtip
from orienteer.mtip.settings import MtipSettings
from orienteer.mtip.unseen import rings, unseen_correlation
from orienteer.source.in_memory import InMemorySource
from orienteer.source.patterns import Patterns


def stepped(source: Any, n_steps: int) -> Mtip:
    """A run whose frames have soon found poses."""
    mtip = Mtip(source, MtipSettings(diameter_A=200.0, level=4, phasing=False), seed=1, device="cpu")
    mtip.annealing.target = 100.0
    for _ in range(n_steps):
        mtip.step()
    return mtip


def unseen(mtip: Mtip) -> np.ndarray:
    return unseen_correlation(mtip, mtip._roundness)[0]


def mean_of(mtip: Mtip, correlation: np.ndarray) -> float:
    """Over the scored shells."""
    stage = mtip.work.stage
    return float(correlation[2 : int(stage.scored_inv_A / stage.voxel_inv_A)].mean())


@pytest.fixture(scope="module")
def seen(frames_of_blobs: SimpleNamespace) -> Mtip:
    return stepped(frames_of_blobs.source, 14)


def test_frames_without_any_speckles_agree_about_nothing(frames_of_blobs: SimpleNamespace) -> None:
    """Dim frames of a round object, which orient each other by their noise."""
    source = frames_of_blobs.source
    y, x = np.indices((14, 14)).reshape(2, -1) - 6.5
    mean = np.exp(-np.hypot(x, y) / 4)
    frames = np.random.default_rng(1).poisson(np.tile(mean / mean.sum() * 150, (200, 1))).astype(np.float32)
    columns = {"wavelength_A": np.full(200, 2.5)}
    noise = InMemorySource(Patterns(frames, np.arange(200, dtype=np.uint64), columns), source.frame_shape)
    mtip = stepped(noise.with_detector(source.detector), 14)
    made_up, told = mean_of(mtip, mtip.half_correlation), mean_of(mtip, unseen(mtip))
    assert made_up > 0.8
    assert told < 0.4  # of a few speckles, which agree now and then by chance


def test_frames_of_a_particle_agree_about_pixels_that_oriented_none(seen: Mtip) -> None:
    assert mean_of(seen, unseen(seen)) > 0.4


def test_asking_changes_nothing(seen: Mtip) -> None:
    before = {name: np.copy(value) for name, value in seen.state().items() if isinstance(value, np.ndarray)}
    work, pixels = seen.work, seen.pixels
    unseen(seen)
    assert seen.work is work
    assert seen.pixels is pixels
    after = seen.state()
    for name, value in before.items():
        assert np.array_equal(value, after[name], equal_nan=value.dtype.kind == "f"), name


def test_every_place_is_left_out_once_and_its_neighbours_are_not() -> None:
    length = np.linspace(0, 1, 1001)
    ring = rings(length, 0.05)
    assert set(ring) == {0, 1, 2, 3}
    inside = length + 0.0501 <= 1
    beside = rings(length[inside] + 0.0501, 0.05)
    assert (beside != ring[inside]).all()
