"""The description of the input: other data give another one, other paths do not."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import orienteer
from orienteer.detector.masks import PixelUse
from orienteer.detector.square import square_detector
from orienteer.errors import OrienteerError
from orienteer.run import input as run_input
from orienteer.run.input import describe_input, hash_detector, hash_file, input_differences
from orienteer.source.in_memory import InMemorySource
from orienteer.source.patterns import Patterns


def test_a_moved_file_is_the_same_data(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones((4, 3, 3), np.int32))
    shutil.copy(tmp_path / "a.npy", tmp_path / "b.npy")
    a, b = (describe_input(orienteer.open(tmp_path / name)) for name in ("a.npy", "b.npy"))
    assert a["path"] != b["path"]
    assert input_differences(a, b) == []
    np.save(tmp_path / "b.npy", np.ones((4, 3, 3), np.int32) * 2)
    assert input_differences(a, describe_input(orienteer.open(tmp_path / "b.npy"))) == [
        "the content of the data"
    ]
    one = describe_input(orienteer.open(tmp_path / "a.npy", wavelength_A=1.5))
    assert input_differences(a, one) == ["the wavelength (1.5 instead of None)"]


def test_the_wavelength_that_is_used_is_described_beside_those_of_the_frames() -> None:
    told = np.array([2.6, 2.7, np.nan, 2.75, 0.0])
    patterns = Patterns(np.ones((5, 9), np.int32), columns={"wavelength_A": told})
    described = describe_input(InMemorySource(patterns, (3, 3)))["wavelengths"]
    assert described.pop("mean_A") == pytest.approx(np.mean([2.6, 2.7, 2.75]))
    assert described == {"used_A": 2.7, "range_A": [2.6, 2.75], "frames_without": 2}
    silent = Patterns(patterns.frames)
    assert describe_input(InMemorySource(silent, (3, 3)))["wavelengths"] == {}


def test_every_byte_of_a_small_file_counts_and_the_ends_of_a_large_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_input, "_BLOCK_BYTES", 16)
    monkeypatch.setattr(run_input, "_N_BLOCKS", 4)
    path = tmp_path / "file"
    for n_bytes, whole in [(64, True), (50, True), (1, True), (0, True), (1000, False)]:
        content = bytearray(range(256)) * 4
        path.write_bytes(content[:n_bytes])
        before = hash_file(path)
        noticed = []
        for place in range(n_bytes):
            changed = content[:n_bytes]
            changed[place] ^= 1
            path.write_bytes(changed)
            noticed.append(hash_file(path) != before)
        assert all(noticed) if whole else (noticed[0] and noticed[-1] and sum(noticed) == 64)
        path.write_bytes(content[: n_bytes + 1])
        assert hash_file(path) != before


def test_arrays_differ_by_frames_names_and_shape(runs: SimpleNamespace) -> None:
    frames = np.arange(36).reshape(4, 9)
    base = describe_input(InMemorySource(Patterns(frames), (3, 3)))
    assert input_differences(base, describe_input(InMemorySource(Patterns(frames.copy()), (3, 3)))) == []
    renamed = describe_input(InMemorySource(Patterns(frames, np.arange(4) + 1), (3, 3)))
    assert input_differences(base, renamed) == ["the content of the data"]
    flat = describe_input(InMemorySource(Patterns(frames)))
    assert input_differences(base, flat) == ["the shape of a frame ([9] instead of [3, 3])"]


def test_a_mask_makes_another_detector() -> None:
    detector = square_detector((3, 3), pixel_size_m=1e-3, distance_m=0.1)
    mask = np.zeros(9, np.uint8)
    assert hash_detector(detector.with_mask(mask)) == hash_detector(detector)
    mask[4] = PixelUse.NEVER
    assert hash_detector(detector.with_mask(mask)) != hash_detector(detector)


def test_data_without_an_end_are_refused() -> None:
    with pytest.raises(OrienteerError, match="has no end"):
        describe_input(SimpleNamespace(n_frames=None))  # type: ignore[arg-type]


def test_no_frames_at_all_can_be_described() -> None:
    assert describe_input(InMemorySource(Patterns(np.zeros((0, 9), np.int32))))["frames"] == 0


def test_the_background_of_a_reconstruction_is_part_of_its_run(tmp_path: Path) -> None:
    from orienteer.reconstruction.settings import EmcSettings
    from orienteer.run.input import file_differences, hash_named_files

    path = tmp_path / "background.npy"
    np.save(path, np.ones(9))
    settings = EmcSettings(background_file=str(path))
    before = hash_named_files(settings)
    assert file_differences(before, hash_named_files(settings)) == []
    np.save(path, np.zeros(9))
    assert file_differences(before, hash_named_files(settings)) == ["the content of the background_file"]
    assert hash_named_files(EmcSettings()) == {}
