"""Orientations and Dragonfly's output: what is written is what others read."""

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from orienteer.errors import FileError, OrienteerError
from orienteer.orientation.quaternion import canonical, random_uniform
from orienteer.run.directory import RunDirectory
from orienteer.run.dragonfly_output import write_dragonfly_output
from orienteer.run.orientations_file import read_orientations, write_orientations
from orienteer.volume.opening import open_volumes
from orienteer.volume.volume import Volume

COLUMNS: dict[str, Any] = {
    "event_id": np.arange(6, dtype=np.uint64) + 2**63,
    "quaternion": canonical(random_uniform(6, seed=1))[[0, 1, 2, 1, 0, 5]],
    "fluence": np.linspace(0.5, 1.5, 6, dtype=np.float32),
    "model": np.array([0, 1, 1, 0, 1, 0]),
    "log_likelihood": -np.arange(6.0),
    "perplexity": np.full(6, 10.0),
    "sentinel": np.arange(6) % 2 == 0,
}


@pytest.mark.parametrize("n_frames", [6, 1, 0])
def test_orientations_come_back(n_frames: int, tmp_path: Path) -> None:
    columns = {name: column[:n_frames] for name, column in COLUMNS.items()}
    write_orientations(tmp_path / "o.h5", columns, iteration=4)
    read = read_orientations(tmp_path / "o.h5")
    assert set(read) == set(columns)
    for name, column in columns.items():
        assert read[name].dtype == column.dtype
        np.testing.assert_array_equal(read[name], column)


def test_no_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OrienteerError, match=r"columns of \[5, 6\] rows"):
        write_orientations(tmp_path / "o.h5", {**COLUMNS, "fluence": np.ones(5)})
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["event_id"] = np.arange(3)
    with pytest.raises(FileError, match="not a table of orientations"):
        read_orientations(tmp_path / "other.h5")


@pytest.mark.parametrize("edge", [5, 6])
def test_dragonfly_finds_models_and_orientations(edge: int, tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    models = random.random((2, edge, edge, edge), dtype=np.float32)
    models[0, 0, 0, 0] = np.nan
    volumes = [Volume(model, 1e-3, "reciprocal") for model in models]
    path = tmp_path / "output_004.h5"
    write_dragonfly_output(path, volumes, COLUMNS, n_rotations=60)
    read = open_volumes(path, voxel_size=1e-3)
    for volume, found in zip(volumes, read, strict=True):
        assert found.shape == (5 + 2 * (edge == 6),) * 3
        assert found.centre_index == volume.centre_index
        np.testing.assert_array_equal(found.values[:edge, :edge, :edge], np.nan_to_num(volume.values))
    with h5py.File(path) as file:
        orientations, quaternions = file["orientations"][:], file["quaternions"][:]
        np.testing.assert_array_equal(orientations % 2, COLUMNS["model"])
        best = canonical(quaternions[orientations // 2, :4])
        np.testing.assert_allclose(best, COLUMNS["quaternion"], atol=1e-15)
        assert quaternions.shape == (4, 5)
        assert quaternions[:, 4].sum() == pytest.approx(1)
        np.testing.assert_allclose(file["mutual_info"][:], np.log(60 / 10))
        np.testing.assert_array_equal(file["scale"][:], COLUMNS["fluence"])
        np.testing.assert_array_equal(file["likelihood"][:], COLUMNS["log_likelihood"])
        np.testing.assert_array_equal(np.argmax(file["occupancies"][:], axis=1), COLUMNS["model"])
        assert (file["orientations"].dtype, file["intens"].dtype) == (np.int32, np.float64)


def test_dragonfly_finds_no_orientation_of_frames_that_show_no_model(tmp_path: Path) -> None:
    volumes = [Volume(np.ones((5, 5, 5)), 1e-3, "reciprocal")] * 2
    model = np.array([0, -1, 1, -1, -1, 0])
    write_dragonfly_output(tmp_path / "output_001.h5", volumes, {**COLUMNS, "model": model})
    with h5py.File(tmp_path / "output_001.h5") as file:
        orientations = file["orientations"][:]
        np.testing.assert_array_equal(orientations == -1, model == -1)
        np.testing.assert_array_equal(orientations[model >= 0] % 2, model[model >= 0])
        np.testing.assert_array_equal(file["occupancies"][:].sum(axis=1), model >= 0)
        assert file["quaternions"][:, 4].sum() == pytest.approx(1)


def test_maps_of_a_time_with_fewer_or_more_models_do_not_stay(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    cube = np.ones((5, 5, 5), np.float32)
    table = {"event_id": np.arange(3, dtype=np.uint64), "quaternion": np.tile([1.0, 0, 0, 0], (3, 1))}
    for n_models in (1, 3, 2, 1):
        intensities = [Volume(cube, 0.01, "reciprocal")] * n_models
        directory.write_results(intensities, table, 1, [Volume(cube, 10.0, "real")] * n_models)
        numbers = [""] if n_models == 1 else [f"_{m + 1}" for m in range(n_models)]
        expected = {f"{name}{number}.mrc" for name in ("intensity", "density_loop") for number in numbers}
        assert {path.name for path in tmp_path.glob("*.mrc")} == expected
