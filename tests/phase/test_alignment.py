"""Starts come to one place, hand and sign, to a small part of a voxel."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from orienteer.phase.alignment import (
    StartAlignment,
    agreement_with_other_hand,
    align_starts,
    apply_alignment,
    level_shells,
    shifted,
)
from orienteer.phase.half_grid import density_of, half_grid_shells, transform_of, voxel_counts

Blobs = Callable[..., NDArray[np.float64]]
Everywhere = Callable[[int], NDArray[np.bool_]]


@pytest.mark.parametrize("n", [32, 33])
def test_a_shift_by_a_fraction_moves_the_density_by_it(n: int, blobs: Blobs) -> None:
    moved = density_of(shifted(transform_of(blobs(n)), (0.3, -1.7, 2.0)))
    np.testing.assert_allclose(moved, blobs(n, at=(0.3, -1.7, 2.0)), atol=2e-4)


@pytest.mark.parametrize("n", [8, 9])
def test_a_shift_by_whole_voxels_is_a_roll(n: int) -> None:
    noise = np.random.default_rng(3).normal(size=(n, n, n))
    moved = density_of(shifted(transform_of(noise), (1, -2, 3)))
    np.testing.assert_allclose(moved, np.roll(noise, (1, -2, 3), (0, 1, 2)), atol=1e-12)


def test_levelled_shells_have_the_same_power_and_one_in_all() -> None:
    n = 16
    transforms = transform_of(np.random.default_rng(4).normal(size=(2, n, n, n)))
    measured = np.array(half_grid_shells(n) > 2)
    levelled = level_shells(transforms, measured)
    power = np.abs(levelled) ** 2 * voxel_counts(n)
    assert power.sum(axis=(1, 2, 3)) == pytest.approx(np.ones(2), rel=1e-5)
    assert (power[:, ~measured] == 0).all()
    for shell in range(3, 8):
        assert power[0][half_grid_shells(n) == shell].sum() == pytest.approx(1 / 5, rel=1e-5)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    n=st.sampled_from([20, 21]),
    shift=st.tuples(*[st.floats(-9, 9)] * 3),
    flipped=st.booleans(),
    negative=st.booleans(),
)
def test_hand_sign_and_shift_are_found(
    n: int,
    shift: tuple[float, float, float],
    flipped: bool,
    negative: bool,
    blobs: Blobs,
    everywhere: Everywhere,
) -> None:
    reference = transform_of(blobs(n))
    start = np.conj(reference) if flipped else reference
    start = shifted(start, shift) * (-1 if negative else 1)
    levelled = level_shells(np.stack([reference, start]), everywhere(n))
    found = align_starts(levelled[0], levelled[1:])
    assert found.hand.tolist() == [-1 if flipped else 1]
    assert found.sign.tolist() == [-1 if negative else 1]
    assert found.agreement == pytest.approx([1.0], abs=1e-4)
    assert found.other_hand[0] < 0.9
    aligned = density_of(apply_alignment(start[None], found)[0])
    assert np.abs(aligned - density_of(reference)).max() < 2e-3


def test_the_shift_of_noisy_starts_is_found_to_a_small_part_of_a_voxel(
    blobs: Blobs, everywhere: Everywhere
) -> None:
    n, shift = 24, np.array([3.4, -2.3, 0.6])
    rng = np.random.default_rng(5)
    pair = transform_of(np.stack([blobs(n), blobs(n, at=-shift)]))
    pair = pair + transform_of(rng.normal(scale=0.03, size=(2, n, n, n)))
    levelled = level_shells(pair, everywhere(n))
    found = align_starts(levelled[0], levelled[1:])
    np.testing.assert_allclose(found.shift[0], shift, atol=0.15)
    assert 0.1 < found.agreement[0] < 0.9


def test_agreement_is_the_mean_of_the_fourier_shell_correlation(blobs: Blobs, everywhere: Everywhere) -> None:
    n = 16
    rng = np.random.default_rng(6)
    first = blobs(n)
    pair = transform_of(np.stack([first, first + 0.02 * rng.normal(size=(n, n, n))]))
    levelled = level_shells(pair, everywhere(n))
    found = align_starts(levelled[0], levelled[1:])
    start = np.conj(pair[1]) if found.hand[0] < 0 else pair[1]
    moved = shifted(start, found.shift[0]) * found.sign[0]
    by_shell = []
    for shell in range(8):
        inside = np.where(half_grid_shells(n) == shell, voxel_counts(n), 0)
        cross = (inside * (pair[0] * np.conj(moved)).real).sum()
        by_shell.append(
            cross / np.sqrt((inside * abs(pair[0]) ** 2).sum() * (inside * abs(moved) ** 2).sum())
        )
    assert found.agreement[0] == pytest.approx(np.mean(by_shell), abs=1e-4)


@pytest.mark.parametrize("n", [20, 21])
def test_a_density_agrees_with_its_inverse_only_if_it_has_a_centre(
    n: int, blobs: Blobs, everywhere: Everywhere
) -> None:
    transform = transform_of(blobs(n))
    both = shifted(transform, (0.3, 0.4, -2.1))
    both = shifted(both + np.conj(both), (1.7, -0.2, 0.5))  # the mixture of both hands, anywhere
    one, mixed = level_shells(np.stack([transform, both]), everywhere(n))
    assert agreement_with_other_hand(mixed) == pytest.approx(1, abs=1e-3)
    assert agreement_with_other_hand(one) < 0.9
    turned = align_starts(np.conj(one), one[None])
    assert agreement_with_other_hand(one) == pytest.approx(turned.other_hand[0], abs=0.15)


def test_many_starts_are_aligned_in_parts_as_in_one(
    monkeypatch: pytest.MonkeyPatch, blobs: Blobs, everywhere: Everywhere
) -> None:
    n = 12
    levelled = level_shells(transform_of(np.stack([blobs(n, seed) for seed in range(5)])), everywhere(n))
    whole = align_starts(levelled[0], levelled)
    monkeypatch.setattr("orienteer.phase.alignment.VOXELS_AT_A_TIME", 2 * n**3)
    parts = align_starts(levelled[0], levelled)
    for name in StartAlignment.__dataclass_fields__:
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), atol=1e-5)


@pytest.mark.gpu
def test_the_gpu_aligns_as_the_cpu_does(blobs: Blobs, everywhere: Everywhere) -> None:
    import cupy

    n = 20
    starts = np.stack([blobs(n, at=(0.1 * s, s, -0.5 * s)) for s in range(4)]).astype(np.float32)
    levelled = level_shells(transform_of(starts), everywhere(n))
    on_gpu = level_shells(transform_of(cupy.asarray(starts)), cupy.asarray(everywhere(n)))
    expected = align_starts(levelled[0], levelled)
    found = align_starts(on_gpu[0], on_gpu)
    for name in StartAlignment.__dataclass_fields__:
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-3)
    moved = apply_alignment(transform_of(cupy.asarray(starts)), found)
    np.testing.assert_allclose(moved.get(), apply_alignment(transform_of(starts), expected), atol=1e-2)
