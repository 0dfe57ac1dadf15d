"""What every rank does in the tests of ranks: run by mpiexec, says "fine" at the end."""

import sys
from itertools import chain

import numpy as np
import pytest

from orienteer.compute.ranks.comm import complete_rows
from orienteer.compute.ranks.mesh import Mesh
from orienteer.compute.ranks.world import world
from orienteer.errors import FileError, OrienteerError


def main(shape: str) -> None:
    comm = world()
    n, here = comm.size, comm.share(comm.size).start
    parts = [np.random.default_rng(number).normal(size=(7, 5)) for number in range(n)]
    in_order = parts[0].copy()
    for part in parts[1:]:
        in_order += part
    assert (comm.sum(parts[here]) == in_order).all()
    assert comm.sum(parts[here].astype(np.float32)).dtype == np.float32
    assert comm.sum(np.zeros((0, 3))).shape == (0, 3)
    assert comm.sum(here) == n * (n - 1) // 2
    assert comm.sum(0.5) == 0.5 * n
    assert (comm.max(parts[here]) == np.max(parts, axis=0)).all()
    assert (comm.min(parts[here]) == np.min(parts, axis=0)).all()
    own = np.full((here, 2), here)
    assert comm.rows(own)[:, 0].tolist() == [number for number in range(n) for _ in range(number)]
    keys = np.arange(10 * here, 10 * here + 6)
    came, rows = comm.exchange(keys, keys[:, None] * 2.0)
    assert (came % n == here).all()
    assert comm.sum(len(came)) == 6 * n
    assert (rows[:, 0] == 2 * came).all()
    assert comm.bcast({"of": here}) == {"of": 0}
    assert comm.gather("x" * here) == ["x" * number for number in range(n)]
    column = np.zeros(11)
    mine = np.arange(11)[comm.share(11)]
    column[mine] = mine
    wide, flags = np.zeros((11, 4), dtype=np.float32), np.zeros(11, dtype=bool)
    wide[mine], flags[mine] = mine[:, None] + np.arange(4), mine % 3 == 0
    before = comm.traffic.n_calls
    complete_rows(comm, mine, column, wide, flags)
    assert comm.traffic.n_calls - before == (1 if n > 1 else 0)
    assert (column == np.arange(11)).all()
    assert (wide == np.arange(11)[:, None] + np.arange(4)).all()
    assert (flags == (np.arange(11) % 3 == 0)).all()
    complete_rows(comm, np.zeros(0, dtype=np.int64), column, wide)
    assert (column == np.arange(11)).all()
    for dynamic in (True, False):
        work = comm.split(0, dynamic=dynamic)
        for n_items in (23, 1, 0):
            done = list(work.claimed(range(n_items)))
            assert sorted(chain(*work.gather(done))) == list(range(n_items))
    with pytest.raises(FileError, match=r"frames\.h5: is broken"):
        comm.agree(FileError("frames.h5", "is broken.") if here == n - 1 else None)
    with pytest.raises(OrienteerError, match="a frame is broken"):
        comm.agree(OrienteerError("a frame is broken.") if here == n - 1 else None)
    mesh = Mesh.of(comm, shape)
    home = mesh.homes(np.arange(13) % 2)
    frames = mesh.is_in_group(home) / mesh.poses.size
    assert np.allclose(comm.sum(frames), 1)
    assert (comm.sum(mesh.is_own(home).astype(np.int64)) == 1).all()
    n_ranks = comm.sum(1 / mesh.poses.size)
    assert round(n_ranks) == mesh.n_groups
    before = comm.traffic.n_bytes
    comm.sum(np.zeros(1000 * n))
    assert comm.traffic.n_bytes - before == 2 * (n - 1) * 8000
    comm.gather(None)
    if comm.is_first:
        print("fine")


if __name__ == "__main__":
    main(sys.argv[1])
