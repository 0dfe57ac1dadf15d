"""Mesh: all ranks agree about it, whatever machines they are on."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orienteer.compute.ranks.comm import Serial, share_of
from orienteer.compute.ranks.mesh import Mesh


class Told(Serial):
    """A rank among others on machines with so many ranks each, which knows what the others would say."""

    def __init__(self, number: int, ranks_of_machines: list[int]) -> None:
        super().__init__()
        locals_of = np.repeat(ranks_of_machines, ranks_of_machines)
        self.size, self._number = len(locals_of), number  # type: ignore[assignment]
        self.n_local, self._inverse = int(locals_of[number]), 1 / locals_of  # type: ignore[assignment]

    def sum(self, x: Any) -> Any:
        assert x == self._inverse[self._number], "only the number of machines is asked for here"
        return self._inverse.sum()

    def share(self, n: int) -> slice:
        return share_of(n, self._number, self.size)

    def split(self, group: int, *, dynamic: bool = True) -> Serial:
        return Serial()


@pytest.mark.parametrize("machines", [[2, 1], [3, 1], [4, 4, 2], [1, 1, 1], [5]])
def test_machines_with_unequal_numbers_of_ranks_own_each_frame_once(machines: list[int]) -> None:
    meshes = [Mesh.of(Told(number, machines)) for number in range(sum(machines))]
    assert {mesh.n_groups for mesh in meshes} == {len(machines)}
    owners = np.zeros(300)
    for first, last, frames in {(m.first, m.last, (m.owned(300).start, m.owned(300).stop)) for m in meshes}:
        assert first < last
        owners[slice(*frames)] += 1
    assert (owners == 1).all()


def test_what_a_mesh_holds_of_mpi_is_given_back(run_ranks: Callable[..., str]) -> None:
    """Many runs in one process need room for one mesh."""
    script = Path(__file__).with_name("closing_script.py")
    assert int(run_ranks(2, script)) == 3 * 42
