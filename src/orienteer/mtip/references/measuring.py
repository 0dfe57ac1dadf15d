"""How long it takes to make, copy and fetch a tile on this machine, measured with a few tiles."""

import os
import tempfile
import time
from collections.abc import Callable

import numpy as np

from orienteer.compute.arrays import Array, import_cupy, is_on_gpu, to_numpy
from orienteer.errors import OrienteerError
from orienteer.mtip.references.file_store import FileStore
from orienteer.mtip.references.planning import Rates
from orienteer.mtip.references.references import Maker
from orienteer.mtip.references.tiling import Tiling
from orienteer.mtip.references.topology import Ranks
from orienteer.mtip.references.window_store import WindowStore

# The fastest of this many tries counts: other work of the machine only makes them slower.
_TRIES = 3


def measure_rates(
    make: Maker, tiling: Tiling, score_seconds: float, ranks: Ranks | None = None,
    folder: str | os.PathLike[str] | None = None, with_disk: bool = True,
) -> Rates:  # fmt: skip
    """Seconds for a tile on the slowest rank, the same numbers on all ranks; all of them measure together.

    make : makes a tile; called for tile 0.
    score_seconds : time to score a tile, already known to the caller.
    folder : on the disk to measure; by default that for temporary files.
    with_disk : whether to measure the disk; else its time is infinite.
    """
    values = make(0)
    n_rows = tiling.starts[1] - tiling.starts[0]
    one = Tiling.even(n_rows, n_rows, tiling.n_pixels)
    slots = np.zeros((2, one.slot_bytes), dtype=np.uint8)
    memory = near = _fastest(lambda: np.copyto(slots[0], slots[1]))
    if is_on_gpu(values):
        memory, on_host = _fastest(lambda: values.copy()), to_numpy(values)
        near += _fastest(lambda: import_cupy().asarray(on_host))  # type: ignore[union-attr]
    seconds = [
        _fastest(lambda: make(0)),
        score_seconds,
        memory,
        near,
        _network_seconds(one, ranks),
        _disk_seconds(one, folder) if with_disk else float("inf"),
    ]
    if ranks is not None:
        seconds = np.max(ranks.comm.allgather(seconds), axis=0).tolist()
    return Rates(*seconds)


def _network_seconds(one: Tiling, ranks: Ranks | None) -> float:
    """Seconds to fetch a tile from the next node; infinite if there is only one node."""
    if ranks is None or len(ranks.nodes) < 2:
        return float("inf")
    # Every rank keeps one tile; fetch the first one in its order that is on another node.
    each = Tiling.even(one.n_rows * ranks.comm.size, one.n_rows, one.n_pixels)
    store = WindowStore(each, ranks.group(len(ranks.nodes)))
    far = next(share[0] for share in store.order if store.in_place(share[0]) is None)
    into = np.empty(each.slot_bytes, dtype=np.uint8)
    store.meet()
    seconds = _fastest(lambda: store.fetch(far, into))
    store.meet()
    store.close()
    return seconds


def _disk_seconds(one: Tiling, folder: str | os.PathLike[str] | None) -> float:
    """Seconds to write a tile to the disk itself, past the page cache; reading is assumed to take as long."""
    values = np.zeros(one.shape(0), dtype=np.float32)
    try:
        store = FileStore(one, folder or tempfile.gettempdir())
    except OrienteerError:
        return float("inf")

    def write() -> None:
        store.write(0, values)
        store.flush()

    seconds = _fastest(write)
    store.close()
    return seconds


def _fastest(work: Callable[[], Array | None]) -> float:
    seconds = []
    for _ in range(_TRIES):
        began = time.perf_counter()
        done = work()
        if done is not None and is_on_gpu(done):
            import_cupy().cuda.get_current_stream().synchronize()  # type: ignore[union-attr]
        seconds.append(time.perf_counter() - began)
    return min(seconds)
