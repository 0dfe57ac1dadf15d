"""Where compiled kernels are kept: beside the package, at home, or in a temporary folder."""

import os
import stat
from contextlib import suppress

_PACKAGE = os.path.dirname(os.path.dirname(__file__))


def give_kernels_a_folder(package: str = _PACKAGE) -> None:
    """Make sure that Numba and CuPy have a folder for compiled code; without one they refuse to compile.

    Numba takes the first folder that it can write to: the one that ``NUMBA_CACHE_DIR`` names, the one beside
    the sources, or one at home.  CuPy takes that of ``CUPY_CACHE_DIR``, or one at home.  In containers and in
    modules of a site, none of them may be writable.  Users then get a temporary folder to which only they can
    write, because code in it is executed.

    package : folder of the package.
    """
    home = os.path.expanduser("~")
    at_home = os.environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
    beside = os.path.join(package, "compute", "__pycache__")
    _give_unless_writable("NUMBA_CACHE_DIR", beside, os.path.join(at_home, "numba"))
    _give_unless_writable("CUPY_CACHE_DIR", os.path.join(home, ".cupy", "kernel_cache"))


def _give_unless_writable(variable: str, *usual: str) -> None:
    """Set an environment variable to a folder, unless the one it names or a usual one can be written to."""
    if not any(folder and _can_be_written(folder) for folder in (os.environ.get(variable), *usual)):
        with suppress(OSError):  # nothing can be written at all: what compiles a kernel will say so
            os.environ[variable] = _folder_of_this_user()


def _folder_of_this_user() -> str:
    """The same in every process of a user; a new one if somebody else has taken its name."""
    import tempfile  # rarely needed, and slow to load

    name = os.path.join(tempfile.gettempdir(), f"orienteer-compiled-{os.getuid()}")
    return name if _is_mine(name) else tempfile.mkdtemp(prefix="orienteer-compiled-")


def _can_be_written(folder: str) -> bool:
    """Whether files can be put into a folder, or into the one that it would be made in."""
    folder = os.path.abspath(folder)
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    return os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)


def _is_mine(folder: str) -> bool:
    """Make a folder for this user alone; False if somebody else has made it or may write there."""
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    except OSError:
        return False
    found = os.lstat(folder)
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022
