"""What the data forbid stays forbidden: with a geometry, without one, for every frame, in every format."""

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import orienteer
from orienteer.detector.masks import PixelUse
from orienteer.detector.square import square_detector
from orienteer.source.opening import format_names, writer_for
from orienteer.source.patterns import Patterns
from orienteer.source.summary import summarise

N, SHAPE = 6, (4, 5)
HOT = 1_000_000
COUNTS = np.random.default_rng(3).poisson(0.7, (N, 20)).astype(np.int32)
BARE = square_detector(SHAPE, pixel_size_m=1e-3, distance_m=0.1)
DATA = "entry_1/instrument_1/detector_1/data"
KEEP_MASKS = ("Orienteer", "CXI", "NumPy archive")


def write_masked_cxi(path: Path) -> np.ndarray:
    """A file whose own mask forbids a hot pixel, for all frames, and that has no geometry."""
    frames = COUNTS.copy()
    frames[:, 7] = HOT
    with h5py.File(path, "w") as file:
        file[DATA] = frames.reshape(N, *SHAPE)
        mask = np.zeros(20, np.uint16)
        mask[7], mask[8] = 0x4, 0x100
        file["entry_1/instrument_1/detector_1/mask"] = mask.reshape(SHAPE)
    return frames


def with_hot_pixels(storage: str = "dense") -> Patterns:
    """Frame n has a hot pixel n, which only its own mask forbids."""
    frames, mask = COUNTS.copy(), np.zeros((N, 20), np.uint8)
    frames[np.arange(N), np.arange(N)] = HOT
    mask[np.arange(N), np.arange(N)] = PixelUse.NEVER
    mask[:, 19] = PixelUse.MERGE_ONLY
    stored: Any = Patterns(frames).sparse() if storage == "sparse" else frames
    return Patterns(stored, np.arange(N) + 50, {"frame_mask": mask, "wavelength_A": np.full(N, 2.0)})


def allowed() -> np.ndarray:
    frames = COUNTS.copy()
    frames[np.arange(N), np.arange(N)] = 0
    return frames


def test_a_geometry_does_not_throw_away_the_mask_of_the_data(tmp_path: Path) -> None:
    write_masked_cxi(tmp_path / "a.cxi")
    given = np.zeros(20, np.uint8)
    given[[7, 8, 9]] = 1, 2, 1
    source = orienteer.open(tmp_path / "a.cxi", geometry=BARE.with_mask(given))
    assert source.mask.tolist() == [2 if n == 7 else 1 if n == 8 else 0 for n in range(20)]
    assert source.detector.mask.tolist() == [{7: 2, 8: 2, 9: 1}.get(n, 0) for n in range(20)]


def test_the_mask_of_a_stored_detector_outlives_another_geometry(tmp_path: Path) -> None:
    mask = np.zeros(20, np.uint8)
    mask[3] = PixelUse.NEVER
    with writer_for(tmp_path / "a.h5", detector=BARE.with_mask(mask)) as writer:
        writer.append(Patterns(COUNTS))
    moved = BARE.moved([0, 0, 0.1])
    detector = orienteer.open(tmp_path / "a.h5", geometry=moved).detector
    assert np.array_equal(detector.mask, mask)
    assert np.array_equal(detector.positions_m, moved.positions_m)


@pytest.mark.parametrize("geometry", [None, BARE])
def test_a_summary_obeys_the_mask_of_the_data(tmp_path: Path, geometry: Any) -> None:
    frames = write_masked_cxi(tmp_path / "a.cxi")
    source = orienteer.open(tmp_path / "a.cxi", geometry=geometry)
    summary = summarise(source, source.batches(4))
    used = np.arange(20) != 7
    assert summary.photons.tolist() == frames[:, used].sum(1).tolist()
    assert summary.total[7] == 0
    assert summary.as_report()["mask"] == {"orient_and_merge": 18, "merge_only": 1, "never": 1}


@pytest.mark.parametrize("geometry", [None, BARE])
@pytest.mark.parametrize("name", format_names())
def test_every_format_keeps_the_mask_or_leaves_out_what_it_forbids(
    tmp_path: Path, name: str, geometry: Any
) -> None:
    if name == "SpiniFEL" and geometry is None:
        pytest.skip("the format needs a geometry")
    write_masked_cxi(tmp_path / "a.cxi")
    source = orienteer.open(tmp_path / "a.cxi", geometry=geometry)
    with writer_for(tmp_path / "out", name, like=source, metadata={"wavelength_A": 2.0}) as writer:
        for batch in source.batches(4):
            writer.append(batch)
    copy = orienteer.open(tmp_path / "out")
    if "mask" in writer.lost_on_write:
        assert copy.mask is None
        assert copy.read().photons.max() < HOT
    else:
        assert np.array_equal(copy.mask, source.mask)
        assert np.array_equal(copy.read().dense(), source.read().dense())


def test_garbage_under_the_mask_is_written_by_every_format(tmp_path: Path) -> None:
    write_masked_cxi(tmp_path / "a.cxi")
    with h5py.File(tmp_path / "a.cxi", "r+") as file:
        file[DATA][:, 1, 2] = -5
    source = orienteer.open(tmp_path / "a.cxi", geometry=BARE)
    for name in format_names():
        options = {"storage": "sparse"} if name == "Orienteer" else {}
        with writer_for(
            tmp_path / "out", name, like=source, metadata={"wavelength_A": 2.0}, **options
        ) as writer:
            writer.append(source.read())
        copy = orienteer.open(tmp_path / "out").read().dense()
        used = np.arange(20) != 7
        assert np.array_equal(copy[:, used], COUNTS[:, used]), name


@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_the_mask_of_a_frame_is_obeyed_by_sums_and_lists(storage: str) -> None:
    patterns = with_hot_pixels(storage)
    assert np.array_equal(patterns.photons, allowed().sum(1))
    assert np.array_equal(Patterns(patterns.sparse()).dense(), allowed())
    assert patterns.dense().max() == HOT  # as stored, with the mask beside it
    source = orienteer.open(patterns, geometry=BARE)
    summary = summarise(source, source.batches(4))
    assert summary.photons.tolist() == allowed().sum(1).tolist()
    assert summary.lit_pixels.tolist() == (allowed() > 0).sum(1).tolist()
    assert np.array_equal(summary.total, allowed().sum(0))
    assert summary.examples.dense().max() < HOT


@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize("name", format_names())
def test_every_format_keeps_masks_of_frames_or_leaves_out_what_they_forbid(
    tmp_path: Path, name: str, storage: str
) -> None:
    patterns = with_hot_pixels(storage)
    with writer_for(tmp_path / "out", name, detector=BARE) as writer:
        writer.append(patterns[:4])
        writer.append(patterns[4:])
    copy = orienteer.open(tmp_path / "out").read()
    if name in KEEP_MASKS:
        assert np.array_equal(copy.columns["frame_mask"], patterns.columns["frame_mask"])
        assert np.array_equal(copy.dense(), patterns.dense())
        assert np.array_equal(copy.photons, allowed().sum(1))
    else:
        assert "frame_mask" not in copy.columns
        assert np.array_equal(copy.dense(), allowed())


def test_other_programs_find_the_masks_of_frames_where_cxi_has_them(tmp_path: Path) -> None:
    constant = np.zeros(20, np.uint8)
    constant[12] = PixelUse.NEVER
    with writer_for(tmp_path / "out.cxi", detector=BARE.with_mask(constant)) as writer:
        writer.append(with_hot_pixels())
    with h5py.File(tmp_path / "out.cxi") as file:
        bits = file["entry_1/instrument_1/detector_1/mask"][()].reshape(N, 20)
    assert (bits[:, 12] == 0x80).all()
    assert (np.diagonal(bits) == 0x80).all()
    assert (bits[:, 19] == 0x100).all()


def test_a_mask_of_frames_of_another_shape_is_refused() -> None:
    with pytest.raises(orienteer.OrienteerError, match="frame_mask"):
        Patterns(COUNTS, columns={"frame_mask": np.zeros((N, 19), np.uint8)})
    with pytest.raises(orienteer.OrienteerError, match="frame_mask"):
        Patterns(COUNTS, columns={"frame_mask": np.zeros((N, 20), bool)})


def test_the_report_does_not_depend_on_the_storage() -> None:
    mask = np.zeros(20, np.uint8)
    mask[2] = PixelUse.NEVER
    reports = []
    for storage in ("dense", "sparse"):
        source = orienteer.open(with_hot_pixels(storage), geometry=BARE.with_mask(mask))
        summary = summarise(source, source.batches())
        reports.append({**summary.as_report(), "storage": "", "total": summary.total.tolist()})
    assert reports[0] == reports[1]
