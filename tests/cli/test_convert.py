"""``orienteer convert`` keeps what the new format can hold, and says what it cannot."""

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import orienteer
from orienteer.detector.crystfel_write import write_crystfel_geom
from orienteer.detector.square import square_detector
from orienteer.source.opening import writer_for
from orienteer.source.patterns import Patterns
from orienteer.volume.opening import open_volume, write_volume
from orienteer.volume.volume import Volume

COUNTS = np.random.default_rng(1).poisson(0.5, (7, 24)).astype(np.int32)
DETECTOR = square_detector((4, 6), pixel_size_m=1e-3, distance_m=0.02)


def write_masked_cxi(path: str) -> None:
    """A facility's file: hot pixel under the mask, no geometry, no wavelength."""
    frames = COUNTS.copy()
    frames[:, 5] = 10**6
    with h5py.File(path, "w") as file:
        file["entry_1/data_1/data"] = frames.reshape(7, 4, 6)
        file["entry_1/data_1/mask"] = np.where(np.arange(24) == 5, 0x4, 0).astype(np.uint16).reshape(4, 6)


@pytest.mark.parametrize("name", ["out.h5", "out.cxi", "out.npz"])
@pytest.mark.parametrize("geometry", [False, True])
def test_the_mask_of_the_data_is_kept_with_and_without_a_geometry(
    run: Any, name: str, geometry: bool
) -> None:
    write_masked_cxi("hits.cxi")
    write_crystfel_geom("a.geom", DETECTOR)
    result = run("convert", "hits.cxi", name, *(["--geometry", "a.geom"] if geometry else []))
    assert result.status == 0, result.errors
    assert np.flatnonzero(orienteer.open(name).mask).tolist() == [5]
    assert run("inspect", name, "--json", "--no-picture").json["photons_per_frame"]["max"] < 10**6


def test_metadata_and_polarisation_go_along(run: Any) -> None:
    with writer_for("a.h5", detector=DETECTOR, metadata={"seed": 8}, polarisation="y") as writer:
        writer.append(Patterns(COUNTS, columns={"wavelength_A": np.full(7, 2.0)}))
    for name in ("b.cxi", "c.h5"):
        assert run("convert", "a.h5", name).status == 0
        source = orienteer.open(name)
        assert source.metadata["seed"] == 8
        assert source.polarisation == "y"
    assert run("convert", "a.h5", "d.spinifel.h5").status == 0
    assert orienteer.open("d.spinifel.h5").polarisation == "y"
    assert run("convert", "a.h5", "e.dat").status == 0
    assert orienteer.open(COUNTS, geometry="e.dat").polarisation == "y"
    assert run("convert", "e.dat", "f.dat").status == 0
    assert orienteer.open(COUNTS, geometry="f.dat").polarisation == "y"


def test_a_detector_that_a_format_cannot_hold_is_told_how_to_keep(run: Any) -> None:
    with writer_for("a b.h5", detector=DETECTOR) as writer:
        writer.append(Patterns(COUNTS, columns={"wavelength_A": np.full(7, 2.0)}))
    told = run("convert", "a b.h5", "c.emc")
    assert told.status == 0
    assert told.errors.strip().endswith("orienteer convert 'a b.h5' c.geom")
    assert run("convert", "a b.h5", "c.geom").status == 0
    assert run("inspect", "c.emc", "--geometry", "c.geom", "--no-picture").status == 0
    assert "write it to a separate file" not in run("convert", "a b.h5", "d.cxi").errors
    # Without a detector of its own, the input could not give one to the file that would be suggested.
    given = run("convert", "c.emc", "e.npy", "--geometry", "c.geom")
    assert given.status == 0
    assert "detector" in given.errors
    assert "write it to a separate file" not in given.errors


def test_the_wavelength_reaches_the_writer(run: Any) -> None:
    write_masked_cxi("hits.cxi")
    write_crystfel_geom("a.geom", DETECTOR)
    assert run("convert", "hits.cxi", "a.h5", "--wavelength-A", 1.25).status == 0
    assert orienteer.open("a.h5").read_columns()["wavelength_A"].tolist() == [1.25] * 7
    told = run("convert", "hits.cxi", "a.spinifel.h5", "--geometry", "a.geom")
    assert told.status == 1
    assert "--wavelength-A" in told.errors
    told = run("convert", "hits.cxi", "a.spinifel.h5", "--wavelength-A", 1.25)
    assert "--geometry" in told.errors
    given = ("--geometry", "a.geom", "--wavelength-A", 1.25)
    assert run("convert", "hits.cxi", "a.spinifel.h5", *given).status == 0
    assert orienteer.open("a.spinifel.h5").read_columns()["wavelength_A"] == pytest.approx(1.25)


def test_all_that_is_lost_is_said_and_nothing_else(run: Any) -> None:
    columns = {"wavelength_A": np.full(7, 2.0), "hit_score": np.arange(7.0)}
    with writer_for("a.h5", detector=DETECTOR, metadata={"seed": 8}, polarisation="y") as writer:
        writer.append(Patterns(COUNTS, columns=columns))
    lost = " ".join(run("convert", "a.h5", "b.emc", "--json").json["lost"])
    for word in ("event ids", "hit_score", "detector", "frame shape", "polarisation", "seed"):
        assert word in lost
    assert run("convert", "a.h5", "b.cxi", "--json").json["lost"] == []
    assert run("convert", "a.h5", "c.h5", "--json").json["lost"] == []
    lost = " ".join(run("convert", "a.h5", "d.spinifel.h5", "--json").json["lost"])
    assert "hit_score" in lost
    assert "wavelength_A" not in lost
    np.save("bare.npy", COUNTS)
    assert run("convert", "bare.npy", "bare.emc", "--json").json["lost"] == []


def test_ids_that_stand_twice_can_be_numbered_anew(run: Any) -> None:
    np.savez("twice.npz", frames=COUNTS, event_id=np.array([1, 2, 3, 4, 5, 6, 1]))
    told = run("convert", "twice.npz", "a.h5")
    assert told.status == 1
    assert "--renumber" in told.errors
    assert run("convert", "twice.npz", "a.h5", "--renumber").status == 0
    assert orienteer.open("a.h5").event_ids().tolist() == list(range(7))


def test_signal_does_not_become_photon_lists(run: Any) -> None:
    np.save("signal.npy", COUNTS + 0.5)
    told = run("convert", "signal.npy", "a.emc.h5")
    assert told.status == 1
    assert "a.emc.h5" in told.errors
    assert ".emc" in told.errors


def test_a_flat_spinifel_file_takes_its_wavelength_from_the_command_line(run: Any) -> None:
    with writer_for("a.spinifel.h5", detector=DETECTOR, metadata={"wavelength_A": 2.0}) as writer:
        writer.append(Patterns(COUNTS))
    with h5py.File("a.spinifel.h5", "r+") as file:
        del file.attrs["wavelength_A"]
        vectors = file["pixel_position_reciprocal"][()]
        vectors[..., 2] = 0
        file["pixel_position_reciprocal"][...] = vectors
    assert "detector" in run("inspect", "a.spinifel.h5", "--json", "--no-picture").json["missing"]
    told = run("inspect", "a.spinifel.h5", "--json", "--no-picture", "--wavelength-A", 2.0).json
    assert told["missing"].keys() <= {"mask"}


@pytest.mark.parametrize("name", ["out.emc", "out.emc.h5", "out.npy", "out.spinifel.h5"])
def test_saturated_pixels_that_become_zeros_are_said_in_words(run: Any, name: str) -> None:
    saturated = np.zeros(COUNTS.shape, np.uint8)
    saturated[2, 7] = 2
    columns = {"wavelength_A": np.full(7, 2.0), "frame_mask": saturated}
    with writer_for("a.h5", detector=DETECTOR) as writer:
        writer.append(Patterns(np.maximum(COUNTS, 1), columns=columns))
    told = run("convert", "a.h5", name)
    assert told.status == 0
    said = " ".join(told.errors.split())  # however wide the terminal is
    assert said.count("frame_mask") == 1
    assert "saturated" in said
    assert "written as 0" in said
    assert orienteer.open(name).read().dense()[2, 7] == 0
    for kept in ("b.h5", "b.cxi", "b.npz"):
        assert "frame_mask" not in run("convert", "a.h5", kept).errors


def test_only_wavelengths_that_differ_are_said_to_be_lost(run: Any) -> None:
    for name, wavelengths_A in {"same": np.full(7, 2.0), "different": np.linspace(1.9, 2.1, 7)}.items():
        with writer_for(f"{name}.h5", detector=DETECTOR) as writer:
            writer.append(Patterns(COUNTS, columns={"wavelength_A": wavelengths_A}))
        lost = " ".join(run("convert", f"{name}.h5", f"{name}.spinifel.h5", "--json").json["lost"])
        assert ("wavelengths that differ" in lost) == (name == "different")
    np.save("bare.npy", COUNTS)
    write_crystfel_geom("a.geom", DETECTOR)
    given = ("--geometry", "a.geom", "--wavelength-A", 2.0)
    told = run("convert", "bare.npy", "bare.spinifel.h5", "--json", *given)
    assert "wavelengths" not in " ".join(told.json["lost"])


def test_a_simulation_says_what_its_format_loses(run: Any) -> None:
    options = ("--frames", 3, "--photons-per-frame", 200, "--set", "detector.pixels=24", "--json")
    assert run("simulate", "sphere", *options, "--out", "a.h5").json["lost"] == []
    lost = " ".join(run("simulate", "sphere", *options, "--out", "a.emc").json["lost"])
    assert "seed" in lost
    assert "truth_orientation" in lost
    assert "frame_mask" not in lost


def test_a_format_that_nobody_knows_is_a_wrong_command_line(run: Any) -> None:
    with writer_for("a.h5", detector=DETECTOR) as writer:
        writer.append(Patterns(COUNTS))
    write_crystfel_geom("a.geom", DETECTOR)
    for line in (("a.h5", "b.h5"), ("a.h5", "b.geom"), ("a.geom", "b.dat")):
        told = run("convert", *line, "--to", "nonsense")
        assert told.status == 2
        assert "--to nonsense" in told.errors
        assert "Known formats: " in told.errors
        told = run("convert", *line, "--to", "nonsense", "--json")
        assert told.status == 2
        assert "--to nonsense" in told.json["error"]
    assert run("convert", "a.h5", "c.frames", "--to", "cxi").status == 0
    assert orienteer.open("c.frames").format == "CXI"


def test_a_volume_takes_its_format_from_the_ending_alone(run: Any) -> None:
    write_volume("a.mrc", Volume(np.zeros((4, 4, 4), np.float32), (1.0, 1.0, 1.0)))
    assert run("convert", "a.mrc", "b.h5", "--to", "MRC").status == 2
    assert run("convert", "a.mrc", "b.h5").status == 0


def test_a_simulation_names_the_setting_for_a_distance_that_the_geometry_leaves_open(run: Any) -> None:
    write_crystfel_geom("a.geom", DETECTOR)
    text = Path("a.geom").read_text()
    Path("open.geom").write_text("\n".join(line for line in text.splitlines() if "clen" not in line))
    line = ("simulate", "sphere", "--frames", 2, "--geometry", "open.geom", "--out", "b.h5")
    told = run(*line)
    assert told.status == 1
    assert "--distance-m" not in told.errors
    assert "--set detector.distance_m=" in told.errors
    assert run(*line, "--set", "detector.distance_m=0.02").status == 0


def test_voxels_that_were_never_measured_are_told_where_the_format_has_no_word_for_them(run: Any) -> None:
    values = np.ones((4, 4, 4), np.float32)
    values[0] = np.nan
    write_volume("map.h5", Volume(values, 0.01, "reciprocal"))
    told = run("convert", "map.h5", "map.mrc")
    assert told.status == 0
    assert "16 voxels that were never measured, now 0" in told.errors
    assert run("convert", "map.mrc", "again.h5").errors == ""


def test_a_map_without_a_voxel_size_is_given_one_by_the_option_that_its_error_names(run: Any) -> None:
    write_volume("map.mrc", Volume(np.arange(64.0).reshape(4, 4, 4), 3.0))
    content = bytearray(Path("map.mrc").read_bytes())
    content[40:52] = bytes(12)  # the cell
    content[224:1024] = bytes(800)  # the labels
    Path("map.mrc").write_bytes(content)
    told = run("convert", "map.mrc", "out.mrc")
    assert told.status == 1
    assert "--voxel-A" in told.errors
    assert "--voxel-inv-A" in told.errors
    assert run("convert", "map.mrc", "out.mrc", "--voxel-A", 2.5).status == 0
    assert open_volume("out.mrc").voxel_size == (2.5,) * 3
    assert open_volume("out.mrc").space == "real"
    assert run("convert", "map.mrc", "intensity.h5", "--voxel-inv-A", 0.0025).status == 0
    assert open_volume("intensity.h5").voxel_size == (0.0025,) * 3
    assert open_volume("intensity.h5").space == "reciprocal"
    assert run("convert", "map.mrc", "both.mrc", "--voxel-A", 2, "--voxel-inv-A", 0.1).status == 2
    assert not Path("both.mrc").exists()


def test_a_raw_cube_is_given_a_voxel_size_by_the_option_that_its_error_names(run: Any) -> None:
    np.arange(27.0).tofile("cube.bin")
    assert "--voxel-inv-A" in run("convert", "cube.bin", "out.h5").errors
    assert run("convert", "cube.bin", "out.h5", "--voxel-inv-A", 0.002).status == 0
    assert open_volume("out.h5").voxel_size == (0.002,) * 3


def test_frames_have_no_voxels(run: Any) -> None:
    np.save("frames.npy", COUNTS)
    told = run("convert", "frames.npy", "out.h5", "--voxel-A", 4)
    assert told.status == 2
    assert "for volumes" in told.errors
