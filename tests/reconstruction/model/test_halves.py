"""Halves and sentinels: names of events decide, evenly and for ever."""

import numpy as np
import pytest

from orienteer.reconstruction.model.halves import half_of_events, sentinels_of_events


def test_halves_and_sentinels_are_even_and_independent_for_any_names() -> None:
    for names in (np.arange(20_000), np.arange(20_000) * 16 + 3, (np.arange(20_000) << 40) | 77):
        half = half_of_events(names.astype(np.uint64))
        watching = sentinels_of_events(names.astype(np.uint64), 0.05)
        assert half.mean() == pytest.approx(0.5, abs=0.02)
        assert watching.mean() == pytest.approx(0.05, abs=0.01)
        assert half[watching].mean() == pytest.approx(0.5, abs=0.1)
        assert abs(np.corrcoef(half[1:], half[:-1])[0, 1]) < 0.03
    assert not sentinels_of_events(np.arange(1000, dtype=np.uint64), 0.0).any()


def test_a_frame_stays_in_its_half_for_ever() -> None:
    """Runs of different years must be comparable: these numbers must not change."""
    names = np.array([0, 1, 2, 3, 4, 5, 6, 7, 2**63], dtype=np.uint64)
    assert half_of_events(names).tolist() == [0, 1, 1, 0, 1, 1, 1, 1, 0]
    assert np.flatnonzero(sentinels_of_events(np.arange(100, dtype=np.uint64), 0.05)).tolist() == [
        43,
        66,
        74,
        96,
    ]
