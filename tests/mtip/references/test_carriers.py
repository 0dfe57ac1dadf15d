"""How many buffers are there, and who needs them."""

from pathlib import Path

import numpy as np
import pytest

from orienteer.mtip.references.carriers import HostCarrier
from orienteer.mtip.references.file_store import FileStore
from orienteer.mtip.references.stores import MemoryStore
from orienteer.mtip.references.tiling import Tiling


@pytest.mark.parametrize(("on_disk", "n_slots"), [(False, 0), (True, 3)])
def test_buffers_are_as_few_as_can_be(on_disk: bool, n_slots: int, tmp_path: Path) -> None:
    tiling = Tiling.even(20, 5, 8)
    store = FileStore(tiling, tmp_path) if on_disk else MemoryStore(tiling)
    carrier = HostCarrier(store, 3)
    assert carrier.nbytes == n_slots * tiling.slot_bytes
    assert carrier.reads_in_place == (carrier.nbytes == 0)


def test_a_tile_in_one_buffer_outlives_those_in_others(tmp_path: Path) -> None:
    tiling = Tiling.even(20, 5, 8)
    store = FileStore(tiling, tmp_path)
    for tile in range(4):
        store.write(tile, np.full((5, 8), tile, dtype=np.float32))
    carrier = HostCarrier(store, 2)
    first, second = carrier.bring(1, 0), carrier.bring(2, 1)
    assert (first == 1).all()
    assert (second == 2).all()
