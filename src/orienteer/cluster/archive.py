"""The archive of an environment: wherever it is unpacked, its ``bin/orienteer`` runs and needs nothing else.

It helps thousands of nodes to start at once: one large file is broadcast to their disks, so that they need
not each open ten thousand small files on a shared file system.
"""

from __future__ import annotations

import io
import json
import platform
import shutil
import subprocess
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import orienteer
from orienteer.cluster.environment import PYTHON, Environment
from orienteer.compute.atomic import atomic_path
from orienteer.compute.progress import steps
from orienteer.compute.reading import reading
from orienteer.errors import FileError, OrienteerError

ENDINGS = (".tar.zst", ".tar.gz", ".tar")
_GZIP_LEVEL = 4  # a third of the time of the highest level, for a few per cent more bytes

_COMMAND = f"""#!/bin/sh
# Finds its own folder, wherever the archive was unpacked.
here=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd -P)
unset PYTHONHOME PYTHONPATH
export PYTHONNOUSERSITE=1
export LD_LIBRARY_PATH="$here/lib${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"
exec "$here/bin/{PYTHON}" -m orienteer "$@"
"""
# On some systems, Python has been changed to look for packages in other folders.
_PACKAGES_HERE = '''"""Packages lie beside the standard library, wherever the archive was unpacked."""

import os
import site
import sys

_packages = os.path.join(os.path.dirname(__file__), "site-packages")
if _packages not in sys.path:
    site.addsitedir(_packages)
'''


@dataclass(frozen=True)
class Packed:
    """The archive that was written; sizes in bytes."""

    path: Path
    packed: int
    unpacked: int
    n_files: int


def default_name() -> str:
    """The default name of an archive; its ending selects the best compression of this machine."""
    ending = ENDINGS[0] if shutil.which("zstd") else ENDINGS[1]
    return f"orienteer-{orienteer.__version__}-{platform.system().lower()}-{platform.machine()}{ending}"


def check_name(path: Path) -> str:
    """The ending of the archive's name, which selects the compression."""
    ending = next((ending for ending in ENDINGS if path.name.endswith(ending)), "")
    if not ending:
        raise FileError(
            path, "does not have the ending of an archive.", f"End its name in {', '.join(ENDINGS)}."
        )
    if ending == ".tar.zst" and not shutil.which("zstd"):
        raise OrienteerError("there is no program 'zstd' here.", "Install it, or write a .tar.gz instead.")
    return ending


def write_archive(path: Path, environment: Environment) -> Packed:
    """Write the archive, whole or not at all."""
    ending = check_name(path)
    n_bytes = 0
    with atomic_path(path) as temporary:
        with _compressed(temporary, ending) as stream, tarfile.open(fileobj=stream, mode="w|") as archive:
            for name, content, mode in _made_here(environment):
                archive.addfile(_entry(name, len(content), time.time(), mode), io.BytesIO(content))
            for name in ("bin/python3", "bin/python"):
                link = _entry(name, 0, time.time(), 0o777)
                link.type, link.linkname = tarfile.SYMTYPE, PYTHON
                archive.addfile(link)
            for name, file in steps(sorted(environment.files.items()), "Packing files"):
                with reading(file, "file of the environment"):
                    found, content = file.stat(), file.read_bytes()
                mode = 0o755 if found.st_mode & 0o100 else 0o644
                # Keep the times of files: compiled modules and kernels are valid only if these do not change.
                archive.addfile(_entry(name, len(content), found.st_mtime, mode), io.BytesIO(content))
                n_bytes += len(content)
        packed = temporary.stat().st_size
    return Packed(path, packed, n_bytes, len(environment.files))


def _made_here(environment: Environment) -> Iterator[tuple[str, bytes, int]]:
    about = {
        "format": "orienteer-environment",
        "version": 1,
        "orienteer": orienteer.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "distributions": environment.distributions,
    }
    yield "environment.json", (json.dumps(about, indent=2) + "\n").encode(), 0o644
    yield "bin/orienteer", _COMMAND.encode(), 0o755
    yield f"lib/{PYTHON}/sitecustomize.py", _PACKAGES_HERE.encode(), 0o644


def _entry(name: str, size: int, time_s: float, mode: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mtime, entry.mode = size, int(time_s), mode
    return entry


@contextmanager
def _compressed(path: Path, ending: str) -> Iterator[IO[bytes]]:
    """A stream into the file; Zstandard runs as a program of its own, which uses all cores."""
    if ending == ".tar":
        with path.open("wb") as file:
            yield file
    elif ending == ".tar.gz":
        import gzip

        with gzip.open(path, "wb", compresslevel=_GZIP_LEVEL) as packed:
            yield packed  # type: ignore[misc]
    else:
        with path.open("wb") as file:
            program = subprocess.Popen(
                ["zstd", "--threads=0", "--quiet", "--stdout"],
                stdin=subprocess.PIPE,
                stdout=file,
                stderr=subprocess.PIPE,
            )
            assert program.stdin is not None
            assert program.stderr is not None
            try:
                with program.stdin as stream:
                    yield stream
            except BrokenPipeError:
                pass  # zstd prints the reason, which is read below
            finally:
                said = program.stderr.read().decode(errors="replace").strip()
                program.stderr.close()
                status = program.wait()
            if status:
                raise FileError(
                    path,
                    f"could not be packed: {said or 'zstd failed'}.",
                    "Check the free space on the disk, or write a .tar.gz, which needs no zstd.",
                )
