"""Every kind of references hands out the slices that were made, each tile once."""

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orienteer.errors import FileError, OrienteerError
from orienteer.mtip.references.file_store import FileStore
from orienteer.mtip.references.opening import open_references
from orienteer.mtip.references.references import Kept
from orienteer.mtip.references.stores import MemoryStore
from orienteer.mtip.references.tiling import Tiling
from orienteer.mtip.references.trace import Trace


def slices_of(tiling: Tiling, tile: int, model: int) -> np.ndarray:
    rng = np.random.default_rng([model, tile])
    return rng.normal(size=tiling.shape(tile)).astype(np.float32)


@pytest.mark.parametrize("kind", ["recompute", "replicate", "share", "distribute", "disk"])
@pytest.mark.parametrize("by_pixel", [False, True])
def test_alone_all_kinds_hand_out_the_same_bits_for_every_model(
    kind: Any, by_pixel: bool, tmp_path: Path
) -> None:
    tiling = Tiling((0, 4, 8, 9, 13, 14), 6, by_pixel)
    references = open_references(kind, tiling, folder=tmp_path)
    for model in range(2):
        references.fill(lambda tile, model=model: slices_of(tiling, tile, model))
        seen = []
        for tile, found in references.visit():
            assert np.array_equal(found, slices_of(tiling, tile, model))
            seen.append(tile)
        assert sorted(seen) == list(range(5))
        assert np.array_equal(references.tile(3), slices_of(tiling, 3, model))
    references.close()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("ahead", [0, 1, 3])
def test_numbers_come_back_from_disk_as_they_were(ahead: int, tmp_path: Path) -> None:
    tiling = Tiling.even(50, 8, 20)
    references = Kept(FileStore(tiling, tmp_path), ahead=ahead)
    references.fill(lambda tile: slices_of(tiling, tile, 0))
    for tile, found in references.visit():
        assert np.array_equal(found, slices_of(tiling, tile, 0))
    references.close()


def test_slices_stay_valid_until_the_next_are_asked_for_however_slow_the_reader(tmp_path: Path) -> None:
    tiling = Tiling.even(40, 4, 8)
    references = Kept(FileStore(tiling, tmp_path), ahead=2)
    references.fill(lambda tile: slices_of(tiling, tile, 0))
    for tile, found in references.visit():
        time.sleep(0.01)
        assert np.array_equal(found, slices_of(tiling, tile, 0))
    references.close()


def test_the_next_tile_is_fetched_while_one_is_worked_on(tmp_path: Path) -> None:
    """The reader of tile 0 waits until tile 1 has been fetched, which would be for ever without a thread."""
    tiling = Tiling.even(8, 4, 8)
    fetched = threading.Event()

    class Told(FileStore):
        def fetch(self, tile: int, into: Any) -> None:
            super().fetch(tile, into)
            if tile == 1:
                fetched.set()

    references = Kept(Told(tiling, tmp_path), ahead=1)
    references.fill(lambda tile: slices_of(tiling, tile, 0))
    for tile, _ in references.visit():
        if tile == 0:
            assert fetched.wait(60)
    references.close()


@pytest.mark.parametrize("ahead", [0, 1, 2])
def test_a_buffer_is_filled_again_only_after_the_work_on_what_it_held(ahead: int, tmp_path: Path) -> None:
    """A GPU works later than it is asked to: every use is noted before the buffer is filled again."""
    tiling = Tiling.even(40, 4, 8)
    references = Kept(FileStore(tiling, tmp_path), ahead=ahead)
    references.fill(lambda tile: slices_of(tiling, tile, 0))
    bring, in_use, too_early = references._carrier.bring, set[int](), []

    def watched(tile: int, which: int) -> np.ndarray:
        too_early.extend([tile] if which in in_use else [])
        in_use.add(which)
        return bring(tile, which)

    references._carrier.bring = watched  # type: ignore[method-assign]
    references._carrier.note_use = in_use.discard  # type: ignore[method-assign]
    for tile, _ in references.visit():
        if tile == 5:
            break
    references.tile(7)
    references.tile(8)
    assert [tile for tile, _ in references.visit()] == references.order
    references.tile(9)
    assert not too_early
    references.close()


def test_memory_is_what_was_kept_and_the_buffers(tmp_path: Path) -> None:
    tiling = Tiling.even(64, 8, 100)
    kept = Kept(MemoryStore(tiling))
    assert kept.store.bytes_kept == 64 * 100 * 4
    assert kept.buffer_bytes == 0
    on_disk = Kept(FileStore(tiling, tmp_path), ahead=1)
    assert on_disk.store.bytes_kept == 0
    assert on_disk.buffer_bytes == 2 * tiling.slot_bytes


def test_a_trace_notes_every_visit(tmp_path: Path) -> None:
    tiling, trace = Tiling.even(12, 4, 3), Trace()
    references = open_references("disk", tiling, folder=tmp_path, trace=trace)
    references.fill(lambda tile: slices_of(tiling, tile, 0))
    assert len(list(references.visit())) == 3
    references.close()
    assert [visit.tile for visit in trace.visits] == [0, 1, 2]
    assert all(visit.is_copied and visit.end >= visit.start for visit in trace.visits)


def test_a_reader_that_leaves_early_can_begin_again(tmp_path: Path) -> None:
    tiling = Tiling.even(40, 4, 8)
    references = open_references("disk", tiling, folder=tmp_path)
    references.fill(lambda tile: slices_of(tiling, tile, 0))
    for tile, _ in references.visit():
        if tile == 2:
            break
    assert [tile for tile, _ in references.visit()] == list(range(10))
    references.close()


def test_a_disk_without_room_is_told_and_nothing_is_left(tmp_path: Path) -> None:
    huge = Tiling.even(2**20, 2**20, 2**30)
    with pytest.raises(FileError, match="GiB of references cannot be written"):
        FileStore(huge, tmp_path)
    assert not list(tmp_path.iterdir())


def test_an_unknown_kind_is_told() -> None:
    with pytest.raises(OrienteerError, match="no references of the kind 'borrow'"):
        open_references("borrow", Tiling.even(1, 1, 1))  # type: ignore[arg-type]


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["recompute", "replicate", "share", "disk"])
def test_on_the_gpu_tiles_arrive_where_they_are_scored(kind: Any, tmp_path: Path) -> None:
    import cupy

    tiling = Tiling.even(40, 4, 1000)
    references = open_references(kind, tiling, on_gpu=True, folder=tmp_path)
    references.fill(lambda tile: cupy.asarray(slices_of(tiling, tile, 0)))
    for tile, found in references.visit():
        doubled = (2 * found).get()
        assert np.array_equal(doubled, 2 * slices_of(tiling, tile, 0))
    references.close()


@pytest.mark.gpu
@pytest.mark.parametrize("ahead", [0, 1])
@pytest.mark.parametrize("one_by_one", [False, True])
def test_on_the_gpu_no_tile_is_overwritten_while_kernels_have_yet_to_read_it(
    ahead: int, one_by_one: bool, tmp_path: Path
) -> None:
    """Kernels are asked for and not waited for, and are much slower than copies."""
    import cupy

    tiling = Tiling.even(40, 4, 1000)
    references = Kept(FileStore(tiling, tmp_path), ahead=ahead, on_gpu=True)
    references.fill(lambda tile: cupy.asarray(slices_of(tiling, tile, 0)))
    busy = cupy.ones((4096, 4096), dtype=np.float32)
    cupy.cuda.Device().synchronize()
    found = []
    for tile, values in ((t, references.tile(t)) for t in range(10)) if one_by_one else references.visit():
        for _ in range(5):
            busy = busy @ busy * 1e-4
        found.append((tile, values.copy()))
    for tile, copied in found:
        assert np.array_equal(copied.get(), slices_of(tiling, tile, 0))
    references.close()
