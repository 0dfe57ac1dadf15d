"""Mesh: all ranks agree about it, whatever machines they are on."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orienteer.compute.ranks.comm import Serial, share_of
from orienteer.compute.ranks.mesh import SERIAL_MESH, HalfSets, Mesh, unlike_asked


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


HALF = np.random.default_rng(3).integers(0, 2, 300)


def meshes_of(machines: list[int], shape: str = "auto", half_sets: HalfSets = "together") -> list[Mesh]:
    """The mesh as every rank sees it."""
    return [Mesh.of(Told(number, machines), shape, half_sets=half_sets) for number in range(sum(machines))]


@pytest.mark.parametrize("half_sets", ["together", "apart"])
@pytest.mark.parametrize("machines", [[2, 1], [3, 1], [4, 4, 2], [1, 1, 1], [5]])
def test_machines_with_unequal_numbers_of_ranks_own_each_frame_once(
    machines: list[int], half_sets: HalfSets
) -> None:
    meshes = meshes_of(machines, half_sets=half_sets)
    n_groups = max(len(machines), 2 if half_sets == "apart" else 1)
    assert {mesh.n_groups for mesh in meshes} == {n_groups}
    home = meshes[0].homes(HALF)
    assert all((mesh.homes(HALF) == home).all() for mesh in meshes)
    assert sum(mesh.is_own(home).astype(int) for mesh in meshes).tolist() == [1] * 300
    groups = {mesh.first: mesh for mesh in meshes}.values()
    assert sum(mesh.is_in_group(home).astype(int) for mesh in groups).tolist() == [1] * 300
    for mesh in meshes:
        assert mesh.first <= mesh.number < mesh.last
        assert {home[frame] for frame in np.flatnonzero(mesh.is_in_group(home))} == set(
            range(mesh.first, mesh.last)
        )


@pytest.mark.parametrize(("n", "shape"), [(2, "auto"), (3, "auto"), (4, "2x2"), (5, "1x5"), (7, "2x3")])
def test_halves_that_are_apart_meet_on_no_rank(n: int, shape: str) -> None:
    meshes = meshes_of([n], shape, "apart")
    home = meshes[0].homes(HALF)
    for mesh in meshes:
        (half,) = set(HALF[mesh.is_in_group(home)])
        assert mesh.orients(half)
        assert not mesh.orients(1 - half)
    counts = [np.bincount(home[half == HALF], minlength=n) for half in (0, 1)]
    for count in counts:
        assert np.ptp(count[count > 0]) <= 1, "ranks of a half have as many frames each"


@pytest.mark.parametrize(
    ("machines", "shape", "is_apart"),
    [
        ([2], "auto", False),  # one group, whose ranks take work from each other
        ([2, 2], "auto", True),
        ([3, 1], "2x2", True),
        ([3, 2], "auto", False),  # the halves would wait for each other
        ([1, 1, 1], "auto", False),
        ([4], "1x4", True),
        ([6], "2x3", False),
    ],
)
def test_halves_are_apart_where_both_then_have_as_many_ranks(
    machines: list[int], shape: str, is_apart: bool
) -> None:
    assert {mesh.is_apart for mesh in meshes_of(machines, shape, "auto")} == {is_apart}


def test_what_a_mesh_holds_of_mpi_is_given_back(run_ranks: Callable[..., str]) -> None:
    """Many runs in one process need room for one mesh."""
    script = Path(__file__).with_name("closing_script.py")
    assert int(run_ranks(2, script)) == 3 * 42


@pytest.mark.parametrize(
    ("machines", "shape", "half_sets", "words"),
    [
        ([2], "auto", "auto", ""),
        ([2, 2], "2x2", "together", ""),
        ([2], "3x9", "together", "A mesh of 3x9 is for 27 ranks, and there are 2: it is 1x2."),
        ([1], "3x9", "together", "A mesh of 3x9 is for 27 ranks, and there is 1: it is 1x1."),
        ([1], "1x1", "apart", "Half sets apart need 2 ranks at least; one process orients both."),
        ([2], "2x1", "apart", "Half sets apart need a group each, so that a mesh of 2x1 is 1x2."),
    ],
)
def test_a_mesh_that_cannot_be_as_it_was_asked_for_is_told(
    machines: list[int], shape: str, half_sets: HalfSets, words: str
) -> None:
    mesh = SERIAL_MESH if machines == [1] else meshes_of(machines, shape, half_sets)[0]
    assert " ".join(unlike_asked(mesh, shape, half_sets)) == words
