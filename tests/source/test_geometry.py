"""A geometry file joined with data: its masks inside the data, its energy, its polarisation."""

from pathlib import Path

import h5py
import numpy as np
import pytest

import orienteer
from orienteer.detector.beam import HC_EV_A
from orienteer.detector.dragonfly import write_dragonfly_hdf5, write_dragonfly_text
from orienteer.detector.masks import PixelUse
from orienteer.detector.opening import open_geometry
from orienteer.detector.square import square_detector
from orienteer.errors import SettingsError
from orienteer.source.opening import writer_for
from orienteer.source.patterns import Patterns

N, SHAPE = 5, (4, 6)
COUNTS = np.random.default_rng(2).poisson(1.0, (N, *SHAPE)).astype(np.int32)
DATA, MASK = "entry_1/data_1/data", "entry_1/data_1/pixel_status"
GEOM = """
photon_energy = 9000 eV
adu_per_photon = 25
clen = 0.1
res = 10000
data = /entry_1/data_1/data
{mask}
p0/min_fs = 0
p0/max_fs = 5
p0/min_ss = 0
p0/max_ss = 3
p0/corner_x = -3
p0/corner_y = -2
p0/fs = x
p0/ss = y
"""
BITS = f"mask = /{MASK}\nmask_good = 0x1\nmask_bad = 0x6"


def write_geom(path: Path, mask: str = BITS) -> Path:
    path.write_text(GEOM.format(mask=mask))
    return path


def write_data(path: Path, status: np.ndarray | None = None, **more: object) -> Path:
    with h5py.File(path, "w") as file:
        file[DATA] = COUNTS
        if status is not None:
            file[MASK] = status
        for name, value in more.items():
            file[name] = value
    return path


def test_masks_that_the_geometry_places_inside_the_data_are_read_from_there(tmp_path: Path) -> None:
    status = np.ones(SHAPE, np.uint16)
    status[1, 2], status[2, 3], status[3, 4] = 0, 0x1 | 0x4, 0x1 | 0x8
    source = orienteer.open(write_data(tmp_path / "a.cxi", status), geometry=write_geom(tmp_path / "a.geom"))
    never = np.flatnonzero(source.detector.mask == PixelUse.NEVER).tolist()
    assert never == [1 * 6 + 2, 2 * 6 + 3]  # a good bit that is missing, and a bad bit; 0x8 is neither
    assert "frame_mask" not in source.column_names


def test_a_mask_inside_the_data_may_differ_from_frame_to_frame(tmp_path: Path) -> None:
    status = np.ones((N, *SHAPE), np.uint16)
    status[np.arange(N), 0, np.arange(N)] = 0x4
    own = np.zeros((N, *SHAPE), np.uint16)
    own[:, 3, 5] = 0x80
    path = write_data(tmp_path / "a.cxi", status, **{"entry_1/data_1/mask": own})
    source = orienteer.open(path, geometry=write_geom(tmp_path / "a.geom"))
    mask = source.read_columns(["frame_mask"])["frame_mask"].reshape(N, *SHAPE)
    assert (mask[np.arange(N), 0, np.arange(N)] == PixelUse.NEVER).all()
    assert (mask[:, 3, 5] == PixelUse.NEVER).all()  # the data's own mask stays
    assert (mask > 0).sum() == 2 * N
    lit = COUNTS.copy()
    lit[mask > 0] = 0
    assert np.array_equal(source.read([3, 1]).photons, lit.sum((1, 2))[[3, 1]])


def test_a_mask_that_is_not_there_is_said(tmp_path: Path) -> None:
    geometry = write_geom(tmp_path / "a.geom")
    with pytest.warns(UserWarning, match=r"a\.cxi: the geometry's mask /entry_1/data_1/pixel_status is not"):
        orienteer.open(write_data(tmp_path / "a.cxi"), geometry=geometry)
    with pytest.warns(UserWarning, match="pixel_status"):
        orienteer.open(COUNTS, geometry=geometry)


def test_a_mask_of_another_shape_is_a_mismatch(tmp_path: Path) -> None:
    path = write_data(tmp_path / "a.cxi", np.ones((2, 2), np.uint16))
    with pytest.raises(orienteer.OrienteerError, match="pixel_status"):
        orienteer.open(path, geometry=write_geom(tmp_path / "a.geom"))


def test_the_energy_of_the_geometry_holds_for_events_that_carry_none(tmp_path: Path) -> None:
    geometry = write_geom(tmp_path / "a.geom", mask="")
    source = orienteer.open(write_data(tmp_path / "a.cxi"), geometry=geometry)
    assert source.column_names == ("wavelength_A",)
    assert source.read().columns["wavelength_A"] == pytest.approx(HC_EV_A / 9000)
    assert source.metadata["adu_per_photon"] == {"p0": 25.0}
    energy = {"LCLS/photon_energy_eV": np.full(N, 8000.0)}
    source = orienteer.open(write_data(tmp_path / "b.cxi", **energy), geometry=geometry)
    assert source.read_columns()["wavelength_A"] == pytest.approx(HC_EV_A / 8000)
    # What the user says counts more than the geometry file.
    source = orienteer.open(tmp_path / "a.cxi", geometry=geometry, wavelength_A=1.0)
    assert source.read_columns()["wavelength_A"].tolist() == [1.0] * N


@pytest.mark.parametrize("polarisation", ["x", "y", "none"])
@pytest.mark.parametrize("efficiency", [None, 0.5])
def test_a_dragonfly_detector_tells_its_polarisation(tmp_path: Path, polarisation, efficiency) -> None:
    detector = square_detector((6, 6), pixel_size_m=1e-3, distance_m=0.02)
    if efficiency is not None:
        detector = detector.with_efficiency(np.full(36, efficiency))
    write_dragonfly_text(tmp_path / "det.dat", detector, polarisation)
    write_dragonfly_hdf5(tmp_path / "det.h5", detector, polarisation)
    for name in ("det.dat", "det.h5"):
        geometry = open_geometry(tmp_path / name)
        assert geometry.polarisation == polarisation
        assert geometry.detector.correction(polarisation) == pytest.approx(detector.correction(polarisation))
        assert orienteer.open(np.zeros((2, 36), int), geometry=tmp_path / name).polarisation == polarisation


@pytest.mark.parametrize("polarisation", ["x", "y", "none", None])
@pytest.mark.parametrize("name", ["Orienteer", "CXI", "SpiniFEL"])
def test_the_polarisation_stays_with_the_data(tmp_path: Path, name: str, polarisation) -> None:
    detector = square_detector(SHAPE, pixel_size_m=1e-3, distance_m=0.02)
    facts = {"wavelength_A": 2.0} | ({"polarisation": polarisation} if polarisation else {})
    with writer_for(tmp_path / "a", name, detector=detector, metadata=facts) as writer:
        writer.append(Patterns(COUNTS.reshape(N, -1)))
    with orienteer.open(tmp_path / "a") as source:
        assert source.polarisation == (polarisation or ("x" if name == "SpiniFEL" else None))
    if name == "SpiniFEL":
        with h5py.File(tmp_path / "a") as file:
            factors = detector.polarisation(polarisation or "x")
            assert file["polarization"][()].ravel() == pytest.approx(factors)
    if name == "Orienteer":
        assert open_geometry(tmp_path / "a").polarisation == polarisation


def test_a_polarisation_that_is_none_of_three_is_refused(tmp_path: Path) -> None:
    with pytest.raises(orienteer.OrienteerError, match="'circular' is not one of"):
        writer_for(tmp_path / "a.h5", metadata={"polarisation": "circular"})


def test_a_simulated_source_takes_another_detector_too() -> None:
    class Endless:
        """The least that a source has."""

        format, path, detector, mask, polarisation = "stream", None, None, None, None
        metadata, frame_shape, n_pixels, n_frames, column_names, is_sparse = {}, SHAPE, 24, None, (), False

        def __len__(self) -> int:
            raise TypeError("a stream has no length")

        def read(self, frames=None): ...
        def batches(self, size=None, device="cpu"): ...
        def event_ids(self, frames=None): ...
        def read_columns(self, names=None, frames=None): ...
        def refresh(self): ...
        def close(self): ...
        def with_detector(self, detector):
            self.detector = detector
            return self

    detector = square_detector(SHAPE, pixel_size_m=1e-3, distance_m=0.02)
    assert orienteer.open(Endless(), geometry=detector).detector is detector


def test_a_wavelength_that_is_an_energy_is_refused() -> None:
    frames = np.zeros((2, 4, 4), np.int32)
    with pytest.raises(SettingsError, match=r"wavelength_A is 4600.*\n4600 eV are a wavelength of 2\.695 A"):
        orienteer.open(frames, square_detector(4, 1e-3, 0.1), wavelength_A=4600)
