"""Frames in batches are the same frames wherever they are kept: on the device, in host memory, on disk."""

import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import orienteer
from orienteer.compute.arrays import namespace_of_device, to_numpy
from orienteer.likelihood.frames import Layout
from orienteer.reconstruction.emc import Emc
from orienteer.reconstruction.frames.batches import Batches, PreparedFrames, StageFrames
from orienteer.reconstruction.frames.frame_store import FrameStore
from orienteer.reconstruction.frames.pixels import pixel_table
from orienteer.reconstruction.plan import make_plan
from orienteer.reconstruction.settings import EmcSettings
from orienteer.source.opening import writer_for
from orienteer.source.patterns import Patterns

BATCH = 17


@pytest.fixture
def no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose memory holds no frames."""
    monkeypatch.setattr("orienteer.reconstruction.frames.frame_store.memory_GiB", lambda: (0.0, 0.0))


def stage(
    source: Any, layout: Layout, on_device: bool, fluence: np.ndarray | None = None, device: Any = "cpu"
) -> StageFrames:
    table = pixel_table(source)
    store = FrameStore(source, table)
    plan = make_plan(device, store.n_frames, len(table), 500, 20, store.lit_share, store.largest, True)
    plan = replace(plan, layout=layout, batch_frames=BATCH, frames_on_device=on_device)
    fluence = np.ones(store.n_frames) if fluence is None else fluence
    pixels = np.random.default_rng(1).permutation(len(table))[:120]
    return StageFrames(store, pixels, 70, device, plan, fluence)


def results(frames: StageFrames) -> list[list[Any]]:
    """What scoring and merging get from every batch."""
    fluence, found = frames.grouping_fluence, []
    xp = namespace_of_device(frames.device)
    for batch in Batches(frames.keep(np.arange(3, len(fluence))), fluence, xp):
        draw = np.random.default_rng(len(batch))
        operand = xp.asarray(draw.normal(size=(120, 9)).astype(np.float32))
        weights = xp.asarray(draw.random((9, len(batch))).astype(np.float32))
        for group in batch.groups:
            own = operand if batch.by_pixel else xp.ascontiguousarray(operand.T)
            scores = group.product.scores(own)
            merged = group.product.merge(xp.ascontiguousarray(weights[:, group.columns]))
            missing = group.product.missing_scores(own)
            sums = group.frames.scored_photons.copy(), group.frames.squares.copy()
            found.append([batch.places[group.columns], group.fluence, scores, merged, missing, *sums])
    return [[to_numpy(value) for value in group] for group in found]


def same(found: list[list[Any]], expected: list[list[Any]]) -> None:
    for mine, theirs in zip(found, expected, strict=True):
        for a, b in zip(mine, theirs, strict=True):
            np.testing.assert_array_equal(a, b)


def masked(tiny: Any) -> Any:
    mask = (np.random.default_rng(4).random(tiny.patterns.dense().shape) < 0.1) * np.uint8(2)
    return tiny.source(columns={"frame_mask": mask, **tiny.patterns.columns})


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("is_grouped", [False, True])
@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("is_masked", [False, True])
def test_batches_from_host_memory_are_those_on_the_device(
    tiny: Any, layout: Layout, is_grouped: bool, is_masked: bool, device: str
) -> None:
    source = masked(tiny) if is_masked else tiny.source()
    fluence = np.random.default_rng(2).lognormal(size=len(tiny.patterns)) if is_grouped else None
    resident, waiting = (stage(source, layout, on_device, fluence, device) for on_device in (True, False))
    same(results(waiting), results(resident))


@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_dark_frames_wait_as_lists_and_bright_ones_as_small_integers(tiny: Any, layout: Layout) -> None:
    lit = tiny.patterns.dense() > 0
    for frames, per_pixel in ((tiny.patterns.dense() * (np.cumsum(lit, 1) <= 8), 0.8), (lit * 200, 1.2)):
        if layout == "sparse" and per_pixel > 1:
            continue
        kept = stage(tiny.source(frames=frames), layout, False).keep(np.arange(80))
        waiting = sum(block.nbytes for block in kept._blocks)  # type: ignore[attr-defined]
        # Sums of frames, and each array begins at a full 512 bytes.
        assert waiting < per_pixel * 80 * 120 + 5 * 7 * 512


def test_batches_from_disk_are_those_of_memory(tiny: Any, no_memory: None) -> None:
    frames = stage(tiny.source(), "sparse", False)
    assert not frames.store.is_in_memory
    in_memory = stage(tiny.source(), "sparse", True)
    in_memory.store._patterns = tiny.patterns
    same(results(frames), results(in_memory))


def test_groups_from_disk_hold_every_frame_once_in_the_order_of_the_file(tiny: Any, no_memory: None) -> None:
    fluence = np.random.default_rng(2).lognormal(size=len(tiny.patterns))
    frames = stage(tiny.source(), "sparse", False, fluence)
    kept = frames.keep(np.arange(80))
    assert len(kept) == 5
    for turn, prepared in enumerate(kept):
        assert sorted(prepared.places) == list(range(16 * turn, 16 * turn + 16))
        for columns, batch, _ in prepared.parts:
            own = prepared.places[columns]
            assert fluence[own].max() <= 2.0001 * fluence[own].min()
            np.testing.assert_array_equal(
                batch.photons_total, frames.prepare(frames.chunk(own)).parts[0][1].photons_total
            )


def test_any_frames_are_read_in_few_long_runs(
    tiny: Any, no_memory: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tiny.source()
    store = FrameStore(source, pixel_table(source))
    asked: list[slice] = []
    read = source.read
    monkeypatch.setattr(source, "read", lambda rows: asked.append(rows) or read(rows))
    half = np.array([70, 3, 5, 8, 4, 11, 70, 40, 43])
    found = store.patterns(half)
    np.testing.assert_array_equal(found.dense(), tiny.patterns.dense()[half])
    np.testing.assert_array_equal(found.event_id, tiny.patterns.event_id[half])
    assert asked == [slice(3, 12), slice(40, 44), slice(70, 71)]


def write(tiny: Any, path: Path) -> Any:
    with writer_for(path, detector=tiny.detector) as writer:
        writer.append(Patterns(tiny.patterns.sparse(), tiny.patterns.event_id, tiny.patterns.columns))
    return orienteer.open(path)


@pytest.mark.parametrize("where", ["in host memory", "on disk"])
def test_iterations_are_those_of_resident_frames_and_leave_no_thread(
    tiny: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    settings = EmcSettings(diameter_A=200.0, level=2, fluence="constant")
    source = write(tiny, tmp_path / "frames.h5")
    expected = Emc(source, settings, seed=1, device="cpu")
    if where == "on disk":
        monkeypatch.setattr("orienteer.reconstruction.frames.frame_store.memory_GiB", lambda: (0.0, 0.0))
    found = Emc(source, settings, seed=1, device="cpu")
    for emc in (expected, found):
        on_device = emc is expected
        emc.plan = replace(emc.plan, batch_frames=BATCH, frames_on_device=on_device)
        emc.enter(0)
    assert found.frames.reads_ahead
    assert found.frames.is_in_memory == (where == "in host memory")
    for _ in range(2):
        assert found.step().log_likelihood == expected.step().log_likelihood
    np.testing.assert_array_equal(found.models, expected.models)
    assert not [thread for thread in threading.enumerate() if thread.name == "reading ahead"]


def test_reading_is_hidden_behind_work(tiny: Any, tmp_path: Path, no_memory: None) -> None:
    frames = stage(write(tiny, tmp_path / "frames.h5"), "sparse", False)
    read = frames.store.source.read

    def read_slowly(rows: Any) -> Patterns:
        time.sleep(0.04)
        return read(rows)

    frames.store.source.read = read_slowly  # type: ignore[method-assign]
    kept = frames.keep(np.arange(80))
    seconds = []
    for _ in range(3):
        began = time.monotonic()
        for _ in kept:
            time.sleep(0.04)
        seconds.append(time.monotonic() - began)
    assert len(kept) == 5
    assert 0.24 < min(seconds) < 0.36


def test_the_fluence_at_which_a_frame_is_scored_does_not_depend_on_its_batch(tiny: Any) -> None:
    fluence = np.exp(np.random.default_rng(2).normal(0, 0.8, len(tiny.patterns)))
    found = []
    for size in (7, 40, 1000):
        frames = stage(tiny.source(), "sparse", True, fluence)
        frames = replace(frames, plan=replace(frames.plan, batch_frames=size))
        of_group = np.zeros(len(fluence))
        for batch in Batches(frames.keep(np.arange(len(fluence))), fluence, np):
            for group in batch.groups:
                of_group[batch.places[group.columns]] = group.fluence
        found.append(of_group)
    np.testing.assert_array_equal(found[0], found[2])
    np.testing.assert_array_equal(found[1], found[2])
    assert np.abs(np.log(found[2] / fluence)).max() < np.log(2)
    assert len(np.unique(found[2])) > 3


def test_batches_look_at_all_fluences_once_for_each_group(tiny: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fluence = np.random.default_rng(2).uniform(0.5, 4.0, len(tiny.patterns))
    frames = stage(tiny.source(), "sparse", True, fluence)
    looked: list[int] = []
    mean = PreparedFrames._mean_of_group
    monkeypatch.setattr(
        PreparedFrames,
        "_mean_of_group",
        lambda prepared, number, own: looked.append(number) or mean(prepared, number, own),
    )
    batches = list(Batches(frames.keep(np.arange(len(fluence))), fluence, np))
    assert sum(len(batch.groups) for batch in batches) > len(looked)
    assert sorted(looked) == list(range(len(np.unique(frames.group_of))))
