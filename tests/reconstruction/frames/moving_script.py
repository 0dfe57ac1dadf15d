"""Every rank sends the frames that it has read to those that they belong to; says "fine" at the end.

Argument: dense or sparse.
"""

import sys

import numpy as np
from gathering_script import FRAMES, made_up

from orienteer.compute.ranks.world import world
from orienteer.reconstruction.frames.moving import sent_home
from orienteer.source.patterns import Patterns


def main(layout: str) -> None:
    comm, whole = world(), made_up()
    if layout == "sparse":
        whole = Patterns(whole.sparse(), whole.event_id, whole.columns)
    here, own = comm.share(comm.size).start, comm.share(FRAMES)
    # The last rank gets nothing, unless there are two only.
    homes = np.random.default_rng(2).integers(0, max(2, comm.size - 1), FRAMES)
    found, expected = sent_home(comm, whole[own], homes[own]), whole[homes == here]
    assert found.is_sparse == whole.is_sparse
    assert np.array_equal(found.dense(), expected.dense())
    assert np.array_equal(found.event_id, expected.event_id)
    assert np.array_equal(found.columns["frame_mask"], expected.columns["frame_mask"])
    assert all(comm.gather(len(found) == (homes == here).sum()))
    if comm.is_first:
        print("fine")


if __name__ == "__main__":
    main(sys.argv[1])
