"""What a reconstruction shows: how far the halves agree, as a resolution."""

import numpy as np
import pytest

from orienteer.reconstruction.results import agreement_A

Q = [0.01, 0.02, 0.03, 0.04]


@pytest.mark.parametrize(
    ("correlation", "resolution_A"),
    [
        ([1.0, 0.9, 0.1, 0.0], 1 / 0.025),  # half way between two shells
        ([1.0, 0.5, 0.1, 0.0], 1 / 0.02),
        ([0.2, 0.9, 0.1, 0.0], 1 / 0.025),  # few voxels near the centre
        ([1.0, 0.9, 0.1, 0.9], 1 / 0.025),  # what comes after is not believed
        ([1.0, 0.9, 0.8, 0.7], 1 / 0.04),  # to the edge
        ([1.0, 0.9, np.nan, np.nan], 1 / (0.02 + 0.01 * 0.4 / 0.9)),
        ([0.4, 0.3, 0.2, 0.1], None),
        ([np.nan] * 4, None),
    ],
)
def test_halves_agree_to_where_their_correlation_falls_below_half(
    correlation: list[float], resolution_A: float | None
) -> None:
    found = agreement_A({"q_inv_A": Q, "half_correlation": correlation})
    assert found == (None if resolution_A is None else pytest.approx(resolution_A))


def test_without_a_shell_there_is_no_agreement() -> None:
    assert agreement_A({"q_inv_A": [], "half_correlation": []}) is None
