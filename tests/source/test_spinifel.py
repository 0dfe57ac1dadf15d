"""SpiniFEL files: the fields of its simulator, the wavelength from the Ewald sphere, and back."""

import h5py
import numpy as np
import pytest

from orienteer.compute.reading import reading
from orienteer.detector.square import square_detector
from orienteer.errors import FileError, GeometryMismatch, OrienteerError
from orienteer.source.patterns import Patterns
from orienteer.source.spinifel import SpinifelSource, Writer, recognise

N, H, W = 5, 8, 6
WAVELENGTH_A, DISTANCE_M = 2.5, 0.2
RANDOM = np.random.default_rng(9)
INTENSITIES = RANDOM.random((N, 1, H, W)).astype(np.float32)
QUATERNIONS = RANDOM.normal(size=(N, 1, 4))


def opened(path, **arguments) -> SpinifelSource:
    with reading(path):
        return SpinifelSource(path, **arguments)


def positions_m() -> np.ndarray:
    y, x = np.meshgrid(
        (np.arange(H) + 0.5 - H / 2) * 5e-3, (np.arange(W) + 0.5 - W / 2) * 5e-3, indexing="ij"
    )
    return np.stack([x, y, np.full_like(x, DISTANCE_M)], axis=-1)[None]


def write_as_skopi(path, flat=False, axis_first=False, dtype=np.float32) -> None:
    """The fields of a SpiniFEL data set, by the textbook formula s = (k_out - z) / wavelength in 1/m."""
    positions = positions_m()
    directions = positions / np.linalg.norm(positions, axis=-1, keepdims=True)
    vectors = (directions - [0, 0, 1]) / (WAVELENGTH_A * 1e-10)
    if flat:
        vectors[..., 2] = 0
    with h5py.File(path, "w") as file:
        file["intensities"] = INTENSITIES
        file["pixel_position_reciprocal"] = (np.moveaxis(vectors, -1, 0) if axis_first else vectors).astype(
            dtype
        )
        file["pixel_index_map"] = np.zeros((1, H, W, 2), np.int64)
        file["orientations"] = QUATERNIONS
        file["conformation"] = np.arange(N) % 2
        file["fluences"] = np.linspace(1, 2, N)
        file["beam_offsets"] = np.zeros((N, 2))
        file["volume"] = np.zeros((3, 3, 3), np.complex64)
        file.attrs["det_distance"] = DISTANCE_M


@pytest.mark.parametrize("axis_first", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_frames_geometry_and_truth_are_read(tmp_path, axis_first, dtype) -> None:
    write_as_skopi(tmp_path / "a.h5", axis_first=axis_first, dtype=dtype)
    with h5py.File(tmp_path / "a.h5") as file:
        assert recognise(tmp_path, b"", file)
    with opened(tmp_path / "a.h5") as source:
        patterns = source.read()
        assert source.frame_shape == (1, H, W)
        assert np.array_equal(patterns.frames, INTENSITIES.reshape(N, -1))
        assert np.array_equal(patterns.columns["truth_orientation"], QUATERNIONS[:, 0])
        assert patterns.columns["truth_class"].tolist() == [0, 1, 0, 1, 0]
        assert patterns.columns["truth_fluence"] == pytest.approx(np.linspace(1, 2, N) / 1.5)
        assert source.metadata["mean_fluence"] == 1.5
        assert patterns.columns["truth_beam_offset_pixels"].shape == (N, 2)
        assert patterns.columns["wavelength_A"] == pytest.approx(WAVELENGTH_A, rel=1e-5)
        assert source.detector is not None
        assert source.detector.positions_m == pytest.approx(positions_m().reshape(-1, 3), abs=1e-6)
        assert np.array_equal(source.read([3, 1]).frames, INTENSITIES[[3, 1]].reshape(2, -1))
        assert source.read(slice(2, 3)).event_id.tolist() == [2]


@pytest.mark.parametrize("shape", [(N, 4), (N, 1, 4), (N, 3, 4)])
def test_one_orientation_or_several_have_their_own_columns(tmp_path, shape) -> None:
    write_as_skopi(tmp_path / "a.h5")
    quaternions = RANDOM.normal(size=shape)
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        replaced(file, "orientations", quaternions)
    with opened(tmp_path / "a.h5") as source:
        columns = source.read_columns()
        if len(shape) == 3 and shape[1] > 1:
            assert np.array_equal(columns["truth_orientations"], quaternions)
            assert "truth_orientation" not in columns
        else:
            assert np.array_equal(columns["truth_orientation"], quaternions.reshape(N, 4))
        with Writer(tmp_path / "b.h5", detector=source.detector, metadata=source.metadata) as writer:
            writer.append(source.read())
    with opened(tmp_path / "b.h5") as again:
        for name, column in columns.items():
            assert again.read_columns()[name] == pytest.approx(column), name
    with h5py.File(tmp_path / "b.h5") as file:
        assert file["fluences"][()] == pytest.approx(np.linspace(1, 2, N))


def test_flat_vectors_need_the_wavelength(tmp_path) -> None:
    write_as_skopi(tmp_path / "a.h5", flat=True)
    with opened(tmp_path / "a.h5") as source:
        assert source.detector is None
        assert "wavelength_A" not in source.read().columns
    with opened(tmp_path / "a.h5", wavelength_A=WAVELENGTH_A) as source:
        assert source.detector is not None
        assert source.read().columns["wavelength_A"].tolist() == [WAVELENGTH_A] * N


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.float32])
def test_a_round_trip_keeps_what_the_format_holds(tmp_path, dtype) -> None:
    detector = square_detector((H, W), pixel_size_m=5e-3, distance_m=DISTANCE_M)
    patterns = Patterns(
        RANDOM.poisson(2, size=(N, H * W)).astype(dtype),
        np.arange(N) + 100,
        {
            "wavelength_A": np.full(N, WAVELENGTH_A),
            "truth_orientation": QUATERNIONS[:, 0],
            "truth_fluence": np.linspace(1, 2, N),
            "truth_class": np.arange(N),
        },
    )
    with Writer(tmp_path / "a.h5", detector=detector) as writer:
        writer.append(patterns[:3])
        writer.append(patterns[3:])
    with opened(tmp_path / "a.h5") as source:
        read = source.read()
        assert np.array_equal(read.frames, patterns.frames)
        assert read.frames.dtype == dtype
        assert np.array_equal(read.event_id, patterns.event_id)
        assert set(read.columns) == set(patterns.columns)
        for name, column in patterns.columns.items():
            assert np.array_equal(read.columns[name], column), name
        assert source.detector is not None
        assert source.detector.positions_m == pytest.approx(detector.positions_m, abs=1e-12)
        assert source.detector.solid_angle_sr == pytest.approx(detector.solid_angle_sr)
    with h5py.File(tmp_path / "a.h5") as file:
        assert file["intensities"].shape == (N, 1, H, W)
        assert file["orientations"].shape == (N, 1, 4)
        assert file.attrs["n_images"] == N
        assert file.attrs["n_pixels_per_image"] == H * W
        assert "_truth" not in file


def test_the_writer_says_what_it_needs(tmp_path) -> None:
    patterns = Patterns(np.ones((1, H * W), np.int32))
    with pytest.raises(OrienteerError, match="needs a detector"), Writer(tmp_path / "a.h5") as writer:
        writer.append(patterns)
    detector = square_detector((H, W), pixel_size_m=5e-3, distance_m=DISTANCE_M)
    with (
        pytest.raises(OrienteerError, match="wavelength"),
        Writer(tmp_path / "a.h5", detector=detector) as writer,
    ):
        writer.append(patterns)
    assert not list(tmp_path.iterdir())
    with Writer(tmp_path / "a.h5", detector=detector, metadata={"wavelength_A": 1.5}) as writer:
        writer.append(Patterns(patterns.sparse()))
    with opened(tmp_path / "a.h5") as source:
        assert source.wavelength_A == 1.5


def replaced(file: h5py.File, name: str, data) -> None:
    del file[name]
    file[name] = data


@pytest.mark.parametrize(
    ("change", "error", "reason"),
    [
        (lambda f: replaced(f, "intensities", np.zeros((N, 4))), FileError, "expected"),
        (lambda f: replaced(f, "intensities", np.zeros((N, 1, H, W + 1))), GeometryMismatch, "pixels"),
        (lambda f: replaced(f, "intensities", np.full((N, 1, H, W), np.nan)), FileError, "not a finite"),
        (lambda f: replaced(f, "intensities", np.full((N, 1, H, W), -1)), FileError, "negative"),
        (lambda f: replaced(f, "intensities", [b"text"]), FileError, "intensities"),
        (lambda f: replaced(f, "pixel_position_reciprocal", np.zeros((2, 2))), FileError, "pixel_position"),
        (lambda f: replaced(f, "orientations", np.zeros((N, 1, 3))), FileError, "quaternions"),
        (lambda f: replaced(f, "orientations", np.zeros((N + 1, 1, 4))), FileError, "for 5 frames"),
        (lambda f: replaced(f, "fluences", 1.0), FileError, "for 5 frames"),
        (lambda f: replaced(f, "fluences", np.zeros(N)), FileError, "mean 0"),
        (lambda f: f.__setitem__("event_id", np.zeros(3, np.uint64)), FileError, "event_id"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path, change, error, reason) -> None:
    path = tmp_path / "broken.h5"
    write_as_skopi(path)
    with h5py.File(path, "r+") as file:
        change(file)
    with pytest.raises(error, match=reason) as caught, reading(path):
        SpinifelSource(path).read()
    assert "broken.h5" in str(caught.value)
