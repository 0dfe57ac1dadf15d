"""CXI files: the layouts that groups really write, made small by hand, and what Orienteer writes itself."""

import subprocess
import sys

import h5py
import numpy as np
import pytest

from orienteer.compute.reading import reading
from orienteer.detector.beam import HC_EV_A
from orienteer.detector.detector import Detector
from orienteer.detector.masks import PixelUse
from orienteer.detector.panel import Panel
from orienteer.detector.square import square_detector
from orienteer.errors import FileError, OrienteerError
from orienteer.source.cxi import CxiSource, Writer, recognise
from orienteer.source.cxi_layout import hash_text
from orienteer.source.patterns import Patterns

hdf5plugin = pytest.importorskip(
    "hdf5plugin", reason="hdf5plugin is not installed: pip install 'orienteer[files]'"
)

N, SHAPE = 6, (2, 4, 3)
DETECTOR, SOURCE = "entry_1/instrument_1/detector_1", "entry_1/instrument_1/source_1"
EV = 1.602176634e-19


def opened(path) -> CxiSource:
    with reading(path):
        return CxiSource(path)


def grid_m(shape=SHAPE, distance_m=0.7) -> np.ndarray:
    """(*shape, 3) pixel centres, 0.2 mm apart, panels 2 mm apart."""
    panel, slow, fast = np.meshgrid(*map(np.arange, shape), indexing="ij")
    return np.stack([fast * 2e-4, slow * 2e-4 + panel * 2e-3, np.full(shape, distance_m)], axis=-1)


def write_xfel7927_like(path) -> np.ndarray:
    """Hits of an AGIPD beamtime: uint8 photons, boolean masks that are true for good, ids per train."""
    frames = np.random.default_rng(1).poisson(1, size=(N, *SHAPE)).astype(np.uint8)
    with h5py.File(path, "w") as file:
        entry = file.create_group("entry_1")
        entry["name"] = "P7927 run 42"
        entry["trainId"] = np.arange(N, dtype=np.uint64) + 1_900_000_000
        entry["cellId"] = np.arange(N, dtype=np.uint16) * 2
        entry["pulseId"] = np.arange(N, dtype=np.uint64) * 4
        entry["experiment_identifier"] = np.arange(N)
        entry["sample_1/name"] = "DNA Pointer"
        source = file.create_group(SOURCE)
        wavelength_m = np.full(N, 2.07e-10, np.float32)
        source["photon_wavelength"] = wavelength_m
        source["photon_energy"] = (HC_EV_A / (wavelength_m * 1e10) * EV).astype(np.float32)
        source["pulse_energy"] = np.full(N, 1e-3, np.float32)
        detector = file.create_group(DETECTOR)
        packed = {"compression": "gzip", "compression_opts": 1, "shuffle": True}
        detector.create_dataset("data", data=frames, chunks=(1, *SHAPE), **packed)
        mask = np.ones((N, *SHAPE), bool)
        mask[3, 1, 2, 0] = False
        detector.create_dataset("mask", data=mask, chunks=(1, *SHAPE), **packed)
        good = np.ones(SHAPE, bool)
        good[0, 0, :] = False
        detector.create_dataset("good_pixels", data=good, **packed)
        detector["xyz_map"] = grid_m().transpose(3, 0, 1, 2).astype(np.float32)
        detector["x_pixel_size"] = detector["y_pixel_size"] = 2e-4
        detector["pixel_area"] = 4e-8
        detector["background"] = np.zeros((1, *SHAPE))
        detector["hit_score"] = np.linspace(0, 1, N)
        detector["lit_pixels"] = np.zeros((N, 16), np.float32)
        file["entry_1/data_1/data"] = h5py.SoftLink(f"/{DETECTOR}/data")
        file["static_emc/class"] = np.zeros(N)
    return frames


def test_hits_of_a_beamtime_are_read_with_masks_geometry_and_ids(tmp_path) -> None:
    frames = write_xfel7927_like(tmp_path / "r0042_hits.cxi")
    with opened(tmp_path / "r0042_hits.cxi") as source:
        assert (len(source), source.frame_shape, source.is_sparse) == (N, SHAPE, False)
        patterns = source.read()
        assert np.array_equal(patterns.frames, frames.reshape(N, -1))
        assert patterns.frames.dtype == np.uint8
        assert patterns.event_id.tolist() == [(1_900_000_000 + n) * 2**16 + 4 * n for n in range(N)]
        assert patterns.columns["wavelength_A"] == pytest.approx(2.07)
        assert patterns.columns["pulse_energy_J"] == pytest.approx(1e-3)
        assert np.array_equal(patterns.columns["hit_score"], np.linspace(0, 1, N))
        assert patterns.columns["lit_pixels"].shape == (N, 16)
        assert "background" not in patterns.columns
        assert source.detector is not None
        assert source.detector.positions_m == pytest.approx(grid_m().reshape(-1, 3), abs=1e-7)
        assert source.detector.solid_angle_sr[0] == pytest.approx(4e-8 / 0.7**2)
        never = np.zeros(SHAPE, bool)
        never[0, 0] = True
        assert np.array_equal(source.detector.mask == PixelUse.NEVER, never.reshape(-1))
        mask = patterns.columns["frame_mask"].reshape(N, *SHAPE)
        assert mask[3, 1, 2, 0] == PixelUse.NEVER
        assert mask.sum() == PixelUse.NEVER
        assert np.array_equal(source.read([4, 2]).frames, frames[[4, 2]].reshape(2, -1))


def write_cheetah_like(path, compression=None) -> np.ndarray:
    """An LCLS file: int16 signal in one slab, CXI's bit mask, machine time, no geometry."""
    frames = np.random.default_rng(2).integers(0, 90, size=(N, 8, 3)).astype(np.int16)
    with h5py.File(path, "w") as file:
        file["cxi_version"] = 140
        file.create_dataset("entry_1/data_1/data", data=frames, chunks=(1, 8, 3), **(compression or {}))
        mask = np.zeros((8, 3), np.uint16)
        mask[0, 1], mask[5, 2] = 0x80, 0x200
        file["entry_1/data_1/mask"] = mask
        file[f"{DETECTOR}/distance"] = np.full(N, 0.58)
        file["entry_1/result_1/nPeaks"] = np.arange(N)
        file["entry_1/result_1/peakXPosRaw"] = np.zeros((N, 1024), np.float32)
        file["LCLS/photon_energy_eV"] = np.linspace(6000, 6100, N)
        file["LCLS/machineTime"] = np.full(N, 1_400_000_000, np.int32)
        file["LCLS/machineTimeNanoSeconds"] = np.arange(N, dtype=np.int32) * 8_333_333
        file["LCLS/eventTimeString"] = np.array([f"shot {n}".encode() for n in range(N)])
    return frames


@pytest.mark.parametrize(
    "compression",
    [
        {},
        {"compression": "gzip", "shuffle": True},
        hdf5plugin.Bitshuffle(cname="lz4"),
        hdf5plugin.Bitshuffle(cname="zstd"),
        hdf5plugin.LZ4(),
        hdf5plugin.Zstd(),
        hdf5plugin.Blosc(),
    ],
    ids=["none", "gzip", "bitshuffle-lz4", "bitshuffle-zstd", "lz4", "zstd", "blosc"],
)
def test_an_lcls_file_is_read_whatever_its_compression(tmp_path, compression) -> None:
    frames = write_cheetah_like(tmp_path / "hits.h5", dict(compression))
    with opened(tmp_path / "hits.h5") as source:
        patterns = source.read()
        assert np.array_equal(patterns.frames, frames.reshape(N, -1))
        assert source.detector is None
        assert source.mask is not None
        assert np.flatnonzero(source.mask).tolist() == [1, 17]
        assert source.mask.max() == PixelUse.NEVER
        assert patterns.columns["wavelength_A"] == pytest.approx(HC_EV_A / np.linspace(6000, 6100, N))
        assert patterns.event_id[1] == (1_400_000_000 << 32) + 8_333_333
        assert len(set(patterns.event_id.tolist())) == N
        assert patterns.columns["nPeaks"].tolist() == list(range(N))
        assert patterns.columns["eventTimeString"][2] == "shot 2"
        assert "peakXPosRaw" not in patterns.columns
        detector = square_detector((8, 3), pixel_size_m=1e-4, distance_m=0.5)
        merged = source.with_detector(detector).detector
        assert np.array_equal(merged.mask, source.mask)


def test_a_missing_filter_is_named_with_its_remedy(tmp_path) -> None:
    write_cheetah_like(tmp_path / "hits.cxi", dict(hdf5plugin.Bitshuffle(cname="lz4")))
    code = (
        "import sys; sys.modules['hdf5plugin'] = None\n"
        "from pathlib import Path; from orienteer.errors import FileError\n"
        "from orienteer.source.cxi import CxiSource\n"
        f"try: CxiSource(Path({str(tmp_path / 'hits.cxi')!r}))\n"
        "except FileError as error: print(error)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "bitshuffle (HDF5 filter 32008), which is not installed" in said
    assert "pip install '.[files]'" in said


def write_cxidb_like(path) -> np.ndarray:
    """A deposited image: 2D, energy in joule, links between the customary places."""
    image = np.random.default_rng(3).normal(size=(5, 6)).astype(np.float32)
    image[0, 0] = np.nan
    with h5py.File(path, "w") as file:
        file["cxi_version"] = 120
        file["entry_1/image_1/data"] = image
        mask = np.zeros((5, 6), np.uint32)
        mask[0, 0] = 1
        file["entry_1/image_1/mask"] = mask
        file["entry_1/data_1"] = h5py.SoftLink("/entry_1/image_1")
        file[f"{SOURCE}/energy"] = 1200 * EV
        file[f"{DETECTOR}/distance"] = 0.74
        file[f"{DETECTOR}/x_pixel_size"] = file[f"{DETECTOR}/y_pixel_size"] = 7.5e-5
    return image


def test_one_deposited_image_is_one_frame(tmp_path) -> None:
    image = write_cxidb_like(tmp_path / "cxidb-30.cxi")
    with opened(tmp_path / "cxidb-30.cxi") as source:
        patterns = source.read()
        assert (len(patterns), source.frame_shape) == (1, (5, 6))
        assert np.array_equal(patterns.frames[0], image.reshape(-1), equal_nan=True)
        assert patterns.columns["wavelength_A"] == pytest.approx(HC_EV_A / 1200)
        assert source.detector is None  # the beam may go anywhere
        assert len(source.read(slice(0, 0))) == 0


def base_file(path, **more) -> None:
    with h5py.File(path, "w") as file:
        file[f"{DETECTOR}/data"] = np.arange(N * 24, dtype=np.int32).reshape(N, *SHAPE)
        for name, value in more.items():
            file[name.replace("__", "/")] = value


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"entry_1__event_id": np.arange(N, dtype=np.uint64) + 7, "entry_1__trainId": np.arange(N)}, 7),
        ({"entry_1__trainId": np.full(N, 3), "entry_1__cellId": np.full(N, 5)}, 3 * 2**16 + 5),
        ({"entry_1__experiment_identifier": np.arange(N) + 40}, 40),
        ({"entry_1__experiment_identifier": [f"{n + 9}" for n in range(N)]}, 9),
        ({"entry_1__experiment_identifier": ["LCLS_2014_r0178"] * N}, hash_text("LCLS_2014_r0178")),
        ({"entry_1__trainId": np.arange(N)}, 0),
        ({}, 0),
    ],
)
def test_event_ids_come_from_the_first_rule_that_fits(tmp_path, fields, expected) -> None:
    base_file(tmp_path / "a.cxi", **fields)
    with opened(tmp_path / "a.cxi") as source:
        assert source.read(slice(0, 1)).event_id.tolist() == [expected]


@pytest.mark.parametrize(
    "fields",
    [
        {"entry_1__event_id": np.arange(N) - 3},
        {"entry_1__experiment_identifier": np.arange(N) - 3},
        {"entry_1__trainId": np.arange(N) - 3, "entry_1__cellId": np.arange(N)},
    ],
)
def test_event_ids_below_0_are_refused(tmp_path, fields) -> None:
    base_file(tmp_path / "a.cxi", **fields)
    with (
        opened(tmp_path / "a.cxi") as source,
        pytest.raises(OrienteerError, match=r"a\.cxi: an event id is -3"),
    ):
        source.event_ids()


def test_hashes_of_texts_stay_what_they_are() -> None:
    assert hash_text("LCLS_2014_r0178") == 17466209804071468697
    assert hash_text("½") != hash_text("1/2")


@pytest.mark.parametrize(
    ("place", "value", "wavelength_A"),
    [
        (f"{SOURCE}/energy", 8000 * EV, HC_EV_A / 8000),
        (f"{SOURCE}/energy", 8000.0, HC_EV_A / 8000),
        (f"{SOURCE}/energy", 1e-3, None),  # a pulse energy, stored in the wrong place
        (f"{SOURCE}/photon_wavelength", np.full(N, 1.5e-10), 1.5),
        (f"{SOURCE}/photon_wavelength", [1.5e-10], 1.5),
        ("LCLS/photon_energy_eV", np.full(N, 9000.0), HC_EV_A / 9000),
    ],
)
def test_the_wavelength_is_found_in_every_customary_place_and_unit(
    tmp_path, place, value, wavelength_A
) -> None:
    base_file(tmp_path / "a.cxi", **{place: value})
    with opened(tmp_path / "a.cxi") as source:
        columns = source.read().columns
        if wavelength_A is None:
            assert "wavelength_A" not in columns
        else:
            assert columns["wavelength_A"] == pytest.approx(np.full(N, wavelength_A))


def test_cxi_panels_are_corner_and_slow_then_fast_step(tmp_path) -> None:
    corners = np.array([[1e-3, 2e-3, 0.0], [-1e-3, 5e-3, 0.0]])
    steps = np.array([[[0, -2e-4, 0], [-1e-4, 0, 0]]] * 2)
    base_file(
        tmp_path / "a.cxi",
        **{
            f"{DETECTOR}/corner_positions": corners,
            f"{DETECTOR}/basis_vectors": steps,
            f"{DETECTOR}/distance": 0.3,
        },
    )
    with opened(tmp_path / "a.cxi") as source:
        assert source.detector is not None
        positions = source.detector.positions_m.reshape(*SHAPE, 3)
        assert positions[1, 2, 1] == pytest.approx([-1e-3 - 1.5e-4, 5e-3 - 5e-4, 0.3])


def test_missing_panel_fields_have_the_defaults_of_cxi(tmp_path) -> None:
    with h5py.File(tmp_path / "a.cxi", "w") as file:
        file[f"{DETECTOR}/data"] = np.zeros((N, 4, 6), np.int32)
        file[f"{DETECTOR}/basis_vectors"] = np.array([[[0, -1e-4, 0], [-1e-4, 0, 0]]] * N)  # one per frame
        file[f"{DETECTOR}/distance"] = 0.5
    with opened(tmp_path / "a.cxi") as source:
        assert source.detector is not None
        assert source.detector.positions_m.mean(axis=0) == pytest.approx([0, 0, 0.5])
        assert source.detector.positions_m[0] == pytest.approx([2.5e-4, 1.5e-4, 0.5])


def test_a_map_without_z_takes_the_distance_and_one_without_sizes_its_own_steps(tmp_path) -> None:
    positions = grid_m(distance_m=0.0)
    positions[1, 3, 2] = np.nan
    base_file(tmp_path / "a.cxi", **{f"{DETECTOR}/xyz_map": positions, f"{DETECTOR}/distance": 0.25})
    with opened(tmp_path / "a.cxi") as source:
        assert source.detector is not None
        assert source.detector.positions_m[:-1] == pytest.approx(grid_m(distance_m=0.25).reshape(-1, 3)[:-1])
        assert source.detector.solid_angle_sr[0] == pytest.approx(4e-8 / 0.25**2, rel=1e-3)
        assert source.detector.mask[-1] == PixelUse.NEVER


def test_garbage_under_the_mask_of_a_frame_counts_nothing_and_elsewhere_is_an_error(tmp_path) -> None:
    for bad in (np.nan, np.inf):
        frames = np.ones((N, 2, 2), np.float32)
        frames[4, 1, 1] = bad
        mask = np.zeros((N, 2, 2), np.uint16)
        for place in ((4, 1, 1), (3, 1, 1)):
            mask[:] = 0
            mask[place] = 2
            with h5py.File(tmp_path / "a.cxi", "w") as file:
                file[f"{DETECTOR}/data"] = frames
                file[f"{DETECTOR}/mask"] = mask
            with opened(tmp_path / "a.cxi") as source:
                if place[0] == 4:
                    assert source.read().photons.tolist() == [4, 4, 4, 4, 3, 4]
                else:
                    with pytest.raises(FileError, match="frame 4"):
                        source.read()


def test_virtual_frames_are_read_and_a_lost_part_is_named(tmp_path) -> None:
    layout = h5py.VirtualLayout((N, *SHAPE), np.int32)
    for panel in range(2):
        with h5py.File(tmp_path / f"panel{panel}.h5", "w") as file:
            file["data"] = np.full((N, *SHAPE[1:]), panel + 1, np.int32)
        layout[:, panel] = h5py.VirtualSource(f"panel{panel}.h5", "data", (N, *SHAPE[1:]))
    with h5py.File(tmp_path / "v.cxi", "w") as file:
        file.create_group(DETECTOR).create_virtual_dataset("data", layout)
    with opened(tmp_path / "v.cxi") as source:
        assert np.unique(source.read().frames.reshape(N, *SHAPE)[:, 1]).tolist() == [2]
    (tmp_path / "panel1.h5").unlink()
    with pytest.raises(FileError, match=r"panel1\.h5"):
        opened(tmp_path / "v.cxi")


def test_a_file_that_is_being_written_is_readable(tmp_path) -> None:
    with h5py.File(tmp_path / "a.cxi", "w", libver="latest") as file:
        data = file.create_dataset(
            f"{DETECTOR}/data", data=np.ones((3, 2, 2), np.int32), maxshape=(None, 2, 2)
        )
        file.swmr_mode = True
        data.flush()
        code = (
            "from pathlib import Path; from orienteer.source.cxi import CxiSource\n"
            f"print(len(CxiSource(Path({str(tmp_path / 'a.cxi')!r})).read()))"
        )
        said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        assert said.split() == ["3"]


def two_panels() -> Detector:
    panels = [
        Panel(
            f"q{k}",
            (1e-3 * k, 0.0, 0.5 + 0.001 * k),
            (1e-4, 1e-6, 0),
            (0, 1e-4, 0),
            (4, 3),
            first_pixel=12 * k,
        )
        for k in range(2)
    ]
    mask = np.zeros(24, np.uint8)
    mask[[0, 5]] = 1, 2
    return Detector(panels, SHAPE, mask, np.linspace(0.5, 1, 24), "two panels")


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.int64, np.float32, np.float64])
def test_a_round_trip_is_exact(tmp_path, dtype) -> None:
    random = np.random.default_rng(6)
    patterns = Patterns(
        random.poisson(2, size=(N, 24)).astype(dtype),
        random.integers(2**64, size=N, dtype=np.uint64),
        {
            "wavelength_A": random.random(N) + 1,
            "truth_orientation": random.normal(size=(N, 4)),
            "truth_kind": np.array(["hit", "junk", "µ", "", "empty", "hit"]),
            "hit_score": random.random(N).astype(np.float32),
            "is_hit": random.random(N) > 0.5,
        },
    )
    detector = two_panels()
    with Writer(
        tmp_path / "a", detector=detector, metadata={"seed": 7, "settings": "[simulate]\n"}
    ) as writer:
        writer.append(patterns[:2])
        writer.append(patterns[2:])
    with opened(tmp_path / "a") as source:
        read = source.read()
        assert read.frames.dtype == dtype
        assert np.array_equal(read.frames, patterns.frames)
        assert np.array_equal(read.event_id, patterns.event_id)
        assert set(read.columns) == set(patterns.columns) == set(source.column_names)
        for name, column in patterns.columns.items():
            assert np.array_equal(read.columns[name], column), name
            assert read.columns[name].dtype.kind == column.dtype.kind
        assert source.detector == detector
        assert source.frame_shape == SHAPE
        assert source.metadata == {"seed": 7, "settings": "[simulate]\n"}


def test_other_programs_find_the_standard_fields(tmp_path) -> None:
    detector = two_panels()
    with Writer(tmp_path / "a.cxi", detector=detector) as writer:
        writer.append(Patterns(np.ones((2, 24), np.int32), columns={"wavelength_A": np.full(2, 1.5)}))
    with h5py.File(tmp_path / "a.cxi") as file:
        assert file["entry_1/data_1/data"].shape == (2, *SHAPE)
        assert file[f"{SOURCE}/energy"][0] == pytest.approx(HC_EV_A / 1.5 * EV)
        assert {n: file[f"{DETECTOR}/mask"][()].ravel()[n] for n in (0, 4, 5)} == {0: 0x100, 4: 0, 5: 0x80}
        assert np.flatnonzero(~file[f"{DETECTOR}/good_pixels"][()]).tolist() == [5]
        assert file["cxi_version"][()] == 160
    # The standard fields alone give the same positions as the exact copy.
    for keep in ("xyz_map", "corner_positions"):
        with h5py.File(tmp_path / "a.cxi", "r+") as file:
            file.pop("orienteer_detector", None)
            if keep == "corner_positions":
                del file[f"{DETECTOR}/xyz_map"]
        with opened(tmp_path / "a.cxi") as source:
            assert source.detector is not None
            assert source.detector.positions_m == pytest.approx(detector.positions_m, abs=1e-15)
            assert source.detector.mask[5] == PixelUse.NEVER


def test_sparse_and_flat_frames_are_written_dense_and_keep_their_shape(tmp_path) -> None:
    counts = np.random.default_rng(8).poisson(0.5, size=(5, 10))
    with Writer(tmp_path / "a.cxi") as writer:
        writer.append(Patterns(Patterns(counts).sparse()))
    with opened(tmp_path / "a.cxi") as source:
        assert source.frame_shape == (10,)
        assert np.array_equal(source.read().frames, counts)
    with Writer(tmp_path / "b.cxi", frame_shape=(2, 5)):
        pass
    with opened(tmp_path / "b.cxi") as source:
        assert len(source.read()) == 0


def test_what_does_not_fit_the_first_batch_is_refused(tmp_path) -> None:
    with pytest.raises(OrienteerError, match="do not fit"), Writer(tmp_path / "a.cxi") as writer:
        writer.append(Patterns(np.ones((1, 4), np.uint8)))
        writer.append(Patterns(np.full((1, 4), 300)))
    with pytest.raises(OrienteerError, match="columns score"), Writer(tmp_path / "a.cxi") as writer:
        writer.append(Patterns(np.ones((1, 4), np.uint8)))
        writer.append(Patterns(np.ones((1, 4), np.uint8), columns={"score": np.ones(1)}))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({f"{DETECTOR}/mask": np.zeros((3, 3), np.uint8)}, "mask"),
        ({f"{DETECTOR}/mask": np.zeros(SHAPE)}, "float64"),
        ({f"{DETECTOR}/good_pixels": np.zeros((9, 9), bool)}, "good_pixels"),
        ({f"{DETECTOR}/xyz_map": np.zeros((3, 9, 9))}, "xyz_map has shape"),
        ({f"{DETECTOR}/xyz_map": np.full((3, *SHAPE), np.nan)}, "no position"),
        (
            {
                f"{DETECTOR}/corner_positions": np.zeros((3, 3)),
                f"{DETECTOR}/basis_vectors": np.ones((2, 2, 3)),
            },
            "corner",
        ),
        (
            {
                f"{DETECTOR}/basis_vectors": np.zeros((2, 2, 3)),
                f"{DETECTOR}/corner_positions": np.ones((2, 3)),
            },
            "panel",
        ),
        ({f"{DETECTOR}/xyz_map": grid_m(distance_m=0), f"{DETECTOR}/distance": -1.0}, "not one positive"),
        ({"entry_1/columns/score": np.zeros(N + 1)}, "column 'score'"),
        ({"entry_1/orienteer_metadata": [np.bytes_("no json")]}, "damaged"),
        ({"entry_1/orienteer_metadata": "of variable length"}, "cannot be right"),
    ],
)
def test_fields_that_do_not_fit_are_refused(tmp_path, fields, reason) -> None:
    base_file(tmp_path / "broken.cxi", **fields)
    with pytest.raises(FileError, match=reason) as caught:
        opened(tmp_path / "broken.cxi")
    assert "broken.cxi" in str(caught.value)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (np.zeros(5), "no stack"),
        (np.zeros((2, 3, 0)), "no stack"),
        (np.zeros((2, 3, 3), complex), "cannot be right"),
        (np.array([[b"text"]]), "cannot be right"),
        (None, "without frames"),
    ],
)
def test_what_are_no_frames_are_refused(tmp_path, data, reason) -> None:
    with h5py.File(tmp_path / "broken.cxi", "w") as file:
        group = file.create_group(DETECTOR)
        if data is not None:
            group["data"] = data
        assert recognise(tmp_path, b"", file)
    with pytest.raises(FileError, match=reason):
        opened(tmp_path / "broken.cxi")


def test_a_broken_link_falls_through_to_the_next_place(tmp_path) -> None:
    with h5py.File(tmp_path / "a.cxi", "w") as file:
        file[f"{DETECTOR}/data"] = h5py.SoftLink("/nowhere")
        file["entry_1/data_1/data"] = np.ones((2, 3, 3), np.int32)
    with opened(tmp_path / "a.cxi") as source:
        assert len(source) == 2


def test_opening_reads_no_frames(tmp_path) -> None:
    """Frames that nobody can read: whoever opens the file does not notice."""
    with h5py.File(tmp_path / "big.cxi", "w") as file:
        data = file.create_dataset(
            f"{DETECTOR}/data", (4, 64, 64), np.int32, chunks=(1, 64, 64), compression="gzip"
        )
        data[...] = 1
        for frame in range(4):
            data.id.write_direct_chunk((frame, 0, 0), b"no gzip" * 10)
    with opened(tmp_path / "big.cxi") as source:
        assert len(source) == 4
        with pytest.raises(FileError):
            source.read()
