"""Five thousand damaged files: each gives an OrienteerError that names it, or data of the right shape.

Files are damaged from a seed and read completely in child processes with little memory and little time, so
that a crash, a hang or a huge allocation is found and named by kind of file, kind of damage and seed.
"""

import multiprocessing
import os
import resource
import shutil
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
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
from orienteer.source.opening import writer_for
from orienteer.source.patterns import Patterns, first_bad_frame
from orienteer.volume.hdf5 import write_volume_hdf5
from orienteer.volume.mrc import write_mrc
from orienteer.volume.opening import open_volumes
from orienteer.volume.volume import Volume

N_FILES_OF_EACH_KIND = 280
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
    source.close()
    arrays = [(p.frames.start, p.frames.pixel, p.frames.count) if p.is_sparse else p.frames for p in parts]
    return [*facts, *arrays, *((p.event_id, sorted(p.columns.items())) for p in parts)]


def read_facts(found: Any) -> list[Any]:
    assert found.positions_m.shape == (found.n_pixels, 3)
    assert np.isfinite(found.positions_m).all()
    assert found.mask.shape == (found.n_pixels,)
    return [found.name, found.positions_m, found.mask, found.frame_shape]


def read_geometry(path: Path) -> list[Any]:
    return read_facts(open_detector(path, wavelength_A=WAVELENGTH_A))


def read_volumes(path: Path) -> list[Any]:
    volumes = open_volumes(path, voxel_size=1.0 if b"intens" in path.read_bytes() else None)
    for found in volumes:
        assert found.values.ndim == 3
        assert not np.isinf(found.values).any()
    return [(found.values, found.voxel_size, found.origin, found.space) for found in volumes]


@dataclass(frozen=True)
class Kind:
    """A kind of file: how to write a sound one and read it, and whether checksums cover all of it."""

    write: Callable[[Path], None]
    read: Callable[[Path], list[Any]] = read_patterns
    is_checked: bool = False


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
    "Dragonfly output": Kind(write_dragonfly_output, read_volumes),
    "CrystFEL geometry": Kind(lambda path: write_crystfel_geom(path, detector()), read_geometry),
    "Dragonfly detector": Kind(lambda path: write_dragonfly_text(path, detector()), read_geometry),
    "Orienteer data as geometry": Kind(write_patterns("Orienteer", "sparse"), read_geometry, is_checked=True),
    "Orienteer live data as geometry": Kind(write_live, read_geometry, is_checked=True),
    "Dragonfly HDF5 detector": Kind(lambda path: write_dragonfly_hdf5(path, detector()), read_geometry),
}


# Reading in children, and what the parent accepts.


def same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return isinstance(a, type(b)) and a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b)


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
        ran_out = "memory" in str(error) and "on disk image buffer" not in str(error)
        return done, f"out of memory: {error}" if ran_out else "refused"
    except BaseException as error:
        return done, f"{type(error).__name__}: {error}"
    must_be_same = KINDS[kind].is_checked and not done.startswith("spoil")
    if must_be_same and not same(found, KINDS[kind].read(folder / kind)):
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
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_the_sound_file_is_read(kind: str, sound_files: Path) -> None:
    assert KINDS[kind].read(sound_files / kind)


def test_five_thousand_damaged_files_are_refused_in_words_or_read_right(
    sound_files: Path, damage: Damage
) -> None:
    tasks = [(kind, seed) for seed in range(N_FILES_OF_EACH_KIND) for kind in KINDS]
    assert len(tasks) >= 5000
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
    assert min(refused[kind] for kind in KINDS) > N_FILES_OF_EACH_KIND / 4, refused


@pytest.mark.parametrize("read", [orienteer.open, open_detector, open_volumes])
def test_directories_missing_and_empty_files_are_refused(read: Callable[[Path], Any], tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "folder").mkdir()
    for name in ("empty", "folder", "missing"):
        with pytest.raises(orienteer.OrienteerError, match=name):
            read(tmp_path / name)
