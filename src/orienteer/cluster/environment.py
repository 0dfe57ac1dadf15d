"""Environment: every file that the command needs to run elsewhere, interpreter included, and its new path.

Taken along are the interpreter with its standard library, Orienteer, and the installed distributions that it
and its optional parts depend on.  Not taken are the C library, the driver of the GPU and an MPI of the site,
which belong to the machine.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import orienteer
from orienteer.errors import OrienteerError

# Optional parts that jobs may need, by the names of the extras.
EXTRAS = ("", "files", "gpu", "gpu-cuda12", "mpi", "live", "web")
PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"
PACKAGES = f"lib/{PYTHON}/site-packages"
# Parts of the standard library that no job needs.
_NOT_NEEDED = {
    "site-packages", "dist-packages", "test", "idlelib", "tkinter", "turtledemo", "ensurepip", "lib2to3",
    "sitecustomize.py",
}  # fmt: skip
_SYSTEM = ("/lib", "/usr/lib", "/lib64", "/usr/lib64")


@dataclass(frozen=True)
class Environment:
    """Files by their path in the archive.

    distributions : name and version of every package in it; left_out : what could not be taken, in words.
    """

    files: dict[str, Path]
    distributions: dict[str, str]
    left_out: tuple[str, ...]


def collect(further: Sequence[str] = ()) -> Environment:
    """The environment of this process.

    further : distributions that are taken as well, such as plug-ins of the user.
    """
    taken, left_out = _needed(further)
    files = dict(_interpreter())
    for distribution in taken.values():
        files.update(_files_of(distribution))
    files.update(_own_files())
    for name, path in list(files.items()):
        files.update(_compiled(name, path))
    for library in _libraries(files):
        files.setdefault(f"lib/{library.name}", library)
    versions = {name: distribution.version for name, distribution in sorted(taken.items())}
    return Environment(files, versions, tuple(left_out))


def _needed(further: Sequence[str]) -> tuple[dict[str, importlib.metadata.Distribution], list[str]]:
    """Installed distributions that Orienteer depends on, directly or through others; and what is left out."""
    from packaging.requirements import Requirement

    taken: dict[str, importlib.metadata.Distribution] = {}
    left_out: list[str] = []
    waiting = [("orienteer", EXTRAS, False), *((name, ("",), True) for name in further)]
    seen: set[tuple[str, tuple[str, ...]]] = set()
    while waiting:
        name, extras, is_asked_for = waiting.pop()
        key = re.sub(r"[-_.]+", "-", name).lower()
        if (key, extras) in seen:
            continue
        seen.add((key, extras))
        try:
            found = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            if is_asked_for:
                raise OrienteerError(
                    f"--with {name}: it is not installed here.", "Install it first."
                ) from None
            continue
        if key != "orienteer" and '"editable": true' in (found.read_text("direct_url.json") or ""):
            left_out.append(
                f"{name} is installed as a link to its sources: to take it along, install it as a copy"
            )
            continue
        taken[key] = found
        for text in found.requires or ():
            required = Requirement(text)
            if required.marker is None or any(required.marker.evaluate({"extra": extra}) for extra in extras):
                waiting.append((required.name, ("", *sorted(required.extras)), False))
    return taken, left_out


def _files_of(distribution: importlib.metadata.Distribution) -> Iterator[tuple[str, Path]]:
    """Modules, libraries and programs of a distribution, but no scripts, which name this Python."""
    site = Path(os.path.abspath(str(distribution.locate_file(""))))
    for recorded in distribution.files or ():
        path = Path(os.path.abspath(str(distribution.locate_file(recorded))))
        if recorded.name in ("direct_url.json", "REQUESTED") or path.suffix == ".pth" or not path.is_file():
            continue
        if path.is_relative_to(site):
            yield f"{PACKAGES}/{path.relative_to(site)}", path
        elif path.is_relative_to(sys.prefix):
            name = str(path.relative_to(sys.prefix))
            if not name.startswith(("include/", "share/man/")) and not _is_script(path):
                yield name, path


def _own_files() -> Iterator[tuple[str, Path]]:
    """Orienteer as it is now, wherever it is imported from; compiled kernels come along, which saves time."""
    home = Path(orienteer.__file__).parent
    for path in home.rglob("*"):
        if path.is_file() and path.suffix != ".pyc":
            yield f"{PACKAGES}/orienteer/{path.relative_to(home)}", path


def _interpreter() -> Iterator[tuple[str, Path]]:
    yield f"bin/{PYTHON}", Path(os.path.realpath(sys.executable))
    library = Path(sysconfig.get_path("stdlib"))
    for path in library.rglob("*"):
        inside = path.relative_to(library)
        if inside.parts[0] in _NOT_NEEDED or inside.parts[0].startswith("config-") or path.suffix == ".pyc":
            continue
        if path.is_file():
            yield f"lib/{PYTHON}/{inside}", path


def _compiled(name: str, path: Path) -> Iterator[tuple[str, Path]]:
    """The compiled form of a module, so that nodes need not compile it again."""
    if path.suffix == ".py":
        with suppress(NotImplementedError):
            compiled = Path(importlib.util.cache_from_source(str(path)))
            if compiled.is_file():
                yield f"{Path(name).parent}/__pycache__/{compiled.name}", compiled


def _libraries(files: dict[str, Path]) -> set[Path]:
    """Shared libraries that belong to this environment and not to the system."""
    is_conda = (
        Path(sys.prefix) / "conda-meta"
    ).is_dir()  # its packages share libraries; wheels carry their own
    ours = [path for name, path in files.items() if _is_linked(name) and (is_conda or PACKAGES not in name)]
    try:
        told = subprocess.run(
            ["ldd", *map(str, ours)], capture_output=True, text=True, timeout=120, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return set()
    found = {Path(path) for path in re.findall(r"=> (/\S+)", told)}
    homes = {os.path.realpath(sys.base_prefix), os.path.realpath(sys.prefix)}
    return {
        path
        for path in found
        if not str(path).startswith(_SYSTEM)
        and any(Path(os.path.realpath(path)).is_relative_to(home) for home in homes)
    }


def _is_linked(name: str) -> bool:
    return name == f"bin/{PYTHON}" or ".so" in Path(name).suffixes or name.endswith(".so")


def _is_script(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) == b"#!"
