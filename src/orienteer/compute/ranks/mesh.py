"""Mesh: ranks as a grid of orientations times patterns.

Consecutive ranks form a group.  A group owns a part of the frames, and its ranks divide the orientations of
these frames among them; groups own different frames.  "2x3" are three groups of two ranks.  Frames cost
memory and reading, orientations cost slicing: with one group, every rank holds all frames; with many groups,
every slice is computed many times.

The two half sets of the frames are compared with different models.  If the half sets are apart, the first
groups own the frames of one half and the other groups those of the other: both halves are oriented at the
same time, and a rank makes slices of one model only.
"""

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from orienteer.compute.ranks.comm import SERIAL, Comm
from orienteer.compute.words import counted
from orienteer.errors import SettingsError

HalfSets = Literal["auto", "apart", "together"]


@dataclass(frozen=True, eq=False)
class Mesh:
    """The ranks of a run.

    all : every rank.
    poses : the ranks of one group, which work on the same frames and divide the orientations.
    half : the ranks that orient the same half sets as this one; all, unless the half sets are apart.
    number : of this rank.
    n_groups : number of groups, each with its own frames.
    first, last : the ranks of this group: first .. last.
    bounds : where the ranks of each half set begin, and where the last end: (0, n), or three numbers if the
        halves are apart.
    """

    all: Comm
    poses: Comm
    half: Comm
    number: int = 0
    n_groups: int = 1
    first: int = 0
    last: int = 1
    bounds: tuple[int, ...] = (0, 1)

    @classmethod
    def of(
        cls, world: Comm, shape: str = "auto", *, half_sets: HalfSets = "together", dynamic: bool = True
    ) -> "Mesh":
        """The ranks of ``world`` as a mesh; collective.

        shape : "auto": a group for every machine.  "2x3": groups of 2 ranks, 3 of them.  With another number
            of ranks there are as many groups, as even as possible, but never an empty one.
        half_sets : whether each half of the frames has its own groups; "auto": if both then have the same
            number of ranks.  If apart, there are at least two groups.
        dynamic : whether ranks of a group claim orientations as they become free, so that slow ones do less,
            or take the same number each.
        """
        if world.size == 1:
            return cls(world, world, world)
        # Machines may have unequal numbers of ranks, and all ranks must count the same machines.
        n_machines = max(1, round(float(world.sum(1 / world.n_local))))
        n_groups = n_groups_of(shape, world.size, n_machines)
        if half_sets == "apart":
            n_groups = max(2, n_groups)
        starts = [number * world.size // n_groups for number in range(n_groups + 1)]
        middle = starts[n_groups // 2]
        is_apart = half_sets == "apart" or (half_sets == "auto" and 2 * middle == world.size)
        here = world.share(world.size).start
        own = max(number for number in range(n_groups) if starts[number] <= here)
        poses = world.split(own, dynamic=dynamic)
        half = world.split(int(here >= middle)) if is_apart else world
        bounds = (0, middle, world.size) if is_apart else (0, world.size)
        return cls(world, poses, half, here, n_groups, starts[own], starts[own + 1], bounds)

    @property
    def is_apart(self) -> bool:
        """Whether each half set of the frames has ranks of its own."""
        return len(self.bounds) > 2

    def orients(self, half: int) -> bool:
        """Whether this rank may hold frames of a half."""
        return not self.is_apart or self.bounds[half] <= self.first < self.bounds[half + 1]

    def homes(self, half: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rank that every frame belongs to, (N,); ranks of the same half set have equally many.

        half : (N,) the half set of every frame, 0 or 1; not used if the half sets are together.
        """
        home = np.zeros(len(half), dtype=np.int64)
        for number, (first, last) in enumerate(pairwise(self.bounds)):
            frames = np.flatnonzero(half == number) if self.is_apart else np.arange(len(half))
            starts = np.arange(last - first + 1) * len(frames) // (last - first)
            home[frames] = np.repeat(np.arange(first, last), np.diff(starts))
        return home

    def is_own(self, home: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether frames belong to this rank, (N,).  home : (N,) the rank that each belongs to."""
        return np.asarray(home == self.number)

    def is_in_group(self, home: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether frames belong to a rank of this group, (N,)."""
        return np.asarray((home >= self.first) & (home < self.last))

    def close(self) -> None:
        """Free the groups at the end of a run; collective."""
        for comm in (self.poses, self.half):
            if comm is not self.all:
                comm.close()

    @property
    def shape(self) -> str:
        """Ranks of the largest group times groups, in the form of the setting."""
        return f"{-(-self.all.size // self.n_groups)}x{self.n_groups}"

    @property
    def sent_bytes(self) -> int:
        """Bytes that this rank has sent to others so far."""
        comms = {id(comm): comm for comm in (self.all, self.poses, self.half)}
        return sum(comm.traffic.n_bytes for comm in comms.values())


SERIAL_MESH = Mesh(SERIAL, SERIAL, SERIAL)


def n_groups_of(shape: str, n_ranks: int, n_machines: int) -> int:
    """Number of groups of a mesh, from its setting.

    >>> n_groups_of("auto", 8, 2), n_groups_of("2x4", 8, 2), n_groups_of("2x4", 3, 1)
    (2, 4, 3)
    """
    return n_machines if shape == "auto" else min(_asked(shape)[1], n_ranks)


def unlike_asked(mesh: Mesh, shape: str, half_sets: HalfSets) -> list[str]:
    """Sentences that say where a mesh differs from what was asked for.

    >>> unlike_asked(SERIAL_MESH, "2x4", "together")
    ['A mesh of 2x4 is for 8 ranks, and there is 1: it is 1x1.']
    """
    found, n_ranks = [], mesh.all.size
    if half_sets == "apart" and n_ranks == 1:
        found.append("Half sets apart need 2 ranks at least; one process orients both.")
    if shape == "auto":
        return found
    per_group, n_groups = _asked(shape)
    if per_group * n_groups != n_ranks:
        needed = counted(per_group * n_groups, "rank")
        there = "there is 1" if n_ranks == 1 else f"there are {n_ranks}"
        found.append(f"A mesh of {shape} is for {needed}, and {there}: it is {mesh.shape}.")
    elif n_groups != mesh.n_groups:
        found.append(f"Half sets apart need a group each, so that a mesh of {shape} is {mesh.shape}.")
    return found


def _asked(shape: str) -> tuple[int, int]:
    """Ranks of a group, and number of groups, from the setting of a mesh."""
    asked = re.fullmatch(r"([1-9]\d*)x([1-9]\d*)", shape.strip())
    if asked is None:
        raise SettingsError(
            f"a mesh of '{shape}' is not understood.",
            "Give auto, or ranks that share orientations x groups that share frames, such as 2x2.",
        )
    return int(asked[1]), int(asked[2])
