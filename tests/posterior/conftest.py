"""What tests of posteriors share."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from orienteer.compute.arrays import to_numpy
from orienteer.posterior.responsibilities import Responsibilities


@pytest.fixture
def matrix_of() -> Callable[[Responsibilities], NDArray[np.float32]]:
    """Lists of responsibilities as the whole matrix (K, D)."""

    def matrix_of(lists: Responsibilities) -> NDArray[np.float32]:
        matrix = np.zeros((lists.n_rows, lists.n_frames), np.float32)
        start, row, probability = (to_numpy(x) for x in (lists.start, lists.row, lists.probability))
        for d in range(lists.n_frames):
            own = slice(start[d], start[d + 1])
            matrix[row[own], d] = probability[own]
        return matrix

    return matrix_of
