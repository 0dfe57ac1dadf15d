"""What a reconstruction shows: how far the halves agree, as a resolution."""

import numpy as np
import pytest

from orienteer.compare.shells import shell_correlation
from orienteer.reconstruction.results import agreement_A

STEP = 0.01
N = 24
GOOD = [1.0] * 12


def agreement(*correlation: float, n: int = N) -> float | None:
    """Of a curve of ``n`` shells, 0 behind the given ones."""
    curve = [*correlation, *[0.0] * (n - len(correlation))]
    return agreement_A({"q_inv_A": (STEP * np.arange(1, n + 1)).tolist(), "half_correlation": curve})


@pytest.mark.parametrize(
    ("correlation", "shells"),
    [
        ([*GOOD, 0.9, 0.1], 13.5),  # half way between two shells
        ([*GOOD, 0.5, 0.1], 13),
        ([*GOOD, 0.9, *[np.nan] * 11], 13 + 0.4 / 0.9),
        ([*GOOD, 0.9, 0.1, 0.0, 0.2, 0.1, 0.9, 0.9, 0.9], 13.5),  # what comes after is not believed
        ([*GOOD, 0.9, 0.45, 0.9, 0.9, 0.9, 0.1], 17.5),  # a dip narrower than a speckle
        ([*GOOD, *GOOD], 24),  # to the edge
        ([*[1.0] * 5], None),  # less than a speckle
        ([*[0.4] * 24], None),
        ([np.nan] * 24, None),
    ],
)
def test_halves_agree_to_where_their_correlation_falls_below_half(
    correlation: list[float], shells: float | None
) -> None:
    found = agreement(*correlation)
    assert found == (None if shells is None else pytest.approx(1 / (STEP * shells)))


@pytest.mark.parametrize(
    "inner",
    [
        [-0.76, -0.46, -0.125, 0.78, 0.96],
        [0.94, 0.44, 0.02, 0.75, 0.94],
        [-0.7, 0.6, 0.2, 0.8, 0.97],
        [0.1, 0.9, -0.2, 0.3, 0.4, 0.3, 0.8],  # a virus may be round beyond the first speckle
        [np.nan, np.nan, np.nan, 0.9],
    ],
)
def test_near_the_centre_a_virus_is_round_and_noise_there_ends_no_agreement(inner: list[float]) -> None:
    assert agreement(*inner, *GOOD, 0.9, 0.1) == pytest.approx(1 / (STEP * (len(inner) + 13.5)))


def test_speckles_of_unrelated_particles_hardly_ever_agree() -> None:
    """Chance makes single inner shells of them alike, which hold one independent value or few."""
    rng = np.random.default_rng(1)
    axis = np.arange(64) - 32
    inside = axis[:, None, None] ** 2 + axis[:, None] ** 2 + axis**2 < 8**2  # four voxels in a speckle

    def intensity() -> np.ndarray:
        density = np.where(inside, rng.normal(size=inside.shape), 0)
        return np.abs(np.fft.fftshift(np.fft.fftn(density))) ** 2

    found = [
        agreement(*shell_correlation(intensity(), intensity()).correlation[1 : N + 1]) for _ in range(60)
    ]
    assert sum(one is not None for one in found) <= 1


@pytest.mark.parametrize(("correlation", "shells"), [([0.9, 0.9], 2), ([0.3], None), ([0.9, 0.1], None)])
def test_of_few_shells_the_outermost_decides(correlation: list[float], shells: float | None) -> None:
    found = agreement(*correlation, n=len(correlation))
    assert found == (None if shells is None else pytest.approx(1 / (STEP * shells)))


def test_without_a_shell_there_is_no_agreement() -> None:
    assert agreement_A({"q_inv_A": [], "half_correlation": []}) is None
