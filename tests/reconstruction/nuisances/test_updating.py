"""What is learnt about frames beside their poses."""

import numpy as np

from orienteer.reconstruction.nuisances.updating import odds_in_states


def test_frames_of_a_badly_known_state_are_judged_against_each_other() -> None:
    odds = np.array([5.0, 8.0, -30.0, -20.0, -22.0, -60.0, -1.0])
    model = np.array([0, 0, 0, 1, 1, 1, -1])
    learns = np.array([True] * 6 + [False])
    # The first state explains its frames, of which one is strange; the second explains none of its own.
    assert odds_in_states(odds, model, learns).tolist() == [5.0, 8.0, -30.0, 2.0, 0.0, -38.0, -1.0]
