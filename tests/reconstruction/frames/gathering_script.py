"""Every rank gives its frames to all; prints how much memory that took, in sizes of the result.

Argument: dense or sparse.
"""

import sys
import tracemalloc

import numpy as np

from orienteer.compute.ranks.world import world
from orienteer.reconstruction.frames.frame_store import bytes_of
from orienteer.reconstruction.frames.moving import gathered
from orienteer.source.patterns import Patterns

FRAMES, PIXELS = 600, 4000


def made_up() -> Patterns:
    draw = np.random.default_rng(1)
    mask = (draw.random((FRAMES, PIXELS)) < 0.01).astype(np.uint8)
    counts = draw.poisson(0.3, (FRAMES, PIXELS)).astype(np.int32)
    columns = {"frame_mask": mask, "truth_fluence": draw.random(FRAMES)}
    return Patterns(counts, np.arange(FRAMES) + 100, columns)


def main(layout: str) -> None:
    comm, whole = world(), made_up()
    if layout == "sparse":
        whole = Patterns(whole.sparse(), whole.event_id, whole.columns)
    own = whole[comm.share(FRAMES)]
    tracemalloc.start()
    found = gathered(comm, own)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.is_sparse == whole.is_sparse
    assert np.array_equal(found.dense(), whole.dense())
    assert np.array_equal(found.event_id, whole.event_id)
    assert np.array_equal(found.columns["frame_mask"], whole.columns["frame_mask"])
    assert list(found.columns) == ["frame_mask"]
    if comm.is_first:
        print(peak / bytes_of(found))


if __name__ == "__main__":
    main(sys.argv[1])
