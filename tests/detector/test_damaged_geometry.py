"""Thousands of damaged geometry files give a FileError or a whole detector, and never anything else."""

import random
import subprocess
import sys
import textwrap
import warnings
from collections import Counter
from pathlib import Path

import h5py
import numpy as np
import pytest

from orienteer.detector.detector import Detector
from orienteer.detector.dragonfly import write_dragonfly_text
from orienteer.detector.hdf5 import write_detector
from orienteer.detector.opening import open_detector
from orienteer.detector.spinifel import write_spinifel_group
from orienteer.detector.square import square_detector
from orienteer.errors import FileError

MODULES_GEOM = (Path(__file__).parent / "data" / "modules.geom").read_text()
STACKED_GEOM = (Path(__file__).parent / "data" / "stacked.geom").read_text()

WORDS = [b"nan", b"inf", b"-1", b"1e308", b"999999999", b"0", b"%", b"=", b"/", b"\n", b";", b"\xff", b"0x"]


def damage(raw: bytes, rng: random.Random) -> bytes:
    data = bytearray(raw)
    kind = rng.randrange(6)
    if kind == 0:
        return raw[: rng.randrange(len(raw))]
    if kind == 1:
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif kind == 2:
        place = rng.randrange(len(data))
        data[place : place + rng.randrange(5)] = rng.choice(WORDS)
    elif kind == 3:
        start = rng.randrange(len(data))
        del data[start : start + rng.randrange(200)]
    elif kind == 4:
        lines = raw.splitlines(keepends=True)
        rng.shuffle(lines)
        return b"".join(lines)
    else:
        start, other = rng.randrange(len(data)), rng.randrange(len(data))
        data[start : start + 40] = data[other : other + 40]
    return bytes(data)


def assert_whole(detector: Detector) -> None:
    assert detector.positions_m.shape == (detector.n_pixels, 3)
    for values in (detector.ewald_vectors, detector.correction()):
        assert np.isfinite(values).all()


@pytest.mark.parametrize("form", ["modules", "stacked", "dragonfly"])
def test_damaged_text_is_a_file_error_or_a_whole_detector(form: str, tmp_path: Path) -> None:
    path = tmp_path / "fuzz"
    if form == "dragonfly":
        write_dragonfly_text(path, square_detector(6, 1e-3, 0.05))
        raw = path.read_bytes()
    else:
        raw = (
            MODULES_GEOM if form == "modules" else STACKED_GEOM + "bad1/min_x = 0\nbad1/max_x = 3\n"
        ).encode()
    outcomes = Counter[str]()
    for seed in range(700):
        path.write_bytes(damage(raw, random.Random(seed)))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                detector = open_detector(path)
        except FileError as error:
            outcomes["error" if str(path) in str(error) else "error without a name"] += 1
        else:
            if detector.n_pixels <= 1 << 20:
                assert_whole(detector)
            outcomes["detector"] += 1
    assert set(outcomes) == {"error", "detector"}
    assert min(outcomes.values()) > 10, outcomes


HDF5_LOOP = """
    import pathlib, random, resource, sys
    import numpy as np
    from orienteer.detector.opening import open_detector
    from orienteer.errors import FileError

    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    source, path = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    raw = source.read_bytes()
    for seed in range(int(sys.argv[3])):
        rng = random.Random(seed)
        data = bytearray(raw)
        if seed % 4 == 0:
            del data[rng.randrange(len(data)):]
        for _ in range(rng.randint(1, 8)):
            if data:
                data[rng.randrange(len(data))] = rng.randrange(256)
        path.write_bytes(data)
        print("seed", seed, flush=True)
        try:
            detector = open_detector(path)
        except FileError as error:
            assert str(path) in str(error)
        else:
            assert np.isfinite(detector.correction()).all()
"""


@pytest.mark.parametrize("form", ["own", "own in old HDF5", "spinifel"])
def test_damaged_hdf5_is_a_file_error_or_a_whole_detector(form: str, tmp_path: Path) -> None:
    # In a process of its own, so that a crash of the HDF5 library would be seen and not end the tests.
    with h5py.File(tmp_path / "whole.h5", "w", libver="earliest" if "old" in form else "latest") as file:
        if form != "spinifel":
            write_detector(file.create_group("detector"), square_detector(8, 1e-3, 0.05))
        else:
            write_spinifel_group(file, square_detector(8, 1e-3, 0.05), 2.0)
    command = [
        sys.executable,
        "-c",
        textwrap.dedent(HDF5_LOOP),
        str(tmp_path / "whole.h5"),
        str(tmp_path / "fuzz"),
        "300",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert "seed 299" in done.stdout, done.stderr[-2000:]
    assert done.returncode == 0, f"{done.stdout[-100:]}\n{done.stderr[-2000:]}"
