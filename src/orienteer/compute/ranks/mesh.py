"""Mesh: ranks as a grid of orientations times patterns.

Ranks that follow each other form a group.  A group owns a part of the frames, and its ranks share out the
orientations of these frames among them; groups own different frames.  "2x3" are three groups of two ranks.
Frames cost memory and reading, orientations cost slicing: one group needs every frame in every memory, many
groups make every slice many times.
"""

import re
from dataclasses import dataclass

from orienteer.compute.ranks.comm import SERIAL, Comm
from orienteer.errors import SettingsError


@dataclass(frozen=True, eq=False)
class Mesh:
    """The ranks of a run.

    all : every rank.
    poses : the ranks of one group, which work on the same frames and share out the orientations.
    n_groups : groups that own frames of their own.
    first, last : this group among the ranks: first .. last.
    """

    all: Comm
    poses: Comm
    n_groups: int = 1
    first: int = 0
    last: int = 1

    @classmethod
    def of(cls, world: Comm, shape: str = "auto", *, dynamic: bool = True) -> "Mesh":
        """The ranks of ``world`` as a mesh; all of them ask for it together.

        shape : "auto": a group for every machine.  "2x3": groups of 2 ranks, 3 of them.  With another number
            of ranks there are as many groups, as even as possible, but never an empty one.
        dynamic : whether ranks of a group claim orientations as they become free, so that slow ones do less,
            or have the same number each.
        """
        if world.size == 1:
            return cls(world, world)
        # Machines may have unequal numbers of ranks, and all ranks must count the same machines.
        n_machines = max(1, round(float(world.sum(1 / world.n_local))))
        n_groups = n_groups_of(shape, world.size, n_machines)
        starts = [number * world.size // n_groups for number in range(n_groups + 1)]
        here = world.share(world.size).start
        own = max(number for number in range(n_groups) if starts[number] <= here)
        return cls(world, world.split(own, dynamic=dynamic), n_groups, starts[own], starts[own + 1])

    def owned(self, n_frames: int) -> slice:
        """The frames of this group, side by side: as large a part of n as its part of the ranks."""
        return slice(self.first * n_frames // self.all.size, self.last * n_frames // self.all.size)

    def close(self) -> None:
        """Give the groups back, together with all ranks; a run whose mesh it was is over."""
        if self.poses is not self.all:
            self.poses.close()

    @property
    def shape(self) -> str:
        """Ranks of the largest group times groups, in the form in which it is asked for."""
        return f"{-(-self.all.size // self.n_groups)}x{self.n_groups}"

    @property
    def sent_bytes(self) -> int:
        """What this rank has sent to others so far."""
        comms = {id(comm): comm for comm in (self.all, self.poses)}
        return sum(comm.traffic.n_bytes for comm in comms.values())


SERIAL_MESH = Mesh(SERIAL, SERIAL)


def n_groups_of(shape: str, n_ranks: int, n_machines: int) -> int:
    """Groups of a mesh that is asked for in words.

    >>> n_groups_of("auto", 8, 2), n_groups_of("2x4", 8, 2), n_groups_of("2x4", 3, 1)
    (2, 4, 3)
    """
    if shape == "auto":
        return n_machines
    asked = re.fullmatch(r"([1-9]\d*)x([1-9]\d*)", shape.strip())
    if asked is None:
        raise SettingsError(
            f"a mesh of '{shape}' is not understood.",
            "Say auto, or ranks that share orientations times groups that share frames, such as 2x2.",
        )
    return min(int(asked[2]), n_ranks)
