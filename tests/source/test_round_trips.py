"""Every format gives back bit for bit what it can hold, under any name, in any batches."""

from pathlib import Path

import numpy as np
import pytest

import orienteer
from orienteer.detector.detector import Detector
from orienteer.detector.masks import PixelUse
from orienteer.detector.square import square_detector
from orienteer.source.opening import format_names, recognise, writer_for
from orienteer.source.patterns import Patterns

SHAPE = (6, 7)
N_FRAMES = 23
WAVELENGTH_A = 2.7


def detector() -> Detector:
    mask = np.zeros(42, dtype=np.uint8)
    mask[[3, 20]] = 2, 1
    return square_detector(SHAPE, pixel_size_m=1e-3, distance_m=0.1).with_mask(mask)


def columns() -> dict[str, np.ndarray]:
    random = np.random.default_rng(5)
    quaternions = random.normal(size=(N_FRAMES, 4))
    return {
        "wavelength_A": np.full(N_FRAMES, WAVELENGTH_A),
        "truth_orientation": quaternions / np.linalg.norm(quaternions, axis=1, keepdims=True),
        "truth_class": random.integers(0, 3, N_FRAMES).astype(np.int32),
    }


def counts(dtype: str) -> np.ndarray:
    frames = np.random.default_rng(7).poisson(0.4, (N_FRAMES, 42)).astype(dtype)
    frames[4] = 0  # an empty shot
    frames[5, -1] = 200
    return frames


DATA = {
    "int32": lambda: counts("int32"),
    "uint16": lambda: counts("uint16"),
    "int64": lambda: counts("int64"),
    "float32": lambda: np.random.default_rng(8).normal(1, 0.3, (N_FRAMES, 42)).astype(np.float32),
    "float64": lambda: np.random.default_rng(8).normal(1, 0.3, (N_FRAMES, 42)),
    "sparse": lambda: Patterns(counts("int32")).sparse(),
}
# What a format does not keep, beyond what its writer lists in lost_on_write, by name of the data.
COUNTS_ONLY = {"Dragonfly HDF5"}
# Formats with one type for counts and one for signal.
TYPE_OF = {
    ("Dragonfly EMC", "float32"): np.float64,
    ("Dragonfly EMC", "uint16"): np.int32,
    ("Dragonfly EMC", "int64"): np.int32,
    ("Dragonfly HDF5", "uint16"): np.int32,
    ("Dragonfly HDF5", "int64"): np.int32,
}


def same(found: np.ndarray, expected: np.ndarray) -> bool:
    return found.dtype == expected.dtype and found.shape == expected.shape and bool(np.all(found == expected))


def loses(writer, what: str) -> bool:
    return any(what in words for words in writer.lost_on_write)


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("name", format_names())
def test_a_round_trip_is_exact_under_another_name(tmp_path: Path, name: str, data: str) -> None:
    if name in COUNTS_ONLY and data.startswith("float"):
        pytest.skip("the format holds counts only")
    patterns = Patterns(DATA[data](), np.arange(N_FRAMES, dtype=np.uint64) * 977 + 5, columns())
    metadata = {"seed": 11, "settings": "[simulate]\nframes = 23  # é", "wavelength_A": WAVELENGTH_A}
    writer = writer_for(tmp_path / "first", name, detector=detector(), metadata=metadata, polarisation="y")
    with writer:
        for part in (patterns[:9], patterns[9:9], patterns[9:10], patterns[10:]):
            writer.append(part)
    renamed = (tmp_path / "first").rename(tmp_path / "other.xyz")

    assert recognise(renamed) == name
    source = orienteer.open(renamed)
    read = source.read()
    assert len(source) == N_FRAMES
    expected = patterns.dense().astype(TYPE_OF.get((name, data), patterns.dense().dtype))
    if loses(writer, "mask"):
        expected[:, detector().mask == PixelUse.NEVER] = 0  # nothing would say that these mean nothing
    assert same(read.dense(), expected)
    assert same(source.read([20, 2, 2, 8]).dense(), expected[[20, 2, 2, 8]])
    assert same(np.concatenate([batch.dense() for batch in source.batches(4)]), expected)
    ids = np.arange(N_FRAMES, dtype=np.uint64) if loses(writer, "event ids") else patterns.event_id
    assert same(read.event_id, ids)
    if not any(words == "columns" for words in writer.lost_on_write):
        for column, values in columns().items():
            assert same(read.columns[column], values), column
    if not loses(writer, "metadata"):
        assert {key: source.metadata[key] for key in metadata} == metadata
    if loses(writer, "detector"):
        assert source.detector is None
    else:
        assert source.detector is not None
        # SpiniFEL keeps scattering vectors, from which positions follow to rounding.
        atol_m = 1e-15 if name == "SpiniFEL" else 0
        assert np.allclose(source.detector.positions_m, detector().positions_m, rtol=0, atol=atol_m)
        assert same(source.detector.mask, detector().mask)
        assert source.polarisation == "y"
    if not loses(writer, "mask"):
        assert same(source.mask, detector().mask)
    source.close()


@pytest.mark.parametrize("name", format_names())
def test_a_file_without_frames_is_a_file(tmp_path: Path, name: str) -> None:
    metadata = {"wavelength_A": WAVELENGTH_A}
    with writer_for(tmp_path / "none", name, detector=detector(), metadata=metadata):
        pass
    source = orienteer.open(tmp_path / "none")
    assert len(source) == 0
    assert source.n_pixels == 42
    assert len(source.read()) == 0
    assert list(source.batches()) == []


@pytest.mark.parametrize("name", format_names())
def test_an_error_in_the_block_leaves_the_old_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / "kept"
    path.write_bytes(b"old")
    metadata = {"wavelength_A": WAVELENGTH_A}
    with (
        pytest.raises(KeyboardInterrupt),
        writer_for(path, name, detector=detector(), metadata=metadata) as writer,
    ):
        writer.append(Patterns(counts("int32")))
        raise KeyboardInterrupt
    assert path.read_bytes() == b"old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["kept"]


@pytest.mark.parametrize("name", format_names())
def test_frames_of_other_pixels_are_refused_and_leave_nothing(tmp_path: Path, name: str) -> None:
    metadata = {"wavelength_A": WAVELENGTH_A}
    with (
        pytest.raises(orienteer.OrienteerError, match="never"),
        writer_for(tmp_path / "never", name, detector=detector(), metadata=metadata) as writer,
    ):
        writer.append(Patterns(np.zeros((2, 41), dtype=np.int32)))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", format_names())
def test_negative_counts_are_not_written(tmp_path: Path, name: str) -> None:
    metadata = {"wavelength_A": WAVELENGTH_A}
    frames = counts("int32")
    frames[6, 9] = -1
    with (
        pytest.raises(orienteer.OrienteerError, match="frame 6"),
        writer_for(tmp_path / "never", name, detector=detector(), metadata=metadata) as writer,
    ):
        writer.append(Patterns(frames))
    assert list(tmp_path.iterdir()) == []
