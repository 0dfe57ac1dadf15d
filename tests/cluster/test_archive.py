"""The archive of an environment: it runs elsewhere, and without the environment that it was made from."""

import json
import os
import py_compile
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import orienteer
from orienteer.cluster.archive import check_name, write_archive
from orienteer.cluster.environment import PACKAGES, PYTHON, Environment, collect
from orienteer.errors import FileError, OrienteerError

HOMES = {
    os.path.realpath(path) for path in (sys.prefix, sys.base_prefix, Path(orienteer.__file__).parents[1])
}
# What a program of the archive has loaded, whatever the way.
LOADED = """
import sys, orienteer.cli.main, numba, scipy.fft, h5py, finufft, gemmi, mpi4py
maps = open("/proc/self/maps").read().splitlines()
print(orienteer.__version__, *{line.split(None, 5)[5].strip() for line in maps if "/" in line})
print(*[module.__file__ for module in list(sys.modules.values()) if getattr(module, "__file__", None)])
"""


@pytest.fixture(scope="module")
def environment() -> Environment:
    # Compiled whether or not this machine lets Python do so by itself.
    py_compile.compile(str(Path(orienteer.__file__).parent / "errors.py"))
    return collect()


@pytest.fixture(scope="module")
def unpacked(environment: Environment, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An archive, unpacked in another place; not compressed, since that takes longest."""
    folder = tmp_path_factory.mktemp("else where")
    packed = write_archive(folder / "env.tar", environment)
    assert packed.packed >= packed.unpacked > 10_000_000
    subprocess.run(["tar", "-xf", "env.tar"], cwd=folder, check=True)
    (folder / "env.tar").unlink()
    yield folder
    shutil.rmtree(folder)


def clean() -> dict[str, str]:
    return {"PATH": "/usr/bin:/bin", "HOME": "/nowhere"}


def test_the_command_runs_where_it_was_unpacked(unpacked: Path) -> None:
    done = subprocess.run(
        [unpacked / "bin" / "orienteer", "--version"], env=clean(), capture_output=True, text=True
    )
    assert done.stdout == f"orienteer {orienteer.__version__}\n", done.stderr


def test_nothing_is_loaded_from_the_environment_that_was_packed(unpacked: Path) -> None:
    program = (unpacked / "bin" / "orienteer").read_text().replace('-m orienteer "$@"', '-c "$1"')
    (unpacked / "bin" / "probe").write_text(program)
    done = subprocess.run(
        ["sh", unpacked / "bin" / "probe", LOADED], env=clean(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    for home in HOMES - {"/usr"}:
        assert f" {home}/" not in done.stdout
    assert f"{unpacked}/{PACKAGES}/numpy" in done.stdout


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("unshare") is None or "/usr" in HOMES,
    reason="hiding an environment needs root, unshare, and one that is not the system's",
)
def test_it_runs_with_the_environment_that_was_packed_hidden(unpacked: Path, tmp_path: Path) -> None:
    hide = " && ".join(f"mount -t tmpfs none {home}" for home in sorted(HOMES))
    check = " && ".join(f'[ -z "$(ls -A {home})" ]' for home in sorted(HOMES))
    work = f'"{unpacked}/bin/orienteer" simulate sphere --frames 3 --out frames.h5 --set detector.pixels=16'
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", f"{hide} && {check} && {work}"],
        env=clean(), cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip(f"mounts are not allowed here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "frames.h5").stat().st_size > 1000


def test_an_archive_tells_what_is_in_it(unpacked: Path) -> None:
    about = json.loads((unpacked / "environment.json").read_text())
    assert about["orienteer"] == orienteer.__version__
    assert {"numpy", "numba", "h5py"} <= set(about["distributions"])
    # What only developers need stays at home.
    assert not {"pytest", "mypy", "mkdocs"} & set(about["distributions"])


def test_compiled_modules_still_hold(unpacked: Path) -> None:
    source = unpacked / PACKAGES / "orienteer" / "errors.py"
    original = Path(orienteer.__file__).parent / "errors.py"
    assert int(source.stat().st_mtime) == int(original.stat().st_mtime)
    tag = sys.implementation.cache_tag
    assert (source.parent / "__pycache__" / f"errors.{tag}.pyc").exists()


@pytest.mark.parametrize("ending", [".tar.gz", ".tar.zst"])
def test_archives_are_compressed_as_their_name_says(tmp_path: Path, ending: str) -> None:
    if ending == ".tar.zst" and shutil.which("zstd") is None:
        pytest.skip("there is no zstd here")
    (tmp_path / "file").write_bytes(b"x" * 100_000)
    path = tmp_path / f"env{ending}"
    packed = write_archive(path, Environment({"lib/file": tmp_path / "file"}, {}, ()))
    assert packed.packed == path.stat().st_size < 10_000
    listed = subprocess.run(["tar", "-tf", path], capture_output=True, text=True, check=True).stdout.split()
    assert listed == [
        "environment.json", "bin/orienteer", f"lib/{PYTHON}/sitecustomize.py", "bin/python3", "bin/python",
        "lib/file",
    ]  # fmt: skip


def test_a_file_that_vanishes_leaves_no_archive(tmp_path: Path) -> None:
    files = {"a": tmp_path / "a", "b": tmp_path / "gone"}
    (tmp_path / "a").touch()
    with pytest.raises(FileError, match="gone"):
        write_archive(tmp_path / "env.tar", Environment(files, {}, ()))
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_other_names_and_unknown_packages_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="does not have the ending of an archive"):
        check_name(tmp_path / "env.zip")
    with pytest.raises(OrienteerError, match="--with nosuchpackage: it is not installed here"):
        collect(["nosuchpackage"])


def test_archives_hold_no_scripts_with_the_path_of_another_python(unpacked: Path) -> None:
    for path in (unpacked / "bin").iterdir():
        if path.is_file() and path.read_bytes()[:2] == b"#!":
            assert path.read_bytes().startswith(b"#!/bin/sh\n") or path.name == "probe"


def test_links_stay_inside(tmp_path: Path) -> None:
    write_archive(tmp_path / "env.tar", Environment({}, {}, ()))
    with tarfile.open(tmp_path / "env.tar") as archive:
        assert {entry.linkname for entry in archive if entry.issym()} == {PYTHON}
