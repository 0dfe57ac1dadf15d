"""What all tests share: options, and skips that say why."""

import gc
import os
import runpy
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

# Tests run beside each other: threads and ranks that wait for others must leave them the cores meanwhile.
# The libraries read this when they are loaded, so that it stands before all that load them.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("MPIR_CVAR_ENABLE_HEAVY_YIELD", "1")
# Threads of matrix products spin while they wait, whatever they are told: half of the time of all tests.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# So do those of fast transforms; loops of Numba have all cores in spite of this.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Workers, and the many programs that tests start, take what is compiled already, also where the environment
# asks Python to keep nothing.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

import hypothesis
import numpy as np
import pytest
from _pytest.doctest import DoctestModule
from matplotlib.layout_engine import ConstrainedLayoutEngine

from orienteer.compute.arrays import import_cupy

sys.dont_write_bytecode = False

# Tests write thousands of small files, and would wait for the disk: memory keeps them, where it has room.
IN_MEMORY = Path("/dev/shm")
if os.access(IN_MEMORY, os.W_OK) and shutil.disk_usage(IN_MEMORY).free > 4 << 30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(IN_MEMORY))
COMPILED_ONCE = Path(__file__).with_name("compiled_once.py")
runpy.run_path(str(COMPILED_ONCE))["compile_once"]()


# Beside others an example may take long, which is no failure.  Whoever changes something meets the same
# examples as everybody; new ones are drawn with --slow.
UNHURRIED: dict[str, Any] = {"deadline": None, "suppress_health_check": [hypothesis.HealthCheck.too_slow]}
hypothesis.settings.register_profile("same examples", derandomize=True, **UNHURRIED)
hypothesis.settings.register_profile("new examples", **UNHURRIED)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="also run tests that take long")
    parser.addoption("--rehearse", action="store_true", help="tests for the GPU on the CPU: tests/rehearsal/")


REHEARSAL = Path(__file__).with_name("rehearsal")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--rehearse"):
        runpy.run_path(str(REHEARSAL / "begin.py"))["begin"]()
    hypothesis.settings.load_profile("new examples" if config.getoption("--slow") else "same examples")


def pytest_sessionstart(session: pytest.Session) -> None:
    plugins = session.config.pluginmanager
    if (terminal := plugins.get_plugin("terminalreporter")) is not None:  # workers have none
        plugins.register(FailuresAtOnce(terminal))


class FailuresAtOnce:
    """Names a test when it fails, and not only at the end, which a run that is cut off does not reach."""

    def __init__(self, terminal: Any) -> None:
        self._terminal = terminal

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._terminal.write_line(f"\nFAILED {report.nodeid} ({report.when}, {report.duration:.0f} s)")


# Folders and files whose tests share what is costly and made once; they run in one worker.
TOGETHER = (
    "tests/validate/", "tests/cluster/test_real_", "tests/reconstruction/ranks/", "tests/online/",
    "tests/campaign/", "tests/dashboard/page/", "tests/report/",
)  # fmt: skip


def scope_of(nodeid: str) -> str:
    """The tests with which one runs in the same worker: those of the same scope, in their order."""
    path = nodeid.partition("::")[0]
    for start in TOGETHER:
        if path.startswith(start):
            return start
    return path if _has_fixtures_of_its_own(path) else nodeid


def begins_late(nodeid: str) -> bool:
    """Whether a test can wait; what one worker does alone begins first, or all others would wait for it."""
    return not nodeid.startswith(TOGETHER)


@cache
def _has_fixtures_of_its_own(path: str) -> bool:
    return 'scope="module"' in (Path(__file__).parents[1] / path).read_text(encoding="utf-8")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With ``--dist loadgroup``, groups by file: xdist 3.8 does not see marks of groups in pytest 9.2."""
    if config.getvalue("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class TogetherScheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return scope_of(nodeid)

    return TogetherScheduling(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Iterator[None]:
    """Examples in docstrings are those of the package: in tests nobody looks for any, which takes seconds."""
    found: list[pytest.Collector] = yield
    return [each for each in found if not isinstance(each, DoctestModule)]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """All tests and modules stay to the end: looking through them for garbage, ever again, finds nothing."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: begins_late(item.nodeid))
    for module in {item.module for item in items if isinstance(item, pytest.Function)}:
        FRESH[module.__name__] = [(draws, draws.bit_generator.state) for draws in generators_of(module)]
    no_gpu = pytest.mark.skip(reason="needs a CUDA device and CuPy, none here")
    rehearses = config.getoption("--rehearse")
    why_left_out = runpy.run_path(str(REHEARSAL / "left_out.py"))["why_left_out"] if rehearses else None
    for item in items:
        if "gpu" in item.keywords and import_cupy() is None:
            item.add_marker(no_gpu)
        elif "gpu" in item.keywords and why_left_out and (why := why_left_out(item.nodeid)):
            item.add_marker(pytest.mark.skip(reason=why))
        slow = item.get_closest_marker("slow")
        if slow is not None and not config.getoption("--slow"):
            why = slow.kwargs.get("reason", "takes more than a minute")
            item.add_marker(pytest.mark.skip(reason=f"{why}; run with --slow"))


collect_ignore_glob = ["*_script.py", "rehearsal/stand_in/*"]  # programs that tests start
# A background job ignores Ctrl-C, and one behind nohup the end of its terminal: so would every command that a
# test starts and stops in this way.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
TAKEN = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)
HANDLERS = {number: signal.getsignal(number) for number in TAKEN}


@pytest.fixture(autouse=True)
def handlers_of_signals() -> Iterator[None]:
    """The command line takes signals for good, as a program may; other tests must find them as they were."""
    yield
    for number, handler in HANDLERS.items():
        signal.signal(number, handler)


# Modules of tests, with the random numbers that they draw from and how these were when nobody had drawn any.
FRESH: dict[str, list[tuple[np.random.Generator, Any]]] = {}


def generators_of(module: Any) -> list[np.random.Generator]:
    return [value for value in vars(module).values() if isinstance(value, np.random.Generator)]


@pytest.fixture(autouse=True)
def same_draws(request: pytest.FixtureRequest) -> None:
    """A test draws the same numbers whichever others its worker has run before."""
    for draws, state in FRESH.get(getattr(getattr(request.node, "module", None), "__name__", ""), []):
        draws.bit_generator.state = state


@pytest.fixture(autouse=True)
def pictures_without_finding_room(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Finding room for all words takes longer than drawing: only tests of the pictures themselves wait."""
    if not request.node.nodeid.startswith("tests/plot/"):
        monkeypatch.setattr(ConstrainedLayoutEngine, "execute", lambda engine, figure: None)


@pytest.fixture(scope="session")
def write_logs() -> Callable[..., None]:
    """Writes made-up logs of ranks, with the troubles that are asked for (``bench/made_up_logs.py``)."""
    path = Path(__file__).parents[1] / "bench" / "made_up_logs.py"
    write: Callable[..., None] = runpy.run_path(str(path))["write_logs"]
    return write


@pytest.fixture(scope="session")
def frames_of_ranks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where ranks keep the frames that they simulate, for those that come later."""
    return tmp_path_factory.mktemp("frames")


@pytest.fixture
def run_ranks(frames_of_ranks: Path) -> Callable[..., str]:
    """Runs a script on so many ranks, ``run_ranks(3, script, "2x2")``; what they print comes back."""
    beside_python = Path(sys.executable).with_name("mpiexec")
    mpiexec = str(beside_python) if beside_python.exists() else shutil.which("mpiexec")
    if mpiexec is None or find_spec("mpi4py") is None:
        pytest.skip("needs mpiexec and mpi4py, not both are here")

    def run(n: int, script: Path, *arguments: str) -> str:
        command = [mpiexec, "-n", str(n), sys.executable, str(COMPILED_ONCE), str(script), *arguments]
        found = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
        kept = {"PYTHONPATH": os.pathsep.join(found), "MADE_UP_FRAMES": str(frames_of_ranks)}
        environment = {**os.environ, **kept}
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=280, check=False, env=environment
        )
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    return run
