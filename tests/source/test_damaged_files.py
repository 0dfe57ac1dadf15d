"""Damaged files, five thousand with --slow: each gives an OrienteerError that names it, or data of its shape.

Files are damaged from a seed and read completely in child processes with little memory and little time, so
that a crash, a hang or a huge allocation is found and named by kind of file, kind of damage and seed.
"""

import builtins
import io
import multiprocessing
import os
import re
import resource
import shutil
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import orienteer
from orienteer.detector.crystfel_write import write_crystfel_geom
from orienteer.detector.dragonfly import write_dragonfly_hdf5, write_dragonfly_text
from orienteer.detector.opening import open_detector
from orienteer.detector.square import square_detector
from orienteer.run.settings import Settings
from orienteer.settings.describing import describe_settings, example_toml
from orienteer.settings.loading import load_settings
from orienteer.simulation.background import read_background
from orienteer.simulation.experiment import _read_fluences
from orienteer.source import cxi, orienteer_hdf5
from orienteer.source.opening import writer_for
from orienteer.source.patterns import Patterns, first_bad_frame
from orienteer.volume.hdf5 import write_volume_hdf5
from orienteer.volume.mrc import write_mrc
from orienteer.volume.opening import open_volumes
from orienteer.volume.volume import Volume

MEMORY_BYTES = 768 * 2**20
SECONDS_PER_FILE = 15
N_CHILDREN = 2
SHAPE, N_FRAMES, WAVELENGTH_A = (6, 7), 40, 2.7

Damage = Callable[[Path, int, Path], str]


# What undamaged files hold, and how each kind is read completely.


def detector() -> Any:
    mask = np.zeros(42, dtype=np.uint8)
    mask[:3] = 2, 1, 2
    return square_detector(SHAPE, pixel_size_m=1e-3, distance_m=0.1).with_mask(mask)


def patterns(form: str) -> Patterns:
    draw = np.random.default_rng(2)
    frames = Patterns(draw.poisson(0.3, (N_FRAMES, 42)).astype(np.int32))
    stored: Any = {"sparse": frames.sparse, "counts": frames.dense}.get(
        form, lambda: draw.normal(1, 0.2, (N_FRAMES, 42))
    )()
    columns = {
        "wavelength_A": np.full(N_FRAMES, WAVELENGTH_A),
        "truth_orientation": draw.normal(size=(N_FRAMES, 4)),
        "sample": np.array([f"µ{i % 3}" for i in range(N_FRAMES)]),
    }
    return Patterns(stored, np.arange(N_FRAMES) + 1000, columns)


def write_patterns(name: str, form: str, **options: Any) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        facts = {"detector": detector(), "metadata": {"wavelength_A": WAVELENGTH_A, "seed": 3}}
        with writer_for(path, name, **facts, **options) as writer:
            writer.append(patterns(form))

    return write


def write_live(path: Path) -> None:
    """What a killed writer leaves: the file as it was at a commit, with the marks of somebody who writes."""
    growing = path.with_name("growing")
    with writer_for(growing, "Orienteer", live=True, detector=detector()) as writer:
        writer.append(patterns("sparse"))
        writer.commit()
        shutil.copyfile(growing, path)
    growing.unlink()


def write_compressed_npz(path: Path) -> None:
    with path.open("wb") as file:
        np.savez_compressed(file, frames=patterns("counts").dense(), fluence=np.ones(N_FRAMES))


def write_foreign_cxi(path: Path) -> None:
    """As facilities write it: old file format, no checksums, text of variable length."""
    with h5py.File(path, "w", libver="earliest") as file:
        group = file.create_group("entry_1/instrument_1/detector_1")
        frames = patterns("counts").dense().reshape(N_FRAMES, *SHAPE)
        group.create_dataset("data", data=frames, chunks=(4, *SHAPE), compression="gzip")
        group["mask"] = np.zeros(SHAPE, dtype=np.uint32)
        group["distance"] = 0.1
        group.attrs["note"] = "calibrated"
        group["description"] = "AGIPD"
        file["entry_1/data_1/data"] = h5py.SoftLink("/entry_1/instrument_1/detector_1/data")
        file["entry_1/instrument_1/source_1/energy"] = np.full(N_FRAMES, 7e-16)
        file["entry_1/hit_score"] = np.ones(N_FRAMES)
        file.attrs["format"] = "facility format"
        file["cxi_version"] = 150


def write_dragonfly_output(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["intens"], file["inter_weight"] = np.ones((2, 5, 5, 5)), np.ones((2, 5, 5, 5))
        file["orientations"], file["scale"] = np.zeros(4, np.int32), np.ones(4)


def volume() -> Volume:
    return Volume(np.random.default_rng(3).normal(size=(5, 6, 7)).astype(np.float32), 2.5, name="blob")


def read_patterns(path: Path) -> list[Any]:
    source = orienteer.open(path)
    try:
        return read_source(source)
    finally:
        # An error keeps frames, and with them what they have open, until garbage is collected (Python 3.12).
        # HDF5 would take the next damaged file, which has the same inode, for this one.
        source.close()


def read_source(source: Any) -> list[Any]:
    parts = []
    for batch in source.batches(16):
        assert batch.n_pixels == source.n_pixels == int(np.prod(source.frame_shape))
        assert batch.event_id.shape == (len(batch),)
        assert set(batch.columns) == set(source.column_names)
        assert first_bad_frame(batch, source.never_used) is None
        parts.append(batch)
    assert sum(len(part) for part in parts) == len(source)
    facts = [source.metadata, source.frame_shape]
    if source.detector is not None:
        assert source.detector.n_pixels == source.n_pixels
        facts += read_facts(source.detector)
    arrays = [(p.frames.start, p.frames.pixel, p.frames.count) if p.is_sparse else p.frames for p in parts]
    return [*facts, *arrays, *((p.event_id, sorted(p.columns.items())) for p in parts)]


def read_facts(found: Any) -> list[Any]:
    assert found.positions_m.shape == (found.n_pixels, 3)
    assert np.isfinite(found.positions_m).all()
    assert found.mask.shape == (found.n_pixels,)
    return [found.name, found.positions_m, found.mask, found.frame_shape]


def read_geometry(path: Path) -> list[Any]:
    return read_facts(open_detector(path, wavelength_A=WAVELENGTH_A))


STRUCTURE = """
data_TEST
loop_
_atom_site.group_PDB
_atom_site.id
_atom_site.type_symbol
_atom_site.label_atom_id
_atom_site.label_alt_id
_atom_site.label_comp_id
_atom_site.label_asym_id
_atom_site.label_entity_id
_atom_site.label_seq_id
_atom_site.Cartn_x
_atom_site.Cartn_y
_atom_site.Cartn_z
_atom_site.occupancy
_atom_site.B_iso_or_equiv
_atom_site.auth_asym_id
_atom_site.auth_seq_id
_atom_site.pdbx_PDB_model_num
"""


def write_mmcif(path: Path) -> None:
    rows = [f"ATOM {i} C CA . ALA A 1 {i} {3.8 * i:.3f} {i % 3} 0.0 1.0 10.0 A {i} 1" for i in range(1, 15)]
    path.write_text(STRUCTURE + "\n".join(rows) + "\n")


def write_pdb(path: Path) -> None:
    lines = [
        f"ATOM  {i:5d}  CA  ALA A{i:4d}    {3.8 * i:8.3f}{i % 3:8.3f}{0:8.3f}  1.00 10.00           C"
        for i in range(1, 15)
    ]
    path.write_text("\n".join([*lines, "END\n"]))


def read_structure(path: Path) -> list[Any]:
    structure = orienteer.open_structure(path)
    assert structure.positions_A.shape == (len(structure), 3)
    assert np.isfinite(structure.positions_A).all()
    return [structure.positions_A, structure.radius_A]


def write_settings(path: Path) -> None:
    path.write_text(example_toml(describe_settings(Settings)))


def read_settings(path: Path) -> list[Any]:
    return [load_settings(Settings, path).model_dump_json()]


def write_fluences(path: Path) -> None:
    np.savetxt(path, np.random.default_rng(4).lognormal(size=40))


def read_fluences(path: Path) -> list[Any]:
    fluences = _read_fluences(str(path))
    assert fluences.ndim == 1
    return [fluences]


def write_background(path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, np.ones(SHAPE, np.float32))


def read_expected_background(path: Path) -> list[Any]:
    background = read_background(str(path), detector())
    assert background.shape == (42,)
    assert np.isfinite(background).all()
    return [background]


def read_volumes(path: Path, voxel_size: float | None = None) -> list[Any]:
    volumes = open_volumes(path, voxel_size=voxel_size)
    for found in volumes:
        assert found.values.ndim == 3
        assert not np.isinf(found.values).any()
    return [(found.values, found.voxel_size, found.origin, found.space) for found in volumes]


@dataclass(frozen=True)
class Kind:
    """A kind of file: how to write a sound one and read it, whether checksums cover all of it, and whether
    it is text, of which some may be lost without anybody's noticing.
    """

    write: Callable[[Path], None]
    read: Callable[[Path], list[Any]] = read_patterns
    is_checked: bool = False
    is_forgiving: bool = False


KINDS = {
    "Orienteer sparse": Kind(write_patterns("Orienteer", "sparse"), is_checked=True),
    "Orienteer dense": Kind(write_patterns("Orienteer", "signal"), is_checked=True),
    "Orienteer appended": Kind(write_patterns("Orienteer", "counts", append=True), is_checked=True),
    "Orienteer live": Kind(write_live, is_checked=True),
    "npy": Kind(write_patterns("NumPy array", "counts")),
    "npz sparse": Kind(write_patterns("NumPy archive", "sparse")),
    "npz compressed": Kind(write_compressed_npz),
    "CXI": Kind(write_patterns("CXI", "counts")),
    "CXI of a facility": Kind(write_foreign_cxi),
    "EMC sparse": Kind(write_patterns("Dragonfly EMC", "sparse", frame_type="sparse")),
    "EMC integer": Kind(write_patterns("Dragonfly EMC", "counts", frame_type="integer")),
    "EMC float": Kind(write_patterns("Dragonfly EMC", "signal", frame_type="float")),
    "Dragonfly HDF5": Kind(write_patterns("Dragonfly HDF5", "sparse")),
    "SpiniFEL": Kind(write_patterns("SpiniFEL", "signal")),
    "MRC": Kind(lambda path: write_mrc(path, volume()), read_volumes),
    "Orienteer volume": Kind(lambda path: write_volume_hdf5(path, volume()), read_volumes, is_checked=True),
    "Dragonfly output": Kind(write_dragonfly_output, partial(read_volumes, voxel_size=1.0)),
    "CrystFEL geometry": Kind(lambda path: write_crystfel_geom(path, detector()), read_geometry),
    "Dragonfly detector": Kind(lambda path: write_dragonfly_text(path, detector()), read_geometry),
    "Orienteer data as geometry": Kind(write_patterns("Orienteer", "sparse"), read_geometry, is_checked=True),
    "Orienteer live data as geometry": Kind(write_live, read_geometry, is_checked=True),
    "PDB": Kind(write_pdb, read_structure, is_forgiving=True),
    "mmCIF": Kind(write_mmcif, read_structure, is_forgiving=True),
    "settings": Kind(write_settings, read_settings, is_forgiving=True),
    "fluences": Kind(write_fluences, read_fluences, is_forgiving=True),
    "background": Kind(write_background, read_expected_background),
    "Dragonfly HDF5 detector": Kind(lambda path: write_dragonfly_hdf5(path, detector()), read_geometry),
}


# Reading in children, and what the parent accepts.


def same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return isinstance(a, type(b)) and a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b)


@cache
def read_sound(kind: str, folder: Path) -> list[Any]:
    return KINDS[kind].read(folder / kind)


def verdict(kind: str, seed: int, folder: Path, damage: Damage) -> tuple[str, str]:
    """What happened with one damaged file: the damage, and "read", "refused" or what went wrong."""
    path = folder / f"damaged_{os.getpid()}.dat"
    done = damage(folder / kind, seed, path)
    try:
        found = KINDS[kind].read(path)
    except orienteer.OrienteerError as error:
        if path.name not in str(error):
            return done, f"an error that does not name the file: {error}"
        # The HDF5 library itself refuses metadata of absurd size; that is an answer in words, too.
        words = str(error).replace("memory_GiB", "")  # the name of a setting
        ran_out = "memory" in words and "on disk image buffer" not in str(error)
        return done, f"out of memory: {error}" if ran_out else "refused"
    except BaseException as error:
        return done, f"{type(error).__name__}: {error}"
    must_be_same = KINDS[kind].is_checked and not done.startswith("spoil")
    if must_be_same and not same(found, read_sound(kind, folder)):
        return done, "read, but other data than were written"
    return done, "read"


def work(tasks: list[tuple[str, int]], folder: Path, damage: Damage, results: Connection) -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for kind, seed in tasks:
        results.send(verdict(kind, seed, folder, damage))
    results.close()


def read_all(
    tasks: list[tuple[str, int]], folder: Path, damage: Damage
) -> dict[tuple[str, int], tuple[str, str]]:
    """The verdict on every task; a child that dies or hangs is replaced by one that takes up after it."""
    fork = multiprocessing.get_context("fork")
    verdicts: dict[tuple[str, int], tuple[str, str]] = {}
    left = {i: tasks[i::N_CHILDREN] for i in range(N_CHILDREN)}
    running: dict[Connection, tuple[int, Any, float]] = {}
    while any(left.values()) or running:
        for i, share in left.items():
            if share and all(number != i for number, _, _ in running.values()):
                receive, send = fork.Pipe(duplex=False)
                child = fork.Process(target=work, args=(share, folder, damage, send))
                child.start()
                send.close()
                running[receive] = (i, child, time.monotonic())
        for connection in wait(list(running), timeout=0.5):
            i, child, _ = running[connection]
            try:
                verdicts[left[i][0]] = connection.recv()
                left[i] = left[i][1:]
                running[connection] = (i, child, time.monotonic())
            except EOFError:
                child.join()
                if left[i]:
                    verdicts[left[i][0]] = ("?", f"the reader died with exit code {child.exitcode}")
                    left[i] = left[i][1:]
                del running[connection]
        for connection, (i, child, since) in list(running.items()):
            if time.monotonic() - since > SECONDS_PER_FILE:
                child.kill()
                child.join()
                verdicts[left[i][0]] = ("?", f"the reader hung for {SECONDS_PER_FILE} s")
                left[i] = left[i][1:]
                del running[connection]
    return verdicts


@pytest.fixture(scope="module")
def sound_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sound")
    for name, kind in KINDS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some formats warn of what they cannot hold
            kind.write(folder / name)
            kind.read(folder / name)  # loads the libraries before memory becomes scarce
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_the_sound_file_is_read(kind: str, sound_files: Path) -> None:
    assert KINDS[kind].read(sound_files / kind)


@pytest.mark.parametrize(
    "n_of_each_kind",
    [50, pytest.param(210, marks=pytest.mark.slow(reason="the same with five thousand files in all"))],
)
def test_damaged_files_are_refused_in_words_or_read_right(
    n_of_each_kind: int, sound_files: Path, damage: Damage, monkeypatch: pytest.MonkeyPatch
) -> None:
    for format_with_live_files in (orienteer_hdf5, cxi):  # nobody writes here whom it would help to wait for
        monkeypatch.setattr(format_with_live_files, "_LIVE_ATTEMPTS", 2)
    kinds = list(KINDS)
    assert len(kinds) >= 24
    tasks = [(kind, seed) for seed in range(n_of_each_kind) for kind in kinds]
    verdicts = read_all(tasks, sound_files, damage)
    assert len(verdicts) == len(tasks)
    failures = [
        f"{kind}, {done}, seed {seed}: {what}"
        for (kind, seed), (done, what) in verdicts.items()
        if what not in ("read", "refused")
    ]
    assert not failures, f"{len(failures)} of {len(tasks)}:\n" + "\n".join(failures[:40])
    # The damage is real: most files of every kind are refused.
    refused = Counter(kind for (kind, _), (_, what) in verdicts.items() if what == "refused")
    least = {kind: n_of_each_kind / (10 if KINDS[kind].is_forgiving else 4) for kind in kinds}
    assert all(refused[kind] > least[kind] for kind in kinds), refused


@pytest.mark.parametrize("kind", KINDS)
def test_directories_and_missing_files_are_refused(kind: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for name in ("folder", "missing"):
        with pytest.raises(orienteer.OrienteerError, match=name):
            KINDS[kind].read(tmp_path / name)


@pytest.mark.parametrize("kind", [name for name in KINDS if name != "settings"])
def test_an_empty_file_is_refused(kind: str, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    with pytest.raises(orienteer.OrienteerError, match=r"empty|0 bytes"):
        KINDS[kind].read(tmp_path / "empty")


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_without_permission_is_refused(
    kind: str, sound_files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The refusal is played wherever Python opens a file, since root may read everything."""
    path, real_open = sound_files / kind, io.open

    def refuse(file: Any, *arguments: Any, **options: Any) -> Any:
        if isinstance(file, int) or Path(os.fsdecode(file)) != path:
            return real_open(file, *arguments, **options)
        raise PermissionError(13, "Permission denied", str(path))

    for module in (io, builtins):
        monkeypatch.setattr(module, "open", refuse)
    with pytest.raises(orienteer.OrienteerError, match=re.escape(str(path))) as caught:
        KINDS[kind].read(path)
    assert "permission" in str(caught.value).lower()
